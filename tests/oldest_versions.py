"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

``make test-oldest`` installs them: ``python tests/oldest_versions.py > constraints.txt``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BENCH = tomllib.loads((ROOT / "bench" / "pyproject.toml").read_text(encoding="utf-8"))

# A requirement with its lowest version: name, extras, version.
_REQUIREMENT = re.compile(r"([\w.-]+)(\[[\w,-]+\])?>=([\w.]+)")


def requirements() -> Iterator[tuple[str, str]]:
    """Yield what both packages and the extras need: names with their lowest versions."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    plain = (project["project"]["dependencies"] for project in (PROJECT, BENCH))
    for text in chain(*plain, *extras):
        if text.startswith("qms22"):  # each of the two needs the other, of the same version
            continue
        match = _REQUIREMENT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} in pyproject.toml must be a name, '>=' and a version")
        yield match[1], match[3]


if __name__ == "__main__":
    for name, version in sorted(set(requirements())):
        print(f"{name}=={version}")

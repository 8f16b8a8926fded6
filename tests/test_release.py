"""What a release relies on: one version everywhere, and tests of wheels that exist."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import qms22

ROOT = Path(__file__).parent.parent
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_the_same_everywhere() -> None:
    bench = tomllib.loads((ROOT / "bench" / "pyproject.toml").read_text())["project"]
    assert SETTINGS["project"]["version"] == bench["version"] == qms22.__version__
    assert f"qms22=={qms22.__version__}" in bench["dependencies"]
    extras = SETTINGS["project"]["optional-dependencies"]
    assert extras["bench"] == [f"qms22-bench=={qms22.__version__}"]


def test_both_distributions_have_the_same_license() -> None:
    assert (ROOT / "bench" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_tests_of_wheels_exist() -> None:
    words = SETTINGS["tool"]["cibuildwheel"]["test-command"].split()
    tests = [word.split("::") for word in words if word.startswith("tests/")]
    assert len(tests) > 5
    for path, *names in tests:
        text = (ROOT / path).read_text()
        assert all(f"def {name}(" in text for name in names)

"""Write the files of all cases: ``python tests/messy/make_files.py``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from date_cases import DATES
from file_cases import ENCODINGS, HEADERS, SEPARATORS
from format_cases import FORMATS
from value_cases import NUMBERS, WORDS

FOLDER = Path(__file__).parent / "files"
CASES = [*NUMBERS, *WORDS, *DATES, *ENCODINGS, *SEPARATORS, *HEADERS, *FORMATS]


def main() -> None:
    """Write a directory for each case, with its files and what must come out."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for seed, case in enumerate(CASES):
        folder = FOLDER / case.name
        folder.mkdir(parents=True)
        for name, content in case.files(seed).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        (folder / "expected.json").write_text(_json_text(case.expected(seed)))


def _json_text(values: dict[str, Any]) -> str:
    """Return JSON with a line for each value, and for each of those within an object."""
    lines = []
    for name, value in values.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict) and value:
            inner = (
                f'  "{key}": {json.dumps(each, ensure_ascii=False)}' for key, each in value.items()
            )
            text = "{\n" + ",\n".join(inner) + "\n }"
        lines.append(f' "{name}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()

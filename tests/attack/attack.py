"""Run every attack and print what was tried and what held: `make attack`.

An attack that is skipped has not held. With a path, the table also goes into that page, between its
two marks.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_MARKS = ("<!-- table -->\n", "<!-- end -->\n")


class Table:
    """Counts the tests of each function, under the first line of its docstring."""

    def __init__(self, folder: Path) -> None:
        self._titles = dict(
            pair for path in sorted(folder.glob("test_*.py")) for pair in _titles(path)
        )
        self._held: dict[str, list[bool]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count an attack: once if it held, and each of its faults."""
        if report.when == "call" or not report.passed:
            name = report.nodeid.partition("[")[0].rpartition("/")[2]
            self._held.setdefault(self._titles[name], []).append(report.passed)

    def lines(self) -> list[str]:
        """Return the table in Markdown."""
        found = ((title, self._held.get(title, [])) for title in self._titles.values())
        rows = [f"| {title} | {len(held)} | {sum(held)} |" for title, held in found]
        return ["| what | tried | held |", "|---|---:|---:|", *rows]

    @property
    def has_held(self) -> bool:
        """Whether every attack held, and none was skipped."""
        titles = set(self._titles.values())
        return titles == set(self._held) and all(map(all, self._held.values()))


def _titles(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the tests of a file, as ``file::function``, and what they try."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            title = ast.get_docstring(node)
            assert title, f"{node.name} does not say what it tries"
            yield f"{path.name}::{node.name}", title.splitlines()[0]


def main(page: Path | None) -> int:
    """Run the attacks; return 1 if one did not hold."""
    folder = Path(__file__).parent
    table = Table(folder)
    code = pytest.main(["-q", "-rfEs", "-n", "2", "--dist", "worksteal", str(folder)], [table])
    text = "\n".join(table.lines()) + "\n"
    print(f"\n{text}")
    if page is not None:
        before, rest = page.read_text().split(_MARKS[0])
        after = rest.partition(_MARKS[1])[2]
        page.write_text(f"{before}{_MARKS[0]}{text}{_MARKS[1]}{after}")
    return 0 if code == 0 and table.has_held else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else None))

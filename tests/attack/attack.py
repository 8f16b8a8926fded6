"""Run every attack and print what was tried and what held: `make attack`.

An attack that is skipped has not held. With a path, the table also goes into that page, between its
two marks.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

_MARKS = ("<!-- table -->\n", "<!-- end -->\n")


class Table:
    """Counts the tests of each function, under the first line of its docstring."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._held: dict[str, list[bool]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note what each attack tries."""
        for item in items:
            assert isinstance(item, pytest.Function)
            title = inspect.getdoc(item.function)
            assert title, f"{item.nodeid} does not say what it tries"
            self._titles[item.nodeid] = title.splitlines()[0]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count an attack: once if it held, and each of its faults."""
        if report.when == "call" or not report.passed:
            self._held.setdefault(self._titles[report.nodeid], []).append(report.passed)

    def lines(self) -> list[str]:
        """Return the table in Markdown."""
        rows = [f"| {title} | {len(held)} | {sum(held)} |" for title, held in self._held.items()]
        return ["| what | tried | held |", "|---|---:|---:|", *rows]

    @property
    def has_held(self) -> bool:
        """Whether every attack held, and none was skipped."""
        titles = set(self._titles.values())
        return titles == set(self._held) and all(map(all, self._held.values()))


def main(page: Path | None) -> int:
    """Run the attacks; return 1 if one did not hold."""
    table = Table()
    code = pytest.main(["-q", "-rfEs", "-p", "no:xdist", str(Path(__file__).parent)], [table])
    text = "\n".join(table.lines()) + "\n"
    print(f"\n{text}")
    if page is not None:
        before, rest = page.read_text().split(_MARKS[0])
        after = rest.partition(_MARKS[1])[2]
        page.write_text(f"{before}{_MARKS[0]}{text}{_MARKS[1]}{after}")
    return 0 if code == 0 and table.has_held else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else None))

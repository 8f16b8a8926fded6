"""Checks beside the score: what is odd about single cells and rows, in words.

- `check`: what every check can do. `table_checks`: all checks of a table, learned and applied.
- `single`, `dates`, `joint`: cells by themselves, dates, cells that do not go together.
- `fitting`, `relations`: numbers that do not fit the others of their row. `surprise`: how rare
  a value is.
"""

from qms22.checks.table_checks import OddCells, OwnOddness, TableChecks

__all__ = ["OddCells", "OwnOddness", "TableChecks"]

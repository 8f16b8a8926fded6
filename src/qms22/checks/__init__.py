"""Checks beside the score: what is odd about single cells and rows, in words.

- `check`: what every check can do. `table_checks`: all checks of a table, learned and applied.
- `single`, `missing`, `dates`, `texts`, `check_digits`: cells by themselves.
- `groups`, `dependence`, `order`: cells that belong together; `codings`: columns as codes for them.
- `arithmetic`: sums and products. `fitting`, `relations`: numbers that do not fit the others.
- `copies`, `sequences`: rows that belong together. `surprise`: how rare a value is.
"""

from qms22.checks.table_checks import OddCells, OwnOddness, TableChecks

__all__ = ["OddCells", "OwnOddness", "TableChecks"]

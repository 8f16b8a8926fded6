"""Checks beside the score: what is odd about single cells and rows, in words.

- `check`: what every check can do. `table_checks`: all checks of a table, and where rows are the
  oddest. `choice`: which it has. `codings`: columns as codes, and texts as numbers.
- `single`, `dates`, `texts`, `check_digits`: cells by themselves.
- `groups`, `dependence`: cells that belong together.
- `arithmetic`: sums and products. `product_limits`: products that have limits. `fitting`,
  `relations`: numbers that do not fit the others.
- `copies`, `sequences`, `series`, `limits`: rows that belong together. `cases`: rows that are one
  case.
- `surprise`: how rare a value is.
"""

from qms22.checks.choice import LearnedChecks, learn_checks
from qms22.checks.table_checks import OddCells, TableChecks

__all__ = ["LearnedChecks", "OddCells", "TableChecks", "learn_checks"]

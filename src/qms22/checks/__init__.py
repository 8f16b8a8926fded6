"""Checks beside the score: what is odd about single cells and rows, in words.

- `check`: what every check can do. `table_checks`: all checks of a table. `learning`: which it has.
- `roles`: what columns are to checks; `codings`: columns as codes.
- `single`, `missing`, `dates`, `texts`, `check_digits`: cells by themselves.
- `groups`, `dependence`, `order`: cells that belong together.
- `arithmetic`: sums and products. `fitting`, `relations`: numbers that do not fit the others.
- `copies`, `sequences`, `series`: rows that belong together. `cases`: rows that are one case.
- `surprise`: how rare a value is. `odd_cells`: where rows are the oddest.
"""

from qms22.checks.learning import LearnedChecks, learn_checks
from qms22.checks.odd_cells import OddCells
from qms22.checks.table_checks import TableChecks

__all__ = ["LearnedChecks", "OddCells", "TableChecks", "learn_checks"]

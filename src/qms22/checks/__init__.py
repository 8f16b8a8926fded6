"""Checks beside the score: what is odd about single cells and rows, in words.

A check learns from known-normal rows, says how rare a row is among these (its surprise) and
describes it in words; what a batch does as a whole is not odd.

- `check`: what every check can do, and those of a number or a rule. `surprise`: how rare a value
  is. `counting`: what a batch has more often. `table_checks`: all checks of a table, and where rows
  are the oddest. `choice`: which it has. `codings`: columns as codes, and texts as numbers.
- `single`, `dates`, `texts`, `check_digits`: cells by themselves.
- `groups`, `dependence`: cells that belong together. `arithmetic`: sums and products. `fitting`,
  `relations`: numbers that do not fit the others.
- `copies`: rows that are there again. `cases`: rows that are one case.
- `sequences`: a room of its own, for rows of one entity in the order of time.
"""

from qms22.checks.choice import LearnedChecks, learn_checks
from qms22.checks.table_checks import OddCells, TableChecks

__all__ = ["LearnedChecks", "OddCells", "TableChecks", "learn_checks"]

"""Compare the columns of a batch with those of known-normal rows: what moved, and what is missing.

Two questions are asked of every column. Did it move: are the values of the batch distributed unlike
the normal ones? And are normal rows missing: does some range or level hold clearly fewer rows than
it would if all but a fifth of the batch were drawn as the normal rows were? A batch with anomalies
still has its normal rows, so that the second question distinguishes drift from anomalies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betainc, betaln, kolmogorov

from qms22.estimators.beta_binomial import beta_binomial_cdf

# A batch of which less than this share is like the normal rows has drifted.
LEAST_NORMAL = 0.8

# More rows than this of each table need not be compared.
MOST_COMPARED = 20_000

# Moves smaller than these are not worth naming, however certain they are: the largest difference
# between two distribution functions, or the share of rows that changed their level; and the
# difference between two shares of missing cells.
LEAST_MOVE = 0.1
LEAST_MISSING_MOVE = 0.05

# A column looks like a period or a counter if this share of the batch is where no normal row is.
_OUTSIDE = 0.9


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """One column of the known-normal rows and of the batch.

    Parameters
    ----------
    name : str
    normal, batch : ndarray of shape (n_normal,) and (n_batch,)
        Numbers, with NaN for missing ones. If there are levels, positions in `levels`, with -1 for
        missing ones.
    levels : tuple of str
        The levels of a category, of both tables; empty for numbers.
    """

    name: str
    normal: NDArray[np.float64] | NDArray[np.integer]
    batch: NDArray[np.float64] | NDArray[np.integer]
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class MovedColumn:
    """How the values of a column, or its share of missing cells, differ between two tables.

    Parameters
    ----------
    name : str
    change : str
        What changed, in the units of the column: "median 12.3 → 15.1", "share of 'US' 40 % → 55 %",
        "missing 1 % → 8 %".
    effect : float
        In [0, 1]: the largest difference between the two distribution functions of numbers, half of
        the sum of the differences between the shares of levels, or the difference between the
        shares of missing cells.
    p_value : float
        Of the hypothesis that the batch is like the normal rows in all columns, adjusted for the
        number of comparisons by Holm's method.
    p_lost : float
        Of the hypothesis that at least four fifths of the batch are like the normal rows, adjusted
        for the number of comparisons by Bonferroni's.
    is_period : bool
        Whether it looks like a period or a counter: nearly all values of the batch are whole numbers
        outside the range of the normal ones, or levels that no normal row has.
    """

    name: str
    change: str
    effect: float
    p_value: float
    p_lost: float
    is_period: bool = False


def compare_columns(columns: Sequence[ColumnPair]) -> tuple[MovedColumn, ...]:
    """Compare columns of a batch with those of known-normal rows.

    If the batch is drawn as the normal rows were, the lowest `p_value` of all columns is at most u
    with probability at most u, and so is the lowest `p_lost`.

    Parameters
    ----------
    columns : sequence of ColumnPair
        Of two tables with at most `MOST_COMPARED` rows each; draw rows of larger ones at random.

    Returns
    -------
    tuple of MovedColumn
        All columns, whether they moved or not, strongest effect first. A column with missing cells
        has two entries, one of its values and one of its missing cells.
    """
    raise NotImplementedError

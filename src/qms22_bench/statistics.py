"""Tests on a table of AUC (data sets as rows, detectors as columns), and growth of run time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from qms22_bench.paper import TABLE2

LEVEL = 0.05
# Round AUCs: means of equal folds can differ in their last bits.
_DECIMALS = 12


@dataclass(frozen=True)
class SignedRanks:
    """A Wilcoxon signed-rank test of two detectors.

    Parameters
    ----------
    n : int
        Pairs with a difference.
    zeros : int
        Pairs without one; they are dropped.
    r_plus, r_minus : float
        Sums of the ranks where the first detector is better, and where the second is.
    p_value : float
        Two-sided; 1 if no pair differs.
    """

    n: int
    zeros: int
    r_plus: float
    r_minus: float
    p_value: float


def signed_ranks(first: ArrayLike, second: ArrayLike) -> SignedRanks:
    """Run Wilcoxon's signed-rank test as the paper does: zeros dropped, two-sided.

    Parameters
    ----------
    first, second : array-like of shape (n_sets,)
        AUC of two detectors on the same data sets.

    Returns
    -------
    SignedRanks

    Examples
    --------
    >>> test = signed_ranks([0.9, 0.8, 0.7, 0.6], [0.8, 0.85, 0.7, 0.4])
    >>> test.r_plus, test.r_minus, test.zeros
    (5.0, 1.0, 1)
    """
    difference = np.round(np.asarray(first, float) - np.asarray(second, float), _DECIMALS)
    moved = difference[difference != 0]
    zeros = len(difference) - len(moved)
    if len(moved) == 0:
        return SignedRanks(0, zeros, 0.0, 0.0, 1.0)
    ranks = stats.rankdata(np.abs(moved))
    p_value = float(stats.wilcoxon(difference, zero_method="wilcox").pvalue)
    return SignedRanks(
        len(moved),
        zeros,
        float(ranks[moved > 0].sum()),
        float(ranks[moved < 0].sum()),
        p_value,
    )


def table2(auc: pd.DataFrame) -> pd.DataFrame:
    """Compare every pair of detectors, beside the paper's Table 2.

    Parameters
    ----------
    auc : DataFrame
        Raw AUC; a data set counts for a pair if both have a value. The pairs of the first column
        (QMS22, if it took part) come first.

    Returns
    -------
    DataFrame
        Columns first, second, n_sets, zeros, r_plus, r_minus, p_value, rejected, paper_r_plus,
        paper_r_minus, paper_p_value.
    """
    rows = []
    for first, second in combinations(auc.columns, 2):
        pair = auc[[first, second]].dropna()
        test = signed_ranks(pair[first], pair[second])
        printed = TABLE2.get(second) if first == "QMS22" else None
        rows.append(
            {
                "first": first,
                "second": second,
                "n_sets": len(pair),
                "zeros": test.zeros,
                "r_plus": test.r_plus,
                "r_minus": test.r_minus,
                "p_value": test.p_value,
                "rejected": test.p_value < LEVEL,
                "paper_r_plus": printed.r_plus if printed else math.nan,
                "paper_r_minus": printed.r_minus if printed else math.nan,
                "paper_p_value": printed.p_value if printed else "",
            }
        )
    return pd.DataFrame(rows)


def best_against_others(auc: pd.DataFrame) -> pd.DataFrame:
    """Compare the detector with the highest mean AUC with each other one.

    Parameters
    ----------
    auc : DataFrame
        Raw AUC. The mean is over the data sets that all detectors have.

    Returns
    -------
    DataFrame
        Columns first (the best), second, n_sets, gain (of the mean AUC), better, worse (numbers
        of data sets), r_plus, r_minus, p_value.
    """
    best = auc.dropna().mean().idxmax()
    rows = []
    for other in auc.columns.drop(best):
        pair = auc[[best, other]].dropna()
        test = signed_ranks(pair[best], pair[other])
        gain = pair[best] - pair[other]
        rows.append(
            {
                "first": best,
                "second": other,
                "n_sets": len(pair),
                "gain": gain.mean(),
                "better": int((gain > 0).sum()),
                "worse": int((gain < 0).sum()),
                "r_plus": test.r_plus,
                "r_minus": test.r_minus,
                "p_value": test.p_value,
            }
        )
    return pd.DataFrame(rows)


def p_matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Arrange the p-values of `table2` as a symmetric matrix, NaN on its diagonal."""
    names = list(dict.fromkeys([*table["first"], *table["second"]]))
    matrix = pd.DataFrame(np.nan, index=names, columns=names)
    for first, second, p_value in zip(
        table["first"], table["second"], table["p_value"], strict=True
    ):
        matrix.loc[first, second] = matrix.loc[second, first] = p_value
    return matrix


@dataclass(frozen=True)
class Ranking:
    """Average ranks of detectors, 1 being the best.

    Parameters
    ----------
    ranks : Series
        By detector, best first.
    n_sets : int
        Data sets on which all of them have an AUC.
    statistic, p_value : float
        Of Friedman's test that all are equal; NaN for fewer than three detectors.
    critical_difference : float
        Of Nemenyi's test: larger differences of average ranks are significant at level 0.05.
    """

    ranks: pd.Series
    n_sets: int
    statistic: float
    p_value: float
    critical_difference: float

    def cliques(self) -> list[tuple[int, int]]:
        """Return the longest runs of detectors without a significant difference.

        Returns
        -------
        list of (first, last)
            Positions in `ranks`, both included; runs of one are left out.
        """
        values = self.ranks.to_numpy()
        runs: list[tuple[int, int]] = []
        for first, rank in enumerate(values):
            last = int(np.flatnonzero(values <= rank + self.critical_difference)[-1])
            if last > first and (not runs or last > runs[-1][1]):
                runs.append((first, last))
        return runs


def ranking(auc: pd.DataFrame) -> Ranking | None:
    """Rank the detectors on the data sets that all of them have.

    Returns None for fewer than two data sets or detectors.

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine
    Learning Research 7 (2006) 1-30.
    """
    common = auc.dropna().round(_DECIMALS)
    n_sets, k = common.shape
    if n_sets < 2 or k < 2:
        return None
    ranks = common.rank(axis="columns", ascending=False)
    statistic, p_value = math.nan, math.nan
    if k >= 3:
        # If all detectors tie on every set, Friedman's statistic is 0 / 0.
        alike = bool((ranks == (k + 1) / 2).all(axis=None))
        test = (0.0, 1.0) if alike else stats.friedmanchisquare(*ranks.to_numpy().T)
        statistic, p_value = float(test[0]), float(test[1])
    q = float(stats.studentized_range.ppf(1 - LEVEL, k, np.inf)) / math.sqrt(2)
    critical = q * math.sqrt(k * (k + 1) / (6 * n_sets))
    return Ranking(ranks.mean().sort_values(kind="stable"), n_sets, statistic, p_value, critical)


def growth(size: ArrayLike, seconds: ArrayLike) -> tuple[float, float, float]:
    """Fit seconds = c · size^k by least squares of the logarithms.

    Returns
    -------
    exponent, its standard error, log c
        NaN for fewer than three points or only one size.

    Examples
    --------
    >>> exponent, error, _ = growth([10, 100, 1000], [0.1, 10, 1000])
    >>> round(exponent, 6), round(error, 6)
    (2.0, 0.0)
    """
    x, y = np.log(np.asarray(size, float)), np.log(np.asarray(seconds, float))
    if len(x) < 3 or np.ptp(x) == 0:
        return math.nan, math.nan, math.nan
    line = stats.linregress(x, y)
    return float(line.slope), float(line.stderr), float(line.intercept)

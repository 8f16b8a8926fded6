"""What is remembered of a batch, to compare later ones with it: a few numbers for each column.

They are steady against anomalies: the middle half of numbers, shares of levels and of missing
cells. None needs the known-normal rows, which change from batch to batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22.decisions.beta_binomial import beta_binomial_cdf
from qms22.decisions.curve import ranks_with_limits
from qms22.decisions.moved_columns import LEAST_MOVE, ColumnPair

# Data of plain types: "weekday", "evidence", and "columns" by name.
Profile = dict[str, Any]

# A share is remembered from the first number on, and compared if it ever reaches the second: a
# level that is rarer can make no move that is worth naming.
_LEAST_KEPT = 0.01
_LEAST_COMPARED = LEAST_MOVE
# The standard error of a middle half, as a multiple of spread / sqrt(rows), if rows are normal.
_ERROR_OF_MIDDLE = 0.55
# No chance counts as lower, as its logarithm is taken.
_LEAST_CHANCE = 1e-300


class Summaries(NamedTuple):
    """Numbers of some batches, with their errors if only the rows were drawn anew.

    `values` and `errors` are of shape (n_batches, n_summaries); `labels` has the column of each
    summary, and whether it is about its missing cells.
    """

    labels: list[tuple[str, bool]]
    values: NDArray[np.float64]
    errors: NDArray[np.float64]


def profile_batch(columns: Sequence[ColumnPair], evidence: float, weekday: int | None) -> Profile:
    """Return the profile of a batch from its columns; see `row_evidence`."""
    return {
        "weekday": weekday,
        "evidence": evidence,
        "columns": {pair.name: _facts(pair) for pair in columns},
    }


def row_evidence(counts: NDArray[np.int64]) -> float:
    """Return −log of the least probability that so many rows have so low ranks.

    `counts` has the number of rows of each rank among the known-normal rows. For a single rank,
    and rows drawn as these were, the evidence follows an exponential distribution.
    """
    n_known, n_rows = len(counts) - 1, int(counts.sum())
    ranks = ranks_with_limits(n_known)
    chances = [
        beta_binomial_cdf(rank, n_known, count, n_rows - count + 1) if count else 1.0
        for rank, count in zip(ranks.tolist(), np.cumsum(counts)[ranks].tolist(), strict=True)
    ]
    return float(-exact.log(max(min(chances), _LEAST_CHANCE)))


def _facts(pair: ColumnPair) -> dict[str, Any]:
    """Return what is remembered of a column."""
    present = pair.present()[1]
    facts: dict[str, Any] = {
        "is_numbers": not pair.levels,
        "rows": len(present),
        "missing": 1.0 - len(present) / len(pair.batch),
    }
    values, counts = np.unique(present, return_counts=True)
    is_kept = counts >= _LEAST_KEPT * len(present)
    names = [pair.levels[int(v)] if pair.levels else repr(float(v)) for v in values[is_kept]]
    facts["shares"] = dict(zip(names, (counts[is_kept] / len(present)).tolist(), strict=True))
    if not pair.levels and len(present):
        means = [_mean_between(np.sort(present), *ends) for ends in _PARTS]
        facts |= {"middle": means[1], "spread": means[2] - means[0]}
    return facts


_PARTS = ((0.05, 0.25), (0.25, 0.75), (0.75, 0.95))


def _mean_between(values: NDArray[np.float64], low: float, high: float) -> float:
    """Return the mean of sorted values between two quantiles, which ties do not make jump."""
    ends = np.arange(len(values) + 1) / len(values)
    weights = np.diff(np.clip(ends, low, high))
    return float(np.sum(values * weights) / (high - low))


def summarize(profiles: Sequence[Profile]) -> Summaries:
    """Return what can be compared of the columns that all profiles have."""
    found: list[tuple[tuple[str, bool], NDArray[np.float64], NDArray[np.float64]]] = []
    for name in shared_columns(profiles):
        facts = [profile["columns"][name] for profile in profiles]
        rows = np.array([max(each["rows"], 1) for each in facts])
        error = 0.5 / np.sqrt(rows)
        found.append(((name, True), _turned([each["missing"] for each in facts]), error))
        levels = dict.fromkeys(level for each in facts for level in each["shares"])
        shares = [np.array([each["shares"].get(level, 0.0) for each in facts]) for level in levels]
        shares = [share for share in shares if share.max() >= _LEAST_COMPARED]
        rest = 1.0 - np.sum(shares, axis=0) if shares else np.zeros(len(facts))
        found += [((name, False), _turned(share), error) for share in (*shares, rest)]
        spread = np.array([each.get("spread", 0.0) for each in facts])
        if (spread > 0).all():
            middle = np.array([each["middle"] for each in facts])
            found.append(((name, False), middle, _ERROR_OF_MIDDLE * spread / np.sqrt(rows)))
            found.append(((name, False), exact.log(spread), 2 * error))
    labels, values, errors = zip(*found, strict=True) if found else ((), (), ())
    shape = (len(labels), len(profiles))
    return Summaries(list(labels), np.reshape(values, shape).T, np.reshape(errors, shape).T)


def shared_columns(profiles: Sequence[Profile]) -> list[str]:
    """Return the columns that all profiles have in the same form."""
    kinds = [
        {(name, facts["is_numbers"]) for name, facts in profile["columns"].items()}
        for profile in profiles
    ]
    common = set.intersection(*kinds) if kinds else set()
    return sorted(name for name, _ in common)


def _turned(shares: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares on the scale of angles, where their standard error is 1 / (2 sqrt(rows))."""
    angles: NDArray[np.float64] = np.arcsin(np.sqrt(np.clip(shares, 0.0, 1.0)))
    return angles

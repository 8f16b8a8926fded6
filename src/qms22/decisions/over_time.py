"""Batches of a history as the unit: which are odd among those of the past, and which are alarms.

Rows of one batch depend on each other, and every batch is a little unlike the one before. So the
batches of the past say how much they differ, and a budget says how rare an alarm has to be for the
rate of false ones to stay low over the whole history; docs/promises.md has what is proved.

References
----------
V. Vovk, A. Gammerman, G. Shafer, "Algorithmic learning in a random world", Springer (2005).

Y. Zhang, Z. Wei, H. Ren, C. Zou, "e-GAI: e-value-based generalized alpha-investing for online
false discovery rate control", 2025. https://arxiv.org/abs/2506.01452

L. Lu, Y. Huo, H. Ren, Z. Wang, C. Zou, "Feedback-enhanced online multiple testing with
applications to conformal selection", 2025. https://arxiv.org/abs/2509.03297
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22.decisions.batch_profile import Profile, shared_columns, summarize
from qms22.decisions.curve import OutlierBound
from qms22.decisions.moved_columns import LEAST_NORMAL, MovedColumn
from qms22.decisions.verdict import Decision, Verdict, part_excepted

# Of all batches that are called bad, at most this share is expected to be good.
RATE = 0.1
# Fewer batches hardly show how much they differ. A year of working days shows all of it.
LEAST_PAST = 20
_MOST_PAST = 250
# Without an alarm, half of the budget is spent on so many batches: about a month.
_PACE = 20
# No single batch has a higher chance of a false alarm than one that is judged by its rows.
_MOST_LEVEL = 0.05
# Forecasts of a summary: its median, what it was before, or a mean of the last few batches, which
# forgets as much of itself with every new one.
_FORGOTTEN = 0.4
# The usual error of a forecast: four fifths are smaller, which leaves room for bad batches and
# covers weekends. Of a normal distribution these are within so many standard deviations.
_USUAL_SHARE = 0.8
_USUAL_DEVIATION = 1.2816
# The tail of odd batches: this share of them, but no fewer than the number.
_TAIL_SHARE = 0.2
_LEAST_TAIL = 10


class Budget(NamedTuple):
    """What the next batch of a history may cost."""

    level: float  # the batch is an alarm if its p-value is at most this
    spent: float  # what it takes from the budget of the history, at first `RATE`
    left: float  # what is left after that


def next_budget(spent: Sequence[float], n_bad: int) -> Budget:
    """Return the budget of the next batch.

    `spent` has what each earlier batch has cost, except those that a person has called bad. `n_bad`
    earlier batches are called bad: by an alarm that nobody has taken back, or by a person.
    """
    left = max(0.0, RATE - sum(spent))
    level = min(_MOST_LEVEL, left / (_PACE + len(spent) + 1) * (n_bad + 1))
    cost = level / (n_bad + 1)
    return Budget(level, cost, left - cost)


@dataclass(frozen=True)
class Past:
    """What a history knows when a batch comes."""

    profiles: tuple[Profile, ...]  # of the accepted batches, oldest first
    budget: Budget
    excepted: frozenset[str] = frozenset()  # columns whose movement is no alarm

    def compare(self, new: Profile) -> OverTime | None:
        """Compare a batch with those of the past; return None if they are too few."""
        chosen = _comparable(self.profiles, new)
        if len(chosen) < LEAST_PAST:
            return None
        evidence = np.array([profile["evidence"] for profile in (*chosen, new)])
        labels, values, errors = summarize([*chosen, new])
        columns: dict[tuple[str, bool], float] = {}
        if labels:
            odd = exact.log(np.maximum(oddness(values, errors), 1e-9))
            past = odd[:-1].max(axis=1)
            for label, own in zip(labels, odd[-1].tolist(), strict=True):
                columns[label] = min(columns.get(label, 1.0), tail_chance(past, own))
        rows = tail_chance(evidence[:-1], float(evidence[-1]))
        return OverTime(len(chosen), self.budget, rows, columns)


class OverTime(NamedTuple):
    """A batch among those of the past."""

    n_past: int  # batches that it was compared with
    budget: Budget
    p_rows: float  # of so much evidence that its rows are outliers
    # Of so odd a column, adjusted for the number of columns: by name, and whether it is about
    # missing cells.
    p_columns: dict[tuple[str, bool], float]

    def judge(
        self,
        columns: Sequence[MovedColumn],
        n_rows: int,
        *,
        bound: OutlierBound | None,
        left_out: Sequence[str],
        excepted: Collection[str],
    ) -> Verdict:
        """Decide whether a batch is fine, contains anomalies, or has drifted; see `judge_batch`.

        Columns and rows share the level. Both have to show what `judge_batch` asks for as well: a
        large move, or rows that can be named.
        """
        level = self.budget.level / 2
        columns = [
            replace(each, p_value=self.p_columns.get((each.name, each.is_missing), 1.0), p_lost=1.0)
            for each in columns
        ]
        columns, allowed = part_excepted(columns, excepted, level)
        fewest = 0 if bound is None else bound.fewest
        p_moved = min((each.p_value for each in columns if each.is_large), default=1.0)
        p_value = min(1.0, 2 * p_moved, 2 * self.p_rows if fewest else 1.0)
        moved = tuple(each for each in columns if each.is_certain(level))
        decision: Decision = "fine"
        if p_value <= self.budget.level:
            is_drift = bool(moved) or fewest > (1 - LEAST_NORMAL) * n_rows
            decision = "drift" if is_drift else "anomalies"
        return Verdict(
            decision,
            p_value,
            None if bound is None else fewest,
            1.0 - self.budget.level,
            n_rows,
            moved,
            tuple(left_out),
            self.n_past,
            allowed,
        )

    def facts(self, verdict: Verdict) -> dict[str, Any]:
        """Return the numbers of the decision, as a history remembers them."""
        return {
            "p_value": verdict.p_value,
            **self.budget._asdict(),
            "rate": RATE,
            "compared_with": self.n_past,
        }


def _comparable(past: Sequence[Profile], new: Profile) -> list[Profile]:
    """Return the newest profiles to compare with: of the same weekday, if there are enough.

    They have the columns of the new one that each of the newest has, so that a column counts as
    soon as enough batches have it.
    """
    same = [profile for profile in past if profile["weekday"] == new["weekday"]]
    enough = new["weekday"] is not None and len(same) >= LEAST_PAST
    chosen = (same if enough else list(past))[-_MOST_PAST:]
    names = set(shared_columns([*chosen[-LEAST_PAST:], new]))
    return [each for each in chosen if names <= set(shared_columns([each, new]))]


def oddness(values: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute how odd each batch but the first is among the others, in each summary.

    Every summary is forecast in the way whose errors were smallest in the past: by the median of
    the other batches, by the batch before (a random walk has steps that are alike), or by a mean
    that forgets. The error of a batch is divided by the usual error of the others, and by what
    the chance of drawing its rows adds. The last batch is the new one. See `Summaries`.
    """
    smooth, mean = [], values[0]
    for row in values[1:]:
        smooth.append(row - mean)
        mean = mean + _FORGOTTEN * smooth[-1]
    level = (values - _quantile_of_others(values, 0.5))[1:]
    ways = [np.abs(way) for way in (level, np.array(smooth), np.diff(values, axis=0))]
    sizes = [np.quantile(way[:-1], _USUAL_SHARE, axis=0) for way in ways]
    off = np.choose(np.argmin(sizes, axis=0), ways)
    usual = np.hypot(_quantile_of_others(off, _USUAL_SHARE) / _USUAL_DEVIATION, errors[1:])
    ratios: NDArray[np.float64] = off / usual
    return ratios


def _quantile_of_others(values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return a quantile of the other rows for each row, column by column."""
    order = np.argsort(values, axis=0, kind="stable")
    ascending = np.take_along_axis(values, order, axis=0)
    place = np.argsort(order, axis=0, kind="stable")
    n_others = len(values) - 1
    at = share * (n_others - 1)
    low, high = (
        np.where(near < place, ascending[near], ascending[near + 1])
        for near in (math.floor(at), math.ceil(at))
    )
    between: NDArray[np.float64] = low + (at - math.floor(at)) * (high - low)
    return between


def tail_chance(past: NDArray[np.float64], new: float) -> float:
    """Compute how probable a number as high as the new one is, given those of the past.

    Below the highest fifth of the past (ten numbers at least) this is the share of numbers as high,
    the new one among them: a conformal p-value. Above, numbers are taken to fall off
    exponentially; the chance is then exact for a scale that is estimated from few numbers.
    """
    n_tail = min(len(past) - 1, max(_LEAST_TAIL, round(_TAIL_SHARE * len(past))))
    *tail, start = np.sort(past)[::-1][: n_tail + 1].tolist()
    excess = sum(tail) - n_tail * start
    if new <= start or not excess:
        return float((1 + np.count_nonzero(past >= new)) / (len(past) + 1))
    beyond = (1 + (new - start) / excess) ** -n_tail
    return float((n_tail + 1) / (len(past) + 1) * beyond)

"""Search for conditions that many flagged rows meet and few other rows.

The score of some conditions is how much better they tell the flagged rows from the others than
chance would, as a log-likelihood ratio, less what it costs to name them: groups are large, rare
among other rows, and have no condition that says little.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact

Show = Callable[[float], str]

# Longer lists are cut: a name should fit in a line.
MOST_LISTED = 3

# A name with more conditions is hard to read. As many first conditions, of different attributes,
# are tried.
_MOST_CONDITIONS = 5
_N_STARTS = 5
# Fewer rows tell little about how usual something is: shares among few rows are shrunk towards
# those among more, as if there were up to so many of these.
_LEAST_ROWS = 30
# What no row does, so many rows might have done: if two are expected, one sample in seven has none.
_FEW_ROWS = 2.0


@dataclass(frozen=True, eq=False)
class Attribute:
    """A property of rows, with a code for each value or bin; known-normal rows come first.

    `part` is "value"; "new" for values that no known-normal row has; "missing", "hour", "weekday",
    or "word" for a text among numbers. `spans` has the first and last code of each condition: codes
    less than `cycle`, after which they start again at 0. `costs` are minus the logarithms of
    weights that sum to at most 1, whichever rows are known-normal. `label` returns the text of a
    condition, and a remark or "".
    """

    column: str
    part: str
    codes: NDArray[np.integer[Any]]
    spans: NDArray[np.intp]
    costs: NDArray[np.float64]
    label: Callable[[int, int], tuple[str, str]]
    cycle: int

    def __post_init__(self) -> None:
        # There is one for each row: as small as also differences of codes fit in.
        codes = self.codes.astype(np.min_scalar_type(-self.cycle - 1))
        object.__setattr__(self, "codes", codes)

    def holds(self, condition: int) -> NDArray[np.bool_]:
        """Return which rows meet a condition."""
        first, last = self.spans[condition].tolist()
        return are_in_span(self.codes, first, last, self.cycle)


def are_in_span(
    codes: NDArray[np.integer[Any]], first: int, last: int, cycle: int
) -> NDArray[np.bool_]:
    """Return which codes are in a span; after the `cycle` codes start again at 0."""
    are_in: NDArray[np.bool_] = ((codes - first) % cycle <= last - first) & (codes < cycle)
    return are_in


def join_some(names: list[str], word: str = "and") -> str:
    """Return names as a list in words; of many only the first two."""
    if len(names) > MOST_LISTED:
        names = [*names[:2], f"{len(names) - 2} more"]
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


class Condition(NamedTuple):
    """One of the conditions of an attribute, by its number; `place` is that of the attribute."""

    attribute: Attribute
    place: int
    number: int

    def holds(self) -> NDArray[np.bool_]:
        """Return which rows of the table meet the condition."""
        return self.attribute.holds(self.number)

    def label(self) -> tuple[str, str]:
        """Return the text of the condition, and a remark or ""."""
        return self.attribute.label(*self.attribute.spans[self.number].tolist())


class Subgroup(NamedTuple):
    """Conditions, and how well they tell flagged rows from others."""

    conditions: tuple[Condition, ...]
    score: float

    def holds(self) -> NDArray[np.bool_]:
        """Return which rows of the table meet all conditions."""
        is_met: NDArray[np.bool_] = np.all([each.holds() for each in self.conditions], axis=0)
        return is_met


class SubgroupSearch:
    """The conditions of a table, and how often they hold.

    The rows are known-normal ones, and those of the batch that are flagged and that are not.
    `costs` are those of naming each attribute.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        normal: NDArray[np.intp],
        flagged: NDArray[np.intp],
        others: NDArray[np.intp],
        costs: NDArray[np.float64],
    ) -> None:
        self.attributes = attributes
        sizes = np.array([len(attribute.spans) for attribute in attributes])
        # Codes of all attributes on one axis: each has the cycle, and one code for other rows.
        cycles = np.array([attribute.cycle for attribute in attributes])
        starts = np.concatenate([[0], np.cumsum(cycles + 1)])
        self._n_codes = int(starts[-1])
        self._attribute = np.repeat(np.arange(len(attributes)), sizes)
        self._condition = np.concatenate([np.arange(size) for size in sizes])
        self._start = starts[self._attribute]
        self._cycle = cycles[self._attribute]
        spans = np.concatenate([attribute.spans for attribute in attributes])
        self._first, self._last = spans[:, 0], spans[:, 1]
        self._costs = np.concatenate([attribute.costs for attribute in attributes])
        # Of spans that do equally well, the shortest.
        self._costs = self._costs + costs[self._attribute] + 1e-6 * (self._last - self._first)
        self._first_of = np.concatenate([[0], np.cumsum(sizes)])
        keys = [(attribute.column, attribute.part) for attribute in attributes]
        self._clashes = np.array([[_clash(one, two) for two in keys] for one in keys])
        self._is_missing = np.array([part == "missing" for _, part in keys])[self._attribute]
        self._flagged, self._reference = (
            np.stack([attribute.codes[rows] for attribute in attributes], axis=1) + starts[:-1]
            for rows in (flagged, np.concatenate([normal, others]))
        )
        # What is usual among known-normal rows, or in the rest of the batch, does not tell flagged
        # rows from others.
        self._parts = [slice(0, len(normal))]
        if len(others) >= _LEAST_ROWS:
            self._parts.append(slice(len(normal), None))
        rows = [self._reference[part] for part in self._parts]
        shares = [(self._count(part) + _FEW_ROWS) / (len(part) + _FEW_ROWS) for part in rows]
        self._shares: NDArray[np.float64] = np.max(shares, axis=0)

    def best(self, left: NDArray[np.bool_]) -> list[Subgroup]:
        """Return subgroups of the flagged rows that are left, the best first."""
        rows = self._flagged[left]
        scores = likelihood_ratios(self._count(rows), len(rows), exact.log(self._shares))
        scores -= self._costs
        best = [a + int(np.argmax(scores[a:b])) for a, b in itertools.pairwise(self._first_of)]
        found: dict[frozenset[Condition], Subgroup] = {}
        for start in sorted(best, key=lambda at: -scores[at])[:_N_STARTS]:
            if scores[start] > 0:
                group = self._grow(start, left)
                found.setdefault(frozenset(group.conditions), group)
        return sorted(found.values(), key=lambda group: -group.score)

    def _grow(self, start: int, left: NDArray[np.bool_]) -> Subgroup:
        """Add conditions while the score grows, then drop those without which it is no lower."""
        chosen, alone = [start], self._shares
        while True:
            score = self._score(chosen, left)
            masks = [self._meets(self._reference, at) for at in chosen]
            alone = np.maximum(alone, self._shrunk(masks[-1], self._shares))
            gains = self._gains(chosen, left, self._shrunk(np.all(masks, axis=0), alone))
            best = int(np.argmax(gains))
            if gains[best] <= score:
                break
            chosen = [*chosen, best]
        while len(chosen) > 1:
            fewer = [[*chosen[:at], *chosen[at + 1 :]] for at in range(len(chosen))]
            scores = [self._score(part, left) for part in fewer]
            if max(scores) < score:
                break
            score, chosen = max(scores), fewer[int(np.argmax(scores))]
        places = [(int(self._attribute[at]), int(self._condition[at])) for at in chosen]
        conditions = (Condition(self.attributes[place], place, at) for place, at in places)
        return Subgroup(tuple(conditions), score)

    def _score(self, chosen: Sequence[int], left: NDArray[np.bool_]) -> float:
        members = np.all([left, *(self._meets(self._flagged, at) for at in chosen)], axis=0)
        counts, shares = np.array([np.sum(members)]), np.array([self._log_share(chosen)])
        ratios = likelihood_ratios(counts, int(np.count_nonzero(left)), shares)
        return float(ratios[0] - self._costs[chosen].sum())

    def _gains(
        self, chosen: Sequence[int], left: NDArray[np.bool_], shares: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the scores with each further condition, given how rare these are then."""
        members = np.all([left, *(self._meets(self._flagged, at) for at in chosen)], axis=0)
        log_shares = self._log_share(chosen) + exact.log(shares)
        counts = self._count(self._flagged[members])
        gains = likelihood_ratios(counts, int(np.count_nonzero(left)), log_shares)
        gains -= self._costs + self._costs[chosen].sum()
        is_taken: NDArray[np.bool_] = np.any(self._clashes[self._attribute[chosen]], axis=0)
        gains[is_taken[self._attribute]] = -np.inf
        # A list of missing columns reads well however long it is.
        if np.count_nonzero(~self._is_missing[chosen]) >= _MOST_CONDITIONS:
            gains[~self._is_missing] = -np.inf
        return gains

    def _log_share(self, chosen: Sequence[int]) -> float:
        """Return the logarithm of the share of other rows that meet all conditions.

        It is estimated condition by condition: the share among the rows that meet those before it;
        if these are few, among the rows that meet any one of them.
        """
        masks = [self._meets(self._reference, at) for at in chosen]
        total = math.log(self._shares[chosen[0]])
        for place, at in enumerate(chosen[1:], 1):
            usual = self._shares[at : at + 1]
            alone = [self._shrunk(mask, usual, masks[place]) for mask in masks[:place]]
            inside = np.all(masks[:place], axis=0)
            share = self._shrunk(inside, np.max([usual, *alone], axis=0), masks[place])
            total += math.log(share[0])
        return total

    def _shrunk(
        self,
        rows: NDArray[np.bool_],
        towards: NDArray[np.float64],
        meets: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Return the share of some reference rows that meet each condition, or a given one.

        It is the larger one of the shares among known-normal rows and in the rest of the batch.
        """
        shares = []
        for part in self._parts:
            inside = rows[part]
            total = np.count_nonzero(inside)
            if meets is None:
                counts = self._count(self._reference[part][inside])
            else:
                counts = np.array([float(np.count_nonzero(meets[part] & inside))])
            prior = _LEAST_ROWS * math.sqrt(_LEAST_ROWS / (_LEAST_ROWS + total))
            shrunk = (counts + prior * towards) / (total + prior)
            # That no row meets a condition says no more than that few would.
            least = np.minimum(towards, _FEW_ROWS / (total + _FEW_ROWS))
            shares.append(np.maximum(shrunk, least))
        largest: NDArray[np.float64] = np.max(shares, axis=0)
        return largest

    def _meets(self, codes: NDArray[np.intp], at: int) -> NDArray[np.bool_]:
        own = codes[:, self._attribute[at]] - self._start[at]
        return are_in_span(own, self._first[at], self._last[at], self._cycle[at])

    def _count(self, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return how many rows meet each condition."""
        counts = np.bincount(codes.ravel(), minlength=self._n_codes)
        below = np.concatenate([[0.0], np.cumsum(counts)])
        stop = self._last + 1
        wrapped = np.maximum(stop - self._cycle, 0)
        ends = below[self._start + np.minimum(stop, self._cycle)] + below[self._start + wrapped]
        return np.asarray(ends - below[self._start + self._first] - below[self._start])


def likelihood_ratios(
    counts: NDArray[Any], n_rows: int, log_shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return log-likelihood ratios of so many out of some rows, against shares of other rows."""
    other = np.clip(exact.exp(log_shares), 0, 1 - 1e-9)
    share = counts / n_rows
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(counts > 0, exact.log(share) - log_shares, 0)
        outside = np.where(share < 1, exact.log1p(-share) - exact.log1p(-other), 0)
    ratios = counts * inside + (n_rows - counts) * outside
    return np.where(share > other, ratios, -np.inf)


def _clash(one: tuple[str, str], two: tuple[str, str]) -> bool:
    """Return whether two attributes must not be in one name."""
    times = ("hour", "weekday")
    return one == two or (one[0] == two[0] and one[1] not in times and two[1] not in times)

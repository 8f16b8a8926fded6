"""A value that does not fit the others of its row."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import numpy as np

from qms22.checks.arrays import Bools, Floats
from qms22.checks.check import Said, Shower, Usual, listed, shown_cells
from qms22.checks.codings import Coding
from qms22.checks.relations import Prediction, RelationInputs, Relations
from qms22.checks.single import LevelCheck
from qms22.checks.surprise import NumberReference
from qms22.tables.columns.cells import Columns, count_rows
from qms22.tables.columns.date_parts import days_between

# Levels in a smaller share of the normal rows say little about other columns.
_LEAST_SHARE = 0.005
_MOST_LEVELS = 12
# Days further than this from the usual ones, in deviations, count as so far.
_MOST_DAYS = 10.0
# Columns that are named as what suggests a value.
_MOST_NAMED = 3
# Smaller errors, in units of the usual one, are not odd. Those of an exact relation come from
# rounding, however they compare; and next to a value beyond all usual ones, which counts as the
# end of these, an error of one unit says nothing.
_LEAST_ERROR = 1.5
# Relations with smaller errors, as a share of the deviation of the column, are close. Where others
# say less about a number, its own range and its group know better.
_CLOSE = 0.3
# Of a number with few values the nearest one is suggested, if it is within so many errors.
_NEAR = 3.0
# Columns that are asked about when the cell to blame is looked for: each takes a prediction of all.
_MOST_ASKED = 100
# Surprises from here on count then.
_ODD = 6.0


class FittingChecks:
    """Checks of all numbers against the other columns."""

    # The columns of numbers.
    numbers: tuple[str, ...] = ()
    # The columns that say most about each of them, the strongest first.
    sources: Sequence[tuple[str, ...]] = ()
    # Numbers with few values, and which of these occur with each level of a category.
    _few: Mapping[str, Coding] = {}
    _together: Mapping[str, tuple[Coding, dict[str, Bools]]] = {}

    def learn(
        self,
        rows: Columns,
        numbers: Sequence[str],
        categories: Sequence[LevelCheck],
        dates: Sequence[tuple[str, str]],
        counters: Collection[str],
        seed: int,
    ) -> Floats:
        """Learn from known-normal rows; return how odd their own numbers are, held out.

        Numbers may be predicted from the days between two dates. No relations of `counters`, which
        rise in the course of time, go on to hold but rules.
        """
        self.numbers = tuple(numbers)
        self._levels = tuple(chain.from_iterable(map(_telling_levels, categories)))
        self._dates = tuple((*pair, *_center_and_scale(_between(rows, *pair))) for pair in dates)
        few = {name: LevelCheck.learn(rows[name], np.empty(0, np.intp)) for name in self.numbers}
        self._few = {name: check.coding for name, check in few.items() if check is not None}
        self._together = {
            check.columns[0]: (check.coding, self._occurring(check.coding, rows))
            for check in categories
        }
        self._relations = Relations()
        own = self._relations.learn(self._inputs(rows), seed)
        self.sources = [self._sources(at) for at in range(len(self.numbers))]
        # Where no column says anything about a number, its own range says more.
        references = {
            at: NumberReference.learn(own.errors[:, at], least_unit=1.0)
            for at, name in enumerate(self.numbers)
            if self.sources[at] and name not in counters and self._relations.error(at) <= _CLOSE
        }
        self._references = {at: each for at, each in references.items() if each is not None}
        return self._surprises(own, own=True)

    def align(self, batch: Columns) -> None:
        """Compare numbers of a batch without what all of them do."""
        errors = self._relations.predict(self._inputs(batch)).errors
        self._references = {
            at: each.aligned(errors[:, at]) for at, each in self._references.items()
        }

    def leave_out(self, columns: Sequence[int]) -> None:
        """Find no number of some columns odd, by their positions."""
        self._references = {at: each for at, each in self._references.items() if at not in columns}

    def within(self, columns: Collection[str]) -> list[int]:
        """Return the numbers among some columns that no number outside of these says much about."""
        return [
            at
            for at, (name, sources) in enumerate(zip(self.numbers, self.sources, strict=True))
            if {name, *sources} & {*self.numbers} <= {*columns}
        ]

    def surprises(self, rows: Columns) -> Floats:
        """Compute how odd the numbers of rows are next to the other columns."""
        return self._surprises(self._relations.predict(self._inputs(rows)))

    def blame(
        self, rows: Columns, owners: Mapping[str, str], are_right: Bools
    ) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return of each column how much less odd all numbers of a row together are without it.

        The second mapping has the surprises that are then left, (n_rows, n_numbers). One wrong cell
        makes all columns odd that are predicted from it. Of many columns, those are asked whose
        cells are the oddest. `owners` are the columns that numbers are parts of; numbers that
        `are_right` fit the others.
        """
        inputs = self._inputs(rows)

        def left(without: Sequence[int] = ()) -> Floats:
            found = self._relations.predict(inputs, without)
            # As if what others say about numbers were unsure.
            unsure = found._replace(is_unsure=np.ones_like(found.is_unsure))
            return np.where(are_right, 0.0, self._surprises(unsure))

        surprises = left()
        whole, odd = _oddness(surprises), surprises.max(axis=0, initial=0.0).tolist()
        positions: dict[str, list[int]] = {}
        oddest: dict[str, float] = {}
        for at, name in enumerate(self.numbers):
            owner = owners.get(name, name)
            positions.setdefault(owner, []).append(at)
            oddest[owner] = max(oddest.get(owner, 0.0), odd[at])
        for name in self._together:
            positions.setdefault(name, [])  # a number with few values is both
        for at, (coding, _, _) in enumerate(self._levels, start=len(self.numbers)):
            positions[coding.name].append(at)
        asked = sorted(positions, key=lambda name: -oddest.get(name, 0.0))[:_MOST_ASKED]
        without = {name: left(places) for name, places in positions.items() if name in asked}
        return {name: whole - _oddness(each) for name, each in without.items()}, without

    def describe(self, rows: Columns, column: int, show: Shower) -> list[Said]:
        """Return in words what the other columns suggest."""
        name, sources = self.numbers[column], self.sources[column][:_MOST_NAMED]
        who = listed(sources) if sources else "the other columns"
        suggest = "suggests" if len(sources) == 1 else "suggest"
        pairs = zip(shown_cells(rows[name], show), self._suggested(rows, column, show), strict=True)
        return [
            Said(f"{begin} where {who} {suggest} {usual.text if usual else ''}", usual)
            for begin, usual in pairs
        ]

    def describe_contradiction(
        self, rows: Columns, column: int, category: str, show: Shower
    ) -> list[Said]:
        """Return in words that a category does not fit a number, and which number would."""
        levels, numbers = (
            shown_cells(rows[name], show) for name in (category, self.numbers[column])
        )
        are_missing = rows[category].missing
        suggested = self._suggested(rows, column, show, category)
        return [
            Said(
                f"{f'a missing {category}' if is_missing else level} does not fit {number}"
                + (f"; {usual.text} would" if usual else ""),
                usual and Usual("rule", f"{self.numbers[column]} {usual.text}"),
            )
            for level, is_missing, number, usual in zip(
                levels, are_missing, numbers, suggested, strict=True
            )
        ]

    def _suggested(
        self, rows: Columns, column: int, show: Shower, category: str = ""
    ) -> list[Usual | None]:
        """Return what the other columns suggest.

        Of a number with few values that is the nearest of them, unless relations are surer of
        another, such as a new product. With a `category` it occurs with its level, if one does.
        """
        found, name = self._relations.predict(self._inputs(rows)), self.numbers[column]
        values, scales = found.values[:, column], found.scales[:, column]
        if name in self._few:
            known = self._few[name].values
            far = np.abs(known - values[:, np.newaxis])
            if category:
                coding, of_numbers = self._together[category]
                far[~of_numbers[name][coding.codes(rows)]] = np.inf
            least, nearest = far.min(axis=1), known[far.argmin(axis=1)]
            is_near = np.isfinite(least) if category else least <= _NEAR * scales
            is_near &= nearest != rows[name].values
            scales = np.where(is_near, 0.0, scales)
            values = np.where(is_near, nearest, np.nan if category else values)
        pairs = zip(values.tolist(), scales.tolist(), strict=True)
        return [
            None
            if np.isnan(value)
            else Usual.of_values("value", rows[name], (_rounded(value, scale),), show)
            for value, scale in pairs
        ]

    def _occurring(self, coding: Coding, rows: Columns) -> dict[str, Bools]:
        """Return which values of numbers with few of them occur with each level of a category.

        The last line is of levels that no normal row has.
        """
        found, codes = {}, coding.codes(rows)
        for name, of_number in self._few.items():
            occurs = np.zeros((coding.n_codes + 1, of_number.n_codes), dtype=bool)
            occurs[codes, of_number.codes(rows)] = True
            found[name] = occurs[:, 1:]
        return found

    def _surprises(self, found: Prediction, *, own: bool = False) -> Floats:
        surprises = np.zeros(found.errors.shape)
        for at, reference in self._references.items():
            surprises[:, at] = reference.surprise(found.errors[:, at], own=own)
        # Of an exact relation all errors of normal rows are far below their unit. Without one of
        # its columns an error of one unit is nothing odd: no more than such a normal deviate.
        deviates = np.nan_to_num(found.errors) ** 2 / 2
        surprises = np.where(found.is_unsure, np.minimum(surprises, deviates), surprises)
        # Rounding makes the largest errors among small numbers.
        is_usual = found.is_rounding | (np.abs(found.errors) < _LEAST_ERROR)
        return np.where(is_usual, 0.0, surprises)

    def _inputs(self, rows: Columns) -> RelationInputs:
        n_rows = count_rows(rows)
        there = {name for name in rows if not rows[name].is_text}
        nothing = np.full(n_rows, np.nan)
        numbers = [rows[name].values if name in there else nothing for name in self.numbers]
        together = self._together.items()
        codes = {name: coding.codes(rows) for name, (coding, _) in together if name in rows}
        levels = [
            (codes[coding.name] == code).astype(np.float64)
            if coding.name in codes
            # Of a column that a table lacks nothing is known.
            else np.full(n_rows, share)
            for coding, code, share in self._levels
        ]
        for earlier, later, center, scale in self._dates:
            days = (_between(rows, earlier, later) - center) / scale
            levels.append(np.nan_to_num(np.clip(days, -_MOST_DAYS, _MOST_DAYS)))
        return RelationInputs(
            np.array(numbers).T.reshape(n_rows, len(numbers)),
            np.array(levels).T.reshape(n_rows, len(levels)),
        )

    def _sources(self, column: int) -> tuple[str, ...]:
        """Return the columns that say most about one, the strongest first."""
        names = [*self.numbers, *(coding.name for coding, _, _ in self._levels)]
        names += [f"the days from {earlier} to {later}" for earlier, later, _, _ in self._dates]
        return tuple(dict.fromkeys(names[at] for at in self._relations.sources[column]))


def _telling_levels(check: LevelCheck) -> list[tuple[Coding, int, float]]:
    """Return the frequent levels of a category, by their codes, and their shares."""
    counts, names = check.reference.counts, ("", *check.coding.levels)
    shares = counts / max(check.reference.n, 1)
    frequent = np.flatnonzero(counts >= _LEAST_SHARE * check.reference.n).tolist()
    # By name where counts are equal: the order of rows must not decide.
    frequent.sort(key=lambda code: (-counts[code], names[code]))
    # The others say whether a row has the most frequent one: with it, each level would be known
    # from the rest, and none would say anything by itself.
    return [(check.coding, code, float(shares[code])) for code in frequent[1 : _MOST_LEVELS + 1]]


def _between(rows: Columns, earlier: str, later: str) -> Floats:
    """Return the days between two dates; NaN where one is missing."""
    if not all(name in rows and rows[name].form == "date" for name in (earlier, later)):
        return np.full(count_rows(rows), np.nan)
    return days_between(rows[earlier], rows[later])


def _center_and_scale(days: Floats) -> tuple[float, float]:
    """Return the mean and the deviation of days, or 0 and 1 if there are none."""
    present = days[~np.isnan(days)]
    return (float(present.mean()), float(present.std()) or 1.0) if len(present) else (0.0, 1.0)


def _rounded(value: float, scale: float) -> float:
    """Round a suggestion to the digits that can be trusted."""
    if not 0 < scale < math.inf:
        return value
    return round(value, -math.floor(math.log10(2.0 * scale)))


def _oddness(surprises: Floats) -> Floats:
    """Add up what is odd about rows."""
    total: Floats = np.maximum(surprises - _ODD, 0.0).sum(axis=1)
    return total

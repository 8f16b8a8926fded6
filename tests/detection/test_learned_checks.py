"""What checks learn in a quick way is what a slow and obvious way finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import log

import numpy as np
import pytest

from qms22.checks.codings import Coding
from qms22.checks.copies import COPIES, DIFFERENT, CopyCheck, count_copies
from qms22.checks.dates import TimeOfDayCheck
from qms22.checks.dependence import DependenceCheck
from qms22.checks.single import LevelCheck
from qms22.checks.surprise import NumberReference, gaps_on_clock
from qms22.tables.columns.arrow_columns import column_of_values
from qms22.tables.columns.cells import Cells

_MINUTE = 60e6


def _letters(name: str, texts: str) -> Cells:
    """Return a column of letters, with missing cells for blanks."""
    return column_of_values(name, [*texts])


def learn_levels(cells: Cells) -> LevelCheck | None:
    return LevelCheck.learn(cells, np.arange(len(cells.values)))


def test_own_levels_have_the_codes_of_equal_texts() -> None:
    cells = _letters("size", "ba cabb a")
    check = learn_levels(cells)
    assert check is not None
    copied = replace(cells, levels=tuple(map(str, cells.levels)))
    assert copied.levels is not cells.levels
    own, equal = (check.coding.codes({"size": each}) for each in (cells, copied))
    np.testing.assert_array_equal(own, equal)


def test_repeated_rows_are_counted() -> None:
    numbers = np.append([1.0, 1, 2, 2, 2], np.arange(3.0, 998))
    rows = {"y": Cells("y", "number", numbers)}
    names = tuple(rows)
    rows |= count_copies(rows, names)
    check = CopyCheck.learn(rows, names)
    assert check is not None
    assert rows[COPIES].values[:6].tolist() == [2, 2, 3, 3, 3, 1]
    assert (check.n_normal, check.n_copied) == (1000, 5)
    part = count_copies(rows, names, is_part=True)
    assert part[COPIES].values.tolist() == [1] * 1000


def test_rows_that_differ_in_one_cell_as_in_the_naive_version() -> None:
    values = np.random.default_rng(0).integers(0, 5, (4, 150)).astype(float)
    rows = {name: Cells(name, "number", each) for name, each in zip("abcd", values, strict=True)}
    found = count_copies(rows, tuple(rows))
    for row, cells in enumerate(values.T):
        n_different = np.count_nonzero(cells != values.T, axis=1)
        assert found[COPIES].values[row] == np.count_nonzero(n_different == 0)
        alone = np.flatnonzero((cells != values.T)[n_different == 1].any(axis=0))
        expected = alone[0] if len(alone) and found[COPIES].values[row] == 1 else -1
        assert found[DIFFERENT].values[row] == expected


def test_repetition_says_nothing_where_it_is_usual() -> None:
    rows = {"x": _letters("x", "aabbbcda")}
    assert CopyCheck.learn({**rows, **count_copies(rows, ("x",))}, ("x",)) is None


def test_levels_are_as_rare_next_to_others_as_in_the_naive_version() -> None:
    rng = np.random.default_rng(0)
    first = rng.choice(list("abc"), 600)
    second = np.where(first == "a", "x", rng.choice(list("xyz"), 600))
    cells = _letters("first", "".join(first)), _letters("second", "".join(second))
    rows = {each.name: each for each in cells}
    codings = Coding.of_levels(cells[0]), Coding.of_levels(cells[1])
    learned = DependenceCheck.learn(codings, (codings[0].codes(rows), codings[1].codes(rows)))
    assert learned is not None
    gain, check = learned
    pairs, counts = Counter(zip(first, second, strict=True)), (Counter(first), Counter(second))
    lifts = []
    for pair in zip(first, second, strict=True):
        # What is likely without the row itself, next to what is likely whatever the other level is.
        share = (counts[0][pair[0]] - 1) / 600
        together = pairs[pair] - 1 + check.strength * share
        lifts.append(-log(together / (counts[1][pair[1]] + check.strength) / share))
    np.testing.assert_allclose(check.reference.ascending, sorted(lifts), atol=1e-12)
    assert gain == pytest.approx(-sum(lifts))


def test_times_of_day_are_compared_with_all_rows() -> None:
    minutes = np.random.default_rng(1).integers(480, 1080, 400).astype(float)
    check = TimeOfDayCheck.learn(Cells("at", "date", minutes * _MINUTE))
    ascending = np.sort(minutes)
    expected = NumberReference.learn(gaps_on_clock(ascending, ascending, own=True))
    assert check is not None
    assert expected is not None
    np.testing.assert_array_equal(check.reference.ascending, expected.ascending)
    assert (check.reference.n, check.counts.sum()) == (400, 400)


def test_many_normal_rows_near_to_a_time_are_no_reason() -> None:
    minutes = np.append(480.0 + np.arange(498) % 3, [486.0, 900.0])
    check = TimeOfDayCheck.learn(Cells("at", "date", minutes * _MINUTE))
    assert check is not None
    rows = {"at": Cells("at", "date", np.array([486.0, 505.0, 880.0, 1200.0]) * _MINUTE)}
    said = [text.split("; ")[1] for text, _ in check.describe(rows, lambda *_: "08:00")]
    assert said == [
        "1 of 500 normal rows are at that time of day",
        "none of 500 normal rows is between 08:06 and 15:00",
        "1 of 500 normal rows are within half an hour of that time of day",
        "none of 500 normal rows is between 15:00 and 08:00",
    ]


def test_few_values_are_found_behind_the_first_rows() -> None:
    few = np.repeat([1.0, 2.0, 3.0], 500)
    check = learn_levels(Cells("n", "number", few))
    assert check is not None
    assert check.reference.counts.tolist() == [0, 500, 500, 500]
    many = np.concatenate([np.ones(2000), np.arange(3000.0)])
    assert learn_levels(Cells("n", "number", many)) is None
    assert learn_levels(Cells("n", "number", many[::-1])) is None

"""What checks learn in a quick way is what a slow and obvious way finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from qms22.checks.dates import TimeOfDayCheck
from qms22.checks.joint import COPIES, PairCheck, RepeatCheck, count_copies
from qms22.checks.single import LevelCheck
from qms22.checks.surprise import NumberReference, gaps_on_circle
from qms22.tables.columns.cells import Cells, text_cells

_MINUTE = 60e6


def _letters(name: str, texts: str) -> Cells:
    """Return a column of letters, with missing cells for blanks."""
    return text_cells(name, texts)


def test_own_levels_have_the_codes_of_equal_texts() -> None:
    cells = _letters("size", "ba cabb a")
    check = LevelCheck.learn(cells)
    assert check is not None
    copied = replace(cells, levels=tuple(map(str, cells.levels)))
    assert copied.levels is not cells.levels
    np.testing.assert_array_equal(check.codes(cells), check.codes(copied))


def test_repeated_rows_are_counted() -> None:
    numbers = np.append([1.0, 1, 2, 2, 2], np.arange(3.0, 998))
    rows = {"y": Cells("y", "number", numbers)}
    names = tuple(rows)
    rows |= count_copies(rows)
    check = RepeatCheck.learn(rows, names)
    assert check is not None
    assert sorted(check.counts) == [2, 3]
    assert rows[COPIES].values[:6].tolist() == [2, 2, 3, 3, 3, 1]
    assert check.n_normal == 1000
    assert ((check.in_half >= 0) & (check.in_half <= check.counts)).all()


def test_repetition_says_nothing_where_it_is_usual() -> None:
    rows = {"x": _letters("x", "aabbbcda")}
    assert RepeatCheck.learn({**rows, **count_copies(rows)}, tuple(rows)) is None


def test_pairs_have_the_ratio_of_every_row() -> None:
    rng = np.random.default_rng(0)
    first = rng.choice(list("abc"), 600)
    second = np.where(first == "a", "x", rng.choice(list("xyz"), 600))
    cells = [_letters("first", "".join(first)), _letters("second", "".join(second))]
    one, two = (LevelCheck.learn(column) for column in cells)
    assert one is not None
    assert two is not None
    check = PairCheck.learn(one, two, (one.codes(cells[0]), two.codes(cells[1])))
    assert check is not None
    pairs = Counter(zip(first, second, strict=True))
    counts = Counter(first), Counter(second)
    ratios = []
    for pair, count in pairs.items():
        expected = counts[0][pair[0]] * counts[1][pair[1]] / 600
        ratios += count * [max(np.log((expected + 1) / count), 0.0) if expected >= 5 else 0.0]
    np.testing.assert_allclose(check.ratios, sorted(ratios))


def test_times_of_day_are_compared_with_all_rows() -> None:
    minutes = np.random.default_rng(1).integers(480, 1080, 400).astype(float)
    check = TimeOfDayCheck.learn(Cells("at", "date", minutes * _MINUTE))
    ascending = np.sort(minutes)
    expected = NumberReference.learn(gaps_on_circle(ascending, ascending, 1440.0, own=True))
    assert check is not None
    assert expected is not None
    np.testing.assert_array_equal(check.reference.ascending, expected.ascending)
    assert (check.reference.n, check.counts.sum()) == (400, 400)


def test_few_values_are_found_behind_the_first_rows() -> None:
    few = np.repeat([1.0, 2.0, 3.0], 500)
    check = LevelCheck.learn(Cells("n", "number", few))
    assert check is not None
    assert check.reference.counts.tolist() == [0, 500, 500, 500]
    many = np.concatenate([np.ones(2000), np.arange(3000.0)])
    assert LevelCheck.learn(Cells("n", "number", many)) is None
    assert LevelCheck.learn(Cells("n", "number", many[::-1])) is None

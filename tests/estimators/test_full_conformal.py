"""Full-conformal e-values and flags: by their definitions, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qms22._runtime.lazy_rows import LazyRows
from qms22.estimators import full_conformal, trials
from qms22.estimators.conformal import e_benjamini_hochberg
from qms22.estimators.e_values import closed_e_benjamini_hochberg, draw_line
from qms22.estimators.full_conformal import FullCalibration, on_common_scale
from qms22.estimators.marks import NO_MARKS, Marks
from qms22.estimators.trials import TrialScores

Rows = NDArray[np.float64]

LEVELS = st.sampled_from([0.05, 0.1, 0.2, 0.5, 0.9])
SLACK = 1 + 1e-9


def naive_line(known: Rows, others: Rows, level: float, n_batch: int) -> tuple[int, float]:
    """Try all lines through the scores of known rows, the lowest first."""
    for line in sorted(set(known.tolist())):
        n_beyond, n_found = int((known > line).sum()), 1 + int((others > line).sum())
        needed = n_batch * n_beyond / (level * len(known))
        if n_beyond > 1:
            needed = needed / (1 - level / 2) + math.sqrt(needed)
        if 0 < n_beyond <= level * len(known) * SLACK and needed <= n_found * SLACK:
            return n_found, len(known) / n_beyond if known[-1] > line else 0.0
    return 0, 0.0


scores = st.lists(st.integers(0, 12), min_size=2, max_size=25).map(
    lambda values: np.array(values, dtype=float)
)
higher = st.lists(st.integers(4, 20), max_size=25).map(lambda values: np.array(values, dtype=float))


@given(scores, higher, LEVELS)
def test_a_line_is_its_definition(known: Rows, others: Rows, level: float) -> None:
    found = draw_line(known, others, level, len(others) + 1)
    expected = naive_line(known, others, level, len(others) + 1)
    assert found.n_found == expected[0]
    assert found.e_value == pytest.approx(expected[1])


@given(scores, higher, LEVELS)
def test_a_line_treats_the_row_on_trial_like_the_others(
    known: Rows, others: Rows, level: float
) -> None:
    """Whichever of them is on trial: the line is the same, and the mean e-value is 1 or less."""
    lines = []
    for number in range(len(known)):
        exchanged = known.copy()
        exchanged[[number, -1]] = exchanged[[-1, number]]
        lines.append(draw_line(exchanged, others, level, len(others) + 1))
    assert len({line.n_found for line in lines}) == 1
    mean = np.mean([line.e_value for line in lines])
    assert mean == pytest.approx(1.0 if lines[0].n_found else 0.0)


def is_closed(values: Rows, flagged: tuple[int, ...], level: float) -> bool:
    """Compare the mean e-value of every set of rows with its share in the flagged ones."""
    for size in range(1, len(values) + 1):
        for chosen in combinations(range(len(values)), size):
            share = len(set(chosen) & set(flagged)) / len(flagged)
            if values[list(chosen)].mean() * level * SLACK < share:
                return False
    return True


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1, 2, 3, 5, 8, 10, 20, 40]), min_size=1, max_size=7),
    LEVELS,
)
def test_closed_flags_hold_for_every_set_of_rows(e_values: list[float], level: float) -> None:
    values = np.array(e_values, dtype=float)
    flagged = np.flatnonzero(closed_e_benjamini_hochberg(values, level))
    if flagged.size:
        assert is_closed(values, tuple(flagged), level)
    # No larger set of the highest rows would do, if the others had e-values of 0.
    highest = np.argsort(-values, kind="stable")
    assert set(flagged) == set(highest[: flagged.size])
    for size in range(flagged.size + 1, np.count_nonzero(values) + 1):
        others_0 = values.copy()
        others_0[highest[size:]] = 0.0
        assert not is_closed(others_0, tuple(highest[:size]), level)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), LEVELS)
def test_closed_flags_contain_those_without_closure(values: list[int], level: float) -> None:
    e_values = np.array(values, dtype=float)
    closed = closed_e_benjamini_hochberg(e_values, level)
    assert closed[e_benjamini_hochberg(e_values, level)].all()


def test_closed_flags_are_more() -> None:
    values = np.array([41.0] * 3 + [22.0] + [0.0] * 6)
    assert closed_e_benjamini_hochberg(values, 0.08).sum() == 4
    assert not e_benjamini_hochberg(values, 0.08).any()


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=40),
    st.lists(st.integers(-99, 99), min_size=1, max_size=40),
    st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_common_scale_keeps_the_order(known: list[int], batch: list[int], unit: float) -> None:
    raw = [unit * np.array(part, dtype=float) for part in (known, batch)]
    scaled = on_common_scale(TrialScores(raw[0][:, None], raw[1][:, None]))
    before, after = np.concatenate(raw), np.concatenate(scaled)[:, 0]
    order = np.argsort(before, kind="stable")
    assert np.isfinite(after).all()
    assert (np.diff(after[order]) >= -1e-12).all()
    # Equal scores stay equal, and a row beyond all known ones goes on rising.
    same = before[:, None] == before
    assert (after[:, None] == after)[same].all()
    beyond = before[before >= max(raw[0])]
    assert len(set(after[before >= max(raw[0])])) == len(set(beyond))


def test_common_scale_has_the_same_spread_for_every_view() -> None:
    rng = np.random.default_rng(0)
    known = np.column_stack([rng.exponential(size=5000), 1e-5 * rng.normal(size=5000) - 3.0])
    scaled = on_common_scale(TrialScores(known, known[:10]))
    np.testing.assert_allclose(scaled.known.mean(axis=0), 1.0, atol=0.03)
    np.testing.assert_array_equal(scaled.known[:10], scaled.batch)


def make_rows(kind: str, seed: int) -> tuple[Rows, Rows, list[list[int]], NDArray[np.bool_]]:
    """Return known-normal rows, a batch, groups of columns, and which rows are outliers."""
    rng = np.random.default_rng(seed)
    n_normal, n_batch, n_outliers = 40, 30, 10
    rows = rng.normal(size=(n_normal + n_batch, 3))
    rows[-n_outliers:] += 3.5
    groups: list[list[int]] = []
    if kind == "categories":
        levels = rng.integers(0, 3, len(rows))
        levels[-n_outliers:] = 3
        rows = np.column_stack([np.rint(rows[:, :1]), levels[:, None] == np.arange(4)])
        groups = [[1, 2, 3, 4]]
    is_outlier = np.arange(n_batch) >= n_batch - n_outliers
    if kind == "clean":
        rows, is_outlier = rows[:-n_outliers], is_outlier[:-n_outliers]
    return rows[:n_normal], rows[n_normal:], groups, is_outlier


def calibrate(
    normal: Rows,
    batch: Rows,
    groups: Sequence[Sequence[int]] = (),
    *,
    seed: int = 0,
    marks: Marks = NO_MARKS,
    n_threads: int = 1,
) -> FullCalibration:
    tables = (LazyRows(normal), LazyRows(batch))
    return FullCalibration(*tables, groups, seed=seed, marks=marks, n_threads=n_threads)


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn fast: guarantees hold for any number of trees."""
    monkeypatch.setattr(full_conformal, "_FEWEST_TREES", 150)
    monkeypatch.setattr(full_conformal, "_MOST_TREES", 150)


@pytest.fixture
def all_tried(few_trees: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every row its trial: e-values have the largest mean they may have."""
    monkeypatch.setattr(full_conformal, "_GENEROUS", 1e9)


def is_above(values: list[float], bound: float) -> bool:
    """Return whether the mean is above the bound by more than three standard errors."""
    return bool(np.mean(values) > bound + 3 * np.std(values) / math.sqrt(len(values)))


@pytest.mark.parametrize("kind", ["numbers", "categories"])
@pytest.mark.usefixtures("all_tried")
def test_e_values_of_normal_rows_have_a_mean_of_1_at_most(kind: str) -> None:
    means, found = [], []
    for seed in range(80):
        normal, batch, groups, is_outlier = make_rows(kind, seed)
        values = calibrate(normal, batch, groups, seed=seed).e_values(0.2)
        means.append(float(values[~is_outlier].mean()))
        found.append(float(values[is_outlier].mean()))
    assert not is_above(means, 1.0)
    # There is something to fail: most trials draw a line.
    assert np.mean(means) > 0.4
    assert np.mean(found) > 4.0


@pytest.mark.parametrize("kind", ["numbers", "categories", "clean"])
@pytest.mark.usefixtures("few_trees")
def test_flags_and_rows_beyond_keep_their_promises(kind: str) -> None:
    shares, power, n_false, n_false_of_three = [], [], [], []
    for seed in range(60):
        normal, batch, groups, is_outlier = make_rows(kind, 1000 + seed)
        calibration = calibrate(normal, batch, groups, seed=seed)
        flagged = calibration.flag(0.2)
        shares.append(float((flagged & ~is_outlier).sum() / max(1, flagged.sum())))
        power.append(float(flagged[is_outlier].mean()) if is_outlier.any() else 1.0)
        beyond = calibration.beyond()
        n_false.append(float((~is_outlier[beyond.rows]).sum()))
        n_false_of_three.append(float((~is_outlier[calibration.beyond(3).rows]).sum()))
    assert beyond.expected_false == pytest.approx(len(batch) / 41)
    assert not is_above(shares, 0.2)
    assert not is_above(n_false, len(batch) / 41)
    assert not is_above(n_false_of_three, 3 * len(batch) / 41)
    assert np.mean(power) > 0.3


@pytest.mark.usefixtures("all_tried")
def test_a_view_that_knows_the_known_rows_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A view that learns from known-normal rows and scores them like new ones is too sure."""
    monkeypatch.setattr(full_conformal, "_CHOICES", ((0.0, 0.0, 1.0),))

    def means() -> list[float]:
        found = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            normal, batch = rng.normal(size=(30, 10)), rng.normal(size=(25, 10))
            batch[15:] += 4.0
            values = calibrate(normal, batch, seed=seed).e_values(0.2)
            found.append(float(values[:15].mean()))
        return found

    assert not is_above(means(), 1.0)
    monkeypatch.setattr(trials, "_unlearned", lambda squares, _n: squares)
    assert is_above(means(), 1.0)


def test_results_depend_on_the_seed_alone() -> None:
    normal, batch, groups, _ = make_rows("numbers", 0)
    first, again, threads, other = (
        calibrate(normal, batch, groups, seed=seed, n_threads=n_threads)
        for seed, n_threads in ((1, 1), (1, 1), (1, 2), (2, 1))
    )
    for calibration in (again, threads):
        for level in (0.1, 0.2):
            assert calibration.e_values(level).tobytes() == first.e_values(level).tobytes()
        assert calibration.agreement(0.2).tobytes() == first.agreement(0.2).tobytes()
        np.testing.assert_array_equal(calibration.beyond().rows, first.beyond().rows)
    assert other._views[0]._values.tobytes() != first._views[0]._values.tobytes()


def test_clear_outliers_are_found_by_all_parts() -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(200, 4)), rng.normal(size=(60, 4))
    batch[50:] += 8.0
    calibration = calibrate(normal, batch)
    assert np.flatnonzero(calibration.flag(0.1)).tolist() == list(range(50, 60))
    agreement = calibration.agreement(0.1)
    assert (agreement[50:] == 1.0).all()
    assert (agreement[:50] < 1.0).all()
    assert set(range(50, 60)) <= set(calibration.beyond().rows)


def test_a_single_row_far_out_is_beyond() -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(300, 4)), rng.normal(size=(50, 4))
    batch[7] = 12.0
    rows, expected_false = calibrate(normal, batch).beyond()
    assert 7 in rows
    assert expected_false == pytest.approx(50 / 301)


def test_marked_outliers_help() -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(100, 6)), rng.normal(size=(60, 6))
    batch[50:, :2] += 2.5
    marked = rng.normal(size=(30, 6))
    marked[:, :2] += 2.5
    e_values = [
        calibrate(normal, batch, marks=marks).e_values(0.2)[50:].mean()
        for marks in (NO_MARKS, Marks(outliers=marked))
    ]
    assert e_values[1] > e_values[0]


N_KNOWN = {"one known row": 1, "two known rows": 2, "five known rows": 5}
EDGES = (
    *N_KNOWN,
    "one row of the batch",
    "equal rows",
    "one column",
    "huge values",
    "tiny values",
    "constant columns",
)


def edge_case(kind: str) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(30, 3)), rng.normal(size=(12, 3))
    batch[-3:] += 5.0
    if kind in N_KNOWN:
        normal = normal[: N_KNOWN[kind]]
    elif kind == "one row of the batch":
        batch = batch[-1:]
    elif kind == "equal rows":
        normal, batch = np.full_like(normal, 3.0), np.full_like(batch, 3.0)
    elif kind == "one column":
        normal, batch = normal[:, :1], batch[:, :1]
    elif kind == "huge values":
        normal, batch = normal * 1e300, batch * 1e300
        batch[-1] = -np.finfo(float).max
        normal[0, 0] = np.finfo(float).max
    elif kind == "tiny values":
        normal, batch = normal * 1e-310, batch * 1e-310
    elif kind == "constant columns":
        normal[:, 1:], batch[:, 1] = 0.0, 0.0
    return normal, batch


@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.usefixtures("few_trees")
def test_edge_cases_have_an_answer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No warning, which would be an error, and no number that is not one."""
    monkeypatch.setattr(full_conformal, "_GENEROUS", 1e9)
    normal, batch = edge_case(kind)
    calibration = calibrate(normal, batch)
    for level in (0.01, 0.2, 0.9):
        values = calibration.e_values(level)
        assert ((values >= 0.0) & (values <= len(normal) + 1)).all()
        assert calibration.flag(level).shape == (len(batch),)
    agreement = calibration.agreement(0.2)
    assert ((agreement >= 0.0) & (agreement <= 1.0)).all()
    for rank in (1, len(normal), len(normal) + 1):
        beyond = calibration.beyond(rank)
        assert len(beyond.rows) <= len(batch)
        assert beyond.expected_false == pytest.approx(len(batch) * rank / (len(normal) + 1))
    # Each of n + 1 rows is among the first n + 1.
    assert len(beyond.rows) == len(batch)
    for view in calibration._views:
        scores = view.scores(np.arange(len(batch)))
        for found in (*view.untried(), *scores, *on_common_scale(scores)):
            assert np.isfinite(found).all()


def test_equal_rows_are_never_suspicious() -> None:
    calibration = calibrate(np.ones((50, 2)), np.ones((20, 2)))
    assert not calibration.e_values(0.5).any()
    assert not calibration.beyond().rows.size

"""Scores in trials: equal to naive fits, and blind to which row is on trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from naive_trials import Rows, distance_rows, naive_covariance, naive_distances
from numpy.typing import NDArray

from qms22.estimators import trials
from qms22.estimators.marks import NO_MARKS, Marks
from qms22.estimators.trials import CovarianceTrials, DistanceTrials, ForestTrials, TrialScores

GRID = 2e-6  # scores are rounded


class Draws:
    """Stands for a RandomState whose draws are known."""

    def __init__(self, draws: NDArray[np.float64]) -> None:
        self.draws = draws

    def random_sample(self, size: int | tuple[int, int]) -> NDArray[np.float64]:
        assert self.draws.shape == (size if isinstance(size, tuple) else (size,))
        return self.draws

    def randint(self, _high: int) -> int:
        return 11

    def __call__(self) -> np.random.RandomState:
        return cast("np.random.RandomState", self)


def make_task(kind: str) -> tuple[Rows, Rows, Sequence[Sequence[int]]]:
    """Return known-normal rows, a batch, and groups of columns."""
    rng = np.random.default_rng(0)
    n_normal, n_batch = {"few rows": (5, 4), "two rows": (2, 2), "one row": (1, 2)}.get(
        kind, (40, 12)
    )
    rows = rng.normal(size=(n_normal + n_batch, 3)) * [1.0, 30.0, 0.01]
    rows[-2:] *= 4.0
    groups: list[list[int]] = []
    if kind == "duplicates":
        rows = np.rint(rng.normal(size=rows.shape))
    elif kind == "constant columns":
        rows[:, 1] = 7.0
        rows[:n_normal, 2] = 0.0
    elif kind == "categories":
        levels = rng.integers(0, 4, len(rows))
        rows = np.column_stack([rows[:, :2], levels[:, None] == np.arange(4)])
        groups = [[2, 3, 4, 5]]
    elif kind == "one column":
        rows = rows[:, :1]
    elif kind == "equal rows":
        rows = np.ones_like(rows)
    return rows[:n_normal], rows[n_normal:], groups


KINDS = (
    "plain",
    "duplicates",
    "constant columns",
    "categories",
    "one column",
    "few rows",
    "two rows",
    "one row",
    "equal rows",
)


def assert_scores(scores: TrialScores, trial: int, row: int, expected: Sequence[float]) -> None:
    """Compare with expected scores of the known-normal rows and then the batch."""
    n_normal = len(scores.known) - 1
    known = [*expected[:n_normal], expected[n_normal + row]]
    np.testing.assert_allclose(scores.known[:, trial], known, rtol=0, atol=GRID)
    np.testing.assert_allclose(scores.batch[:, trial], expected[n_normal:], rtol=0, atol=GRID)


@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_those_to_the_other_rows(kind: str) -> None:
    normal, batch, groups = make_task(kind)
    found = DistanceTrials(normal, batch, groups, np.random.RandomState(0))
    rows = distance_rows(normal, batch, groups)
    known = range(len(normal))
    tried = np.arange(len(batch))[::-1]
    scores = found.scores(tried)
    for trial, row in enumerate(tried.tolist()):
        expected = naive_distances(rows, [*known, len(normal) + row])
        assert_scores(scores, trial, row, expected)
    untried = np.concatenate(found.untried())
    np.testing.assert_allclose(untried, naive_distances(rows, known), rtol=0, atol=GRID)


def test_distances_to_a_part_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_REFERENCES", 25)
    monkeypatch.setattr(trials, "_ROWS_AT_ONCE", 7)
    normal, batch, groups = make_task("plain")
    draws = np.random.default_rng(0).random(len(normal) + len(batch))
    is_reference = draws < 25 / 40
    assert 0 < is_reference[len(normal) :].sum() < len(batch)
    scores = DistanceTrials(normal, batch, groups, Draws(draws)()).scores(np.arange(len(batch)))
    rows = distance_rows(normal, batch, groups)
    for row in range(len(batch)):
        known = [*range(len(normal)), len(normal) + row]
        expected = naive_distances(rows, [other for other in known if is_reference[other]])
        assert_scores(scores, row, row, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_those_of_the_other_rows(kind: str) -> None:
    normal, batch, _ = make_task(kind)
    scores = CovarianceTrials(normal, batch).scores(np.arange(len(batch)))
    for row in range(len(batch)):
        assert_scores(scores, row, row, naive_covariance(normal, batch, row))


@pytest.mark.parametrize("view", ["distances", "covariance"])
def test_equal_rows_have_equal_scores(view: str) -> None:
    """Whether or not one of them is on trial; rounding errors must not show it."""
    rng = np.random.default_rng(0)
    normal, batch = (rng.integers(0, 3, size=(n, 3)).astype(float) for n in (60, 30))
    found = (
        DistanceTrials(normal, batch, (), np.random.RandomState(0))
        if view == "distances"
        else CovarianceTrials(normal, batch)
    )
    known = found.scores(np.arange(30)).known
    n_equal = 0
    for row, of_row in enumerate(batch):
        of_equal_rows = known[:-1, row][(normal == of_row).all(axis=1)]
        np.testing.assert_array_equal(of_equal_rows, known[-1, row])
        n_equal += len(of_equal_rows)
    assert n_equal > 30


def swapped(normal: Rows, batch: Rows, one: int, row: int) -> tuple[Rows, Rows]:
    """Exchange a known-normal row and one of the batch."""
    normal, batch = normal.copy(), batch.copy()
    normal[one], batch[row] = batch[row].copy(), normal[one].copy()
    return normal, batch


def assert_swapped(
    before: TrialScores, after: TrialScores, one: int, row: int, atol: float
) -> None:
    """Compare the first trials: the exchanged rows take their scores with them."""
    known = before.known[:, 0].copy()
    known[[one, -1]] = known[[-1, one]]
    np.testing.assert_allclose(after.known[:, 0], known, rtol=0, atol=atol)
    others, expected = (np.delete(scores.batch[:, 0], row) for scores in (after, before))
    np.testing.assert_allclose(others, expected, rtol=0, atol=atol)


def swapped_draws(draws: NDArray[np.float64], n_normal: int, one: int, row: int) -> Draws:
    """Draw roles so that the exchanged rows take them along, in the trees of the trial."""
    draws, of_row = draws.copy(), draws[:, n_normal + row]
    # A draw of 0.1 puts any row into the bag as a normal one. 0.5 leaves any row out of it. 0.9
    # leaves a known-normal row out, and takes a row of the batch as one of the batch.
    in_bag = draws[:, one] < trials._IN_BAG
    is_used = of_row < trials._BATCH_AS_NORMAL + trials._BATCH_OUT
    row_in_bag = of_row < trials._BATCH_AS_NORMAL
    draws[:, one] = np.where(row_in_bag, 0.1, 0.9)
    draws[:, n_normal + row] = np.where(is_used, np.where(in_bag, 0.1, 0.5), 0.9)
    return Draws(draws)


def forests_of_swap(kind: str, one: int, row: int) -> tuple[ForestTrials, ForestTrials]:
    normal, batch, _ = make_task(kind)
    extra = np.random.default_rng(2).normal(size=(9, normal.shape[1]))
    marks = Marks(extra[:4], extra[4:])
    draws = np.random.default_rng(1).random((80, len(normal) + len(batch) + len(extra)))
    before = ForestTrials(normal, batch, marks, 80, Draws(draws)(), 1)
    rng = swapped_draws(draws, len(normal), one, row)()
    rows = swapped(normal, batch, one, row)
    return before, ForestTrials(*rows, marks, 80, rng, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_forest_does_not_see_which_row_is_on_trial(kind: str) -> None:
    normal, batch, _ = make_task(kind)
    for one, row in ((0, 0), (len(normal) - 1, 1), (len(normal) // 2, len(batch) - 1)):
        before, after = forests_of_swap(kind, one, row)
        trial = np.array([row])
        assert_swapped(before.scores(trial), after.scores(trial), one, row, atol=0.0)


@pytest.mark.parametrize("broken", ["all trees", "own class"])
def test_a_forest_that_sees_the_row_on_trial_is_noticed(broken: str) -> None:
    forests = forests_of_swap("plain", 3, 1)
    for forest in forests:
        if broken == "all trees":
            forest._is_used[:] = True
        else:
            forest._is_used[:] = ~forest._is_used
    before, after = (forest.scores(np.array([1])) for forest in forests)
    with pytest.raises(AssertionError):
        assert_swapped(before, after, 3, 1, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_references", [4000, 25])
def test_distances_do_not_see_which_row_is_on_trial(
    kind: str, n_references: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "_REFERENCES", n_references)
    normal, batch, groups = make_task(kind)
    draws = np.random.default_rng(0).random(len(normal) + len(batch))
    for one, row in ((0, 0), (len(normal) - 1, 1)):
        moved = draws.copy()
        exchanged = [one, len(normal) + row]
        moved[exchanged] = moved[exchanged[::-1]]
        before = DistanceTrials(normal, batch, groups, Draws(draws)())
        after = DistanceTrials(*swapped(normal, batch, one, row), groups, Draws(moved)())
        trial = np.array([row])
        assert_swapped(before.scores(trial), after.scores(trial), one, row, atol=GRID)


@pytest.mark.parametrize("kind", KINDS)
def test_covariance_does_not_see_which_row_is_on_trial(kind: str) -> None:
    normal, batch, _ = make_task(kind)
    for one, row in ((0, 0), (len(normal) - 1, 1)):
        before = CovarianceTrials(normal, batch)
        after = CovarianceTrials(*swapped(normal, batch, one, row))
        trial = np.array([row])
        assert_swapped(before.scores(trial), after.scores(trial), one, row, atol=GRID)


def test_views_without_the_row_on_trial_are_noticed() -> None:
    normal, batch, groups = make_task("plain")
    rows = swapped(normal, batch, 3, 1)
    rng = np.random.RandomState(0)
    for before, after in (
        (DistanceTrials(normal, batch, groups, rng), DistanceTrials(*rows, groups, rng)),
        (CovarianceTrials(normal, batch), CovarianceTrials(*rows)),
    ):
        broken = []
        for view in (before, after):
            known, others = view.untried()
            broken.append(TrialScores(np.append(known, others[1])[:, None], others[:, None]))
        with pytest.raises(AssertionError):
            assert_swapped(broken[0], broken[1], 3, 1, atol=1e-3)


def test_known_rows_and_the_row_on_trial_are_as_often_in_the_bag() -> None:
    normal, batch, _ = make_task("plain")
    forest = ForestTrials(normal, batch, NO_MARKS, 2000, np.random.RandomState(0), 1)
    known, searched = np.split(forest._is_out, [len(normal)], axis=1)
    assert forest._is_used.mean() == pytest.approx(2 / 3, abs=0.01)
    assert searched[forest._is_used].mean() == pytest.approx(known.mean(), abs=0.02)
    assert not searched[~forest._is_used].any()


def test_scores_of_a_forest_are_means_over_its_trees() -> None:
    normal, batch, _ = make_task("plain")
    extra = np.random.default_rng(2).normal(size=(9, 3))
    rng = np.random.RandomState(3)
    forest = ForestTrials(normal, batch, Marks(extra[:4], extra[4:]), 60, rng, 1)
    # Marked rows have no scores.
    assert forest._values.shape == (60, len(normal) + len(batch))
    scores = forest.scores(np.array([4, 2]))
    for trial, row in enumerate((4, 2)):
        is_used = forest._is_used[:, row]
        assert 20 < is_used.sum() < 60
        expected = [
            of_row[is_used & is_out].mean()
            for of_row, is_out in zip(forest._values.T.astype(float), forest._is_out.T, strict=True)
        ]
        known = [*expected[: len(normal)], expected[len(normal) + row]]
        np.testing.assert_allclose(scores.known[:, trial], known, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            scores.batch[:, trial], expected[len(normal) :], rtol=0, atol=1e-12
        )


def test_marked_rows_teach() -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(60, 2)), rng.normal(size=(30, 2))
    batch[0] = 3.0
    near = 3.0 + 0.1 * rng.normal(size=(20, 2))

    def score(marks: Marks) -> float:
        forest = ForestTrials(normal, batch, marks, 300, np.random.RandomState(0), 1)
        return float(forest.scores(np.array([0])).known[-1, 0])

    unmarked = score(NO_MARKS)
    assert score(Marks(outliers=near)) > unmarked + 0.1
    assert score(Marks(normal=near)) < unmarked - 0.1


def test_parts_of_a_forest_are_its_trees() -> None:
    normal, batch, _ = make_task("plain")
    forest = ForestTrials(normal, batch, NO_MARKS, 23, np.random.RandomState(0), 1)
    parts = [forest.part(number, 5) for number in range(5)]
    assert [len(part._values) for part in parts] == [5, 5, 5, 4, 4]
    for name in ("_values", "_is_out", "_is_used"):
        whole = getattr(forest, name)
        for number, part in enumerate(parts):
            np.testing.assert_array_equal(getattr(part, name), whole[number::5])
    # A part of all trees is the forest.
    rows = np.array([3, 1])
    for one, other in zip(forest.part(0, 1).scores(rows), forest.scores(rows), strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_forest_is_the_same_on_any_number_of_threads() -> None:
    normal, batch, _ = make_task("plain")
    forests = [
        ForestTrials(normal, batch, NO_MARKS, 40, np.random.RandomState(0), n) for n in (1, 2)
    ]
    assert forests[0]._values.tobytes() == forests[1]._values.tobytes()
    assert (forests[0]._values[~forests[0]._is_out] == 0.0).all()

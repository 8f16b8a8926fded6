"""Flagging with a guarantee, as users of the detectors meet it."""

from __future__ import annotations

import doctest
import pickle
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from qms22 import QMS22, QMS22Ensemble
from qms22._cpm.options import SolverOptions
from qms22._runtime.lazy_rows import LazyRows
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.conformal import least_to_flag
from qms22.estimators.marks import NO_MARKS, Marks

QUICK: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 3, "random_state": 0}
DETECTORS: list[BatchDetector] = [QMS22(**QUICK), QMS22Ensemble(n_splits=2, **QUICK)]
each_detector = pytest.mark.parametrize("detector", DETECTORS, ids=["QMS22", "QMS22Ensemble"])

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Normal rows, and a batch whose first eight rows are outliers."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(60, 3))
    batch[:8] += 7
    return rng.normal(size=(300, 3)), batch


class Spy(QMS22):
    """Notes what it learns from, and itself."""

    seen: ClassVar[list[tuple[NDArray[np.float64], NDArray[np.float64], BatchDetector]]] = []

    def _learn(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        rng: np.random.RandomState,
        options: SolverOptions,
        groups: Sequence[Sequence[int]] = (),
        marks: Marks = NO_MARKS,
    ) -> None:
        super()._learn(normal, batch, rng, options, groups, marks)
        self.seen.append((normal, batch, self))


class SpyEnsemble(QMS22Ensemble):
    """Notes what it learns from, and itself."""

    seen = Spy.seen

    def _learn(
        self,
        normal: NDArray[np.float64],
        batch: NDArray[np.float64],
        rng: np.random.RandomState,
        options: SolverOptions,
        groups: Sequence[Sequence[int]] = (),
        marks: Marks = NO_MARKS,
    ) -> None:
        super()._learn(normal, batch, rng, options, groups, marks)
        self.seen.append((normal, batch, self))


each_spy = pytest.mark.parametrize(
    "spy", [Spy(**QUICK), SpyEnsemble(n_splits=2, **QUICK)], ids=["QMS22", "QMS22Ensemble"]
)


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    Spy.seen.clear()


def sorted_rows(table: NDArray[np.float64]) -> list[list[float]]:
    return sorted(table.tolist())


@each_spy
def test_held_out_rows_are_mixed_into_the_batch(spy: BatchDetector, rows: Rows) -> None:
    normal, batch = rows
    spy.fit(normal, unlabeled=batch).p_values(n_splits=30)
    splits = Spy.seen[1:]
    assert len(splits) == 30
    places = []
    for known, mixed, _ in splits:
        assert len(known) == 200
        # Every row is there once, the batch among what is searched.
        assert sorted_rows(np.concatenate([known, mixed])) == sorted_rows(np.concatenate(rows))
        in_batch = (mixed[:, np.newaxis] == batch).all(axis=2).any(axis=1)
        assert in_batch.sum() == 60
        places.append(np.flatnonzero(in_batch).mean() / 159)
    # A row of the batch stands anywhere.
    assert abs(np.mean(places) - 0.5) < 4 * np.sqrt(1 / 12 / (60 * 30))
    # And every split holds out others.
    assert len({str(sorted_rows(known)) for known, _, _ in splits}) == 30


@pytest.mark.parametrize("given", [{"a": [2, 0]}, [(2, 0)]])
def test_groups_reach_every_split(given: Any, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    learn, seen = QMS22Ensemble._learn, []

    def noted(detector: Any, *arguments: Any) -> None:
        seen.append(arguments[4])
        learn(detector, *arguments)

    monkeypatch.setattr(QMS22Ensemble, "_learn", noted)
    detector = QMS22Ensemble(n_splits=2, **QUICK).fit(rows[0], unlabeled=rows[1], groups=given)
    detector.p_values(n_splits=2)
    assert seen == [((2, 0),)] * 3
    detector.fit(rows[0], unlabeled=rows[1]).p_values()
    assert seen[3:] == [()] * 2


@each_spy
@pytest.mark.parametrize("n_swapped", [1, 60])
def test_scores_do_not_depend_on_being_held_out(
    spy: BatchDetector, n_swapped: int, rows: Rows
) -> None:
    """Held-out rows and rows of the batch change places: every row keeps its score."""
    normal, batch = rows
    spy.fit(normal, unlabeled=batch).p_values()
    known, mixed, learned = Spy.seen[-1]
    held_out = np.flatnonzero(~(normal[:, np.newaxis] == known).all(axis=2).any(axis=1))
    held_out = held_out[:n_swapped]
    other_normal, other_batch = normal.copy(), batch.copy()
    other_normal[held_out], other_batch[:n_swapped] = batch[:n_swapped], normal[held_out]
    spy.fit(other_normal, unlabeled=other_batch).p_values()
    other_known, other_mixed, other_learned = Spy.seen[-1]
    np.testing.assert_array_equal(other_known, known)
    assert (other_mixed != mixed).any()
    assert sorted_rows(other_mixed) == sorted_rows(mixed)
    np.testing.assert_allclose(
        other_learned._scores(LazyRows(mixed)), learned._scores(LazyRows(mixed)), rtol=1e-9
    )


@each_detector
def test_p_values_of_normal_rows_are_uniform(detector: BatchDetector) -> None:
    """And under the global null hardly anything is flagged."""
    rng = np.random.RandomState(0)
    n_runs, level = 150, 0.4
    means, n_alarms = [], 0
    for seed in range(n_runs):
        fitted = clone(detector).set_params(random_state=seed)
        fitted.fit(rng.normal(size=(60, 2)), unlabeled=rng.normal(size=(10, 2)))
        means.append(fitted.p_values().mean())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            n_alarms += bool(fitted.flag(level).any())
    # Ranks among 20 held-out rows, from 1/21 to 1, are 11/21 on average, and a bit more with ties.
    assert -0.02 < np.mean(means) - 11 / 21 < 0.06
    assert n_alarms / n_runs <= level + 3 * np.sqrt(level * (1 - level) / n_runs)


@each_detector
@pytest.mark.parametrize("n_splits", [1, 3])
def test_clear_outliers_are_flagged(detector: BatchDetector, n_splits: int, rows: Rows) -> None:
    fitted = clone(detector).set_params(max_iter=10).fit(rows[0], unlabeled=rows[1])
    flagged = fitted.flag(0.2, n_splits=n_splits)
    assert flagged.shape == (60,)
    assert flagged.dtype == bool
    assert flagged[:8].all()
    assert flagged.sum() <= 14
    p_values = fitted.p_values(n_splits=n_splits)
    assert p_values[:8].max() < p_values[8:].mean()
    assert ((p_values > 0) & (p_values <= 1)).all()
    share, low, high = fitted.estimate_contamination(n_splits=n_splits)
    assert 0 < low <= share <= high <= 1
    assert low <= 8 / 60 <= high


@each_detector
def test_a_higher_level_flags_no_fewer(detector: BatchDetector, rows: Rows) -> None:
    fitted = clone(detector).fit(rows[0], unlabeled=rows[1])
    before = np.zeros(60, dtype=bool)
    for level in (0.1, 0.2, 0.5, 0.9):
        flagged = fitted.flag(level, method="split")
        assert (flagged >= before).all()
        before = flagged


@each_detector
def test_auto_flags_as_many_as_flag(detector: BatchDetector, rows: Rows) -> None:
    rng = np.random.RandomState(1)
    normal = np.concatenate([rows[0], rng.normal(size=(300, 3))])
    fitted = clone(detector).set_params(max_iter=10).fit(normal, unlabeled=rows[1])
    n_flagged = int(fitted.flag(0.1).sum())
    assert n_flagged > 0
    assert (fitted.predict(rows[1]) == -1).sum() == n_flagged


@each_detector
def test_flags_are_repeatable(detector: BatchDetector, rows: Rows) -> None:
    def fresh(seed: int) -> NDArray[np.float64]:
        fitted: BatchDetector = clone(detector).set_params(random_state=seed)
        fitted.fit(rows[0], unlabeled=rows[1])
        fitted.flag(0.2)  # what is asked for first does not matter
        return fitted.p_values(n_splits=2)

    first = clone(detector).fit(rows[0], unlabeled=rows[1])
    np.testing.assert_array_equal(first.p_values(n_splits=2), fresh(0))
    np.testing.assert_array_equal(first.p_values(n_splits=2), first.p_values(n_splits=2))
    assert (fresh(1) != fresh(0)).any()


@each_detector
def test_pickling_keeps_what_was_computed(detector: BatchDetector, rows: Rows) -> None:
    fitted = clone(detector).fit(rows[0], unlabeled=rows[1])
    before = fitted.p_values()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.p_values(), before)
    np.testing.assert_array_equal(again.flag(0.2, n_splits=2), fitted.flag(0.2, n_splits=2))


@each_detector
def test_a_new_fit_forgets_the_old_batch(detector: BatchDetector, rows: Rows) -> None:
    normal, batch = rows
    fitted = clone(detector).fit(normal, unlabeled=batch)
    old = fitted.p_values()
    fitted.fit(normal, unlabeled=batch[::-1])
    expected = clone(detector).fit(normal, unlabeled=batch[::-1]).p_values()
    np.testing.assert_array_equal(fitted.p_values(), expected)
    assert (fitted.p_values() != old).any()
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        fitted.fit(normal)
    with pytest.raises(ValueError, match=r"no batch to flag rows of.*fit\(X, unlabeled=batch\)"):
        fitted.flag()


@each_detector
def test_too_few_known_normal_rows_for_the_level(detector: BatchDetector) -> None:
    rng = np.random.RandomState(0)
    fitted = clone(detector).fit(rng.normal(size=(57, 2)), unlabeled=rng.normal(size=(40, 2)))
    for level, n_splits, text in (
        (0.2, 1, r"with 19 of them held out, fdr=0\.2 can flag none or at least 10 of 40 rows"),
        (0.2, 2, r"each split at fdr=0\.2 can flag none or at least 20 of 40 rows"),
        (0.04, 1, r"fdr=0\.04 can flag none of 40 rows; give more known-normal rows"),
    ):
        with pytest.warns(UserWarning, match=text):
            assert not fitted.flag(level, method="split", n_splits=n_splits).any()


def test_too_few_known_normal_rows_to_compare_with() -> None:
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(40, 2))
    batch[3] = 9.0
    fitted = QMS22Ensemble(random_state=0).fit(rng.normal(size=(57, 2)), unlabeled=batch)
    text = (
        r"with 57 known-normal rows a false discovery rate of 0\.2 can flag at least 4 of 40 rows "
        r"or none; look at rows 3, 10, which are .* \(by chance at most 0\.69\), or give at least "
    )
    with pytest.warns(UserWarning, match=text) as caught:
        assert not fitted.flag(0.2).any()
    assert caught[0].filename == __file__
    assert fitted.beyond().rows.tolist() == [3, 10]


def test_full_is_for_the_ensemble(rows: Rows) -> None:
    with pytest.raises(ValueError, match="is for QMS22Ensemble with up to 10,000"):
        QMS22(**QUICK).fit(rows[0], unlabeled=rows[1]).flag(method="full")
    fitted = QMS22Ensemble(random_state=0).fit(rows[0], unlabeled=rows[1])
    with pytest.raises(ValueError, match="method must be"):
        fitted.flag(method="half")
    assert (fitted.flag(0.2) == fitted.flag(0.2, method="full")).all()
    for method in ("full", "split"):
        share = fitted.agreement(0.2, method=method)
        assert share.shape == (60,)
        assert share[:8].mean() > 0.7 > 0.3 > share[8:].mean()
        beyond = fitted.beyond(2, method=method)
        assert set(range(8)) <= set(beyond.rows.tolist())
        assert beyond.expected_false < 5


def test_no_warning_where_one_row_can_be_flagged() -> None:
    rng = np.random.RandomState(0)
    fitted = QMS22(**QUICK).fit(rng.normal(size=(100, 2)), unlabeled=rng.normal(size=(2, 2)))
    assert fitted.flag(0.1).shape == (2,)


def test_not_more_are_held_out_than_are_of_use() -> None:
    rng = np.random.RandomState(0)
    Spy(**QUICK).fit(rng.normal(size=(1000, 2)), unlabeled=rng.normal(size=(3, 2))).p_values()
    known, mixed, _ = Spy.seen[-1]
    assert len(mixed) == 3 + 60
    assert len(known) == 1000 - 60


@each_detector
def test_too_few_rows_to_hold_any_out(detector: BatchDetector) -> None:
    rng = np.random.RandomState(0)
    n_normal = 2 if isinstance(detector, QMS22) else 4
    fitted = clone(detector).fit(rng.normal(size=(n_normal, 2)), unlabeled=rng.normal(size=(5, 2)))
    with pytest.raises(ValueError, match="leaves too few to learn from; give more"):
        fitted.flag(method="split")


@pytest.mark.parametrize("fdr", [0, 1, -0.1, 1.5, np.nan, "some", None, True])
def test_bad_fdr(fdr: Any, rows: Rows) -> None:
    fitted = QMS22(**QUICK).fit(rows[0], unlabeled=rows[1])
    with pytest.raises(ValueError, match=r"fdr must be a share in \(0, 1\); got"):
        fitted.flag(fdr)


@pytest.mark.parametrize("n_splits", [0, -1, 1.5, "two", None])
def test_bad_number_of_splits(n_splits: Any, rows: Rows) -> None:
    fitted = QMS22(**QUICK).fit(rows[0], unlabeled=rows[1])
    for ask in (fitted.flag, fitted.p_values, fitted.estimate_contamination):
        with pytest.raises(ValueError, match="n_splits must be a whole number of at least 1"):
            ask(n_splits=n_splits)


@pytest.mark.parametrize("confidence", [0, 1, 95, np.nan, "high"])
def test_bad_confidence(confidence: Any, rows: Rows) -> None:
    fitted = QMS22(**QUICK).fit(rows[0], unlabeled=rows[1])
    with pytest.raises(ValueError, match=r"confidence must be a share in \(0, 1\); got"):
        fitted.estimate_contamination(confidence=confidence)


@each_detector
def test_nothing_to_flag_before_fit(detector: BatchDetector) -> None:
    for ask in (detector.flag, detector.p_values, detector.estimate_contamination):
        with pytest.raises(NotFittedError):
            ask()


GUIDE = Path(__file__).parents[2] / "docs" / "thresholds.md"


def test_the_guide_tells_the_truth() -> None:
    failed, tried = doctest.testfile(str(GUIDE), module_relative=False)
    assert tried > 10
    assert failed == 0


def test_the_guide_knows_how_many_rows_it_takes() -> None:
    lines = re.findall(r"^\| (\d+)% \| (\d+) \| (\d+) \| (\d+) \|$", GUIDE.read_text(), re.M)
    assert len(lines) == 5
    for percent, *counts in lines:
        for count, level in zip(counts, (0.05, 0.1, 0.2), strict=True):
            n_outliers, n_held_out = 10 * int(percent), int(count) // 3
            assert least_to_flag(1000, n_held_out, level) == n_outliers
            assert least_to_flag(1000, n_held_out - 1, level) > n_outliers

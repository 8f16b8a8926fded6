"""QMS22Ensemble: what it promises, and the parts it is made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keel_files import real_keel
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.base import clone

from qms22 import QMS22, QMS22Ensemble
from qms22._cpm.task import detection_task
from qms22.datasets import load_keel
from qms22.estimators.held_out import HeldOutScores
from qms22.metrics import roc


@pytest.fixture(scope="module")
def fitted(rows: tuple[np.ndarray, np.ndarray]) -> QMS22Ensemble:
    return QMS22Ensemble(random_state=0).fit(rows[0], unlabeled=rows[1])


def test_finds_the_outliers(fitted: QMS22Ensemble) -> None:
    assert set(fitted.top_k(5)) == {0, 1, 2, 3, 4}


def test_scores_have_the_signs_of_scikit_learn(
    fitted: QMS22Ensemble, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    _, batch = rows
    np.testing.assert_allclose(fitted.score_samples(batch), -fitted.unlabeled_scores_, rtol=1e-12)
    decision = fitted.decision_function(batch)
    np.testing.assert_array_equal(decision, fitted.score_samples(batch) - fitted.offset_)
    np.testing.assert_array_equal(fitted.predict(batch), np.where(decision < 0, -1, 1))
    assert (fitted.predict(batch)[:5] == -1).all()


def test_score_is_what_the_docstring_says(
    fitted: QMS22Ensemble, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    """Compute it from the parts again, by definitions rather than by the code's shortcuts."""
    normal, batch = rows
    scaled = (batch - normal.mean(axis=0)) / normal.std(axis=0) * 85
    near = batch / np.ptp(normal, axis=0)
    shift = np.median(normal, axis=0) / np.ptp(normal, axis=0)

    def share(score: float, held_out: np.ndarray) -> float:
        p = (0.5 + np.mean([score < held_out, score <= held_out]) * len(held_out)) / (
            len(held_out) + 1
        )
        return float(p * np.exp(-max(0.0, score - held_out.max()) / held_out.std()))

    p_members, p_distance, ranks = [], [], []
    for split in fitted.splits_:
        eta = split.members.outlier_scores(scaled)
        ranks.append(eta)
        p_members.append([share(s, split.of_members.ascending) for s in np.log1p(eta)])
        nearest = np.sort(cdist(near - shift, split.references), axis=1)[:, :16]
        weights = 0.5 ** np.arange(1, 17)
        floor = 1e-3 * np.sqrt(2 * split.references.var(axis=0).sum())
        logs = np.log(nearest + floor) @ weights / weights.sum()
        p_distance.append([share(s, split.of_distances.ascending) for s in logs])
    correlation = spearmanr(np.transpose(ranks)).statistic
    weight = correlation[np.triu_indices(8, 1)].mean() ** 2
    assert fitted.weight_ == pytest.approx(weight, rel=1e-9)
    expected = -weight * np.log(np.mean(p_members, axis=0))
    expected -= (1 - weight) * np.log(np.mean(p_distance, axis=0))
    np.testing.assert_allclose(fitted.unlabeled_scores_, expected, rtol=1e-6)


def test_every_known_normal_row_is_held_out_once(
    fitted: QMS22Ensemble, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    assert len(fitted.splits_) == 8
    assert sum(len(split.of_members.ascending) for split in fitted.splits_) == len(rows[0])


def test_same_seed_same_scores_whatever_the_jobs(rows: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = rows
    detector = QMS22Ensemble(random_state=3, max_iter=3)
    one = detector.fit(normal, unlabeled=batch).unlabeled_scores_
    two = clone(detector).set_params(n_jobs=2).fit(normal, unlabeled=batch).unlabeled_scores_
    other = clone(detector).set_params(random_state=4).fit(normal, unlabeled=batch)
    np.testing.assert_array_equal(one, two)
    assert (one != other.unlabeled_scores_).any()


def test_pickled_detector_scores_alike(
    fitted: QMS22Ensemble, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.score_samples(rows[1]), fitted.score_samples(rows[1]))


def test_explains_by_the_feature_that_is_odd(rows: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = rows
    batch = batch.copy()
    batch[7, 2] = 9.0
    detector = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
    assert detector.explain(batch[7:8]).top(0)[0].name == "x2"


def test_nothing_to_learn_gives_no_weight() -> None:
    """Where all rows are equal, QMS22 has no opinion, and nothing is suspicious."""
    rows = np.ones((30, 2))
    detector = QMS22Ensemble(random_state=0).fit(rows, unlabeled=rows[:10])
    assert detector.weight_ == 0.0
    assert np.ptp(detector.unlabeled_scores_) == 0.0


def test_agreement_is_high_where_outliers_are_alike_and_low_under_the_null() -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(400, 4)), rng.normal(size=(200, 4))
    nothing = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch).weight_
    batch[:60] = 3 + 0.3 * rng.normal(size=(60, 4))
    much = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch).weight_
    assert nothing < 0.5 < much


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_splits": 1}, "n_splits must be a whole number of at least 2; got 1"),
        ({"n_members": 1}, "n_members must be a whole number of at least 2; got 1"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
        ({"dtype": "float16"}, "dtype must be one of 'float64', 'float32'; got 'float16'"),
        ({"contamination": 2.5}, "contamination must be 'auto', a share"),
    ],
)
def test_bad_parameters(
    parameters: dict[str, object], sentence: str, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match=sentence):
        QMS22Ensemble(**parameters).fit(rows[0], unlabeled=rows[1])  # type: ignore[arg-type]


def test_wants_enough_known_normal_rows() -> None:
    rng = np.random.RandomState(0)
    with pytest.raises(ValueError, match=r"n_samples=6 .* 5 stay .* fewer than n_members − 1 = 6"):
        QMS22Ensemble().fit(rng.normal(size=(6, 2)), unlabeled=rng.normal(size=(5, 2)))
    few = QMS22Ensemble(random_state=0).fit(
        rng.normal(size=(8, 2)), unlabeled=rng.normal(size=(1, 2))
    )
    assert np.isfinite(few.unlabeled_scores_).all()


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.lists(st.floats(-9, 9), min_size=2))
def test_shares_fall_as_scores_rise(held_out: list[float], scores: list[float]) -> None:
    measure = HeldOutScores.of(np.array(held_out))
    ascending = np.sort(scores)
    logarithms = measure.log_p_values(ascending)
    assert (np.diff(logarithms) <= 0).all()
    assert (logarithms < 0).all()
    beyond = ascending > max(held_out)
    distinct = np.diff(ascending[beyond]) > 1e-6
    assert (np.diff(logarithms[beyond])[distinct] < 0).all()


def test_held_out_rows_are_in_the_first_member_set_alone() -> None:
    X = np.zeros((30, 2))
    held_out = np.array([0, 7, 19])
    task = detection_task(X, 10, 4, np.random.RandomState(0), held_out)
    assert (task.group[:10] == 0).all()
    assert (task.group[10 + held_out] == 0).all()
    assert np.bincount(task.group).tolist() == [13, 6, 6, 5]
    # As if they had been given as unlabeled rows.
    order = np.r_[np.arange(10), 10 + held_out, np.delete(np.arange(10, 30), held_out)]
    moved = detection_task(X, 13, 4, np.random.RandomState(0))
    np.testing.assert_array_equal(task.group[order], moved.group)
    np.testing.assert_array_equal(task.group_weight, moved.group_weight)


@pytest.mark.parametrize("name", ["vehicle2", "glass4", "zoo-3"])
def test_beats_qms22_on_real_data(name: str) -> None:
    dataset = load_keel(name, real_keel())
    better = []
    for fold in dataset.folds():
        plain = QMS22(random_state=0).fit(fold.normal, unlabeled=fold.unlabeled)
        ensemble = QMS22Ensemble(random_state=0).fit(fold.normal, unlabeled=fold.unlabeled)
        plain_auc = roc(fold.is_outlier, plain.unlabeled_scores_).auc
        better.append(roc(fold.is_outlier, ensemble.unlabeled_scores_).auc - plain_auc)
    assert np.mean(better) > 0.02

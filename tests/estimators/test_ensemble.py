"""QMS22Ensemble: what it promises, and the parts it is made of."""

from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keel_files import real_keel
from naive_views import naive_excess, naive_scores
from scipy.stats import spearmanr
from sklearn.base import clone

from qms22 import QMS22, QMS22Ensemble
from qms22._cpm.backends import BACKENDS
from qms22.estimators.held_out import HeldOutScores
from qms22.estimators.learning import take_parts
from qms22.estimators.views import ScoredRows
from qms22.estimators.weights import _EXCESS_WEIGHT as EXCESS_WEIGHT
from qms22.metrics import roc
from qms22_bench.datasets import load_keel


@pytest.fixture(scope="module")
def clustered() -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and a batch with a cluster of outliers, which all views learn."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(90, 3))
    batch[:30] = 2.5 + 0.3 * rng.normal(size=(30, 3))
    return rng.normal(size=(120, 3)), batch


@pytest.fixture(scope="module")
def fitted(rows: tuple[np.ndarray, np.ndarray]) -> QMS22Ensemble:
    return QMS22Ensemble(dtype="float64", random_state=0).fit(rows[0], unlabeled=rows[1])


def test_finds_the_outliers(fitted: QMS22Ensemble) -> None:
    assert set(fitted.top_k(5)) == {0, 1, 2, 3, 4}


def test_scores_have_the_signs_of_scikit_learn(
    fitted: QMS22Ensemble, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    _, batch = rows
    np.testing.assert_array_equal(fitted.score_samples(batch), -fitted.unlabeled_scores_)
    decision = fitted.decision_function(batch)
    np.testing.assert_array_equal(decision, fitted.score_samples(batch) - fitted.offset_)
    np.testing.assert_array_equal(fitted.predict(batch), np.where(decision < 0, -1, 1))
    assert (fitted.predict(batch)[:5] == -1).all()


@pytest.mark.parametrize("data", ["rows", "clustered"])
def test_score_is_what_the_docstring_says(data: str, request: pytest.FixtureRequest) -> None:
    """Compute it from the parts again, by definitions rather than by the code's shortcuts."""
    normal, batch = request.getfixturevalue(data)
    detector = QMS22Ensemble(dtype="float64", random_state=0).fit(normal, unlabeled=batch)
    by_view = naive_scores(detector.views_, normal, batch)
    assert set(by_view) == set(detector.weights_)
    assert data == "rows" or len(by_view) == 5
    expected = sum(detector.weights_[name] * scores for name, scores in by_view.items())
    np.testing.assert_allclose(detector.unlabeled_scores_, expected, rtol=1e-6)


def test_weights_are_what_the_docstring_says(
    fitted: QMS22Ensemble, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    views: dict[str, Any] = fitted.views_
    by_view = naive_scores(views, *rows)
    scaled = (rows[1] - rows[0].mean(axis=0)) / rows[0].std(axis=0) * 85
    etas = [part.members.outlier_scores(scaled) for part in views["members"].parts]
    pairs = [spearmanr(one, other).statistic for one, other in combinations(etas, 2)]
    members = np.mean(pairs) ** 2
    # What the forests agree on is tested by itself: it depends on how rows are drawn.
    forests = fitted.weights_.get("self_training", 0.0)
    trust = {"members": members, "distances": 1 - members, "covariance": 0, "forest": forests}
    beyond = {
        name: max(0.0, naive_excess(by_view[name], views[name].n_compared) - 5) for name in trust
    }
    total = 1 + sum(beyond.values())
    assert total > 1.2  # the five outliers are seen
    for name in trust:
        expected = trust[name] + EXCESS_WEIGHT * beyond[name] / total
        assert fitted.weights_[name] == pytest.approx(expected, rel=1e-6)


def test_every_known_normal_row_is_compared_with_once(
    fitted: QMS22Ensemble, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    view: Any = fitted.views_["members"]
    assert len(view.parts) == fitted.n_splits
    assert {view.n_compared for view in fitted.views_.values()} == {len(rows[0])}


def test_same_seed_same_scores_whatever_the_jobs(
    clustered: tuple[np.ndarray, np.ndarray],
) -> None:
    normal, batch = clustered
    detector = QMS22Ensemble(random_state=3, max_iter=3)
    one = detector.fit(normal, unlabeled=batch).unlabeled_scores_
    two = clone(detector).set_params(n_jobs=2).fit(normal, unlabeled=batch).unlabeled_scores_
    other = clone(detector).set_params(random_state=4).fit(normal, unlabeled=batch)
    np.testing.assert_array_equal(one, two)
    assert (one != other.unlabeled_scores_).any()


def test_the_order_of_the_batch_changes_nothing(
    clustered: tuple[np.ndarray, np.ndarray],
) -> None:
    normal, batch = clustered
    order = np.random.RandomState(1).permutation(len(batch))
    expected = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
    found = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch[order])
    assert found.weights_ == expected.weights_
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_[order])


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


def test_explains_by_the_odd_features_of_a_cluster() -> None:
    """Also where the forests have a say, which score learned rows and changed ones differently."""
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(400, 4)), rng.normal(size=(200, 4))
    batch[:40, 1] = 3 + 0.2 * rng.normal(size=40)
    detector = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
    assert detector.weights_["forest"] > 1
    drop = detector.explain(batch[:40]).drop
    assert (drop.argmax(axis=1) == 1).all()
    assert np.delete(drop, 1, axis=1).max() < 0.5 * drop[:, 1].mean()


def test_values_that_are_typical_are_no_reason(fitted: QMS22Ensemble) -> None:
    row = fitted.typical_.copy()
    row[2] = 6.0
    drop = fitted.explain(row[None]).drop[0]
    assert drop[2] > 0
    assert not np.delete(drop, 2).any()


def test_the_columns_of_a_category_are_one_feature() -> None:
    """As columns of their own they would drown the numbers."""
    rng = np.random.RandomState(0)

    def draw(n_rows: int) -> np.ndarray:
        levels = [np.eye(12)[rng.randint(12, size=n_rows)] for _ in range(3)]
        return np.hstack([rng.normal(size=(n_rows, 2)), *levels])

    normal, batch = draw(400), draw(200)
    batch[:10, 0] = 5
    groups = [range(2 + 12 * i, 14 + 12 * i) for i in range(3)]

    def least_distance_score(groups: Any) -> float:
        """The rank of the least suspicious outlier in the view of distances."""
        detector = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch, groups=groups)
        scores = detector.views_["distances"].scorer(BACKENDS["cpu"])(ScoredRows(batch))
        return float(np.mean(scores[10:] < scores[:10].min()))

    assert least_distance_score(groups) > least_distance_score(None) + 0.05
    assert least_distance_score(groups) == 1.0


def test_nothing_to_learn_gives_no_weight() -> None:
    """Where all rows are equal, only the distance has a weight, and nothing is suspicious."""
    rows = np.ones((30, 2))
    detector = QMS22Ensemble(random_state=0).fit(rows, unlabeled=rows[:10])
    assert {name for name, weight in detector.weights_.items() if weight > 0} == {"distances"}
    assert np.ptp(detector.unlabeled_scores_) == 0.0


def test_views_that_learn_from_the_batch_have_weight_where_outliers_are_alike() -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(400, 4)), rng.normal(size=(200, 4))
    nothing = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch).weights_
    batch[:60] = 3 + 0.3 * rng.normal(size=(60, 4))
    much = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch).weights_
    assert nothing["members"] < 0.5 < much["members"]
    assert nothing["forest"] < 0.3 < min(much["forest"], much["self_training"])
    assert nothing["distances"] > 0.5


def test_a_view_that_sees_a_few_outliers_has_weight() -> None:
    """Rows whose values do not fit each other: near normal rows, but far in their covariance."""
    rng = np.random.RandomState(0)
    first = rng.normal(size=(700, 1))
    rows = np.hstack([first, first + 0.05 * rng.normal(size=(700, 1)), rng.normal(size=(700, 3))])
    normal, batch = rows[:400], rows[400:]
    batch[:6, 1] -= 0.7
    detector = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
    assert detector.weights_["covariance"] == max(detector.weights_.values())
    assert set(detector.top_k(6)) == set(range(6))


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
    with pytest.raises(ValueError, match=r"n_samples=6 .* fewer than the 7 that n_members=7 needs"):
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


def test_splits_hold_their_part_out_and_learn_from_all_others() -> None:
    held_out = np.array_split(np.random.RandomState(0).permutation(20), 4)
    for out, taken in zip(
        held_out, take_parts((30, 2), 10, held_out, np.random.RandomState(0)), strict=True
    ):
        assert taken.unlabeled.tolist() == [*range(10), *sorted(10 + out)]
        assert taken.known.tolist() == sorted({*range(10, 30)} - {*(10 + out)})
        assert taken.columns.tolist() == [0, 1]


@pytest.mark.parametrize("n_features", [64, 65, 100, 512, 1000])
def test_splits_of_wide_tables_share_the_columns(n_features: int) -> None:
    held_out = np.array_split(np.arange(80), 8)
    taken = take_parts((100, n_features), 20, held_out, np.random.RandomState(0))
    sizes = {len(np.unique(part.columns)) for part in taken}
    assert sizes == {min(n_features, max(64, n_features // 8))}
    times = np.bincount(np.concatenate([part.columns for part in taken]), minlength=n_features)
    assert times.min() >= 1
    assert times.max() - times.min() <= 1


def test_splits_of_large_tables_learn_from_different_halves() -> None:
    held_out = np.array_split(np.arange(16_000), 8)
    taken = take_parts((21_000, 3), 5_000, held_out, np.random.RandomState(0))
    for part, out in zip(taken, held_out, strict=True):
        assert (len(part.unlabeled), len(part.known)) == (4_000, 7_000)
        assert not {*part.known} & {*(5_000 + out)}
        assert np.isin(5_000 + out, part.unlabeled).mean() == pytest.approx(4 / 7, abs=0.05)
    assert len(np.intersect1d(taken[0].known, taken[1].known)) < 4_000


def test_scores_of_wide_rows_find_outliers_in_any_column() -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(300, 200)), rng.normal(size=(100, 200))
    batch[:3, [0, 90, 199]] += 12
    detector = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
    assert sorted(detector.top_k(3).tolist()) == [0, 1, 2]


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

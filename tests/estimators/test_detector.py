"""The public behaviour of QMS22."""

from __future__ import annotations

import pickle
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from qms22 import QMS22


@pytest.fixture(scope="module")
def fitted(rows: tuple[np.ndarray, np.ndarray]) -> QMS22:
    return QMS22(random_state=0).fit(rows[0], unlabeled=rows[1])


def test_finds_the_outliers(fitted: QMS22) -> None:
    assert set(fitted.top_k(5)) == {0, 1, 2, 3, 4}


def test_scores_have_the_signs_of_scikit_learn(
    fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    _, batch = rows
    np.testing.assert_array_equal(fitted.score_samples(batch), -fitted.unlabeled_scores_)
    decision = fitted.decision_function(batch)
    np.testing.assert_array_equal(decision, fitted.score_samples(batch) - fitted.offset_)
    np.testing.assert_array_equal(fitted.predict(batch), np.where(decision < 0, -1, 1))
    assert (fitted.predict(batch)[:5] == -1).all()


def test_score_is_eta(fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = rows
    scaled = batch / np.abs(normal).max(axis=0) * 255
    f = ((np.einsum("iqp,np->niq", fitted.A_, scaled) - fitted.b_) ** 2).sum(axis=2)
    eta = np.maximum(0, (f[:, 1:] - f[:, :1]) / f[:, :1]).sum(axis=1)
    np.testing.assert_allclose(fitted.unlabeled_scores_, eta, rtol=1e-9)


def test_shapes(fitted: QMS22) -> None:
    assert fitted.A_.shape == (7, 10, 4)
    assert fitted.b_.shape == (7, 10)
    assert fitted.members_ is fitted.restarts_[0]
    assert fitted.unlabeled_scores_.shape == (80,)
    assert 1 <= fitted.n_iter_ <= 60


def test_top_k_breaks_ties_by_position(fitted: QMS22) -> None:
    detector = pickle.loads(pickle.dumps(fitted))
    detector.unlabeled_scores_ = np.array([0.0, 2.0, 0.0, 2.0, 1.0])
    assert detector.top_k(5).tolist() == [1, 3, 4, 0, 2]
    assert detector.top_k(0).tolist() == []


def test_top_k_wants_no_more_than_there_is(fitted: QMS22) -> None:
    with pytest.raises(ValueError, match="k=81 is more than the 80 unlabeled rows there are"):
        fitted.top_k(81)
    with pytest.raises(ValueError, match="k must be a whole number of at least 0"):
        fitted.top_k(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("contamination", "expected"), [(0.1, 8), (12, 12), (1, 1), (62, 62), (70, 62), (80, 80)]
)
def test_contamination_flags_that_many(
    contamination: float | int, expected: int, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    """Of the 80 rows 18 tie at a score of 0: where the line cuts a tie, none of it is flagged."""
    detector = QMS22(contamination=contamination, random_state=0, max_iter=5)
    detector.fit(rows[0], unlabeled=rows[1])
    assert len(np.unique(detector.unlabeled_scores_)) == 80 - 17
    flagged = np.flatnonzero(detector.predict(rows[1]) == -1)
    assert len(flagged) == expected
    assert set(flagged) == set(detector.top_k(expected))


@pytest.mark.parametrize("contamination", [0, 81, 0.0, 1.0, 1.5, -0.1, "some", None, True, np.nan])
def test_bad_contamination(contamination: object, rows: tuple[np.ndarray, np.ndarray]) -> None:
    detector = QMS22(contamination=contamination)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"contamination must be 'auto', a share .* 1 to 80"):
        detector.fit(rows[0], unlabeled=rows[1])


def test_auto_is_tukeys_rule(fitted: QMS22) -> None:
    first, third = np.percentile(fitted.unlabeled_scores_, [25, 75])
    assert -fitted.offset_ == pytest.approx(third + 1.5 * (third - first))


def test_seeds(rows: tuple[np.ndarray, np.ndarray], fitted: QMS22) -> None:
    def scores(seed: int | np.random.RandomState) -> np.ndarray:
        return QMS22(random_state=seed).fit(rows[0], unlabeled=rows[1]).unlabeled_scores_

    np.testing.assert_array_equal(scores(0), fitted.unlabeled_scores_)
    np.testing.assert_array_equal(scores(np.random.RandomState(0)), fitted.unlabeled_scores_)
    assert (scores(1) != fitted.unlabeled_scores_).any()


def test_restarts_average_and_run_side_by_side(rows: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = rows
    options: dict[str, Any] = {"n_restarts": 3, "max_iter": 5, "random_state": 0}
    detector = QMS22(**options).fit(normal, unlabeled=batch)
    assert len(detector.restarts_) == 3
    scaled = batch / np.abs(normal).max(axis=0) * 255
    each = [members.outlier_scores(scaled) for members in detector.restarts_]
    assert (each[0] != each[1]).any()
    np.testing.assert_allclose(detector.unlabeled_scores_, np.mean(each, axis=0), rtol=1e-9)
    for n_jobs in (2, 4, -1):
        parallel = QMS22(**options, n_jobs=n_jobs).fit(normal, unlabeled=batch)
        np.testing.assert_array_equal(parallel.unlabeled_scores_, detector.unlabeled_scores_)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        processes = QMS22(**options, n_jobs=2).fit(normal, unlabeled=batch)
    np.testing.assert_array_equal(processes.unlabeled_scores_, detector.unlabeled_scores_)


@pytest.mark.parametrize("n_members", range(2, 11))
def test_every_number_of_members(n_members: int, rows: tuple[np.ndarray, np.ndarray]) -> None:
    detector = QMS22(n_members=n_members, max_iter=20, random_state=0)
    detector.fit(rows[0], unlabeled=rows[1])
    is_outlier = np.arange(80) < 5
    assert roc_auc_score(is_outlier, detector.unlabeled_scores_) > 0.9


def test_without_a_batch_it_warns(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.warns(UserWarning, match=r"pass the batch to search as fit\(X, unlabeled=batch\)"):
        detector = QMS22(max_iter=5, random_state=0).fit(rows[0])
    assert len(detector.unlabeled_scores_) == len(rows[0])


def test_unseen_rows_are_scored_well() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.RandomState(0)
    benign, malignant = rng.permutation(np.flatnonzero(y == 1)), np.flatnonzero(y == 0)
    normal, others = X[benign[:178]], np.concatenate([benign[178:], malignant])
    seen, unseen = rng.permutation(others)[:195], rng.permutation(others)[195:]
    detector = QMS22(random_state=0).fit(normal, unlabeled=X[seen])
    assert roc_auc_score(y[unseen] == 0, -detector.score_samples(X[unseen])) > 0.93


def test_memory_order_and_writability_do_not_matter(
    fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    normal, batch = (array.copy() for array in rows)
    normal.flags.writeable = batch.flags.writeable = False
    for variant in (np.asfortranarray, lambda array: np.repeat(array, 2, axis=1)[:, ::2], list):
        detector = QMS22(random_state=0).fit(variant(normal), unlabeled=variant(batch))
        np.testing.assert_array_equal(detector.unlabeled_scores_, fitted.unlabeled_scores_)
        np.testing.assert_array_equal(
            detector.score_samples(variant(batch)), -fitted.unlabeled_scores_
        )


def test_data_frames(fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = (pd.DataFrame(array, columns=list("abcd")) for array in rows)
    detector = QMS22(random_state=0).fit(normal, unlabeled=batch)
    np.testing.assert_array_equal(detector.unlabeled_scores_, fitted.unlabeled_scores_)
    assert detector.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        QMS22().fit(normal, unlabeled=batch[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="feature names"):
        detector.predict(batch.rename(columns={"a": "z"}))


def test_pickle_and_clone(fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.score_samples(rows[1]), fitted.score_samples(rows[1]))
    assert not hasattr(clone(fitted), "A_")


def test_in_a_pipeline_the_batch_is_transformed_too(rows: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = rows
    with sklearn.config_context(enable_metadata_routing=True):
        detector = QMS22(max_iter=5, random_state=0).set_fit_request(unlabeled=True)
        steps = [("scale", StandardScaler()), ("detect", detector)]
        pipeline = Pipeline(steps, transform_input=["unlabeled"])
        pipeline.fit(normal, unlabeled=batch)
    scaler = StandardScaler().fit(normal)
    expected = QMS22(max_iter=5, random_state=0)
    expected.fit(scaler.transform(normal), unlabeled=scaler.transform(batch))
    np.testing.assert_array_equal(
        pipeline.named_steps["detect"].unlabeled_scores_, expected.unlabeled_scores_
    )
    np.testing.assert_array_equal(
        pipeline.predict(batch), expected.predict(scaler.transform(batch))
    )


@pytest.mark.filterwarnings("ignore:no unlabeled rows")
def test_in_cross_validation_and_grid_search() -> None:
    rng = np.random.RandomState(0)
    X = rng.normal(size=(120, 3))
    y = np.where(np.arange(120) % 10 == 0, -1, 1)
    X[y == -1] *= 6
    pipeline = make_pipeline(StandardScaler(), QMS22(max_iter=5, random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3, scoring="roc_auc").mean() > 0.6
    search = GridSearchCV(pipeline, {"qms22__n_members": [3, 5]}, scoring="roc_auc", cv=3)
    assert search.fit(X, y).best_params_["qms22__n_members"] in (3, 5)


def test_shows_progress_when_asked(
    rows: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    for n_jobs in (1, 2):
        QMS22(max_iter=3, n_restarts=2, n_jobs=n_jobs, verbose=1).fit(rows[0], unlabeled=rows[1])
        captured = capsys.readouterr()
        assert "6/6" in captured.err
        assert not captured.out

"""Bad input works sensibly or gets one sentence that names the culprit; scores are never NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from qms22 import QMS22, QMS22Ensemble, QMSClassifier


@pytest.fixture
def normal() -> np.ndarray:
    return np.random.RandomState(0).normal(size=(60, 3))


@pytest.fixture
def batch() -> np.ndarray:
    return np.random.RandomState(1).normal(size=(30, 3))


def assert_one_sentence(error: BaseException) -> None:
    message = str(error)
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "has 1 NaN (missing) or infinite value (first at row 17); drop or impute"),
        (np.inf, "has 1 infinite (inf) value (first at row 17)"),
    ],
)
def test_not_finite(value: float, words: str, normal: np.ndarray, batch: np.ndarray) -> None:
    bad = normal.copy()
    bad[17, 1] = value
    for call, name in (
        (lambda: QMS22().fit(bad, unlabeled=batch), "X"),
        (lambda: QMS22().fit(normal, unlabeled=bad), "unlabeled"),
        (lambda: QMS22(max_iter=1).fit(normal, unlabeled=batch).score_samples(bad), "X"),
        (lambda: QMSClassifier().fit(bad, np.arange(60) % 2), "X"),
    ):
        with pytest.raises(ValueError, match="column 1") as caught:
            call()
        assert f"column 1 of {name} {words}" in str(caught.value)
        assert_one_sentence(caught.value)


def test_missing_values_are_named_by_column(normal: np.ndarray) -> None:
    frame = pd.DataFrame(normal, columns=["age", "dose", "size"])
    frame.loc[[4, 9], "dose"] = np.nan
    frame.loc[3, "size"] = np.nan
    message = r"column 'dose' of X has 2 NaN .* \(first at row 4\), as have 1 more columns"
    with pytest.raises(ValueError, match=message):
        QMS22().fit(frame, unlabeled=frame)


@pytest.mark.parametrize("as_frame", [True, False])
def test_text_is_named(as_frame: bool, normal: np.ndarray, batch: np.ndarray) -> None:
    table = pd.DataFrame(normal, columns=["age", "sex", "size"]).astype(object)
    table.loc[2:, "sex"] = "male"
    column = "'sex'" if as_frame else "1"
    message = rf"column {column} of X is not numeric \(first at row 2: 'male'\); encode it"
    with pytest.raises(ValueError, match=message) as caught:
        QMS22().fit(table if as_frame else table.to_numpy(), unlabeled=batch)
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty(shape: tuple[int, int], normal: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"Found array with 0 (sample|feature)"):
        QMS22().fit(np.empty(shape), unlabeled=normal)
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        QMS22().fit(normal, unlabeled=np.empty((0, 3)))


def test_too_few_normals(batch: np.ndarray) -> None:
    message = r"n_samples=5 known-normal rows, fewer than the 6 that n_members=7 needs"
    with pytest.raises(ValueError, match=message):
        QMS22().fit(batch[:5], unlabeled=batch)
    QMS22(max_iter=2).fit(batch[:6], unlabeled=batch)


def test_wrong_feature_counts(normal: np.ndarray, batch: np.ndarray) -> None:
    with pytest.raises(ValueError, match="X has 2 features, but QMS22 is expecting 3"):
        QMS22().fit(normal, unlabeled=batch[:, :2])
    detector = QMS22(max_iter=1).fit(normal, unlabeled=batch)
    with pytest.raises(ValueError, match="X has 4 features, but QMS22 is expecting 3"):
        detector.predict(np.ones((2, 4)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1.0}, r"alpha must be a number in \[0, 1\); got 1.0"),
        ({"alpha": -0.1}, r"alpha must be a number in \[0, 1\); got -0.1"),
        ({"alpha": np.nan}, "alpha must be a number"),
        ({"alpha": "half"}, "alpha must be a number in .*; got 'half'"),
        ({"n_members": 1}, "n_members must be a whole number of at least 2; got 1"),
        ({"n_members": 7.0}, "n_members must be a whole number"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1; got 0"),
        ({"n_components": True}, "n_components must be a whole number"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        ({"n_restarts": 0}, "n_restarts must be a whole number of at least 1"),
        ({"step_a": 0.0}, "step_a must be a positive finite number; got 0.0"),
        ({"step_b": -1}, "step_b must be a positive finite number"),
        ({"init_b": np.inf}, "init_b must be a positive finite number; got inf"),
        ({"init_b": 1e200}, r"init_b must be from 1e-100 to 1e\+100; got 1e\+200"),
        ({"init_b": 1e-200}, "init_b must be from 1e-100"),
        ({"init_b": 10**400}, "init_b must be a positive finite number; got 1000"),
        ({"max_iter": 10**400}, r"max_iter must be below 2\*\*63"),
        ({"step_a": 1e300}, "step_a=1e\\+300.* may overflow float64; scale the features"),
        ({"dtype": "float16"}, "dtype must be one of 'float64', 'float32'; got 'float16'"),
        ({"device": "abacus"}, "device must be one of 'cpu', 'cuda', 'auto'; got 'abacus'"),
        ({"scaling": "minmax"}, "scaling must be one of 'maxabs', 'standard', None"),
        ({"n_jobs": 0}, "n_jobs == 0"),
    ],
)
def test_parameters(
    parameters: dict[str, Any], message: str, normal: np.ndarray, batch: np.ndarray
) -> None:
    with pytest.raises(ValueError, match=message):
        QMS22(**parameters).fit(normal, unlabeled=batch)
    if "n_members" not in parameters and "n_restarts" not in parameters:
        with pytest.raises(ValueError, match=message):
            QMSClassifier(**parameters).fit(normal, np.arange(60) % 2)


@pytest.mark.parametrize("scaling", ["maxabs", "standard"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("value", [1e300, -1e300, 1e-300, 5e-324, 1.7e308])
@pytest.mark.parametrize("where", ["normal", "batch", "both"])
def test_extreme_values(
    scaling: str, dtype: str, value: float, where: str, normal: np.ndarray, batch: np.ndarray
) -> None:
    if where != "batch":
        normal[:, 1] *= value / 4
    if where != "normal":
        batch[:3, 1] = value
    detector = QMS22(scaling=scaling, dtype=dtype, max_iter=10, random_state=0)
    detector.fit(normal, unlabeled=batch)
    assert np.isfinite(detector.unlabeled_scores_).all()
    assert np.isfinite(detector.score_samples(normal)).all()
    if where == "batch" and abs(value) > 1:
        assert set(detector.top_k(3)) == {0, 1, 2}


def test_unscaled_extremes_are_refused_in_fit_and_survived_in_scoring(
    normal: np.ndarray, batch: np.ndarray
) -> None:
    detector = QMS22(scaling=None, init_b=100.0, step_b=1.0, random_state=0)
    detector.fit(normal, unlabeled=batch)
    assert np.isfinite(detector.score_samples(np.full((1, 3), 1e300))).all()
    with pytest.raises(ValueError, match="may overflow float64; scale the features"):
        detector.fit(normal, unlabeled=np.full((5, 3), 1e300))


@pytest.mark.parametrize("scaling", ["maxabs", "standard"])
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e-300, -7.5, 1e300])
def test_constant_columns(
    scaling: str, constant: float, normal: np.ndarray, batch: np.ndarray
) -> None:
    normal[:, 2] = constant
    batch[:, 2] = constant
    detector = QMS22(scaling=scaling, max_iter=10, random_state=0)
    detector.fit(normal, unlabeled=batch)
    assert np.isfinite(detector.unlabeled_scores_).all()


@pytest.mark.parametrize("constant", [5e-324, 1e-310, 1e-300, 1.7976931348623157e308])
def test_ensemble_with_a_constant_column(
    constant: float, normal: np.ndarray, batch: np.ndarray
) -> None:
    normal[:, 2] = batch[:, 2] = constant
    batch[4, 2] = 1.0
    detector = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
    assert np.isfinite(detector.unlabeled_scores_).all()
    assert np.isfinite(detector.score_samples(normal)).all()
    assert 4 in detector.top_k(3)


@pytest.mark.parametrize("scaling", ["maxabs", "standard"])
def test_a_value_never_seen_is_suspicious(
    scaling: str, normal: np.ndarray, batch: np.ndarray
) -> None:
    normal[:, 2] = 0.0
    batch[:, 2] = 0.0
    batch[4, 2] = 1.0
    detector = QMS22(scaling=scaling, random_state=0).fit(normal, unlabeled=batch)
    assert 4 in detector.top_k(3)


def test_all_rows_alike() -> None:
    same = np.ones((20, 2))
    detector = QMS22(random_state=0).fit(same, unlabeled=same[:8])
    assert np.isfinite(detector.unlabeled_scores_).all()
    assert (detector.predict(same) == 1).all()


def test_batch_of_one_row(normal: np.ndarray) -> None:
    detector = QMS22(random_state=0).fit(normal, unlabeled=[[50.0, 50.0, 50.0]])
    assert detector.top_k(1).tolist() == [0]
    assert np.isfinite(detector.unlabeled_scores_).all()


def test_rows_that_a_member_hits_exactly() -> None:
    # Unit steps on ±1 features against b = 2 make f exactly 0 on whole classes.
    labels = np.arange(30) % 2
    rows = 1.0 - 2.0 * labels[:, None]
    classifier = QMSClassifier(n_components=1, alpha=0.0, scaling=None, step_b=1.0, init_b=2.0).fit(
        rows, labels
    )
    assert (classifier.predict(rows) == labels).all()
    assert np.isfinite(classifier.predict_proba(rows)).all()
    assert np.isfinite(classifier.decision_function(rows)).all()

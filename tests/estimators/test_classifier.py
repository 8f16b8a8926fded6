"""The public behaviour of QMSClassifier."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from qms22 import QMSClassifier


@pytest.fixture(scope="module")
def wine() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return X, y


def test_is_as_good_as_logistic_regression(wine: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wine
    ours = cross_val_score(QMSClassifier(scaling="standard"), X, y).mean()
    theirs = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), X, y).mean()
    assert ours > theirs - 0.03


def test_predictions_agree_with_each_other(wine: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wine
    labels = np.array(["barbera", "grignolino", "barolo"])[y]
    classifier = QMSClassifier(max_iter=5).fit(X, labels)
    assert classifier.classes_.tolist() == ["barbera", "barolo", "grignolino"]
    predicted = classifier.predict(X)
    scores, probabilities = classifier.decision_function(X), classifier.predict_proba(X)
    assert scores.shape == probabilities.shape == (len(X), 3)
    assert (classifier.classes_[scores.argmax(axis=1)] == predicted).all()
    assert (classifier.classes_[probabilities.argmax(axis=1)] == predicted).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    # As documented: the softmax of the decision function.
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, softmax)


def test_member_functions_are_what_they_say(wine: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wine
    classifier = QMSClassifier(scaling=None, max_iter=3, init_b=1000.0).fit(X, y)
    assert classifier.A_.shape == (3, 10, X.shape[1])
    assert classifier.b_.shape == (3, 10)
    residuals = np.einsum("iqp,np->niq", classifier.A_, X) - classifier.b_
    values = (residuals**2).sum(axis=2)
    np.testing.assert_allclose(classifier.members_.values(X), values, rtol=1e-10)
    assert (classifier.predict(X) == values.argmin(axis=1)).all()


def test_two_classes_have_one_score() -> None:
    X, y = load_iris(return_X_y=True)
    classifier = QMSClassifier(max_iter=5).fit(X[50:], y[50:])
    scores = classifier.decision_function(X[50:])
    assert scores.shape == (100,)
    assert ((scores > 0) == (classifier.predict(X[50:]) == 2)).all()


def test_loss_history(wine: tuple[np.ndarray, np.ndarray]) -> None:
    classifier = QMSClassifier(max_iter=12).fit(*wine)
    assert len(classifier.loss_) == classifier.n_iter_ + 1 == 13
    assert (np.diff(classifier.loss_) < 0).all()
    assert classifier.loss_[0] == 2 * len(wine[0])


@pytest.mark.parametrize("scaling", ["maxabs", "standard"])
def test_rows_of_no_weight_are_as_good_as_gone(
    wine: tuple[np.ndarray, np.ndarray], scaling: str
) -> None:
    X, y = wine
    weights = np.random.RandomState(0).randint(0, 3, size=len(y)).astype(float)
    outlying = X.copy()
    outlying[weights == 0] *= 100
    options: dict[str, Any] = {"max_iter": 4, "scaling": scaling}
    weighted = QMSClassifier(**options).fit(outlying, y, sample_weight=weights)
    kept = weights > 0
    expected = QMSClassifier(**options).fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(weighted.A_, expected.A_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"one weight for each of the 178 rows; got shape \(2,\)"),
        (np.full(178, -1.0), "sample_weight holds -1.0 at row 0"),
        (np.full(178, np.nan), "sample_weight holds nan at row 0"),
        (np.repeat([0.0, 1.0], [59, 119]), "every row of class '0' has zero sample_weight"),
    ],
)
def test_bad_weights(wine: tuple[np.ndarray, np.ndarray], weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QMSClassifier().fit(*wine, sample_weight=weights)


def test_one_class_is_not_enough() -> None:
    with pytest.raises(ValueError, match="y holds one class only, 'a'; give rows of at least two"):
        QMSClassifier().fit([[1.0], [2.0]], ["a", "a"])


def test_in_grid_search_and_pipeline(wine: tuple[np.ndarray, np.ndarray]) -> None:
    pipeline = make_pipeline(StandardScaler(), QMSClassifier(max_iter=3))
    search = GridSearchCV(pipeline, {"qmsclassifier__n_components": [1, 4]}, cv=3, n_jobs=2)
    search.fit(*wine)
    assert search.best_score_ > 0.8


def test_data_frames_clones_and_pickles(wine: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wine
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    classifier = clone(QMSClassifier(max_iter=2)).fit(frame, y)
    assert classifier.feature_names_in_.tolist() == list(frame.columns)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(frame), classifier.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame.rename(columns={"f0": "other"}))


def test_shows_progress_when_asked(
    wine: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    QMSClassifier(max_iter=2, verbose=1).fit(*wine)
    captured = capsys.readouterr()
    assert "2/2" in captured.err
    assert "loss" in captured.err
    assert not captured.out

"""QMS22 as a detector of PyOD, in PyOD's own tools."""

from __future__ import annotations

import inspect
import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import qms22

pytest.importorskip("pyod")

from pyod.models.base import BaseDetector
from pyod.models.ecod import ECOD
from pyod.models.knn import KNN
from pyod.utils.utility import standardizer

from qms22.pyod import QMS22, QMS22Ensemble

Rows = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Normal rows, and a batch whose first five rows are outliers."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(80, 4))
    batch[:5] += 5
    return rng.normal(size=(200, 4)), batch


@pytest.fixture(scope="module")
def fitted(rows: Rows) -> QMS22:
    return QMS22(contamination=5 / 80, random_state=0).fit(rows[0], unlabeled=rows[1])


def test_is_qms22_with_pyods_signs(fitted: QMS22, rows: Rows) -> None:
    normal, batch = rows
    own = qms22.QMS22(random_state=0).fit(normal, unlabeled=batch)
    assert isinstance(fitted, BaseDetector)
    np.testing.assert_array_equal(fitted.decision_scores_, own.unlabeled_scores_)
    np.testing.assert_array_equal(fitted.decision_function(normal), -own.score_samples(normal))
    np.testing.assert_array_equal(fitted.decision_function(batch), fitted.decision_scores_)


def test_labels_and_threshold(fitted: QMS22, rows: Rows) -> None:
    batch = rows[1]
    assert fitted.labels_.tolist() == [1] * 5 + [0] * 75
    assert fitted.threshold_ == np.percentile(fitted.decision_scores_, 100 * (1 - 5 / 80))
    np.testing.assert_array_equal(fitted.predict(batch), fitted.labels_)
    labels, confidence = fitted.predict(batch, return_confidence=True)
    np.testing.assert_array_equal(labels, fitted.labels_)
    assert ((confidence >= 0) & (confidence <= 1)).all()


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities(method: str, fitted: QMS22, rows: Rows) -> None:
    probabilities = fitted.predict_proba(rows[1], method=method)
    assert probabilities.shape == (80, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert probabilities[:5, 1].min() > probabilities[5:, 1].max()


def test_ranks_and_rejection(fitted: QMS22, rows: Rows) -> None:
    assert fitted._predict_rank(rows[1])[:5].min() >= 75
    rejected = fitted.predict_with_rejection(rows[1], c_r=0.1)
    assert set(np.unique(rejected)) <= {-2, 0, 1}


def test_the_recommended_detector(rows: Rows) -> None:
    normal, batch = rows
    detector = QMS22Ensemble(contamination=5 / 80, random_state=0).fit(normal, unlabeled=batch)
    own = qms22.QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
    np.testing.assert_array_equal(detector.decision_scores_, own.unlabeled_scores_)
    np.testing.assert_array_equal(detector.decision_function(normal), -own.score_samples(normal))
    assert detector.labels_.tolist() == [1] * 5 + [0] * 75
    assert clone(detector).get_params() == detector.get_params()


@pytest.mark.parametrize("name", ["QMS22", "QMS22Ensemble"])
def test_parameters_are_those_of_qms22(name: str) -> None:
    theirs = inspect.signature(getattr(qms22, name)).parameters
    ours = inspect.signature({"QMS22": QMS22, "QMS22Ensemble": QMS22Ensemble}[name]).parameters
    assert set(ours) == set(theirs)
    for each in set(ours) - {"contamination"}:
        assert ours[each].default == theirs[each].default


def test_parameters_pass_through(rows: Rows) -> None:
    parameters: dict[str, Any] = {"n_members": 4, "n_components": 2, "max_iter": 3, "n_restarts": 2}
    detector = QMS22(0.2, **parameters).fit(rows[0], unlabeled=rows[1])
    assert detector.get_params()["contamination"] == 0.2
    for name, value in parameters.items():
        assert detector.get_params()[name] == value
        assert getattr(detector.detector_, name) == value
    copy = clone(detector)
    assert copy.get_params() == detector.get_params()
    assert not hasattr(copy, "decision_scores_")
    assert detector.set_params(alpha=0.1).alpha == 0.1
    assert "n_members=4" in repr(detector)


def test_y_is_ignored_and_pickles_work(rows: Rows, fitted: QMS22) -> None:
    normal, batch = rows
    detector = QMS22(contamination=5 / 80, random_state=0).fit(normal, np.zeros(200), batch)
    np.testing.assert_array_equal(detector.labels_, fitted.labels_)
    copy = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(copy.predict(batch), fitted.labels_)


def test_frames(rows: Rows) -> None:
    normal, batch = (pd.DataFrame(part, columns=list("abcd")) for part in rows)
    detector = QMS22(max_iter=5, random_state=0).fit(normal, unlabeled=batch)
    np.testing.assert_array_equal(detector.predict(batch), detector.labels_)
    assert detector.predict_proba(batch).shape == (80, 2)


def test_without_a_batch_it_warns(rows: Rows) -> None:
    detector = QMS22(max_iter=2, random_state=0)
    with pytest.warns(UserWarning, match=r"pass the batch to search as fit\(X, unlabeled=batch\)"):
        detector.fit(rows[0])
    assert detector.decision_scores_.shape == detector.labels_.shape == (200,)


def test_errors(rows: Rows) -> None:
    with pytest.raises(NotFittedError):
        QMS22().decision_function(rows[1])
    with pytest.raises(NotFittedError):
        QMS22().predict(rows[1])
    with pytest.raises(ValueError, match="contamination must be in"):
        QMS22(contamination=0.7)
    with pytest.raises(ValueError, match="n_members must be a whole number of at least 2; got 1"):
        QMS22(n_members=1).fit(rows[0], unlabeled=rows[1])


def test_combinations(fitted: QMS22, rows: Rows) -> None:
    pytest.importorskip("combo")
    from pyod.models.combination import aom, average, majority_vote, maximization, median, moa

    batch = rows[1]
    detectors = [
        fitted,
        KNN(contamination=5 / 80).fit(batch),
        ECOD(contamination=5 / 80).fit(batch),
    ]
    train = np.column_stack([detector.decision_scores_ for detector in detectors])
    test = np.column_stack([detector.decision_function(batch) for detector in detectors])
    train, test = standardizer(train, test)
    for scores in (
        average(test),
        maximization(test),
        median(test),
        aom(test, n_buckets=3),
        moa(test, n_buckets=3),
    ):
        assert set(np.argsort(-scores)[:5]) == {0, 1, 2, 3, 4}
    votes = majority_vote(np.column_stack([detector.labels_ for detector in detectors]))
    assert votes.ravel()[:5].all()


@pytest.mark.filterwarnings("ignore:no unlabeled rows", "ignore::FutureWarning")
def test_ensembles_of_pyod(rows: Rows) -> None:
    pytest.importorskip("combo")
    from pyod.models.feature_bagging import FeatureBagging
    from pyod.models.lscp import LSCP

    batch = rows[1]
    fast: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 2}
    bagging = FeatureBagging(QMS22(**fast), n_estimators=3, random_state=0).fit(batch)
    assert bagging.decision_scores_.shape == (80,)
    lscp = LSCP([QMS22(**fast, random_state=0), KNN()], n_bins=2, random_state=0).fit(batch)
    assert lscp.labels_.shape == (80,)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["IQR", "MAD", "ZSCORE"])
def test_thresholders(name: str, rows: Rows) -> None:
    pytest.importorskip("pythresh")
    from pyod.models import thresholds

    detector = QMS22(contamination=getattr(thresholds, name)(), random_state=0)
    detector.fit(rows[0], unlabeled=rows[1])
    assert detector.labels_[:5].all()
    assert set(detector.predict(rows[1])) == {0, 1}


def test_without_pyod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyod.models.base", None)
    monkeypatch.delitem(sys.modules, "qms22.pyod")
    with pytest.raises(ImportError, match=r"qms22\.pyod needs pyod, .*'qms22\[pyod\]'"):
        import qms22.pyod  # noqa: F401

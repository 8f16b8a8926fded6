from __future__ import annotations

import pickle

import numpy as np
import pytest
from normal_rows import Rows, make_rows
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score

from qms22 import OutOfBagForest


def make_batch(n_rows: int = 80, n_shifted: int = 12) -> Rows:
    rows = make_rows(n_rows, seed=1)
    rows[:n_shifted] += 3
    return rows


def test_finds_as_much_as_the_trees_of_scikit_learn() -> None:
    normal, batch = make_rows(400), make_batch(200, n_shifted=20)
    rows, is_unlabeled = np.vstack([normal, batch]), np.arange(600) >= 400
    other = ExtraTreesClassifier(
        200,
        min_samples_leaf=5,
        bootstrap=True,
        oob_score=True,
        class_weight="balanced",
        random_state=0,
    ).fit(rows, is_unlabeled)
    expected = other.oob_decision_function_[400:, 1]
    found = OutOfBagForest(random_state=0).fit(normal, unlabeled=batch).unlabeled_scores_
    is_outlier = np.arange(200) < 20
    assert roc_auc_score(is_outlier, found) > roc_auc_score(is_outlier, expected) - 0.01
    assert np.corrcoef(found, expected)[0, 1] > 0.9


@pytest.mark.parametrize("n_batch", [60, 600])
def test_rows_that_are_alike_get_the_same_scores(n_batch: int) -> None:
    """Without outliers nothing tells the batch from T, whatever their sizes."""
    batch = make_rows(n_batch, seed=1)
    detector = OutOfBagForest(random_state=0).fit(make_rows(600), unlabeled=batch)
    of_normal = detector.forest_.oob_scores[:600]
    assert np.mean(detector.unlabeled_scores_) == pytest.approx(np.mean(of_normal), abs=0.05)


def test_the_batch_is_scored_without_the_trees_that_know_it() -> None:
    batch = make_rows(100, seed=1)
    detector = OutOfBagForest(random_state=0).fit(make_rows(300), unlabeled=batch)
    assert -detector.score_samples(batch).mean() > detector.unlabeled_scores_.mean() + 0.03


def test_new_rows_like_the_shifted_ones_are_found() -> None:
    detector = OutOfBagForest(random_state=0).fit(make_rows(300), unlabeled=make_batch())
    new = np.vstack([make_rows(100, seed=2) + 3, make_rows(100, seed=3)])
    scores = -detector.score_samples(new)
    assert roc_auc_score(np.arange(200) < 100, scores) > 0.99
    assert (detector.predict(new[:100]) == -1).mean() > 0.9
    assert (detector.predict(new[100:]) == -1).mean() < 0.3


def test_threads_and_pickling_do_not_change_anything() -> None:
    normal, batch, new = make_rows(), make_batch(), make_rows(2500, seed=2)
    one, two = (
        OutOfBagForest(n_estimators=20, n_jobs=n_jobs, random_state=3).fit(normal, unlabeled=batch)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.unlabeled_scores_, two.unlabeled_scores_)
    np.testing.assert_array_equal(one.score_samples(new), two.score_samples(new))
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.score_samples(new), copy.score_samples(new))


def test_units_do_not_matter() -> None:
    normal, batch = make_rows(), make_batch()
    units = 2.0 ** np.array([-900, -20, 0, 900])
    plain, scaled = (
        OutOfBagForest(n_estimators=20, random_state=0).fit(normal * by, unlabeled=batch * by)
        for by in (1.0, units)
    )
    np.testing.assert_array_equal(plain.unlabeled_scores_, scaled.unlabeled_scores_)


@pytest.mark.parametrize("n_estimators", [1, 2])
def test_few_trees_score_every_row(n_estimators: int) -> None:
    detector = OutOfBagForest(n_estimators=n_estimators, random_state=0)
    scores = detector.fit(make_rows(30), unlabeled=make_rows(20, seed=1)).unlabeled_scores_
    assert ((scores >= 0) & (scores <= 1)).all()
    assert np.isfinite(detector.offset_)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="n_estimators must be a whole number of at least 1"):
        OutOfBagForest(n_estimators=0).fit(make_rows(), unlabeled=make_batch())
    with pytest.raises(ValueError, match="min_samples_leaf must be a whole number of at least 1"):
        OutOfBagForest(min_samples_leaf=0.5).fit(make_rows(), unlabeled=make_batch())  # type: ignore[arg-type]
    batch = make_batch()
    batch[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1 of unlabeled has 1 .*first at row 3"):
        OutOfBagForest().fit(make_rows(), unlabeled=batch)
    with pytest.warns(UserWarning, match="no unlabeled rows were given"):
        OutOfBagForest(n_estimators=5).fit(make_rows())

"""Marked rows: what they change, and that they change no promise."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from qms22 import QMS22, QMS22Ensemble
from qms22.estimators.batch_detector import BatchDetector, FitInputs
from qms22.estimators.views import similarity
from qms22.estimators.weights import outlier_forest_weight, separation, similarity_weight
from qms22.models import load_model, save_model

QUICK: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 5, "random_state": 0}
DETECTORS: list[BatchDetector] = [QMS22(**QUICK), QMS22Ensemble(n_splits=2, **QUICK)]
each_detector = pytest.mark.parametrize("detector", DETECTORS, ids=["QMS22", "QMS22Ensemble"])

Rows = np.ndarray
HIDDEN, HARMLESS = np.array([1.5, -1.5, 0.0]), np.array([0.0, 0.0, 5.0])


def draw(n: int, seed: int, shift: Any = 0.0) -> Rows:
    rows: Rows = np.random.RandomState(seed).normal(size=(n, 3)) + shift
    return rows


@pytest.fixture(scope="module")
def normal() -> Rows:
    return draw(300, 0)


@pytest.fixture(scope="module")
def batch() -> Rows:
    """The first 15 rows are outliers that are hard to see, the next 10 look like outliers."""
    return np.concatenate([draw(15, 1, HIDDEN), draw(10, 2, HARMLESS), draw(125, 3)])


@pytest.fixture(scope="module")
def marked() -> dict[str, Any]:
    return {"outliers": draw(12, 4, HIDDEN), "marked_normal": draw(12, 5, HARMLESS)}


def ranks(detector: BatchDetector) -> NDArray[np.intp]:
    """Return how many rows are more suspicious than each."""
    return np.argsort(np.argsort(-detector.unlabeled_scores_))


@each_detector
def test_marks_move_the_rows_like_them(
    detector: BatchDetector, normal: Rows, batch: Rows, marked: dict[str, Any]
) -> None:
    before = ranks(clone(detector).fit(normal, unlabeled=batch))
    for name, like, sign in (("outliers", slice(15), -1), ("marked_normal", slice(15, 25), 1)):
        after = ranks(clone(detector).fit(normal, unlabeled=batch, **{name: marked[name]}))
        assert sign * (after[like].mean() - before[like].mean()) > 2.0
    both = ranks(clone(detector).fit(normal, unlabeled=batch, **marked))
    assert both[:15].mean() < before[:15].mean() - 5.0
    assert both[15:25].mean() > before[15:25].mean() + 5.0


@each_detector
def test_nothing_changes_without_marks(detector: BatchDetector, normal: Rows, batch: Rows) -> None:
    plain = clone(detector).fit(normal, unlabeled=batch)
    nothing: list[Any] = [np.empty((0, 3)), [], pd.DataFrame()]
    for none in nothing:
        empty = clone(detector).fit(normal, unlabeled=batch, outliers=none, marked_normal=none)
        np.testing.assert_array_equal(empty.unlabeled_scores_, plain.unlabeled_scores_)
    assert empty.offset_ == plain.offset_


def test_one_outlier_is_enough(normal: Rows, batch: Rows) -> None:
    detector = QMS22Ensemble(n_splits=2, **QUICK)
    detector.fit(normal, unlabeled=batch, outliers=batch[:1])
    assert np.isfinite(detector.unlabeled_scores_).all()
    assert detector.weights_["similarity"] == 1.5
    assert 0.0 <= detector.weights_["outlier_forest"] <= 0.5


@each_detector
def test_all_marks_teach_however_few_rows_are_drawn(
    detector: BatchDetector,
    normal: Rows,
    batch: Rows,
    marked: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learn, seen = type(detector)._learn, []

    def noted(detector: Any, inputs: FitInputs) -> None:
        seen.append(inputs)
        learn(detector, inputs)

    monkeypatch.setattr(type(detector), "_learn", noted)
    clone(detector).set_params(max_samples=140).fit(normal, unlabeled=batch, **marked)
    (inputs,) = seen
    unmarked = set(map(tuple, np.concatenate([normal, batch])))
    assert set(map(tuple, np.concatenate([inputs.normal, inputs.batch]))) <= unmarked
    assert len(inputs.normal) == 140
    np.testing.assert_array_equal(inputs.marks.outliers, marked["outliers"])
    np.testing.assert_array_equal(inputs.marks.normal, marked["marked_normal"])


def p_values_of_normal(seed: int, same_batch: bool) -> Rows:
    """Look at the most suspicious rows of a batch without outliers, and search again.

    Of an earlier batch, found with other known-normal rows, half of the marks are even wrong.
    """
    rng = np.random.RandomState(seed)
    normal, batch, other_normal, earlier = (rng.normal(size=(n, 2)) for n in (60, 20, 60, 20))
    detector = QMS22Ensemble(n_splits=2, **{**QUICK, "random_state": seed})
    if same_batch:
        looked = detector.fit(normal, unlabeled=batch).top_k(6)
        rest = np.delete(batch, looked, axis=0)
        detector.fit(normal, unlabeled=rest, marked_normal=batch[looked])
    else:
        looked = detector.fit(other_normal, unlabeled=earlier).top_k(6)
        wrong, right = earlier[looked[::2]], earlier[looked[1::2]]
        detector.fit(normal, unlabeled=batch, outliers=wrong, marked_normal=right)
    return detector.p_values()


@pytest.mark.parametrize("same_batch", [False, True], ids=["earlier batch", "same batch"])
def test_p_values_of_normal_rows(same_batch: bool) -> None:
    """With marks of an earlier batch they are uniform; those of the same batch make them larger."""
    p_values = [p_values_of_normal(seed, same_batch) for seed in range(50)]
    mean, expected = np.mean([values.mean() for values in p_values]), 31 / 61
    assert mean > expected + 0.02 if same_batch else abs(mean - expected) < 0.06
    low = np.mean([np.mean(values <= 6 / 61) for values in p_values])
    assert low <= 6 / 61 + (0.0 if same_batch else 0.035)


@each_detector
def test_pickles_model_files_and_explanations(
    detector: BatchDetector, normal: Rows, batch: Rows, marked: dict[str, Any], tmp_path: Path
) -> None:
    fitted = clone(detector).set_params(contamination=5).fit(normal, unlabeled=batch, **marked)
    expected = fitted.score_samples(batch)
    np.testing.assert_array_equal(-fitted.unlabeled_scores_, expected)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.score_samples(batch), expected)
    assert np.isfinite(fitted.explain(batch[:2]).drop).all()
    pytest.importorskip("skops")
    save_model(tmp_path / "model.skops", fitted)
    loaded = load_model(tmp_path / "model.skops").detector
    np.testing.assert_array_equal(loaded.score_samples(batch), expected)


def test_damaged_marks_in_a_model_file(
    normal: Rows, batch: Rows, marked: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("skops")
    fitted = QMS22Ensemble(n_splits=2, contamination=5, **QUICK)
    fitted.fit(normal, unlabeled=batch, **marked)
    view: Any = fitted.views_["similarity"]
    for name in ("normal", "outliers"):
        for wrong in (np.full((2, 3), np.nan), np.zeros((2, 2)), np.zeros((0, 3))):
            fitted.views_["similarity"] = replace(view, **{name: wrong})
            save_model(tmp_path / "model.skops", fitted)
            with pytest.raises(ValueError, match="is a damaged model file"):
                load_model(tmp_path / "model.skops")


def test_marks_go_through_a_pipeline(normal: Rows, batch: Rows, marked: dict[str, Any]) -> None:
    names = ["unlabeled", *marked]
    with sklearn.config_context(enable_metadata_routing=True):
        detector = QMS22(**QUICK).set_fit_request(**dict.fromkeys(names, True))
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("detect", detector)], transform_input=names
        )
        pipeline.fit(normal, unlabeled=batch, **marked)
    scale = StandardScaler().fit(normal).transform
    expected = QMS22(**QUICK).fit(
        scale(normal),
        unlabeled=scale(batch),
        **{name: scale(rows) for name, rows in marked.items()},
    )
    np.testing.assert_array_equal(
        pipeline.named_steps["detect"].unlabeled_scores_, expected.unlabeled_scores_
    )


@each_detector
@pytest.mark.parametrize("name", ["outliers", "marked_normal"])
def test_bad_marks(detector: BatchDetector, name: str, normal: Rows, batch: Rows) -> None:
    with_gap = batch[:4].copy()
    with_gap[2, 1] = np.nan
    for wrong, words in (
        (batch[:4, :2], f"{name} has 2 columns and X has 3; give marked rows with the columns"),
        (with_gap, f"column 1 of {name} has 1 NaN"),
        (batch[0], "Expected 2D array"),
        ([["a", "b", "c"]], f"column 0 of {name} is not numeric"),
    ):
        with pytest.raises(ValueError, match=words):
            clone(detector).fit(normal, unlabeled=batch, **{name: wrong})
    with (
        warnings.catch_warnings(),
        pytest.raises(ValueError, match=f"{name} needs a batch to search"),
    ):
        clone(detector).fit(normal, **{name: batch[:4]})


def test_similarity_compares_distances() -> None:
    """With one reference of each kind it is the logarithm of a ratio of distances."""
    rows, normal, outliers = draw(20, 6), draw(1, 7), draw(1, 8)
    to_normal = np.linalg.norm(rows - normal, axis=1)
    to_outliers = np.linalg.norm(rows - outliers, axis=1)
    expected = np.log(to_normal / to_outliers)
    np.testing.assert_allclose(similarity(rows, normal, outliers), expected, atol=0.05)


@given(
    arrays(float, st.integers(1, 8), elements=st.integers(0, 5)),
    arrays(float, st.integers(1, 8), elements=st.integers(0, 5)),
)
def test_separation_is_the_excess_of_the_auc(of_outliers: Rows, of_normal: Rows) -> None:
    wins = np.sign(of_outliers[:, np.newaxis] - of_normal).mean()
    assert separation(of_outliers, np.sort(of_normal)) == pytest.approx(max(0.0, wins))


def test_weights_grow_with_evidence() -> None:
    for weight in (similarity_weight, outlier_forest_weight):
        assert weight(0.0, 50) == 0.0
        assert weight(0.5, 2) < weight(0.9, 2) < weight(0.9, 20) < 3.0
    assert outlier_forest_weight(1.0, 2) < similarity_weight(1.0, 2)

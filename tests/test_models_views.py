"""Model files of ensembles: views with wrong numbers are refused before they are used."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from model_files import assert_one_sentence, small_rows

from qms22 import QMS22Ensemble
from qms22.estimators.forest import BinnedRows, Forest, fit_forest
from qms22.estimators.held_out import HeldOutScores, LearnedRows
from qms22.estimators.saved_ensemble import check_forest
from qms22.models import load_model, save_model

pytest.importorskip("skops")

N_FEATURES = 3


@pytest.fixture(scope="module")
def detector() -> QMS22Ensemble:
    normal, batch = small_rows()
    detector = QMS22Ensemble(n_splits=2, max_iter=2, random_state=0, contamination=3)
    detector.fit(normal, unlabeled=batch)
    # Every view is used, so that none is skipped by what loads the file.
    detector.weights_ = dict.fromkeys(detector.views_, 1.0)
    return detector


def assert_refused(detector: QMS22Ensemble, path: Path) -> None:
    save_model(path, detector)
    with pytest.raises(ValueError, match="is a damaged model file") as caught:
        load_model(path)
    assert_one_sentence(caught.value, path)


def with_view(detector: QMS22Ensemble, name: str, view: Any) -> QMS22Ensemble:
    changed = copy(detector)
    changed.views_ = {**detector.views_, name: view}
    return changed


def changed_at(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    changed = array.copy()
    changed[place] = value
    return changed


def first_leaf(forest: Forest) -> int:
    """Return a leaf of the first tree."""
    size = forest.first_node[1]
    return int(np.flatnonzero(forest.child[:size] == np.arange(size))[0])


FOREST_DAMAGE: dict[str, Callable[[Forest], dict[str, Any]]] = {
    "a column too many": lambda forest: {
        "feature": changed_at(forest.feature, 0, N_FEATURES),
    },
    "a negative column": lambda forest: {"feature": changed_at(forest.feature, 0, -1)},
    "a child outside": lambda forest: {"child": changed_at(forest.child, 0, 10**6)},
    "a negative child": lambda forest: {"child": changed_at(forest.child, 0, -5)},
    "a right child outside": lambda forest: {
        "child": changed_at(forest.child, 0, forest.first_node[1] - 1),
    },
    "a circle": lambda forest: {
        "child": changed_at(forest.child, slice(1, 3), 0),
    },
    "a leaf to leave": lambda forest: {
        "threshold": changed_at(forest.threshold, first_leaf(forest), 0),
    },
    "a tree outside": lambda forest: {"first_node": changed_at(forest.first_node, 1, 10**12)},
    "a negative tree": lambda forest: {"first_node": changed_at(forest.first_node, 1, -1)},
    "a tree without nodes": lambda forest: {
        "first_node": changed_at(forest.first_node, 1, 0),
    },
    "no trees": lambda forest: {"first_node": forest.first_node[:1]},
    "nodes missing": lambda forest: {"child": forest.child[:-1]},
    "fewer nodes": lambda forest: {
        name: getattr(forest, name)[:-1] for name in ("feature", "threshold", "child", "value")
    },
    "wide columns": lambda forest: {"feature": forest.feature.astype(np.int64)},
    "numbers of another kind": lambda forest: {"child": forest.child.astype(np.float32)},
    "a table of nodes": lambda forest: {"threshold": forest.threshold[:, None]},
    "columns missing": lambda forest: {"edges": forest.edges[:-1]},
    "edges missing": lambda forest: {"edges": forest.edges[:, :-1]},
    "no share": lambda forest: {"value": changed_at(forest.value, 0, np.nan)},
    "not an array": lambda forest: {"child": forest.child.tolist()},
}


@pytest.mark.parametrize("damage", FOREST_DAMAGE)
def test_damaged_forests(damage: str, detector: QMS22Ensemble, tmp_path: Path) -> None:
    view: Any = detector.views_["forest"]
    forest = replace(view.forest, **FOREST_DAMAGE[damage](view.forest))
    changed = with_view(detector, "forest", replace(view, forest=forest))
    assert_refused(changed, tmp_path / "model.skops")


def test_damaged_learned_rows(detector: QMS22Ensemble, tmp_path: Path) -> None:
    view: Any = detector.views_["forest"]
    keys, scores = view.learned.keys, view.learned.scores
    for learned in (
        LearnedRows(keys[::-1].copy(), scores),
        LearnedRows(keys, scores[:-1]),
        LearnedRows(keys[:0], scores[:0]),
        LearnedRows(keys.astype(np.int64), scores),
        LearnedRows(keys, changed_at(scores, 0, np.inf)),
    ):
        changed = with_view(detector, "forest", replace(view, learned=learned))
        assert_refused(changed, tmp_path / "model.skops")


def test_damaged_held_out_scores(detector: QMS22Ensemble, tmp_path: Path) -> None:
    view: Any = detector.views_["covariance"]
    ascending, deviation = view.held_out.ascending, view.held_out.deviation
    for held_out in (
        HeldOutScores(ascending[::-1].copy(), deviation),
        HeldOutScores(ascending[:0], deviation),
        HeldOutScores(ascending, 0.0),
        HeldOutScores(ascending, float("nan")),
        HeldOutScores(changed_at(ascending, 0, np.nan), deviation),
    ):
        changed = with_view(detector, "covariance", replace(view, held_out=held_out))
        assert_refused(changed, tmp_path / "model.skops")


def test_damaged_references(detector: QMS22Ensemble, tmp_path: Path) -> None:
    view: Any = detector.views_["distances"]
    references = view.references
    for wrong in (references[:0], references[:, :2], references[0], np.full((4, 3), np.nan)):
        changed = with_view(detector, "distances", replace(view, references=wrong))
        assert_refused(changed, tmp_path / "model.skops")
    members: Any = detector.views_["members"]
    changed = with_view(detector, "members", replace(members, parts=()))
    assert_refused(changed, tmp_path / "model.skops")


def test_views_and_weights_that_do_not_fit(detector: QMS22Ensemble, tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    view: Any = detector.views_["forest"]
    assert_refused(with_view(detector, "forest", view.forest), path)
    wrong: list[dict[str, Any]] = [{"forest": -1.0}, {"forest": float("nan")}, {"other": 1.0}]
    for weights in [*wrong, {"forest": None}]:
        changed = copy(detector)
        changed.weights_ = {**detector.weights_, **weights}
        assert_refused(changed, path)


@settings(max_examples=examples(300))
@given(
    name=st.sampled_from(["feature", "threshold", "child", "first_node"]),
    where=st.floats(0, 1, exclude_max=True),
    value=st.integers(-3, 400),
)
def test_rows_stay_inside_of_a_forest_that_passes(name: str, where: float, value: int) -> None:
    """Walk through a changed forest step by step: each node is there, and the walk ends."""
    normal, batch = small_rows()
    rows = np.concatenate([normal, batch])
    labels = np.repeat([0.0, 1.0], [len(normal), len(batch)])
    forest = fit_forest(BinnedRows.of(rows), labels, n_trees=3, seed=0)
    array = getattr(forest, name)
    limits = np.iinfo(array.dtype)
    place = int(where * len(array))
    changed = changed_at(array, place, min(max(value, limits.min), limits.max))
    forest = replace(forest, **{name: changed})
    try:
        check_forest(forest, N_FEATURES)
    except ValueError:
        return
    for first, end in zip(forest.first_node[:-1], forest.first_node[1:], strict=True):
        reached = {0}
        for number in range(end - first):
            assert 0 <= forest.feature[first + number] < N_FEATURES
            if number in reached:
                child = int(forest.child[first + number])
                is_last = forest.threshold[first + number] == 255
                reached |= {child} if child == number and is_last else {child, child + 1}
                assert child >= number
                assert child > number or is_last
        assert max(reached) < end - first

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from naive_forest import NaiveTree, Random
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier

from qms22.estimators.forest import (
    MOST_BINS,
    BinnedRows,
    Forest,
    _bin_edges,
    find_bins,
    fit_forest,
)
from qms22.metrics import roc

Rows = NDArray[np.float64]
UNIT = 2.0**-20  # of the values of leaves

finite = st.floats(allow_nan=False, allow_infinity=False)
tables = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=24),
    elements=st.one_of(st.integers(-2, 2).map(float), finite),
)


def make_rows(n: int = 300, p: int = 6, seed: int = 0) -> tuple[Rows, Rows]:
    """Return known-normal rows, then a batch whose last quarter is shifted, and the labels."""
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(n, p)), (np.arange(n) >= n // 2).astype(float)
    rows[-n // 8 :] += 1.5
    return rows, labels


def grow(rows: Rows, labels: Rows, **options: int) -> Forest:
    return fit_forest(BinnedRows.of(rows), labels, **options)


def score(forest: Forest, rows: Rows, n_threads: int = 1) -> Rows:
    return forest.score_bins(find_bins(rows, forest.edges), n_threads)


def awkward(kind: str) -> tuple[Rows, Rows]:
    rows, labels = make_rows()
    rng = np.random.default_rng(1)
    if kind == "ties":
        rows = np.rint(rows)
    elif kind == "constant columns":
        rows = np.hstack([np.ones((len(rows), 9)), rows[:, :2], np.zeros((len(rows), 4))])
    elif kind == "sparse columns":
        rows = np.where(rng.uniform(size=(len(rows), 12)) < 0.03, 1.0, 0.0)
    elif kind == "soft labels":
        labels = np.where(labels == 1, np.rint(4096 * rng.uniform(size=len(rows)) ** 2) / 4096, 0)
    elif kind == "one column":
        rows = rows[:, :1]
    elif kind == "few rows":
        rows, labels = rows[146:154], labels[146:154]
    elif kind == "unbalanced":
        rows, labels = rows[120:], labels[120:]
    elif kind == "many rows":
        rows, labels = make_rows(1500)
    return rows, labels


KINDS = (
    "plain",
    "ties",
    "constant columns",
    "sparse columns",
    "soft labels",
    "one column",
    "few rows",
    "unbalanced",
    "many rows",
)


def arrays(forest: Forest) -> list[bytes]:
    return [getattr(forest, field.name).tobytes() for field in fields(Forest)]


@pytest.mark.parametrize("kind", KINDS)
def test_trees_and_scores_equal_the_naive_ones(kind: str) -> None:
    rows, labels = awkward(kind)
    min_leaf = 2 if kind == "few rows" else 5
    forest = grow(rows, labels, n_trees=4, min_leaf=min_leaf, seed=7)
    bins = find_bins(rows, forest.edges).T
    trees = [NaiveTree(bins, labels, min_leaf, Random(7, tree)) for tree in range(4)]
    nodes = [node for tree in trees for node in tree.nodes]
    feature, threshold, child, value = zip(*nodes, strict=True)
    assert forest.feature.tolist() == list(feature)
    assert forest.threshold.tolist() == list(threshold)
    assert forest.child.tolist() == list(child)
    np.testing.assert_allclose(forest.value, value, rtol=0, atol=UNIT)
    assert np.diff(forest.first_node).tolist() == [len(tree.nodes) for tree in trees]

    values = np.array([[tree.value(row) for tree in trees] for row in bins])
    np.testing.assert_allclose(score(forest, rows), values.mean(axis=1), rtol=0, atol=UNIT)
    out = np.array([tree.drawn == 0 for tree in trees]).T
    expected = [
        row[seen].mean() if seen.any() else 0.5 for row, seen in zip(values, out, strict=True)
    ]
    np.testing.assert_allclose(forest.oob_scores, expected, rtol=0, atol=UNIT)


@pytest.mark.parametrize("kind", ["plain", "soft labels", "few rows"])
def test_threads_do_not_change_a_bit(kind: str) -> None:
    rows, labels = awkward(kind)
    alone = grow(rows, labels, n_trees=30)
    for n_threads in (2, 5, 40):
        together = grow(rows, labels, n_trees=30, n_threads=n_threads)
        assert arrays(together) == arrays(alone)
        assert score(together, rows, n_threads).tobytes() == score(alone, rows).tobytes()


def test_seeds_and_trees_are_independent() -> None:
    rows, labels = make_rows()
    one, other = (grow(rows, labels, n_trees=2, seed=seed) for seed in (0, 1))
    grown = {
        forest.threshold[begin:end].tobytes()
        for forest in (one, other)
        for begin, end in zip(forest.first_node[:-1], forest.first_node[1:], strict=True)
    }
    assert len(grown) == 4


@given(rows=tables, data=st.data(), min_leaf=st.integers(1, 4))
def test_scores_are_shares(rows: Rows, data: st.DataObject, min_leaf: int) -> None:
    """Also with one row, one column, equal rows, one class, and huge or tiny numbers."""
    labels = data.draw(hnp.arrays(np.float64, len(rows), elements=st.floats(0, 1)))
    forest = grow(rows, labels, n_trees=5, min_leaf=min_leaf)
    for scores in (forest.oob_scores, score(forest, rows), score(forest, -rows)):
        assert ((scores >= 0) & (scores <= 1)).all()


@given(rows=tables, data=st.data())
def test_exchanged_labels_give_the_rest_of_the_score(rows: Rows, data: st.DataObject) -> None:
    labels = data.draw(
        hnp.arrays(np.float64, len(rows), elements=st.sampled_from([0.0, 0.25, 1.0]))
    )
    one, other = (grow(rows, y, n_trees=3, min_leaf=1) for y in (labels, 1 - labels))
    np.testing.assert_allclose(one.oob_scores, 1 - other.oob_scores, rtol=0, atol=2 * UNIT)


@given(
    column=hnp.arrays(np.float64, st.integers(1, 2000), elements=finite, fill=finite)
    | st.integers(0, 9).map(lambda seed: np.random.default_rng(seed).standard_cauchy(3000))
)
def test_bins_keep_the_order_and_all_values_if_few(column: Rows) -> None:
    edges = _bin_edges(column)
    assert len(edges) < MOST_BINS
    order = np.sort(column)
    bins = find_bins(order[:, None], edges[None])[0].astype(int)
    assert bins[0] == 0
    assert bins[-1] == len(edges)
    assert set(np.diff(bins)) <= {0, 1}
    if len(np.unique(column)) <= MOST_BINS:
        np.testing.assert_array_equal(np.diff(bins) > 0, np.diff(order) > 0)


def test_many_values_are_binned_by_rank_and_by_width() -> None:
    column = np.append(np.arange(10_000.0), 10.0**9)
    edges = _bin_edges(column)
    assert edges[-1] == pytest.approx(10.0**9 / 2, rel=1e-4)
    counts = np.bincount(np.searchsorted(edges, column))
    assert counts[:-1].max() <= 10_001 // 64 + 1
    widths = np.diff(_bin_edges(np.arange(10_000.0)))
    assert widths.max() <= 10_000 / 192 + 1


def test_the_share_of_the_batch_does_not_move_the_scores() -> None:
    rows = np.random.default_rng(0).normal(size=(4000, 4))
    for n_batch in (200, 2000, 3800):
        labels = (np.arange(4000) < n_batch).astype(float)
        scores = grow(rows, labels, n_trees=50, min_leaf=50).oob_scores
        assert scores[labels == 1].mean() == pytest.approx(0.5, abs=0.05)
        assert scores[labels == 0].mean() == pytest.approx(0.5, abs=0.05)


def test_outliers_are_found_as_well_as_by_scikit_learn() -> None:
    rows, labels = make_rows(2000, 8)
    is_outlier = np.arange(1000) >= 750
    peer = ExtraTreesClassifier(
        200, bootstrap=True, oob_score=True, min_samples_leaf=5, class_weight="balanced"
    )
    peer.set_params(random_state=0).fit(rows, labels)
    expected = roc(is_outlier, peer.oob_decision_function_[1000:, 1]).auc
    forest = grow(rows, labels)
    assert roc(is_outlier, forest.oob_scores[1000:]).auc == pytest.approx(expected, abs=0.01)
    new, _ = make_rows(2000, 8, seed=1)
    assert roc(is_outlier, score(forest, new[1000:])).auc == pytest.approx(expected, abs=0.03)


def test_a_forest_is_saved_as_plain_arrays() -> None:
    skops_io = pytest.importorskip("skops.io")
    rows, labels = make_rows()
    forest = grow(rows, labels, n_trees=3)
    loaded = skops_io.loads(skops_io.dumps(forest), trusted=["qms22.estimators.forest.Forest"])
    assert arrays(loaded) == arrays(forest)
    np.testing.assert_array_equal(score(loaded, rows), score(forest, rows))

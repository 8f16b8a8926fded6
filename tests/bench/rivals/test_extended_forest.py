from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from normal_rows import Rows, make_rows
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from qms22_bench.rivals import ExtendedIsolationForest
from qms22_bench.rivals.extended_forest import Level, grow_tree, mean_path_length, path_lengths


def naive_mean_length(size: int) -> float:
    if size < 2:
        return 0.0
    if size == 2:
        return 1.0
    return 2 * (math.log(size - 1) + 0.5772156649015329) - 2 * (size - 1) / size


def naive_tree(rows: Rows, depth: int, limit: int, rng: np.random.Generator) -> Any:
    """Grow a tree by the recursion of the paper: a leaf is a path length."""
    if depth >= limit or len(rows) <= 1:
        return depth + naive_mean_length(len(rows))
    normal = rng.normal(size=rows.shape[1])
    point = rng.uniform(rows.min(axis=0), rows.max(axis=0))
    is_left = (rows - point) @ normal <= 0
    left = naive_tree(rows[is_left], depth + 1, limit, rng)
    right = naive_tree(rows[~is_left], depth + 1, limit, rng)
    return normal, point, left, right


def naive_length(tree: Any, row: Rows) -> float:
    if not isinstance(tree, tuple):
        return float(tree)
    normal, point, left, right = tree
    return naive_length(left if (row - point) @ normal <= 0 else right, row)


def naive_scores(normal: Rows, query: Rows, n_trees: int, n_samples: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    unit = normal.max(axis=0) - normal.min(axis=0)
    total = np.zeros(len(query))
    for _ in range(n_trees):
        sample = normal[rng.permutation(len(normal))[:n_samples]] / unit
        tree = naive_tree(sample, 0, math.ceil(math.log2(n_samples)), rng)
        total += [naive_length(tree, row / unit) for row in query]
    scores: Rows = -(2 ** (-total / n_trees / naive_mean_length(n_samples)))
    return scores


def test_scores_are_those_of_the_naive_forest_up_to_chance() -> None:
    """Two naive forests differ as much as one of them does from ours."""
    normal, query = make_rows(200, 3) * [1, 10, 100], make_rows(40, 3, seed=1) * [2, 20, 200]
    found = ExtendedIsolationForest(n_estimators=400, max_samples=64, random_state=0).fit(normal)
    scores = found.score_samples(query)
    expected, again = (naive_scores(normal, query, 400, 64, seed) for seed in (1, 2))
    assert np.abs(scores - expected).max() < 1.5 * np.abs(again - expected).max()
    assert spearmanr(scores, expected).statistic > 0.98


def naive_walk(tree: list[Level], row: Rows, depth: int = 0, node: int = 0) -> float:
    level = tree[depth]
    split = level.split_of[node]
    if split < 0:
        return float(level.lengths[node])
    goes_on = float(row @ level.normals[split]) > level.offsets[split]
    return naive_walk(tree, row, depth + 1, 2 * split + goes_on)


def test_path_lengths_are_those_of_a_walk_from_node_to_node() -> None:
    tree = grow_tree(make_rows(100, 3), np.random.default_rng(0))
    query = 2 * make_rows(50, 3, seed=1)
    assert path_lengths(tree, query).tolist() == [naive_walk(tree, row) for row in query]


def check_node(tree: list[Level], rows: Rows, depth: int, node: int) -> int:
    """Compare a node with the rows that reach it, and so its children; return the leaves."""
    level = tree[depth]
    split = level.split_of[node]
    assert level.lengths[node] == pytest.approx(depth + naive_mean_length(len(rows)))
    assert (split < 0) == (len(rows) <= 1 or depth == 7)
    if split < 0:
        return 1
    products = rows @ level.normals[split]
    corners = np.where(level.normals[split] > 0, rows.max(axis=0), rows.min(axis=0))
    assert level.offsets[split] <= corners @ level.normals[split]
    is_right = products > level.offsets[split]
    return sum(
        check_node(tree, rows[is_right == side], depth + 1, 2 * split + side) for side in (0, 1)
    )


def test_trees_split_the_boxes_of_their_nodes() -> None:
    tree = grow_tree(make_rows(100, 3), np.random.default_rng(0))
    assert check_node(tree, make_rows(100, 3), 0, 0) == sum(
        int((level.split_of < 0).sum()) for level in tree
    )


def test_mean_path_lengths_equal_the_naive_ones() -> None:
    sizes = np.arange(300)
    expected = [naive_mean_length(size) for size in sizes.tolist()]
    np.testing.assert_allclose(mean_path_length(sizes), expected, rtol=1e-12)


def test_rows_between_two_clusters_are_found() -> None:
    """Axis-parallel splits of the isolation forest make ghosts of the clusters there."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 10.0], [10.0, 0.0]])
    normal = rng.normal(size=(500, 2)) + centers[rng.integers(2, size=500)]
    query = np.vstack([rng.normal(size=(50, 2)) + centers[0], rng.normal(size=(50, 2))])
    scores = -ExtendedIsolationForest(random_state=0).fit(normal).score_samples(query)
    assert roc_auc_score(np.arange(100) >= 50, scores) > 0.95


def test_threads_do_not_change_scores() -> None:
    normal, query = make_rows(), make_rows(2500, seed=1)
    one, two = (
        ExtendedIsolationForest(n_estimators=10, random_state=0, n_jobs=n_jobs).fit(normal)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.score_samples(query), two.score_samples(query))


@pytest.mark.parametrize("name", ["n_estimators", "max_samples"])
def test_bad_parameters_are_named(name: str) -> None:
    parameters: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1; got 0"):
        ExtendedIsolationForest(**parameters).fit(make_rows())

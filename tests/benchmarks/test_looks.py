"""The simulated analyst of benchmarks/marks.py."""

from __future__ import annotations

import numpy as np
import pytest
from marks import BUDGETS, LOOKS, Batch, draw, look, search


def whole(n_known: int = 90, n_normal: int = 120, n_outliers: int = 60) -> Batch:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_normal + n_outliers, 3))
    is_outlier = rng.permutation(len(rows)) < n_outliers
    rows[is_outlier] += 4.0
    return Batch(rng.normal(size=(n_known, 3)), rows, is_outlier)


@pytest.mark.parametrize("few", [False, True])
def test_draws_keep_labels_and_sizes(few: bool) -> None:
    batch = draw(whole(), few, 100, np.random.default_rng(1))
    assert len(batch.known) == 90
    assert len(batch.rows) == len(batch.is_outlier) == 100
    assert batch.is_outlier.sum() == 5 if few else batch.is_outlier.sum() > 20
    assert batch.rows[batch.is_outlier].mean() > 3.0


def test_rows_are_looked_at_once_and_from_the_top() -> None:
    batch, asked = whole(), []

    def rank(looked: np.ndarray) -> np.ndarray:
        asked.append(int(looked.sum()))
        # The order turns round with every answer.
        return np.arange(float(len(looked))) * (-1.0 if len(asked) % 2 else 1.0)

    order = look(rank, batch)
    assert asked == [0, *LOOKS[:-1]]
    assert len(set(order)) == len(order) == LOOKS[-1]
    assert order[:5].tolist() == [0, 1, 179, 178, 177]


def test_a_small_batch_is_looked_at_as_a_whole() -> None:
    batch = whole(n_normal=10, n_outliers=3)
    order = look(lambda looked: np.zeros(len(looked)), batch)
    assert sorted(order) == list(range(13))


def test_a_search_compares_all_methods() -> None:
    pytest.importorskip("coniferest")
    runs = search(whole(), "made", True, 0, 100)
    assert [run["method"] for run in runs] == ["marks", "no marks", "AADForest"]
    for run in runs:
        assert run["n_outliers"] == 5
        found = [int(str(run[f"found_{budget}"])) for budget in BUDGETS]
        assert found == sorted(found)
        assert run["share_100"] == 1.0
    assert 0.0 <= float(str(runs[0]["fdp"])) <= 1.0

"""Tasks carry the weights of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from reference import dense_weights

from qms22._cpm.task import classification_task, detection_task


@pytest.mark.parametrize("n_members", [3, 4, 7, 10])
@pytest.mark.parametrize("n_normal", [9, 12, 50])
def test_detection_weights(n_members: int, n_normal: int) -> None:
    n_unlabeled = 5
    X = np.arange(2.0 * (n_unlabeled + n_normal)).reshape(-1, 2)
    task = detection_task(X, n_unlabeled, n_members, np.random.RandomState(0))
    weights = dense_weights(task)
    in_unlabeled, in_normal = weights[:, :n_unlabeled], weights[:, n_unlabeled:]
    # Ω1 is everything, and weighs |Ω2| / |Ω1| per row.
    assert weights[0] == pytest.approx(in_normal[1].sum() / len(X))
    # No other set holds a row of S, and each leaves out another part of T.
    assert not in_unlabeled[1:].any()
    assert set(np.unique(in_normal[1:])) == {0.0, 1.0}
    left_out = in_normal[1:] == 0
    assert (left_out.sum(axis=0) == 1).all()
    sizes = left_out.sum(axis=1)
    assert sizes.max() - sizes.min() <= 1
    assert task.total_weight == pytest.approx(weights.sum())


def test_two_members_take_all_of_t() -> None:
    task = detection_task(np.zeros((10, 1)), 4, 2, np.random.RandomState(0))
    weights = dense_weights(task)
    np.testing.assert_array_equal(weights[1], [0] * 4 + [1] * 6)
    np.testing.assert_allclose(weights[0], 0.6)


def test_parts_are_shuffled_by_the_seed() -> None:
    def group(seed: int) -> list[int]:
        rng = np.random.RandomState(seed)
        return list(detection_task(np.zeros((40, 1)), 4, 5, rng).group)

    assert group(0) == group(0)
    assert group(0) != group(1)
    assert group(0) != sorted(group(0))


def test_classification_weights() -> None:
    labels = np.array([1, 0, 2, 1], dtype=np.int32)
    task = classification_task(np.zeros((4, 1)), labels, 3, np.array([2.0, 4.0, 1.0, 0.0]))
    expected = np.array([[0, 1, 0, 0], [0.5, 0, 0, 0], [0, 0, 0.25, 0]])
    np.testing.assert_array_equal(dense_weights(task), expected)
    assert task.total_weight == 1.75


def test_huge_weights_do_not_overflow() -> None:
    labels = np.array([0, 1], dtype=np.int32)
    task = classification_task(np.zeros((2, 1)), labels, 2, np.array([1e308, 1e308]))
    assert task.total_weight == 2.0

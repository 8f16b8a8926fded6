"""Every row reaches its place in a shard, and neighbours mostly stay together."""

from __future__ import annotations

import numpy as np
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qms22._core import BLOCK_ROWS
from qms22._cpm.task import detection_task
from qms22.cluster.layout import Layout, Route


def groups_of_rows(n_rows: int, seed: int = 0) -> tuple[NDArray[np.int32], int]:
    """Return the group of every row of a task, and the number of unlabeled rows."""
    n_unlabeled = n_rows // 4
    rng = np.random.RandomState(seed)
    return detection_task(np.empty((n_rows, 0)), n_unlabeled, 4, rng).group, n_unlabeled


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_every_row_reaches_its_place(data: st.DataObject) -> None:
    n_rows = data.draw(st.integers(40, 30_000))
    group, n_unlabeled = groups_of_rows(n_rows, seed=data.draw(st.integers(0, 99)))
    shares = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    ends = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=4)))
    sizes = np.diff([0, *ends, n_rows]).tolist()
    layout = Layout.deal(group, n_unlabeled, shares)
    sorted_rows = np.argsort(group, kind="stable")
    seen = np.zeros(n_rows, dtype=int)
    first = 0
    for route, size in zip(layout.routes(group, sizes), sizes, strict=True):
        numbers = np.arange(first, first + size, dtype=float)[:, None]
        pieces = route.pieces(numbers, layout)
        assert sorted(pieces) == route.shards(layout)
        for shard, piece in pieces.items():
            np.testing.assert_array_equal(piece.rows[:, 0], sorted_rows[piece.places])
            assert (layout.shard_of_block[piece.places // BLOCK_ROWS] == shard).all()
            seen[piece.places] += 1
        first += size
    assert (seen == 1).all()


def test_a_large_part_of_the_rows_stays_together() -> None:
    group, n_unlabeled = groups_of_rows(400_000)
    layout = Layout.deal(group, n_unlabeled, [1, 1])
    sizes = [n_unlabeled // 2, n_unlabeled // 2, 150_000, 150_000]
    for route, own in zip(layout.routes(group, sizes), (0, 1, 0, 1), strict=True):
        pieces = route.pieces(np.zeros((len(route.group), 1)), layout)
        assert len(pieces[own].rows) > 0.95 * len(route.group)


def test_no_rows_of_a_chunk() -> None:
    layout = Layout.deal(np.arange(6, dtype=np.int32), 1, [1])
    empty = Route(np.empty(0, dtype=np.uint8), layout.starts)
    assert empty.shards(layout) == []
    assert empty.pieces(np.empty((0, 2)), layout) == {}

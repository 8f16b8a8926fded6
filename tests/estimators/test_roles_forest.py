"""Trees in which each row has a role: out of the bag, normal, or of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_forest import Random, TreeOfBag
from numpy.typing import NDArray

from qms22 import _core
from qms22.estimators.forest import bin_rows

UNIT = 2.0**-20  # of the values of leaves
ROLES = (_core.OUT_OF_BAG, _core.AS_NORMAL, _core.AS_BATCH)


def grow(
    bins: NDArray[np.uint8],
    roles: NDArray[np.uint8],
    min_leaf: int = 2,
    seed: int = 7,
    n_threads: int = 1,
) -> NDArray[np.float32]:
    max_features = max(1, int(len(bins) ** 0.5))
    return _core.grow_by_roles(
        bins, roles, max_features=max_features, min_leaf=min_leaf, seed=seed, n_threads=n_threads
    )


def naive_values(
    bins: NDArray[np.uint8], roles: NDArray[np.uint8], min_leaf: int = 2, seed: int = 7
) -> NDArray[np.float64]:
    values = np.zeros(roles.shape)
    for tree, of_tree in enumerate(roles):
        bag = np.flatnonzero(of_tree != _core.OUT_OF_BAG)
        labels = (of_tree[bag] == _core.AS_BATCH).astype(float)
        grown = TreeOfBag(bins.T[bag], labels, min_leaf, Random(seed, tree))
        for row in np.flatnonzero(of_tree == _core.OUT_OF_BAG):
            values[tree, row] = grown.value(bins.T[row])
    return values


def make_task(kind: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return bins (p, n) and roles (n_trees, n)."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 5))
    rows[110:] += 1.0
    if kind == "ties":
        rows = np.rint(rows)
    elif kind == "constant columns":
        rows = np.hstack([np.ones((150, 7)), rows[:, :2], np.zeros((150, 2))])
    elif kind == "0 and 1":
        rows = (rng.random((150, 9)) < 0.1).astype(float)
    elif kind == "one column":
        rows = rows[:, :1]
    elif kind == "few rows":
        rows = rows[106:114]
    elif kind == "equal rows":
        rows = np.ones_like(rows)
    roles = rng.choice(np.array(ROLES, dtype=np.uint8), size=(6, len(rows)), p=[0.5, 0.3, 0.2])
    return bin_rows(rows), roles


KINDS = ("plain", "ties", "constant columns", "0 and 1", "one column", "few rows", "equal rows")


@pytest.mark.parametrize("kind", KINDS)
def test_values_equal_the_naive_ones(kind: str) -> None:
    bins, roles = make_task(kind)
    for min_leaf in (1, 5):
        values = grow(bins, roles, min_leaf)
        np.testing.assert_allclose(values, naive_values(bins, roles, min_leaf), rtol=0, atol=UNIT)


small_tasks = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=1, max_size=5),
        st.lists(st.lists(st.sampled_from(ROLES), min_size=n, max_size=n), min_size=1, max_size=3),
    )
)


@given(small_tasks)
def test_values_of_small_tasks_equal_the_naive_ones(task: tuple[Any, Any]) -> None:
    bins, roles = (np.array(part, dtype=np.uint8) for part in task)
    values = grow(bins, roles, 1)
    np.testing.assert_allclose(values, naive_values(bins, roles, 1), rtol=0, atol=UNIT)


@pytest.mark.parametrize("kind", ["plain", "0 and 1"])
def test_threads_do_not_change_a_bit(kind: str) -> None:
    bins, roles = make_task(kind)
    roles = np.tile(roles, (5, 1))
    alone = grow(bins, roles)
    for n_threads in (2, 3, 100):
        assert grow(bins, roles, n_threads=n_threads).tobytes() == alone.tobytes()


def test_values_are_shares_in_whole_units_and_0_in_the_bag() -> None:
    bins, roles = make_task("plain")
    values = grow(bins, roles)
    assert (values[roles != _core.OUT_OF_BAG] == 0.0).all()
    assert ((values >= 0.0) & (values <= 1.0)).all()
    in_units = values.astype(float) / UNIT
    np.testing.assert_array_equal(in_units, np.rint(in_units))


def test_trees_learn() -> None:
    bins, roles = make_task("plain")
    out = roles == _core.OUT_OF_BAG
    roles[~out] = _core.AS_NORMAL
    roles[:, 110:][~out[:, 110:]] = _core.AS_BATCH
    values = grow(bins, roles)
    assert values[:, 110:][out[:, 110:]].mean() > values[:, :110][out[:, :110]].mean() + 0.1


def test_order_of_rows_does_not_change_a_bit() -> None:
    """The trials of rows rest on it: only the role of a row counts, not its place."""
    bins, roles = make_task("ties")
    order = np.random.default_rng(1).permutation(roles.shape[1])
    moved = grow(np.ascontiguousarray(bins[:, order]), np.ascontiguousarray(roles[:, order]))
    assert moved.tobytes() == np.ascontiguousarray(grow(bins, roles)[:, order]).tobytes()


@pytest.mark.parametrize(
    ("role", "expected"),
    [(_core.AS_NORMAL, 0.0), (_core.AS_BATCH, 1.0), (_core.OUT_OF_BAG, 0.5)],
)
def test_a_bag_of_one_class_or_none(role: int, expected: float) -> None:
    bins, roles = make_task("plain")
    roles[:, :] = role
    roles[:, ::2] = _core.OUT_OF_BAG
    np.testing.assert_array_equal(grow(bins, roles)[:, ::2], expected)


def test_trees_differ_and_depend_on_the_seed() -> None:
    bins, roles = make_task("plain")
    roles[:] = roles[0]
    values = np.vstack([grow(bins, roles), grow(bins, roles, seed=8)])
    assert len({tree.tobytes() for tree in values}) == len(values)


def test_bad_input_is_refused() -> None:
    bins, roles = make_task("plain")
    with pytest.raises(ValueError, match="differ in length"):
        grow(bins, np.ascontiguousarray(roles[:, 1:]))
    for no_bins, no_roles in ((bins[:0], roles), (bins[:, :0], roles[:, :0]), (bins, roles[:0])):
        with pytest.raises(ValueError, match="is empty"):
            grow(np.ascontiguousarray(no_bins), np.ascontiguousarray(no_roles))
    with pytest.raises(ValueError, match="a number is 0"):
        grow(bins, roles, min_leaf=0)
    with pytest.raises(ValueError, match="a number is 0"):
        grow(bins, roles, n_threads=0)

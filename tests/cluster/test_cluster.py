"""Shards in one process: the bits of one fit, however rows are dealt out and entries presumed."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qms22._core import BLOCK_ROWS
from qms22._core import Shard as CoreShard
from qms22._cpm.backends import solve
from qms22._cpm.native import in_unit, power_of_two_near
from qms22._cpm.options import SolverOptions, cpm_rules, starting_point
from qms22._cpm.scaling import Extent, FeatureScaler, Mean
from qms22._cpm.sweeps import Fit, run_sweeps
from qms22._cpm.task import Task, detection_task
from qms22._runtime.chunks import draw_rows
from qms22.cluster.layout import Layout, Route, ShardPiece
from qms22.cluster.medians import FirstLook, between, bracket, typical_values
from qms22.cluster.shard import Shard, ShardAddress, ShardRules
from qms22.cluster.sweep import LostShardsError, ShardGroup, Trials, sweep
from qms22.estimators.explain import TypicalValues

TOKEN = b"token"


def detection(n_rows: int, n_features: int, seed: int = 0) -> tuple[Task, int]:
    rng = np.random.RandomState(seed)
    X = rng.normal(0, 80, size=(n_rows, n_features))
    n_unlabeled = n_rows // 4
    X[: n_unlabeled // 20] += 200
    return detection_task(X, n_unlabeled, 4, rng), n_unlabeled


def build(
    task: Task, n_unlabeled: int, options: SolverOptions, sizes: list[int], n_shards: int
) -> tuple[list[Shard], Layout]:
    """Deal a task out as an engine would, chunk by chunk."""
    layout = Layout.deal(task.group, n_unlabeled, [1.0] * n_shards)
    rules = ShardRules(
        layout.starts,
        task.group_weight,
        options.n_components,
        in_unit(cpm_rules(task, options), power_of_two_near(options.init_b)),
        options.dtype,
        TOKEN,
    )
    pieces: dict[int, list[ShardPiece]] = {}
    first = 0
    for route, size in zip(layout.routes(task.group, sizes), sizes, strict=True):
        for number, piece in route.pieces(task.X[first : first + size], layout).items():
            pieces.setdefault(number, []).append(piece)
        first += size
    return [Shard(pieces[number], rules, "127.0.0.1", 1) for number in sorted(pieces)], layout


class InOneProcess:
    """A backend over shards that are reached through their sockets."""

    def __init__(
        self,
        task: Task,
        n_unlabeled: int,
        options: SolverOptions,
        sizes: list[int],
        n_shards: int,
        most_ahead: int,
    ) -> None:
        self.shards, layout = build(task, n_unlabeled, options, sizes, n_shards)
        self.blocks = [layout.blocks_of(number) for number in np.unique(layout.shard_of_block)]
        self.unit = power_of_two_near(options.init_b)
        rules = in_unit(cpm_rules(task, options), self.unit)
        self.tolerance, self.most_ahead = rules.tolerance, most_ahead
        self.steps = np.append(np.full(task.X.shape[1], rules.step_a), rules.step_b)
        A, b = starting_point(task.n_members, task.X.shape[1], options)
        self.coefficients = np.concatenate([A, b[..., None]], axis=-1) / self.unit
        self.trials: Trials | None = None
        self.n_round_trips = 0

    @property
    def A(self) -> np.ndarray:
        return self.coefficients[..., :-1] * self.unit

    @property
    def b(self) -> np.ndarray:
        return self.coefficients[..., -1] * self.unit

    def sweep(self) -> tuple[float, int]:
        addresses = [ShardAddress(shard.address) for shard in self.shards]
        with ShardGroup(addresses, self.blocks, TOKEN) as group:
            done = sweep(
                group, self.coefficients, self.steps, self.tolerance, self.most_ahead, self.trials
            )
        self.coefficients, self.trials = done.coefficients, done.trials
        self.n_round_trips += done.n_round_trips
        return done.change, int(np.count_nonzero(done.trials.decisions))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("n_shards", "most_ahead", "chunk"),
    [(1, 64, 20_001), (2, 1, 3_333), (3, 5, 999), (7, 64, 4_096)],
)
def test_bits_of_one_fit(dtype: str, n_shards: int, most_ahead: int, chunk: int) -> None:
    task, n_unlabeled = detection(20_001, 3)
    # Not the paper's alpha, so that many rows take the slow road, whose traces must be undone.
    options = SolverOptions(n_components=4, alpha=0.9, max_iter=5, dtype=dtype)
    sizes = [len(part) for part in np.split(task.X, range(chunk, len(task.X), chunk))]
    backend = InOneProcess(task, n_unlabeled, options, sizes, n_shards, most_ahead)
    found, expected = run_sweeps(backend, Fit.of(task, options), options), solve(task, options)
    assert found.members.A.tobytes() == expected.members.A.tobytes()
    assert found.members.b.tobytes() == expected.members.b.tobytes()
    assert found.loss.tobytes() == expected.loss.tobytes()
    n_trials = found.n_iter * found.members.A[..., 0].size * (task.X.shape[1] + 1)
    if most_ahead == 1:
        assert backend.n_round_trips == n_trials
    else:
        assert backend.n_round_trips < 0.75 * n_trials


def test_few_rows_and_many_shards() -> None:
    task, n_unlabeled = detection(60, 2)
    options = SolverOptions(n_components=2, max_iter=10)
    backend = InOneProcess(task, n_unlabeled, options, [0, 7, 53], 5, 64)
    assert len(backend.shards) == 1
    found, expected = run_sweeps(backend, Fit.of(task, options), options), solve(task, options)
    assert found.members.A.tobytes() == expected.members.A.tobytes()


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_every_row_reaches_its_place(data: st.DataObject) -> None:
    n_rows = data.draw(st.integers(40, 30_000))
    task, n_unlabeled = detection(n_rows, 1, seed=data.draw(st.integers(0, 99)))
    shares = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    ends = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=4)))
    sizes = np.diff([0, *ends, n_rows]).tolist()
    layout = Layout.deal(task.group, n_unlabeled, shares)
    sorted_rows = np.argsort(task.group, kind="stable")
    seen = np.zeros(n_rows, dtype=int)
    first = 0
    for route, size in zip(layout.routes(task.group, sizes), sizes, strict=True):
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
    task, n_unlabeled = detection(400_000, 1)
    layout = Layout.deal(task.group, n_unlabeled, [1, 1])
    sizes = [n_unlabeled // 2, n_unlabeled // 2, 150_000, 150_000]
    for route, own in zip(layout.routes(task.group, sizes), (0, 1, 0, 1), strict=True):
        pieces = route.pieces(np.zeros((len(route.group), 1)), layout)
        assert len(pieces[own].rows) > 0.95 * len(route.group)


def test_a_visit_has_to_follow_on_the_last() -> None:
    shard = CoreShard(
        np.ones((8, 1)),
        np.zeros(8, dtype=np.int32),
        np.ones((2, 1)),
        1,
        alpha=0.5,
        floor=1e-9,
        step_a=0.1,
        step_b=0.1,
    )
    with pytest.raises(ValueError, match="go on where the one before ended"):
        shard.visit(0, b"", b"")  # not started
    shard.restart(np.zeros((2, 1, 1)), np.ones((2, 1)))
    assert shard.visit(0, b"", b"").shape == (1, 1, 2)
    for member, settled, presumed in [(0, b"", b""), (0, b"\0\0", b""), (0, b"\0", b"\0")]:
        with pytest.raises(ValueError, match="go on where the one before ended"):
            shard.visit(member, settled, presumed)


def test_lost_shards_and_strangers() -> None:
    task, n_unlabeled = detection(9_000, 2)
    options = SolverOptions(n_components=1)
    shards, layout = build(task, n_unlabeled, options, [9_000], 3)
    blocks = [layout.blocks_of(number) for number in range(3)]
    addresses = [pickle.loads(pickle.dumps(shard)) for shard in shards]
    assert addresses == [ShardAddress(shard.address) for shard in shards]
    start = np.zeros((4, 1, 3))
    start[..., -1] = 1.0
    with ShardGroup(addresses, blocks, b"stranger") as group, pytest.raises(LostShardsError):
        group.visit(0, b"", b"")
    with ShardGroup(addresses, blocks, TOKEN) as group:
        group.restart(start)
        assert group.visit(0, b"", b"\0").shape == (2, 2)
        del shards[1]
        with pytest.raises(LostShardsError) as caught:
            group.visit(0, b"\0", b"")
        assert caught.value.lost == [1]
    with pytest.raises(LostShardsError) as caught:
        ShardGroup(addresses, blocks, TOKEN)
    assert caught.value.lost == [1]
    assert pickle.loads(pickle.dumps(caught.value)).lost == [1]


def test_a_new_driver_takes_over() -> None:
    task, n_unlabeled = detection(3_000, 2)
    shards, layout = build(task, n_unlabeled, SolverOptions(n_components=1), [3_000], 1)
    address, blocks = [ShardAddress(shards[0].address)], [layout.blocks_of(0)]
    start = np.ones((4, 1, 3))
    with ShardGroup(address, blocks, TOKEN) as old, ShardGroup(address, blocks, TOKEN) as new:
        new.restart(start)
        assert new.visit(0, b"", b"").shape == (1, 2)
        with pytest.raises(LostShardsError):
            old.visit(0, b"", b"")


tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 60), st.just(3)),
    elements=st.floats(-1, 1) | st.sampled_from([0.0, 1.0]),
)


@given(tables, st.lists(st.integers(0, 60), max_size=3))
def test_medians_of_parts(rows: np.ndarray, cuts: list[int]) -> None:
    parts = [part for part in np.split(rows, sorted(cuts)) if len(part)]
    looks = [FirstLook.at(part) for part in parts]
    low, high = bracket(looks)
    found = typical_values(looks, low, high, [between(part, low, high) for part in parts])
    expected = TypicalValues.learn(rows)
    np.testing.assert_array_equal(found.medians, expected.medians)
    np.testing.assert_array_equal(found.shares, expected.shares)


def test_medians_of_many_rows() -> None:
    rng = np.random.RandomState(0)
    rows = np.column_stack([rng.normal(size=9_000), rng.randint(3, size=9_000), np.ones(9_000)])
    parts = np.split(rows, [10, 5_000])
    looks = [FirstLook.at(part) for part in parts]
    low, high = bracket(looks)
    seconds = [between(part, low, high) for part in parts]
    assert sum(len(values) for second in seconds for _, values in second) < 100
    found = typical_values(looks, low, high, seconds)
    np.testing.assert_array_equal(found.medians, TypicalValues.learn(rows).medians)


@given(tables, st.lists(st.integers(0, 60), max_size=3))
def test_means_are_exact(rows: np.ndarray, cuts: list[int]) -> None:
    parts = [Mean.over(part, np.negative) for part in np.split(rows, sorted(cuts)) if len(part)]
    mean = parts[-1]
    for part in parts[:-1]:
        mean += part
    whole = Mean.over(rows, np.negative)
    assert mean.value.tobytes() == whole.value.tobytes()
    exact = [float(sum(map(Fraction, -column)) / len(rows)) for column in rows.T]
    np.testing.assert_allclose(mean.value, exact, rtol=1e-15, atol=2.0**-62)


@pytest.mark.parametrize("scaling", ["maxabs", "standard", None])
def test_scaling_of_parts(scaling: str | None) -> None:
    rows = np.random.RandomState(0).normal(5, [1e-9, 1.0, 1e9], size=(70_001, 3))
    parts = np.split(rows, [1, 40_000])
    extent = Extent.of(parts[2]) + Extent.of(parts[0]) + Extent.of(parts[1])
    found = FeatureScaler.learn_from(
        extent,
        scaling,
        lambda values: (
            Mean.over(parts[1], values) + Mean.over(parts[2], values) + Mean.over(parts[0], values)
        ),
    )
    expected = FeatureScaler.learn(rows, scaling)
    for name in ("peak", "center", "factor"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def test_draws() -> None:
    rng = np.random.RandomState(0)
    drawn = draw_rows(1_000, 100, rng)
    assert len(set(drawn.tolist())) == 100
    assert (np.diff(drawn) > 0).all()
    assert drawn.max() < 1_000
    np.testing.assert_array_equal(drawn, draw_rows(1_000, 100, np.random.RandomState(0)))
    state = pickle.dumps(rng)
    for limit in (None, 1_000, 2_000):
        np.testing.assert_array_equal(draw_rows(1_000, limit, rng), np.arange(1_000))
    assert pickle.dumps(rng) == state


def test_no_rows_of_a_chunk() -> None:
    layout = Layout.deal(np.arange(6, dtype=np.int32), 1, [1])
    empty = Route(np.empty(0, dtype=np.uint8), layout.starts)
    assert empty.shards(layout) == []
    assert empty.pieces(np.empty((0, 2)), layout) == {}

"""Shards in one process: the bits of one fit for any layout of rows and any presumptions."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from qms22._core import Shard as CoreShard
from qms22._cpm.backends import solve
from qms22._cpm.native import in_unit, power_of_two_near
from qms22._cpm.options import SolverOptions, cpm_rules, starting_point
from qms22._cpm.sweeps import Fit, run_sweeps
from qms22._cpm.task import Task, detection_task
from qms22.cluster.layout import Layout, ShardPiece
from qms22.cluster.shard import Shard, ShardAddress, ShardRules
from qms22.cluster.sweep import LostShardsError, ShardGroup, Trials, sweep

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
    """Distribute a task over shards, chunk by chunk, as an engine does."""
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
    """A backend over shards, which it reaches through their sockets."""

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
        with closing(ShardGroup(addresses, self.blocks, TOKEN)) as group:
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
    # Not the paper's alpha: many rows take the slow path, whose effects a rollback must undo.
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


def test_bits_of_one_fit_on_categories() -> None:
    # The fit tries the columns of a category together, shards try them one after the other.
    task, n_unlabeled = detection(9_001, 1)
    levels = np.random.RandomState(0).randint(0, 5, size=(9_001, 1)) == np.arange(5)
    task = replace(task, X=np.concatenate([255.0 * levels, task.X], axis=1))
    options = SolverOptions(n_components=3, alpha=0.9, max_iter=5)
    backend = InOneProcess(task, n_unlabeled, options, [9_001], 2, 64)
    found, expected = run_sweeps(backend, Fit.of(task, options), options), solve(task, options)
    assert found.members.A.tobytes() == expected.members.A.tobytes()
    assert found.members.b.tobytes() == expected.members.b.tobytes()


def test_few_rows_and_many_shards() -> None:
    task, n_unlabeled = detection(60, 2)
    options = SolverOptions(n_components=2, max_iter=10)
    backend = InOneProcess(task, n_unlabeled, options, [0, 7, 53], 5, 64)
    assert len(backend.shards) == 1
    found, expected = run_sweeps(backend, Fit.of(task, options), options), solve(task, options)
    assert found.members.A.tobytes() == expected.members.A.tobytes()


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
    with pytest.raises(LostShardsError) as caught:
        ShardGroup(addresses, blocks, b"stranger")
    assert caught.value.lost == [0, 1, 2]
    with closing(ShardGroup(addresses, blocks, TOKEN)) as group:
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
    with (
        closing(ShardGroup(address, blocks, TOKEN)) as old,
        closing(ShardGroup(address, blocks, TOKEN)) as new,
    ):
        new.restart(start)
        assert new.visit(0, b"", b"").shape == (1, 2)
        with pytest.raises(LostShardsError):
            old.visit(0, b"", b"")

"""CPM on a task whose rows are in Dask collections."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import getitem
from ssl import SSLContext
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client, Future, get_worker
from distributed.comm import get_address_host
from numpy.typing import NDArray

from qms22._cpm.native import in_unit, power_of_two_near
from qms22._cpm.options import SolverOptions, cpm_rules, starting_point
from qms22._cpm.scaling import FeatureScaler
from qms22._cpm.sweeps import FitState
from qms22._cpm.task import Task, detection_task
from qms22.cluster.dask_table import TablePart
from qms22.cluster.layout import Layout, Route, ShardPiece
from qms22.cluster.shard import Shard, ShardAddress, ShardRules
from qms22.cluster.sweep import (
    FIRST_AHEAD,
    LostShardsError,
    ShardGroup,
    SweepOutcome,
    Trials,
    sweep,
)

# A sweep fails after losing shards this many times.
_MOST_LOSSES = 10


@dataclass(frozen=True)
class DistributedTask:
    """A task of QMS22 in parts. The seed determines the shuffle of T on every machine.

    Parameters
    ----------
    sizes : list of int
        Rows of every part, S before T.
    n_unlabeled : int
        Rows of S.
    n_members : int
    n_features : int
    seed : int
    """

    sizes: list[int]
    n_unlabeled: int
    n_members: int
    n_features: int
    seed: int

    def task(self) -> Task:
        """Return groups and weights of all rows, and the rows without their features."""
        rows = np.empty((sum(self.sizes), 0))
        rng = np.random.RandomState(self.seed)
        return detection_task(rows, self.n_unlabeled, self.n_members, rng)

    def routes(self, layout: Layout) -> list[Route]:
        """Return the route of every part."""
        return layout.routes(self.task().group, self.sizes)


class DaskSolver:
    """CPM over shards on the workers of a Dask cluster.

    A sweep is a function of the coefficients alone. It runs as one task on some worker, close to
    the shards. A lost shard is built again from the graph, on another worker, and the sweep starts
    again.

    Parameters
    ----------
    client : Client
    distributed_task : DistributedTask
    parts : sequence of TablePart
        The rows of S, then those of T.
    scaler : FeatureScaler
    options : SolverOptions
    state : FitState, optional
        The state of an earlier fit, to continue from there.
    """

    def __init__(
        self,
        client: Client,
        distributed_task: DistributedTask,
        parts: Sequence[TablePart],
        scaler: FeatureScaler,
        options: SolverOptions,
        state: FitState | None = None,
    ) -> None:
        self._client = client
        self.task = distributed_task.task()
        threads = client.nthreads()
        layout = Layout.deal(self.task.group, distributed_task.n_unlabeled, list(threads.values()))
        blocks = [layout.blocks_of(number) for number in range(len(threads))]
        self._homes = {
            number: worker for number, worker in enumerate(threads) if blocks[number].size
        }
        self._blocks = [blocks[number] for number in self._homes]
        self._targets = [
            route.shards(layout) for route in layout.routes(self.task.group, distributed_task.sizes)
        ]
        # The workers compute the routes again from the seed: they are large to send.
        of_parts, shared = delayed(distributed_task.routes)(layout), delayed(layout)
        self._pieces = [
            part.apply(_cut, scaler, of_parts[number], shared) for number, part in enumerate(parts)
        ]

        self._unit = power_of_two_near(options.init_b)
        rules = in_unit(cpm_rules(self.task, options), self._unit)
        self._rules = ShardRules(
            layout.starts,
            self.task.group_weight,
            options.n_components,
            rules,
            options.dtype,
            secrets.token_bytes(32),
        )
        if state is None:
            A, b = starting_point(distributed_task.n_members, distributed_task.n_features, options)
        else:
            A, b = state.A, state.b
        self._coefficients = np.concatenate([A, b[..., None]], axis=-1) / self._unit
        self._steps = np.append(np.full(distributed_task.n_features, rules.step_a), rules.step_b)
        self._most_ahead = FIRST_AHEAD
        self._trials: Trials | None = None
        self.n_round_trips = 0
        self._shards: dict[int, Future] = {}
        self._build(list(self._homes))

    @property
    def A(self) -> NDArray[np.float64]:
        """Coefficients of shape (m, q, p)."""
        return np.ascontiguousarray(self._coefficients[..., :-1]) * self._unit

    @property
    def b(self) -> NDArray[np.float64]:
        """Offsets of shape (m, q)."""
        return np.ascontiguousarray(self._coefficients[..., -1]) * self._unit

    def sweep(self) -> tuple[float, int]:
        """Visit every entry once; return the change of the loss and the number of steps taken."""
        for _ in range(_MOST_LOSSES):
            done = self._try_sweep()
            if isinstance(done, SweepOutcome):
                self._coefficients, self._trials = done.coefficients, done.trials
                self._most_ahead = done.worthwhile_ahead
                self.n_round_trips += done.n_round_trips
                return done.change, int(np.count_nonzero(done.trials.decisions))
            numbers = list(self._homes)
            self._build([numbers[position] for position in done])
        raise RuntimeError(
            f"shards were lost {_MOST_LOSSES} times in one sweep; check the workers' logs for the "
            "reason, and whether they can reach each other"
        )

    def _try_sweep(self) -> SweepOutcome | list[int]:
        shards = self._client.gather([self._shards[number] for number in self._homes])
        future = self._client.submit(
            _sweep,
            [ShardAddress(shard.address) for shard in shards],
            self._blocks,
            self._rules.token,
            self._coefficients,
            self._steps,
            self._rules.rules.tolerance,
            self._most_ahead,
            self._trials,
            pure=False,
        )
        done: SweepOutcome | list[int] = future.result()
        return done

    def _build(self, numbers: Sequence[int]) -> None:
        """Build shards on their workers or, where these are gone, on others."""
        workers = self._client.nthreads()
        load = Counter(home for home in self._homes.values() if home in workers)
        for number in numbers:
            if self._homes[number] not in workers:
                self._homes[number] = min(workers, key=lambda worker: load[worker])
                load[self._homes[number]] += 1
        wanted = [part for part, shards in enumerate(self._targets) if {*shards} & {*numbers}]
        pieces = dict(
            zip(wanted, self._client.compute([self._pieces[part] for part in wanted]), strict=True)
        )
        for number in numbers:
            own = [
                self._client.submit(getitem, pieces[part], number, pure=False)
                for part in wanted
                if number in self._targets[part]
            ]
            self._shards[number] = self._client.submit(
                _start_shard,
                own,
                self._rules,
                pure=False,
                workers=[self._homes[number]],
                allow_other_workers=True,
            )
        self._client.gather([self._shards[number] for number in numbers])


def _cut(
    rows: NDArray[np.float64], scaler: FeatureScaler, route: Route, layout: Layout
) -> dict[int, ShardPiece]:
    return route.pieces(scaler.transform(rows), layout)


def _start_shard(pieces: list[ShardPiece], rules: ShardRules) -> Shard:
    worker = get_worker()
    tls = _tls_of(worker.address, worker.security.get_listen_args)
    return Shard(pieces, rules, get_address_host(worker.address), worker.state.nthreads, tls)


def _tls_of(address: str, arguments: Callable[[str], dict[str, Any]]) -> SSLContext | None:
    """Return what encrypts the connections of a worker, if the cluster uses TLS."""
    context: SSLContext | None = arguments("worker").get("ssl_context")
    return context if address.startswith("tls://") else None


def _sweep(
    shards: list[ShardAddress], blocks: list[NDArray[np.int64]], token: bytes, *args: Any
) -> SweepOutcome | list[int]:
    """Make a sweep, or return the lost shards; workers would log an error if this raised one."""
    worker = get_worker()
    tls = _tls_of(worker.address, worker.security.get_connection_args)
    try:
        with closing(ShardGroup(shards, blocks, token, tls)) as group:
            return sweep(group, *args)
    except LostShardsError as error:
        return error.lost

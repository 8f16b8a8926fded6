"""One sweep over all shards, with several entries per round trip.

A round trip costs more than a small trial, so shards try several entries per round trip: the next
one, and those after it on the state that the driver presumes, by the sweep before (see
`forecast`). If a presumption is wrong, the trials after it are discarded, and the shards roll back
to the last confirmed trial. The result is that of one entry after the other. Where a trial takes as
long as a message, nothing is gained, and one entry is tried at a time.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ssl import SSLContext
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qms22.cluster.channel import Channel
from qms22.cluster.handshake import encrypt, meet_shard
from qms22.cluster.shard import REQUEST, RESTART, SECONDS, ShardAddress

Result = TypeVar("Result")

# Entries tried in one round trip: initially, and at most.
FIRST_AHEAD, MOST_AHEAD = 8, 64


class LostShardsError(Exception):
    """Raised where some shards cannot be reached; `lost` holds their numbers."""

    def __init__(self, lost: list[int]) -> None:
        super().__init__(lost)
        self.lost = lost


class ShardGroup:
    """The shards of one task; visits all of them and adds up their sums in block order.

    Parameters
    ----------
    shards : sequence of ShardAddress
    blocks : sequence of ndarray
        The blocks of each shard.
    token : bytes
        The secret of the fit.
    tls : SSLContext, optional
        Encrypts connections; of a client.
    """

    def __init__(
        self,
        shards: Sequence[ShardAddress],
        blocks: Sequence[NDArray[np.int64]],
        token: bytes,
        tls: SSLContext | None = None,
    ) -> None:
        self._blocks = blocks
        self._n_blocks = sum(map(len, blocks))
        self._channels: list[Channel] = []
        self.seconds_worked = self.seconds_waited = 0.0
        self.n_round_trips = self.n_trials = 0
        lost = []
        for number, shard in enumerate(shards):
            try:
                self._channels.append(_connect(shard, token, tls))
            except OSError:
                lost.append(number)
        if lost:
            self.close()
            raise LostShardsError(lost)

    def close(self) -> None:
        """Close all connections."""
        for channel in self._channels:
            channel.close()

    def restart(self, coefficients: NDArray[np.float64]) -> None:
        """Send the coefficients (m, q, p + 1) that a sweep starts from."""
        request = REQUEST.pack(RESTART, 0) + coefficients.tobytes()
        self._for_all(lambda channel: channel.send(request))

    def visit(self, member: int, settled: bytes, presumed: bytes) -> NDArray[np.float64]:
        """Try entries on all rows; return the changes (trials, 2). See `cpp/shard.hpp`."""
        begin = time.perf_counter()
        request = REQUEST.pack(member, len(settled)) + settled + presumed
        self._for_all(lambda channel: channel.send(request))
        changes = np.empty((len(presumed) + 1, self._n_blocks, 2))
        answers = self._for_all(Channel.receive)
        for blocks, answer in zip(self._blocks, answers, strict=True):
            of_shard = np.frombuffer(answer, offset=SECONDS.size)
            changes[:, blocks] = of_shard.reshape(len(changes), -1, 2)
        worked = max(SECONDS.unpack_from(answer)[0] for answer in answers)
        self.seconds_worked += worked
        self.seconds_waited += time.perf_counter() - begin - worked
        self.n_round_trips += 1
        self.n_trials += len(changes)
        # A running sum adds one block after the other, as the kernel does; `sum` does not.
        return np.cumsum(changes, axis=1)[:, -1]

    @property
    def worthwhile_ahead(self) -> int:
        """The number of entries to try per round trip, estimated from the visits so far.

        Half as many as shards can try during one message: about half of them are discarded.
        """
        waited = self.seconds_waited / self.n_round_trips
        worked = self.seconds_worked / self.n_trials
        return int(np.clip(waited / (2 * worked), 1, MOST_AHEAD))

    def _for_all(self, act: Callable[[Channel], Result]) -> list[Result]:
        results = []
        for number, channel in enumerate(self._channels):
            try:
                results.append(act(channel))
            except OSError as error:
                raise LostShardsError([number]) from error
        return results


def _connect(shard: ShardAddress, token: bytes, tls: SSLContext | None) -> Channel:
    connection = socket.create_connection(shard.address, timeout=10)
    try:
        if tls is not None:
            connection = encrypt(connection, tls, is_server=False)
        meet_shard(connection, token)
    except OSError:
        connection.close()
        raise
    return Channel(connection)


@dataclass(frozen=True)
class Trials:
    """The trials of a sweep and the decisions on them.

    Parameters
    ----------
    changes : ndarray of shape (m, n_entries, 2)
        Changes of the loss for the step up and down.
    decisions : ndarray of shape (m, n_entries), int8
        1 and -1 for the direction kept, 0 for neither.
    """

    changes: NDArray[np.float64]
    decisions: NDArray[np.int8]


@dataclass(frozen=True)
class SweepOutcome:
    """The result of a sweep.

    Parameters
    ----------
    coefficients : ndarray of shape (m, q, p + 1)
        After the sweep.
    change : float
        Of the loss.
    trials : Trials
    n_round_trips : int
    worthwhile_ahead : int
        Entries that the next sweep should try in one round trip, at most.
    """

    coefficients: NDArray[np.float64]
    change: float
    trials: Trials
    n_round_trips: int
    worthwhile_ahead: int


def sweep(
    group: ShardGroup,
    coefficients: NDArray[np.float64],
    steps: NDArray[np.float64],
    tolerance: float,
    most_ahead: int,
    before: Trials | None,
) -> SweepOutcome:
    """Try every entry once; `cpp/solver.cpp` does the same on one machine.

    Parameters
    ----------
    group : ShardGroup
    coefficients : ndarray of shape (m, q, p + 1)
        Where to start.
    steps : ndarray of shape (p + 1,)
        The step on each entry of a row of A, and on that of b.
    tolerance : float
        A step is kept when it lowers the loss by more than this.
    most_ahead : int
        Entries to try in one round trip, at most.
    before : Trials or None
        Those of the sweep before.
    """
    group.restart(coefficients)
    n_members, n_rows_of_a, _ = coefficients.shape
    n_entries = n_rows_of_a * len(steps)
    trials = Trials(
        np.zeros((n_members, n_entries, 2)), np.zeros((n_members, n_entries), dtype=np.int8)
    )
    settled, n_ahead, change = b"", min(FIRST_AHEAD, most_ahead), 0.0
    for member in range(n_members):
        changes, decisions = trials.changes[member], trials.decisions[member]
        guess = forecast(before, trials, member)
        entry = 0
        while entry < n_entries:
            n_tried = min(n_ahead, n_entries - entry)
            presumed = guess[entry : entry + n_tried - 1]
            found = group.visit(member, settled, presumed.tobytes())
            decided = _decide(found, tolerance)
            wrong = np.flatnonzero(decided[:-1] != presumed)
            n_settled = int(wrong[0]) + 1 if wrong.size else n_tried
            # Look further ahead after success; after a failure, one beyond what was settled.
            n_ahead = min(most_ahead, n_settled + 1 if wrong.size else 2 * n_ahead)
            changes[entry : entry + n_settled] = found[:n_settled]
            decisions[entry : entry + n_settled] = decided[:n_settled]
            settled = decided[:n_settled].tobytes()
            entry += n_settled
        change += _change_taken(changes, decisions)
    taken = trials.decisions.reshape(coefficients.shape) * steps
    return SweepOutcome(
        coefficients + taken, change, trials, group.n_round_trips, group.worthwhile_ahead
    )


def forecast(before: Trials | None, now: Trials, member: int) -> NDArray[np.int8]:
    """Return the presumed decisions on a member's entries.

    A step that lowered the loss in the sweep before is presumed again if it would still lower it
    with a smaller gain: one that shrinks half as fast as on the parabola through the changes of
    both directions, since other entries move too. In the first sweep all members start alike, and
    the decisions on the member before are the best guess.
    """
    guess: NDArray[np.int8] = now.decisions[max(0, member - 1)].copy()
    if before is None:
        return guess
    decisions, changes = before.decisions[member], before.changes[member]
    gain, other = np.where(decisions > 0, changes.T, changes.T[::-1])
    pays_again = gain + (gain + other) / 2 < 0
    guess = decisions * pays_again
    return guess


def _decide(changes: NDArray[np.float64], tolerance: float) -> NDArray[np.int8]:
    falls = changes < -tolerance
    return np.where(falls[:, 0], 1, np.where(falls[:, 1], -1, 0)).astype(np.int8)


def _change_taken(changes: NDArray[np.float64], decisions: NDArray[np.int8]) -> float:
    """Add up the changes of the steps taken, in order."""
    of_decision = np.where(decisions > 0, changes[:, 0], changes[:, 1])
    return float(np.cumsum(np.append(0.0, of_decision[decisions != 0]))[-1])

"""Shards: rows on a worker, and the server that tries steps on them for a driver."""

from __future__ import annotations

import hmac
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22._core import Shard as CoreShard
from qms22._cpm.task import CpmRules
from qms22._runtime.build import forced_instruction_set
from qms22.cluster.channel import Channel, shut
from qms22.cluster.layout import ShardPiece

# A request is a member and the number of settled decisions, then these and the presumed ones; or
# RESTART and coefficients. The answer is the time it took, then the changes by trial and block.
REQUEST = struct.Struct("!II")
RESTART = 2**32 - 1
SECONDS = struct.Struct("!d")


@dataclass(frozen=True)
class ShardRules:
    """The parameters of a shard, apart from its rows.

    Parameters
    ----------
    starts : ndarray of shape (n_groups,)
        The place of the first row of each group.
    group_weight : ndarray of shape (m, n_groups)
    n_components : int
    rules : CpmRules
        For coefficients in the unit in which the driver sends them.
    precision : {"float64", "float32"}
    token : bytes
        The secret that a driver must send.
    """

    starts: NDArray[np.int64]
    group_weight: NDArray[np.float64]
    n_components: int
    rules: CpmRules
    precision: str
    token: bytes


class Shard:
    """Rows and a server for a driver, at an address. Only the address is pickled.

    Parameters
    ----------
    pieces : sequence of ShardPiece
    rules : ShardRules
    host : str
        The name or address under which drivers reach this machine.
    n_threads : int
    """

    def __init__(
        self, pieces: Sequence[ShardPiece], rules: ShardRules, host: str, n_threads: int
    ) -> None:
        places = np.concatenate([piece.places for piece in pieces])
        order = np.argsort(places)
        rows = np.concatenate([piece.rows for piece in pieces])[order]
        group = np.searchsorted(rules.starts, places[order], side="right") - 1
        core = CoreShard(
            rows,
            group.astype(np.int32),
            rules.group_weight,
            rules.n_components,
            alpha=rules.rules.alpha,
            floor=rules.rules.floor,
            step_a=rules.rules.step_a,
            step_b=rules.rules.step_b,
            single_precision=rules.precision == "float32",
            n_threads=n_threads,
            isa=forced_instruction_set(),
        )
        shape = (len(rules.group_weight), rules.n_components, rows.shape[1] + 1)
        server = _Server(core, shape, rules.token, host)
        self.address = server.address
        # The server's threads hold no reference to the shard, so that it closes with the last one.
        weakref.finalize(self, server.close)

    def __reduce__(self) -> tuple[type[ShardAddress], tuple[tuple[str, int]]]:
        return ShardAddress, (self.address,)


@dataclass(frozen=True)
class ShardAddress:
    """The host and port of a shard."""

    address: tuple[str, int]


class _Server:
    """Serves one driver at a time. A new driver replaces the old one, which may have died."""

    def __init__(
        self, core: CoreShard, shape: tuple[int, int, int], token: bytes, host: str
    ) -> None:
        self._core, self._shape, self._token = core, shape, token
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._driver: Channel | None = None
        self.address: tuple[str, int] = (host, self._listener.getsockname()[1])
        threading.Thread(target=self._listen, daemon=True, name="qms22-shard").start()

    def close(self) -> None:
        """Stop serving and free the rows."""
        shut(self._listener)
        if self._driver is not None:
            self._driver.close()

    def _listen(self) -> None:
        serving: threading.Thread | None = None
        while True:
            try:
                channel = Channel(self._listener.accept()[0])
            except OSError:  # closed
                return
            if self._driver is not None:
                self._driver.close()
            if serving is not None:
                serving.join()
            self._driver = channel
            serving = threading.Thread(target=self._serve, args=(channel,), daemon=True)
            serving.start()

    def _serve(self, channel: Channel) -> None:
        try:
            if not hmac.compare_digest(channel.receive(), self._token):
                return
            while True:
                request = channel.receive()
                member, n_settled = REQUEST.unpack_from(request)
                rest = request[REQUEST.size :]
                if member == RESTART:
                    coefficients = np.frombuffer(rest).reshape(self._shape)
                    A, b = coefficients[..., :-1], coefficients[..., -1]
                    self._core.restart(np.ascontiguousarray(A), np.ascontiguousarray(b))
                else:
                    begin = time.perf_counter()
                    changes = self._core.visit(member, rest[:n_settled], rest[n_settled:])
                    seconds = time.perf_counter() - begin
                    channel.send(SECONDS.pack(seconds) + changes.tobytes())
        except OSError:  # the driver closed the connection
            pass
        finally:
            channel.close()

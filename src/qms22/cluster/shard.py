"""Shards: rows on a worker, and the server that tries steps on them for a driver."""

from __future__ import annotations

import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from ssl import SSLContext

import numpy as np
from numpy.typing import NDArray

from qms22._core import Shard as CoreShard
from qms22._cpm.task import CpmRules
from qms22._runtime.build import forced_instruction_set
from qms22.cluster.channel import Channel, shut
from qms22.cluster.handshake import admit_driver, encrypt
from qms22.cluster.layout import ShardPiece

# A request is a member and the number of settled decisions, then these and the presumed ones; or
# RESTART and coefficients. The answer is the time it took, then the changes by trial and block.
REQUEST = struct.Struct("!II")
RESTART = 2**32 - 1
SECONDS = struct.Struct("!d")

# Connections that have not proved yet to be from a driver.
_MOST_STRANGERS = 64

# Before connections are accepted again, where files are too many to open or the peer is gone.
_SECONDS_AFTER_ERROR = 0.01


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
        The secret that a driver must know.
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
    tls : SSLContext, optional
        Encrypts connections; of a server.
    """

    def __init__(
        self,
        pieces: Sequence[ShardPiece],
        rules: ShardRules,
        host: str,
        n_threads: int,
        tls: SSLContext | None = None,
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
        server = _Server(core, shape, rules.token, host, tls)
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
    """Serves one driver at a time. A new driver replaces the old one, which may have died.

    Whoever connects must first prove to know the secret; until then it has no effect on a driver.
    """

    def __init__(
        self,
        core: CoreShard,
        shape: tuple[int, int, int],
        token: bytes,
        host: str,
        tls: SSLContext | None,
    ) -> None:
        self._core, self._shape, self._token, self._tls = core, shape, token, tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._changing = threading.Lock()  # the next two
        self._strangers: list[socket.socket] = []
        self._driver: Channel | None = None
        self._serving = threading.Lock()
        self.address: tuple[str, int] = (host, self._listener.getsockname()[1])
        threading.Thread(target=self._listen, daemon=True, name="qms22-shard").start()

    def close(self) -> None:
        """Stop serving and free the rows."""
        shut(self._listener)
        with self._changing:
            while self._strangers:
                shut(self._strangers.pop())
            if self._driver is not None:
                self._driver.close()

    def _listen(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
                if self._tls is not None:
                    connection = encrypt(connection, self._tls, is_server=True)
            except OSError:
                if self._listener.fileno() < 0:  # closed
                    return
                time.sleep(_SECONDS_AFTER_ERROR)
                continue
            with self._changing:
                self._strangers.append(connection)
                # A driver answers at once, so the oldest is the least likely to be one.
                if len(self._strangers) > _MOST_STRANGERS:
                    shut(self._strangers.pop(0))
            threading.Thread(target=self._meet, args=(connection,), daemon=True).start()

    def _meet(self, connection: socket.socket) -> None:
        """Serve a driver, or close the connection to a stranger."""
        try:
            admit_driver(connection, self._token)
            is_driver = True
        except OSError:
            is_driver = False
        with self._changing:
            if connection not in self._strangers:  # it was closed meanwhile
                return
            self._strangers.remove(connection)
            if not is_driver:
                shut(connection)
                return
            channel = Channel(connection)
            if self._driver is not None:
                self._driver.close()
            self._driver = channel
        with self._serving:
            self._serve(channel)

    def _serve(self, channel: Channel) -> None:
        try:
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

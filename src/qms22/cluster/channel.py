"""Messages between a driver and its shards."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

_LENGTH = struct.Struct("!Q")


class Channel:
    """Messages over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Notice within half a minute that the other machine no longer answers.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._socket.sendall(_LENGTH.pack(len(message)) + message)

    def receive(self) -> bytes:
        """Wait for a message and return it; raise OSError if the connection ends."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return self._read(length)

    def _read(self, length: int) -> bytes:
        data = bytearray(length)
        view = memoryview(data)
        while view:
            n_read = self._socket.recv_into(view)
            if not n_read:
                raise ConnectionError("the other end has closed the connection")
            view = view[n_read:]
        return bytes(data)

    def close(self) -> None:
        """Close the connection."""
        shut(self._socket)


def shut(connection: socket.socket) -> None:
    """Close a socket and wake the threads that wait for it."""
    with suppress(OSError):  # not connected, or closed already
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()

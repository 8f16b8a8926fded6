"""How a driver and a shard prove to each other that both know the secret of a fit.

Each sends random bytes that the other has to sign, so the secret itself is never sent, and an
answer of one connection is of no use on another. All messages have a fixed length: a stranger
cannot make the other side wait for more bytes, or reserve memory for them.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import time
from ssl import SSLContext

# Seconds for all of it; it takes two messages each way, and with TLS a few more.
_SECONDS = 10.0
_N_RANDOM = 32
_DIGEST = "sha256"
_N_SIGNED = 32


def encrypt(connection: socket.socket, tls: SSLContext, *, is_server: bool) -> socket.socket:
    """Return a connection with TLS, which begins with the first message."""
    return tls.wrap_socket(connection, server_side=is_server, do_handshake_on_connect=False)


def admit_driver(connection: socket.socket, token: bytes) -> None:
    """Raise OSError if the other end is not a driver that knows the secret."""
    until = time.monotonic() + _SECONDS
    challenge = secrets.token_bytes(_N_RANDOM)
    _send(connection, challenge, until)
    answer = _read(connection, _N_RANDOM + _N_SIGNED, until)
    both = challenge + answer[:_N_RANDOM]
    _check(answer[_N_RANDOM:], _sign(token, b"driver", both))
    _send(connection, _sign(token, b"shard", both), until)


def meet_shard(connection: socket.socket, token: bytes) -> None:
    """Raise OSError if the other end is not a shard that knows the secret."""
    until = time.monotonic() + _SECONDS
    own = secrets.token_bytes(_N_RANDOM)
    both = _read(connection, _N_RANDOM, until) + own
    _send(connection, own + _sign(token, b"driver", both), until)
    _check(_read(connection, _N_SIGNED, until), _sign(token, b"shard", both))


def _sign(token: bytes, role: bytes, random: bytes) -> bytes:
    return hmac.digest(token, role + random, _DIGEST)


def _check(signed: bytes, expected: bytes) -> None:
    if not hmac.compare_digest(signed, expected):
        raise ConnectionError("the other end does not know the secret of this fit")


def _send(connection: socket.socket, message: bytes, until: float) -> None:
    connection.settimeout(_seconds_left(until))
    connection.sendall(message)


def _read(connection: socket.socket, length: int, until: float) -> bytes:
    data = b""
    while len(data) < length:
        # A peer that sends one byte now and then has no more time than others.
        connection.settimeout(_seconds_left(until))
        received = connection.recv(length - len(data))
        if not received:
            raise ConnectionError("the other end has closed the connection")
        data += received
    return data


def _seconds_left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the other end did not answer in time")
    return left

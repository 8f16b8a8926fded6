"""Connections to a shard from elsewhere than its driver: they change nothing and cost little."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qms22._core import Shard as CoreShard
from qms22.cluster import handshake
from qms22.cluster import shard as shard_module
from qms22.cluster import sweep as sweep_module
from qms22.cluster.shard import ShardAddress, _Server
from qms22.cluster.sweep import LostShardsError, ShardGroup

TOKEN = b"the secret of a fit"
SHAPE = (2, 1, 2)  # members, components, columns and the offset
BLOCKS = [np.arange(1)]


def serve(tls: ssl.SSLContext | None = None) -> _Server:
    core = CoreShard(
        np.ones((8, 1)),
        np.zeros(8, dtype=np.int32),
        np.ones((2, 1)),
        1,
        alpha=0.5,
        floor=1e-9,
        step_a=0.1,
        step_b=0.1,
    )
    return _Server(core, SHAPE, TOKEN, "127.0.0.1", tls)


@pytest.fixture
def server() -> Iterator[_Server]:
    with closing(serve()) as server:
        yield server


def drive(server: _Server, token: bytes = TOKEN, tls: ssl.SSLContext | None = None) -> ShardGroup:
    return ShardGroup([ShardAddress(server.address)], BLOCKS, token, tls)


def assert_works(group: ShardGroup) -> None:
    group.restart(np.ones(SHAPE))
    assert group.visit(0, b"", b"").shape == (1, 2)


def read_to_the_end(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    data = b""
    while received := connection.recv(4096):
        data += received
    return data


def test_a_driver_keeps_its_shard(server: _Server) -> None:
    with closing(drive(server)) as group, ExitStack() as strangers:
        assert_works(group)
        for _ in range(20):
            strangers.enter_context(socket.create_connection(server.address))
        with pytest.raises(LostShardsError):
            drive(server, b"another secret")
        assert_works(group)


def test_more_strangers_than_a_shard_waits_for(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "_MOST_STRANGERS", 5)
    with ExitStack() as strangers:
        silent = [
            strangers.enter_context(socket.create_connection(server.address)) for _ in range(20)
        ]
        assert len(read_to_the_end(silent[0])) == 32  # a challenge, then it is closed
        with closing(drive(server)) as group:
            assert_works(group)


def test_silence_ends(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "_SECONDS", 0.2)
    with socket.create_connection(server.address) as stranger:
        assert len(read_to_the_end(stranger)) == 32


def test_a_byte_now_and_then_ends(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "_SECONDS", 0.5)
    with socket.create_connection(server.address) as stranger:

        def send_slowly() -> None:
            for _ in range(60):
                stranger.sendall(b"x")
                time.sleep(0.1)

        with pytest.raises(ConnectionError):
            send_slowly()


def test_a_large_length_takes_no_memory(server: _Server) -> None:
    tracemalloc.start()
    try:
        with socket.create_connection(server.address) as stranger:
            stranger.sendall(struct.pack("!Q", 2**31) + bytes(56))
            read_to_the_end(stranger)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_an_answer_cannot_be_used_again(server: _Server) -> None:
    with socket.create_connection(server.address) as one:
        challenge = one.recv(32, socket.MSG_WAITALL)
        own = bytes(32)
        answer = own + handshake._sign(TOKEN, b"driver", challenge + own)
        one.sendall(answer)
        assert len(one.recv(32, socket.MSG_WAITALL)) == 32
    with socket.create_connection(server.address) as two:
        two.sendall(answer)
        assert len(read_to_the_end(two)) == 32


def test_a_false_shard_learns_no_secret() -> None:
    heard = []

    def pretend(listener: socket.socket) -> None:
        connection = listener.accept()[0]
        with connection:
            connection.sendall(bytes(32))
            heard.append(connection.recv(64, socket.MSG_WAITALL))
            connection.sendall(bytes(32))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = threading.Thread(target=pretend, args=(listener,))
        other.start()
        with pytest.raises(LostShardsError):
            ShardGroup([ShardAddress(listener.getsockname())], BLOCKS, TOKEN)
        other.join()
    assert len(heard[0]) == 64
    assert TOKEN not in heard[0]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "_SECONDS", 1.0)
    key, certificate = make_certificate(tmp_path)
    of_server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificate)
    of_server.verify_mode = ssl.CERT_REQUIRED
    of_client = ssl.create_default_context(cafile=certificate)
    of_client.check_hostname = False
    for context in (of_server, of_client):
        context.load_cert_chain(certificate, key)
    with closing(serve(of_server)) as server:
        with closing(drive(server, tls=of_client)) as group, ExitStack() as strangers:
            for _ in range(3):
                stranger = strangers.enter_context(socket.create_connection(server.address))
                stranger.sendall(b"no TLS")
            with pytest.raises(LostShardsError):
                drive(server)  # without TLS
            assert_works(group)
        with closing(drive(server, tls=of_client)) as group:
            assert_works(group)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_cluster_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    import dask.array as da

    from qms22 import QMS22
    from qms22.dask import DaskQMS22

    key, certificate = map(str, make_certificate(tmp_path))
    roles = {
        f"tls_{role}_{part}": path
        for role in ("client", "scheduler", "worker")
        for part, path in (("key", key), ("cert", certificate))
    }
    security = distributed.Security(tls_ca_file=certificate, require_encryption=True, **roles)
    sides = []

    def recorded(connection: socket.socket, tls: ssl.SSLContext, *, is_server: bool) -> Any:
        sides.append(is_server)
        return handshake.encrypt(connection, tls, is_server=is_server)

    for module in (shard_module, sweep_module):
        monkeypatch.setattr(module, "encrypt", recorded)
    rng = np.random.default_rng(0)
    T, S = rng.normal(size=(300, 3)), rng.normal(size=(100, 3))
    parameters: dict[str, Any] = {
        "max_iter": 2,
        "n_components": 2,
        "contamination": 0.1,
        "random_state": 0,
    }
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tls://",
            security=security,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster, security=security),
    ):
        found = DaskQMS22(**parameters).fit(da.from_array(T, 100), unlabeled=da.from_array(S, 50))
    expected = QMS22(**parameters).fit(T, unlabeled=S)
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)
    assert {*sides} == {True, False}


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a key and a certificate that is its own authority."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
            *("-days", "2", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return key, certificate

"""Files are written completely or not at all, and stay what they are."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pandas as pd
import pytest

from qms22._runtime.files import atomic_path, atomic_write
from qms22.detection.results.result_files import write_tables
from qms22.tables import read_table


def test_atomic_path_keeps_the_old_file_on_failure(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    path.write_text("old")

    def fail_half_way() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_path_replaces_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.csv"
    path.touch()
    path.chmod(mode)
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "other").mkdir()
    target = tmp_path / "other" / "b.csv"
    if exists:
        target.write_text("old")
        target.chmod(0o600)
    link = tmp_path / "a.csv"
    link.symlink_to(Path("other") / "b.csv")
    atomic_write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert not exists or target.stat().st_mode & 0o777 == 0o600
    assert len([*tmp_path.iterdir(), *target.parent.iterdir()]) == 3


def test_a_loop_of_links_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(OSError, match=r"cannot write .*a\.csv: Too many levels"):
        atomic_write(tmp_path / "a.csv", b"new")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    os.mkfifo(path)
    content = b"x" * 300_000
    writer = threading.Thread(target=atomic_write, args=(path, content), daemon=True)
    writer.start()
    assert path.read_bytes() == content
    writer.join()
    assert path.is_fifo()


def test_names_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    for name in ("n" * 251 + ".csv", "n." + "s" * 253):
        atomic_write(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"


def test_names_of_tables_need_not_be_utf8(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    for suffix in (b"csv", b"parquet", b"xlsx", b"jsonl"):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9." + suffix))
        try:
            path.touch()
        except OSError:
            pytest.skip("the file system takes only UTF-8")
        write_tables([table], path)
        pd.testing.assert_frame_equal(read_table(path), table)

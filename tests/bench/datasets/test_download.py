"""Downloads of KEEL files, from a web site of the test's own."""

from __future__ import annotations

import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keel_files import fake_files, hide_keel, write_files

from qms22_bench.datasets import download, keel_sources, load_keel


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_keel(monkeypatch, tmp_path / "cache")


class Site:
    """A web site of a folder that counts what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[str] = []
        site = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append(self.path)
                super().do_GET()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        handler = partial(Handler, directory=str(folder))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def put(self, path: str, files: dict[str, str]) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    site = Site(folder)
    thread = threading.Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(keel_sources, "SITE", site.address)
    yield site
    site.server.shutdown()
    site.server.server_close()
    thread.join()


def put_set(site: Site, part: str, name: str, inner: str, folds: bool = True) -> None:
    files = fake_files(name, inner)
    whole = f"{inner}.dat"
    keel = keel_sources.keel_name(name)
    site.put(f"{part}/{keel}.zip", {whole: files.pop(whole), "__MACOSX/._x.dat": "junk"})
    if folds:
        site.put(f"{part}/{keel}-5-fold.zip", files)


def test_download_is_kept_and_not_repeated(site: Site, tmp_path: Path) -> None:
    put_set(site, "imb_IRlowerThan9", "new-thyroid2", inner="newthyroid2")
    first = load_keel("new-thyroid2")
    assert first.folds_source == "official"
    assert first.origin == site.address
    n_requests = len(site.requests)
    again = load_keel("new-thyroid2", download=False)
    assert len(site.requests) == n_requests == 2
    assert np.array_equal(first.columns[1], again.columns[1])
    kept = sorted(path.name for path in (tmp_path / "cache" / "keel").iterdir())
    assert kept == [
        "new-thyroid2-5-fold.zip",
        "new-thyroid2-5-fold.zip.sha256",
        "new-thyroid2.zip",
        "new-thyroid2.zip.sha256",
    ]


def test_every_part_of_the_site_is_searched(site: Site) -> None:
    put_set(site, "imb_IRhigherThan9p3", "shuttle-c2_vs_c4", inner="shuttle-c2-vs-c4", folds=False)
    dataset = load_keel("shuttle-c2_vs_c4")
    assert dataset.folds_source == "stratified, seed 0"
    assert len(site.requests) == 8
    with pytest.raises(FileNotFoundError, match=r"http://127.*, which lacks iris0\.zip"):
        load_keel("iris0")


def test_a_changed_copy_is_noticed(site: Site, tmp_path: Path) -> None:
    put_set(site, "imb_IRlowerThan9", "iris0", inner="iris0")
    load_keel("iris0")
    kept = tmp_path / "cache" / "keel" / "iris0.zip"
    kept.write_bytes(kept.read_bytes() + b"x")
    with pytest.raises(ValueError, match=r"iris0\.zip has changed since its download .* delete it"):
        load_keel("iris0")
    kept.unlink()
    assert load_keel("iris0").n_rows == 150


def test_another_file_than_at_first_is_noticed(site: Site, tmp_path: Path) -> None:
    put_set(site, "imb_IRlowerThan9", "iris0", inner="iris0")
    load_keel("iris0")
    kept = tmp_path / "cache" / "keel" / "iris0.zip"
    kept.unlink()
    site.put("imb_IRlowerThan9/iris0.zip", {"iris0.dat": "other"})
    with pytest.raises(ValueError, match=r"is not the file it was at the first .* delete that"):
        load_keel("iris0")
    assert not kept.exists()
    kept.with_name("iris0.zip.sha256").unlink()
    with pytest.raises(ValueError, match=r"iris0\.dat does not start as a KEEL file does"):
        load_keel("iris0")


def test_a_broken_off_download_counts_for_nothing(site: Site, tmp_path: Path) -> None:
    put_set(site, "imb_IRlowerThan9", "iris0", inner="iris0")
    write_files(tmp_path / "cache" / "keel", {"iris0.zip": "half"})
    assert load_keel("iris0").n_rows == 150


def test_a_page_in_place_of_a_zip_is_not_kept(site: Site, tmp_path: Path) -> None:
    write_files(site.folder / "imb_IRlowerThan9", {"iris0.zip": "<html>moved</html>"})
    with pytest.raises(FileNotFoundError, match=r"which lacks iris0\.zip"):
        load_keel("iris0")
    assert not (tmp_path / "cache").exists()


def test_a_damaged_zip_is_not_kept(site: Site, tmp_path: Path) -> None:
    put_set(site, "imb_IRlowerThan9", "iris0", inner="iris0")
    path = site.folder / "imb_IRlowerThan9" / "iris0.zip"
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.infolist()[0].header_offset + 60
    content[start] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FileNotFoundError, match=r"could not be reached \(.* arrived damaged\)"):
        load_keel("iris0")
    assert not (tmp_path / "cache").exists()


def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    def fail(*paths: object) -> None:
        raise OSError("no space left")

    put_set(site, "imb_IRlowerThan9", "iris0", inner="iris0")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        load_keel("iris0")
    assert list((tmp_path / "cache" / "keel").iterdir()) == []


def test_a_server_in_trouble_is_no_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimpleHTTPRequestHandler, "send_head", lambda self: self.send_error(503))
    with pytest.raises(FileNotFoundError, match=r"could not be reached \(HTTP status 503\)"):
        load_keel("iris0")
    assert len(site.requests) == 1


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.zip"
        with pytest.raises(download.UnreachableError, match="timed out"):
            download.download_zip(url, tmp_path / "x.zip", timeout=0.1)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"QMS22_CACHE": "/a/b"}, "/a/b"),
        ("linux", {"XDG_CACHE_HOME": "/a/c"}, "/a/c/qms22"),
        ("linux", {}, "/home/me/.cache/qms22"),
        ("darwin", {}, "/home/me/Library/Caches/qms22"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/qms22"),
    ],
)
def test_the_cache_is_where_the_platform_has_it(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("QMS22_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert download.cache_directory() == Path(expected)

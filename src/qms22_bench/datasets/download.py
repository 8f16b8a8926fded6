"""Downloads that are kept, and compared with the first download by their SHA-256."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

from qms22_bench.files import write_whole

TIMEOUT = 30.0  # seconds


class NotThereError(Exception):
    """There is no such file at the address."""


class UnreachableError(Exception):
    """The server did not answer, or closed the connection early."""


def cache_directory() -> Path:
    """Return the folder for downloads: QMS22_CACHE, or qms22 in the user's cache folder."""
    chosen = os.environ.get("QMS22_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "qms22"


def is_kept(path: Path) -> bool:
    """Return whether a download is kept; raise ValueError if it has changed.

    The first download leaves its SHA-256 beside the file. A file without one is left over from an
    interrupted download and is not used.
    """
    recorded = _recorded(path)
    if recorded is None or not path.is_file():
        return False
    if _sha256(path.read_bytes()) != recorded:
        raise ValueError(
            f"{path} has changed since its download (its SHA-256 is not the one in "
            f"{_record(path).name}); delete it to download it again"
        )
    return True


def download_zip(url: str, path: Path, timeout: float = TIMEOUT) -> None:
    """Download a zip file and keep it.

    Parameters
    ----------
    url : str
    path : Path
        Where to keep it.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    NotThereError
        If there is no zip file at the address.
    UnreachableError
        If the server does not answer, or closes the connection early.
    ValueError
        If the file is not the one that was downloaded here before.
    """
    content = _get(url, timeout)
    # Some servers answer a wrong address with a web page and status 200.
    if not zipfile.is_zipfile(BytesIO(content)):
        raise NotThereError
    if not _is_sound(content):
        raise UnreachableError(f"{url} arrived damaged")
    digest = _sha256(content)
    recorded = _recorded(path)
    if recorded not in (None, digest):
        raise ValueError(
            f"{url} is not the file it was at the first download (its SHA-256 is not the one in "
            f"{_record(path)}); delete that record to accept the new file"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    write_whole(_record(path), f"{digest}  {path.name}\n".encode())


def _get(url: str, timeout: float) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            return response.read()  # type: ignore[no-any-return]
    except urllib.error.HTTPError as error:
        with error:  # closes the connection
            if error.code in (404, 410):
                raise NotThereError from error
            raise UnreachableError(f"HTTP status {error.code}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UnreachableError(str(reason) or type(error).__name__) from error


def _is_sound(content: bytes) -> bool:
    """Return whether every file of a zip can be read."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return False


def _record(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _recorded(path: Path) -> str | None:
    """Return the SHA-256 of the first download: the first word of its record."""
    record = _record(path)
    words = record.read_text("utf-8").split() if record.is_file() else []
    return words[0] if words else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

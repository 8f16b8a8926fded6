"""Atomic file writes."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Characters of a suffix, at most: a temporary name has to be short, whatever the name of the file.
_LONGEST_SUFFIX = 16


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the suffix of `path`, which gets its content after the block.

    A file is replaced by a rename, and keeps its permissions; a link stays, and the file that it
    names is replaced. What is no file, such as a named pipe or a device, is written to. If the
    block raises, the temporary file is removed and `path` is unchanged. An OSError names `path`.
    """
    temporary: Path | None = None
    try:
        mode = _mode_of(path)
        is_file = mode is None or stat.S_ISREG(mode)
        target = path.resolve() if path.is_symlink() else path
        suffix = path.suffix if len(path.suffix) <= _LONGEST_SUFFIX else ""
        folder = target.parent if is_file else Path(tempfile.gettempdir())
        # Named before it exists, so that it is removed whenever an interrupt comes.
        temporary = folder / f".qms22-{secrets.token_hex(8)}{suffix}"
        temporary.touch(0o600, exist_ok=False)
        yield temporary
        if is_file:
            # Only the owner can read the temporary file so far.
            temporary.chmod(_mode_of_new_files() if mode is None else stat.S_IMODE(mode))
            temporary.replace(target)
        else:
            with temporary.open("rb") as content, path.open("wb") as opened:
                shutil.copyfileobj(content, opened)
            temporary.unlink()
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def _mode_of(path: Path) -> int | None:
    """Return the type and the permissions of what a path names; None if there is nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _mode_of_new_files() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask

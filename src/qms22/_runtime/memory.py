"""The memory that this process may still allocate, and how much of it a file may take."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
# Not a context variable: files are also read in other threads.
_limits: list[int] = []
# Settings of glibc's allocator: what is larger goes back to the system once it is free, and threads
# share what is smaller.
_GLIBC = {-3: 1 << 17, -8: 1}


@contextmanager
def memory_limit(n_bytes: int | None) -> Iterator[None]:
    """Set the memory that a search, or reading one table, may take, in bytes.

    The default, also for None, is half of what is free. Large files are read in parts, so that they
    take less. One that would take more, and cannot be read in parts, is refused with a ValueError:
    small files can hold terabytes.

    Parameters
    ----------
    n_bytes : int or None

    Examples
    --------
    >>> from qms22.tables import memory_limit, read_table
    >>> with memory_limit(20_000_000_000):
    ...     orders = read_table("orders.xlsx")  # doctest: +SKIP
    """
    if n_bytes is None:
        yield
        return
    import pyarrow as pa  # here, as help texts do without it

    _limits.append(n_bytes)
    # Allocators keep what is free: that of Arrow, and glibc's, a hundred megabytes.
    pool = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    with suppress(OSError, AttributeError, TypeError):  # of another system
        mallopt = ctypes.CDLL(None).mallopt
        for setting, value in _GLIBC.items():
            mallopt(setting, value)
    try:
        yield
    finally:
        _limits.remove(n_bytes)
        pa.set_memory_pool(pool)


class TooLargeError(ValueError):
    """A table takes more memory than it may."""


class MemoryBudget:
    """The memory that a table may take while it is read; `name` is that of its file in messages."""

    def __init__(self, name: object) -> None:
        self._name = name
        self.limit = memory_allowed()

    def check(self, n_bytes: int, why: str = "") -> None:
        """Raise TooLargeError if the table takes so many bytes, or more, and may not."""
        if self.limit is not None and n_bytes > self.limit:
            raise TooLargeError(
                f"{self._name} takes {size_text(n_bytes)} of memory or more to read, and may take "
                f"{size_text(self.limit)}{f' ({why})' * bool(why)}; check the file, or raise the "
                "limit (memory_limit)"
            )


def size_text(n_bytes: int) -> str:
    """Return a number of bytes as text."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes} bytes"


def memory_allowed() -> int | None:
    """Return the bytes that a search may take: the limit that is set, or half of what is free."""
    if _limits:
        return _limits[-1]
    left = memory_left()
    return None if left is None else left // 2


def is_limited() -> bool:
    """Return whether a limit is set: unlike half of what is free, it must be kept."""
    return bool(_limits)


def memory_left() -> int | None:
    """Return the bytes that this process may still allocate, or None if the system does not say.

    The smallest of three: free memory of the machine, the limit of the process (``ulimit -v``) and
    the limit of its control group, such as a container.
    """
    known = [left for left in (_spare(), _of_address_space(), _of_cgroup()) if left is not None]
    return min(known, default=None)


def _spare() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def _of_address_space() -> int | None:
    try:
        import resource
    except ImportError:  # on Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        taken = 0
    return max(limit - taken, 0)


def _of_cgroup() -> int | None:
    """Return the smallest limit of the process's control group and of its parents."""
    try:
        groups = _OWN_CGROUP.read_text().splitlines()
    except OSError:
        return None
    limits = []
    for line in groups:
        _, controllers, name = line.split(":", 2)
        if not controllers:  # version 2
            root, file = _CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, file = _CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = root / name.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(root):
                limits += _numbers(folder / file)
    return min(limits, default=None)


def _numbers(path: Path) -> list[int]:
    try:
        return [int(path.read_text())]
    except (OSError, ValueError):  # no such file, or "max"
        return []

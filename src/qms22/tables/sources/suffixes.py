"""The suffixes of table files."""

from __future__ import annotations

from pathlib import Path

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
PARQUET = (".parquet", ".pq", ".parq")
ARROW = (".arrow", ".feather", ".ipc", ".arrows")
TEXT = (".csv", ".tsv", ".tab", ".txt", ".psv")
KEEL = (".arff", ".dat")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
JSON_LINES = (".jsonl", ".ndjson")
JSON = (".json", *JSON_LINES)

# The format that a suffix stands for.
FORMATS = {
    suffix: name
    for name, suffixes in {
        "Parquet": PARQUET,
        "Arrow": ARROW,
        "text": TEXT,
        "KEEL": KEEL,
        "Excel": EXCEL,
        "JSON": JSON,
    }.items()
    for suffix in suffixes
}


def split_suffix(path: Path) -> tuple[str, str]:
    """Return a file's name without suffix, and its suffix, both without that of a compression."""
    name = Path(path.name)
    if name.suffix.lower() in COMPRESSED:
        name = Path(name.stem)
    return name.stem, name.suffix.lower()

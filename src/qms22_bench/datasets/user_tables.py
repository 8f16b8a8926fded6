"""The user's own data sets: one file each, with a label column."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qms22_bench.datasets.dataset import Dataset
from qms22_bench.datasets.labeled_rows import (
    Feature,
    LabeledRows,
    complete_rows,
    is_number_column,
    missing_cells,
    read_columns,
)

if TYPE_CHECKING:
    from qms22.tables import Table

# Texts with more levels are names or free text, which would take too much memory when encoded.
MOST_TEXTS = 1000
# Files of a folder that are data sets. Those that end in .txt are mostly notes.
_SUFFIXES = (
    *(".csv", ".tsv", ".tab", ".psv", ".parquet", ".pq", ".parq"),
    *(".arrow", ".feather", ".ipc", ".arrows", ".arff", ".dat"),
)
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def load_table(
    path: str | Path,
    *,
    label: str | None = None,
    outlier: str | float | bool | None = None,
    n_folds: int = 5,
    seed: int = 0,
) -> Dataset:
    """Load a data set from a file.

    Columns of numbers are unchanged, columns with any other value are one-hot encoded in the folds.
    Rows with missing values are left out and counted.

    Parameters
    ----------
    path : str or Path
        A file of any format and compression that `qms22.tables.read_table` reads.
    label : str, optional
        Name of the label column, by default the last one, or the output of a KEEL file.
    outlier : str, float or bool, optional
        The label of outliers; all other labels are normal. By default it is guessed from pairs
        such as 1 and 0, yes and no, outlier and inlier, anomaly and normal; of -1 and 1 the
        outlier is -1, as in scikit-learn.
    n_folds : int, default=5
        Number of stratified folds to draw.
    seed : int, default=0
        Seed of the folds.

    Returns
    -------
    Dataset
        Its name is that of the file without suffix.

    Raises
    ------
    ValueError
        If the file is damaged, or the label of outliers cannot be guessed.
    ImportError
        If pandas, pyarrow or narwhals is not installed.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}; correct the path")
    from qms22.tables import open_table, outlier_labels

    source = open_table(path)
    columns = read_columns(source.read(), source.name)
    for note in source.notes:
        warnings.warn(note, stacklevel=2)
    name, labels = _pop_label(columns, label, source)
    is_outlier = outlier_labels(
        labels,
        outlier,
        f"the label column {name!r} of {path}",
        "name the label column by label=... and the outliers' value by outlier=...",
    )
    rows = complete_rows(columns, is_outlier, str(path)).parse_numbers()
    _check_levels(list(columns), rows, str(path))
    return Dataset(
        _plain_name(path).stem,
        tuple(columns),
        rows,
        origin=str(path),
        n_dropped=len(is_outlier) - len(rows),
        n_folds=n_folds,
        seed=seed,
    )


def load_folder(
    path: str | Path,
    *,
    label: str | None = None,
    outlier: str | float | bool | None = None,
    n_folds: int = 5,
    seed: int = 0,
) -> list[Dataset]:
    """Load every data file of a folder, each as a data set.

    Parameters
    ----------
    path : str or Path
        Its files with the suffix of a table are loaded, except .txt; other files and folders are
        not.
    label, outlier, n_folds, seed
        As in `load_table`, the same for all files.

    Returns
    -------
    list of Dataset
        In the order of the file names.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(folder)!r}; correct the path, or use load_table for a file"
        )
    files = [file for file in sorted(folder.iterdir()) if _plain_name(file).suffix in _SUFFIXES]
    if not files:
        raise ValueError(
            f"the folder {folder} has no {', '.join(_SUFFIXES)} file; put the data sets there"
        )
    return [
        load_table(file, label=label, outlier=outlier, n_folds=n_folds, seed=seed) for file in files
    ]


def _plain_name(path: Path) -> Path:
    """Return the name of a file without the suffix of a compression."""
    return Path(path.stem if path.suffix.lower() in _COMPRESSED else path.name)


def _pop_label(
    columns: dict[str, Feature], label: str | None, source: Table
) -> tuple[str, Feature]:
    """Remove the label column; return it and its name; raise ValueError if it has gaps."""
    if len(columns) < 2:
        raise ValueError(
            f"{source.name} has {len(columns)} columns; it needs a label column and at least one "
            "other (separated by commas, semicolons or tabs in a CSV file)"
        )
    name = label or source.label or list(columns)[-1]
    if name not in columns:
        raise ValueError(
            f"{source.name} has no column {name!r} for the label; its columns are "
            f"{', '.join(columns)}"
        )
    labels = columns.pop(name)
    missing = np.flatnonzero(missing_cells(labels))
    if missing.size:
        raise ValueError(
            f"{source.place(int(missing[0]))}: the label column {name!r} has no value there, nor "
            f"in {missing.size - 1} other rows; fill them in or remove the rows"
        )
    return name, labels


def _check_levels(features: list[str], rows: LabeledRows, path: str) -> None:
    for feature, column in zip(features, rows.columns, strict=True):
        if is_number_column(column):
            continue
        levels = np.unique(column)
        if len(levels) > MOST_TEXTS:
            raise ValueError(
                f"column {feature!r} of {path} holds {len(levels)} different texts (such as "
                f"{levels[0]!r}), more than the {MOST_TEXTS} that are encoded; group them or "
                "remove the column"
            )

"""Data sets of the user's own: one file each, with a column that tells the outliers."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22.datasets.dataset import Dataset
from qms22.tables.columns import Column, Rows, Table, is_number_column, text_column
from qms22.tables.keel_format import decode_text, read_dat
from qms22.tables.labels import is_number_text, outlier_rows

# More levels than this are names or free text, not categories; encoding them would fill the memory.
MOST_LEVELS = 1000


def load_table(
    path: str | Path,
    *,
    label: str | None = None,
    outlier: str | float | bool | None = None,
    n_folds: int = 5,
    seed: int = 0,
) -> Dataset:
    """Load a data set from a file.

    Columns of numbers stay as they are, columns with any other value are one-hot encoded in the
    folds. Rows with missing values are left out and counted.

    Parameters
    ----------
    path : str or Path
        A .csv file with a header (separated by commas, semicolons or tabs), or a .parquet, .arff
        or KEEL .dat file; each may be compressed and end in .gz. A first column of a .csv file
        that has no name is taken for row numbers and left out.
    label : str, optional
        Name of the label column, by default the last (in a KEEL file: its output).
    outlier : str, float or bool, optional
        The label of outliers; all other labels are normal. By default it is guessed from pairs
        such as 1 and 0, yes and no, outlier and inlier, anomaly and normal; of -1 and 1 the
        outlier is -1, as in scikit-learn.
    n_folds : int, default=5
        How many stratified folds to draw.
    seed : int, default=0
        Shuffles the rows for that.

    Returns
    -------
    Dataset
        Named like the file, without its ending.

    Raises
    ------
    ValueError
        If the file is damaged, or its outliers cannot be told.
    ImportError
        If pandas (for .csv and .parquet) or pyarrow (for .parquet) is not installed.
    """
    path = Path(path).expanduser()
    name, suffix = _split_name(path)
    if suffix not in _READERS:
        raise ValueError(f"{path} ends in {suffix or 'nothing'!r}; give a {_ENDINGS} file")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}; correct the path")
    table = _READERS[suffix](_read(path), str(path))
    if label is not None:
        table = _with_label(table, label)
    complete = table.rows(outlier_rows(table, outlier))
    rows = complete.settle()
    _check_levels(table, rows)
    return Dataset(
        name,
        table.features,
        rows,
        origin=str(path),
        n_dropped=len(table.labels) - len(rows),
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
        Its files that `load_table` can read are loaded, others and folders in it are not.
    label : str, optional
        As in `load_table`, for all files.
    outlier : str, float or bool, optional
        As in `load_table`, for all files.
    n_folds : int, default=5
        As in `load_table`.
    seed : int, default=0
        As in `load_table`.

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
    files = [file for file in sorted(folder.iterdir()) if _split_name(file)[1] in _READERS]
    if not files:
        raise ValueError(f"the folder {folder} has no {_ENDINGS} file; put the data sets there")
    return [
        load_table(file, label=label, outlier=outlier, n_folds=n_folds, seed=seed) for file in files
    ]


def _split_name(path: Path) -> tuple[str, str]:
    """Give a file's name and its ending, both without any .gz."""
    inner = Path(path.name[:-3]) if path.name.lower().endswith(".gz") else Path(path.name)
    return inner.stem, inner.suffix.lower()


def _read(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise ValueError(
            f"{path} cannot be decompressed ({error}); the file looks truncated, get it anew"
        ) from error


def _read_csv(content: bytes, path: str) -> Table:
    text = decode_text(content)
    first = text.lstrip("\n").split("\n", 1)[0]
    separator = next((mark for mark in ",;\t" if mark in first), ",")
    try:
        frame = _pandas(path).read_csv(
            StringIO(text), sep=separator, skipinitialspace=True, low_memory=False
        )
    except ValueError as error:  # pandas' own errors are of this kind
        reason = str(error).strip()
        raise ValueError(f"{path} cannot be read as CSV ({reason}); correct the file") from error
    if re.match(r'\s*("")?\s*[,;\t]', first):
        frame = frame.iloc[:, 1:]
    if _is_row(first.split(separator)):
        raise ValueError(
            f"{path} starts with numbers ({first[:40]}) in place of column names; add a first line "
            "with names"
        )
    return _from_frame(frame, path)


def _is_row(cells: list[str]) -> bool:
    """Whether a first line holds numbers; 0, 1, 2, … are the names that pandas gives."""
    texts = [cell.strip(' "') for cell in cells]
    return all(map(is_number_text, texts)) and texts != [str(at) for at in range(len(texts))]


def _read_parquet(content: bytes, path: str) -> Table:
    pandas = _pandas(path)
    try:
        frame = pandas.read_parquet(BytesIO(content))
    except ImportError as error:
        raise ImportError(_needs(path, "pyarrow")) from error
    except (ValueError, OSError) as error:  # pyarrow's own errors are of these kinds
        reason = str(error).strip()
        raise ValueError(f"{path} cannot be read as Parquet ({reason}); get it anew") from error
    return _from_frame(frame, path)


def _from_frame(frame: Any, path: str) -> Table:
    names = tuple(str(name) for name in frame.columns)
    if len(names) < 2 or not len(frame):
        raise ValueError(
            f"{path} has {len(frame)} rows of {len(names)} columns; it needs rows, a label column "
            "and at least one other (separated by commas, semicolons or tabs in a CSV file)"
        )
    columns = tuple(_from_series(frame.iloc[:, at], path) for at in range(len(names)))
    return Table(path, names, columns, names[-1])


def _from_series(series: Any, path: str) -> Column:
    if series.dtype.kind not in "biuf":
        texts = series.astype(object).where(series.notna(), "")
        return text_column([str(value) for value in texts])
    numbers: NDArray[np.float64] = series.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        raise ValueError(
            f"column {series.name!r} of {path} has {infinite.size} infinite values (first at row "
            f"{infinite[0]}); correct or remove them"
        )
    return numbers


def _pandas(path: str) -> ModuleType:
    # Only those who read such files need pandas, and nobody else should wait for it.
    try:
        import pandas
    except ImportError as error:
        raise ImportError(_needs(path, "pandas")) from error
    return pandas  # type: ignore[no-any-return]


def _needs(path: str, package: str) -> str:
    return f"{path} is read with {package}, which is not installed; run pip install 'qms22[bench]'"


def _check_levels(table: Table, rows: Rows) -> None:
    for feature, column in zip(table.features, rows.columns, strict=True):
        if is_number_column(column):
            continue
        levels = np.unique(column)
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"column {feature!r} of {table.path} holds {len(levels)} different texts (such as "
                f"{levels[0]!r}), more than the {MOST_LEVELS} that are encoded; group them or "
                "remove the column"
            )


def _with_label(table: Table, label: str) -> Table:
    if label not in table.names:
        raise ValueError(
            f"{table.path} has no column {label!r} for the label; its columns are "
            f"{', '.join(table.names)}"
        )
    return replace(table, label=label)


_READERS: dict[str, Callable[[bytes, str], Table]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".arff": read_dat,
    ".dat": read_dat,
}
_ENDINGS = ", ".join(_READERS) + " (or .gz of these)"

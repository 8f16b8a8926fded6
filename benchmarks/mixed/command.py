"""The command `qms22 detect` on files: which rows it ranks first, and which columns it names."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

from mixed.anomalies import Injected
from qms22.cli import main

NAME = "qms22 detect"

# How the reason of a repeated row begins.
_REPEATED = "the same row occurs"


@dataclass(frozen=True)
class Ranked:
    """What a file of results says, in the order of the batch.

    Parameters
    ----------
    scores : ndarray
        Minus the rank.
    reasons : list of str
        All reasons of a row in one text; empty if the row is not flagged.
    """

    scores: np.ndarray
    reasons: list[str]


def run_command(
    normal: pd.DataFrame, batch: pd.DataFrame, folder: Path, *, in_process: bool = True
) -> Ranked:
    """Write tables as CSV, run the command on them with its defaults, and read what it wrote.

    Parameters
    ----------
    normal, batch : DataFrame
    folder : Path
        Where the files are put.
    in_process : bool
        Whether the command runs in this process, which saves the time of imports, or is the
        installed script. It uses one thread, as batches run side by side; results are the same.
    """
    files = [str(folder / name) for name in ("normal.csv", "batch.csv", "out.csv")]
    normal.to_csv(files[0], index=False)
    batch.to_csv(files[1], index=False)
    arguments = ["detect", *files[:2], "-o", files[2], "--n-jobs", "1"]
    if in_process:
        CliRunner().invoke(main, arguments, catch_exceptions=False)
    else:
        script = Path(sys.executable).with_name("qms22")
        subprocess.run([script, *arguments], check=True, capture_output=True)
    found = pd.read_csv(files[2], usecols=["rank", "row", "reasons"]).sort_values("row")
    return Ranked(-found["rank"].to_numpy(dtype=float), found["reasons"].fillna("").to_list())


def share_named(injected: Injected, ranked: Ranked, kind: str) -> tuple[float, float]:
    """Compute in how many of the anomalies among the top k the first reason is right.

    Returns
    -------
    named_first, named : float
        Where the first reason begins with a changed cell, and where it has one anywhere: "tax 19
        where country suggests 21" is right about a changed country only in the second sense. Of
        repeated rows the reason has to be that they are repeated. NaN if no anomaly was found.
    """
    columns = injected.batch.columns.to_list()
    top = np.argsort(-ranked.scores)[: int(injected.is_anomaly.sum())]
    found = top[injected.is_anomaly[top]]
    if not len(found):
        return np.nan, np.nan
    first, anywhere = [], []
    for row in found.tolist():
        names = named_columns(ranked.reasons[row], columns)
        if kind == "repeated rows":
            first.append(ranked.reasons[row].startswith(_REPEATED))
            anywhere.append(_REPEATED in ranked.reasons[row])
            continue
        is_right = [bool(injected.is_changed[row, columns.index(name)]) for name in names]
        first.append(is_right[:1] == [True])
        anywhere.append(any(is_right))
    return float(np.mean(first)), float(np.mean(anywhere))


def named_columns(text: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that the first of the reasons of a row names, in their order.

    Reasons are separated by semicolons and begin with a column; there are semicolons inside, too.

    Examples
    --------
    >>> named_columns("size 7; none is above 3 or a; a 2 where b suggests 4", ["a", "b", "size"])
    ['size', 'a']
    """
    column = "|".join(re.escape(name) for name in sorted(columns, key=len, reverse=True))
    first = re.split(rf"; (?=(?:{column})\b)", text)[0]
    return [str(name) for name in re.findall(rf"(?<!\w)(?:{column})(?!\w)", first)]

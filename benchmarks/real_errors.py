"""Search pairs of tables with real errors, whose wrong rows are known, and compare what was found.

    python benchmarks/real_errors.py FOLDER --output benchmarks/results

Each folder in FOLDER has `normal.csv`, `batch.csv` and `truth.csv`: the wrong rows of the batch by
number, and their wrong columns, separated by semicolons, where these are known. The tables are
those of others, and no part of this project. kNN and Isolation Forest see the rows as
`TabularEncoder` encodes them.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import click
import numpy as np
import pandas as pd
from fdr_sets import n_jobs_option
from joblib import Parallel, delayed
from reporting import console, output_option, write_csv
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

import qms22
from qms22 import Detection, TabularEncoder

# The parts of a date, as the encoder calls them: "sold (days)".
_PART = re.compile(r" \([^()]*\)$")


def search(place: Path) -> dict[str, object]:
    """Search a pair and return measures of what was found."""
    texts = {"dtype": str, "keep_default_na": False}
    batch, truth = (pd.read_csv(place / f"{name}.csv", **texts) for name in ("batch", "truth"))
    is_wrong = np.zeros(len(batch), dtype=bool)
    is_wrong[truth["row"].astype(int)] = True
    wrong = {
        int(row): set(names.split(";")) - {""} for row, names in truth[["row", "columns"]].values
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = qms22.detect(place / "normal.csv", place / "batch.csv", n_jobs=1)
        top = qms22.detect(
            place / "normal.csv", place / "batch.csv", k=int(is_wrong.sum()), n_jobs=1
        )
        rivals = score_by_rivals(place)
    scores = np.nan_to_num(found.scores, nan=-np.inf)
    lowest = scores[np.isfinite(scores)].min() - 1
    named = [_names(top, row, names) for row, names in wrong.items() if names and top.flagged[row]]
    n_false = int(np.count_nonzero(found.flagged & ~is_wrong))
    return {
        "pair": place.name,
        "wrong": int(is_wrong.sum()),
        "average_precision": average_precision_score(is_wrong, np.maximum(scores, lowest)),
        "named": np.mean(named) if named else np.nan,
        "flagged": int(found.flagged.sum()),
        "false_discoveries": n_false / max(int(found.flagged.sum()), 1),
        "power": float(found.flagged[is_wrong].mean()),
        **{name: average_precision_score(is_wrong, of_rival) for name, of_rival in rivals.items()},
    }


def _names(found: Detection, row: int, wrong: set[str]) -> bool:
    """Whether the first reason of a row names a wrong column."""
    first = found.reasons.get(row, [])[:1]
    return any(
        name in wrong or _PART.sub("", name) in wrong for each in first for name in each.columns
    )


def score_by_rivals(place: Path) -> dict[str, np.ndarray]:
    """Score the batch by detectors that know the normal rows only."""
    normal, batch = (pd.read_csv(place / f"{name}.csv") for name in ("normal", "batch"))
    encoder = TabularEncoder().fit(normal)
    known, rows = encoder.transform(normal), encoder.transform(batch)
    scaler = StandardScaler().fit(known)
    known, rows = scaler.transform(known), scaler.transform(rows)
    forest = IsolationForest(n_estimators=200, random_state=0).fit(known)
    near = NearestNeighbors(n_neighbors=5).fit(known)
    return {
        "kNN": near.kneighbors(rows)[0].mean(axis=1),
        "Isolation Forest": -forest.score_samples(rows),
    }


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@n_jobs_option
@output_option("real_errors.csv")
def main(folder: Path, n_jobs: int, output: Path) -> None:
    """Search, print and write."""
    places = sorted(path.parent for path in folder.glob("*/truth.csv"))
    results = pd.DataFrame(Parallel(n_jobs=n_jobs)(delayed(search)(place) for place in places))
    means = results.mean(numeric_only=True)
    console.print(", ".join(f"{name} {value:.3f}" for name, value in means.items()))
    rows = results.round(4).itertuples(index=False)
    write_csv(output / "real_errors.csv", results.columns, rows)


if __name__ == "__main__":
    main()

"""Measure whether `qms22.detect(..., fdr=0.1)` keeps its bound on tables with categories.

Normal rows and batches come from the same law: two normal columns, and categories of 1,000 levels
whose frequencies follow a power law, so that some rows of every batch have a level that no
known-normal row has. An encoder that learns from the known-normal rows alone breaks the bound here.

    python benchmarks/promise.py

Writes benchmarks/results/promise.csv: the mean share of false flags, its standard error, the share
of runs with any flag, and the share of outliers found.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import qms22
from qms22 import QMS22Ensemble, TabularEncoder

N_LEVELS = 1000
N_NORMAL, N_BATCH = 3000, 300


@dataclass(frozen=True)
class Case:
    """A law of tables.

    Parameters
    ----------
    name : str
    n_categories : int
    exponent : float
        The k-th level is as frequent as k to the power of minus this.
    n_outliers : int
        Rows of the batch whose numbers are shifted.
    shift : float
        By so many standard deviations.
    is_encoded_alone : bool
        Whether an encoder learns from the known-normal rows alone: the mistake that
        `qms22.detect` avoids.
    """

    name: str
    n_categories: int = 1
    exponent: float = 2.0
    n_outliers: int = 0
    shift: float = 5.0
    is_encoded_alone: bool = False

    def draw(self, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw normal rows."""
        weights = np.arange(1, N_LEVELS + 1) ** -self.exponent
        table = pd.DataFrame({name: rng.normal(size=n_rows) for name in ("x", "y")})
        for number in range(self.n_categories):
            levels = rng.choice(N_LEVELS, size=n_rows, p=weights / weights.sum())
            table[f"category {number}"] = [f"level {level}" for level in levels]
        return table


CASES = (
    Case("one category"),
    Case("two categories", n_categories=2),
    Case("exponent 1.8", exponent=1.8),
    Case("5 % outliers", n_outliers=15),
    Case("5 % far outliers", n_outliers=15, shift=20.0),
    Case("one category, encoded by known-normal rows", is_encoded_alone=True),
)


def run(
    case: Case, seed: int, level: float, n_normal: int = N_NORMAL, n_batch: int = N_BATCH
) -> dict[str, float]:
    """Search one batch."""
    rng = np.random.default_rng(seed)
    normal, batch = case.draw(n_normal, rng), case.draw(n_batch, rng)
    is_outlier = np.arange(n_batch) < case.n_outliers
    batch.loc[is_outlier, ["x", "y"]] += case.shift
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is flagged is an answer here
        if case.is_encoded_alone:
            encoder = TabularEncoder().fit(normal)
            detector = QMS22Ensemble(contamination=1, random_state=seed)
            detector.fit(encoder.transform(normal), unlabeled=encoder.transform(batch))
            flagged = detector.flag(level)
        else:
            flagged = qms22.detect(normal, batch, fdr=level, seed=seed, n_jobs=1).flagged
    return {
        "false share": (flagged & ~is_outlier).sum() / max(1, flagged.sum()),
        "any flag": float(flagged.any()),
        "found": float(flagged[is_outlier].mean()) if case.n_outliers else np.nan,
    }


@click.command()
@click.option("--runs", default=200, show_default=True, help="Batches of each case.")
@click.option("--level", default=0.1, show_default=True, help="False discovery rate.")
@click.option("--n-jobs", default=-1, show_default=True, help="Processes.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("benchmarks/results/promise.csv"),
    show_default=True,
)
def main(runs: int, level: float, n_jobs: int, output: Path) -> None:
    """Measure the false discovery rate; takes about ten minutes on two cores."""
    rows = []
    for case in CASES:
        found = pd.DataFrame(
            Parallel(n_jobs=n_jobs)(delayed(run)(case, seed, level) for seed in range(runs))
        )
        error = found["false share"].std() / np.sqrt(runs)
        rows.append(
            {
                "case": case.name,
                "runs": runs,
                "level": level,
                "false discovery rate": found["false share"].mean(),
                "standard error": error,
                "runs with a flag": found["any flag"].mean(),
                "outliers found": found["found"].mean(),
                "kept": bool(found["false share"].mean() <= level + 2 * error),
            }
        )
        click.echo("  ".join(f"{name}: {value}" for name, value in rows[-1].items()))
    pd.DataFrame(rows).to_csv(output, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()

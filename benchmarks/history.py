"""Measure what it does to the promises that accepted batches become known-normal rows.

    python benchmarks/history.py

Twenty clean batches of 150 rows are searched one after the other with 300 known-normal rows, at a
false discovery rate of 0.1, and accepted if the verdict is fine and no row is flagged. Then new
batches are searched, clean ones and such with 4 % outliers, with three tables of known-normal rows:

- "none": the 300 rows alone;
- "accepted": with the accepted batches. They were chosen by a verdict on themselves, and lack the
  batches whose extreme rows raised an alarm or a flag;
- "all": with all twenty batches, as if nobody had looked. Here the proofs hold.

A clean batch may have an alarm with a probability of 0.05, and a flag with one of 0.1.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import qms22

N_NORMAL, N_BATCH, N_ACCEPTED, N_OUTLIERS = 300, 150, 20, 6
LEVEL = 0.1


def draw(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw normal rows with long tails, whose extremes are what alarms and flags rest on."""
    base = rng.standard_t(3, size=(n_rows, 4))
    return pd.DataFrame(
        {
            "amount": np.exp(3 + 0.8 * rng.normal(size=n_rows)),
            "a": base[:, 0],
            "b": base[:, 0] + base[:, 1],
            "c": base[:, 2],
            "d": rng.integers(1, 9, n_rows),
            "country": rng.choice(["US", "DE", "FR", "IT"], n_rows, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )


def with_outliers(batch: pd.DataFrame) -> pd.DataFrame:
    """Move the first rows of a batch away from the normal ones."""
    moved = batch.copy()
    moved.loc[: N_OUTLIERS - 1, ["a", "c"]] += [9.0, -9.0]
    return moved


def run(seed: int, n_new: int) -> list[dict[str, object]]:
    """Accept batches in a row, then search new ones."""
    rng = np.random.default_rng(seed)
    normal = draw(N_NORMAL, rng)
    past = [draw(N_BATCH, rng) for _ in range(N_ACCEPTED)]
    rows: list[dict[str, object]] = []
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is flagged, or accepted, is an answer here
        path = Path(folder, "history.sqlite")
        for at, batch in enumerate(past):
            qms22.detect(normal, batch, fdr=LEVEL, seed=at, n_jobs=1, history=path, accept=True)
        accepted = [bool(entry.accepted) for entry in qms22.BatchHistory(path).entries()]
        chosen = [batch for batch, is_chosen in zip(past, accepted, strict=True) if is_chosen]
        known = {
            "none": normal,
            "accepted": pd.concat([normal, *chosen], ignore_index=True),
            "all": pd.concat([normal, *past], ignore_index=True),
        }
        for at in range(n_new):
            batch = draw(N_BATCH, rng)
            for n_outliers, searched in ((0, batch), (N_OUTLIERS, with_outliers(batch))):
                for name, table in known.items():
                    found = qms22.detect(table, searched, fdr=LEVEL, seed=at, n_jobs=1)
                    assert found.verdict is not None
                    flagged, is_outlier = found.flagged, np.arange(N_BATCH) < n_outliers
                    rows.append(
                        {
                            "seed": seed,
                            "known-normal": name,
                            "outliers": n_outliers,
                            "accepted batches": sum(accepted),
                            "alarm": found.verdict.decision != "fine",
                            "any flag": bool(flagged.any()),
                            "false share": (flagged & ~is_outlier).sum() / max(1, flagged.sum()),
                            "found": flagged[is_outlier].mean() if n_outliers else np.nan,
                        }
                    )
    return rows


@click.command()
@click.option("--runs", default=60, show_default=True, help="Rows of batches.")
@click.option("--new", default=4, show_default=True, help="Batches searched after each row.")
@click.option("--n-jobs", default=-1, show_default=True, help="Processes.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("benchmarks/results/history.csv"),
    show_default=True,
)
def main(runs: int, new: int, n_jobs: int, output: Path) -> None:
    """Measure alarms and flags after batches were accepted."""
    parts = Parallel(n_jobs=n_jobs)(delayed(run)(seed, new) for seed in range(runs))
    table = pd.DataFrame([row for part in parts for row in part])
    groups = table.groupby(["outliers", "known-normal"], sort=False)
    # Batches of one run share their known-normal rows: the error is that of the means of runs.
    means = table.groupby(["outliers", "known-normal", "seed"], sort=False)
    errors = means[["alarm", "any flag", "false share"]].mean()
    errors = errors.groupby(["outliers", "known-normal"], sort=False).std() / np.sqrt(runs)
    summary = groups[["accepted batches", "alarm", "any flag", "false share", "found"]].mean()
    summary = summary.join(errors.add_suffix(" error")).reset_index()
    click.echo(summary.to_string(index=False, float_format="%.3f"))
    summary.to_csv(output, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()

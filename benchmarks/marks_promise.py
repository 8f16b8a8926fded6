"""Check what marks do to the p-values of normal rows, with and without a proof.

    python benchmarks/marks_promise.py --output benchmarks/results

Batches of 30 normal rows are searched with 99 known-normal ones: a normal row may get a p-value of
at most 3 and 10 % with just that probability, and in a share of the batches as large as the level,
0.2, some row may be flagged. Before that, the six most suspicious rows of a batch were looked at
and marked, all of them rightly as normal, all wrongly as outliers, or three each. It was

- "other X": an earlier batch, searched with other known-normal rows. Here a proof holds;
- "same X": an earlier batch, searched with the same known-normal rows;
- "same batch": this batch; the rows that were looked at have left it.

"known-normal": six outliers are among the known-normal rows and as many in the batch. The nine most
suspicious known-normal rows were looked at; the outliers among them leave and are learned from as
such ("right"), or all nine do ("wrong": rows leave for their scores alone).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from reporting import console, output_option, write_csv

from qms22 import QMS22Ensemble

N_KNOWN, N_BATCH, N_LOOKED = 99, 30, 6
LEVEL = 0.2
N_PLANTED, N_CHECKED, SHIFT = 6, 9, 2.0
CHOSEN = ("other X", "same X", "same batch")
LOW = (0.03, 0.1)


def make_detector(seed: int) -> QMS22Ensemble:
    return QMS22Ensemble(
        n_splits=2, n_members=3, n_components=2, max_iter=5, contamination=1, random_state=seed
    )


def run(chosen: str, seed: int) -> list[dict[str, object]]:
    """Mark rows, and compute the p-values of a batch of normal rows."""
    rng = np.random.RandomState(seed)
    known, other = rng.normal(size=(2, N_KNOWN, 2))
    batch, earlier = rng.normal(size=(2, N_BATCH, 2))
    detector = make_detector(seed)
    looked_in = batch if chosen == "same batch" else earlier
    detector.fit(other if chosen == "other X" else known, unlabeled=looked_in)
    top = detector.top_k(N_LOOKED)
    rest = np.delete(batch, top, axis=0) if chosen == "same batch" else batch
    rows = looked_in[top]
    marks: dict[str, dict[str, Any]] = {
        "right": {"marked_normal": rows},
        "wrong": {"outliers": rows},
        "half": {"outliers": rows[::2], "marked_normal": rows[1::2]},
    }
    found: list[dict[str, object]] = []
    for kind, given in marks.items():
        detector.fit(known, unlabeled=rest, **given)
        about = {"chosen": chosen, "marks": kind}
        found.append(about | describe(detector, len(rest)))
    return found


def run_known_normal(seed: int) -> list[dict[str, object]]:
    """Mark known-normal rows, and compute the p-values of the normal rows of a batch."""
    rng = np.random.RandomState(seed)
    known = rng.normal(size=(N_KNOWN, 2))
    batch = rng.normal(size=(N_BATCH + N_PLANTED, 2))
    known[:N_PLANTED] += SHIFT
    batch[N_BATCH:] += SHIFT
    detector = make_detector(seed)
    looked_at = detector.fit(known, unlabeled=batch).suspicious_normal(N_CHECKED)
    found: list[dict[str, object]] = []
    for kind, marked in (("right", looked_at[looked_at < N_PLANTED]), ("wrong", looked_at)):
        rest = np.delete(known, marked, axis=0)
        detector.fit(rest, unlabeled=batch, outliers=known[marked])
        about = {"chosen": "known-normal", "marks": kind}
        found.append(about | describe(detector, N_BATCH))
    return found


def describe(detector: QMS22Ensemble, n_normal: int) -> dict[str, object]:
    """Return how low p-values of the normal rows are, the first ones, and the share of false flags.

    In a batch without outliers this share is 1 if some row is flagged.
    """
    p_values = detector.p_values()[:n_normal]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is flagged, or that columns moved
        flagged = detector.flag(LEVEL)
    return {
        "p": p_values.mean(),
        **{f"p_at_most_{share:g}": np.mean(p_values <= share) for share in LOW},
        "false_share": flagged[:n_normal].sum() / max(1, flagged.sum()),
    }


@click.command()
@click.option("--runs", default=400, show_default=True, help="Batches of each kind.")
@click.option("--n-jobs", default=-1, show_default=True, help="Parallel processes.")
@output_option("marks_promise.csv")
def main(runs: int, n_jobs: int, output: Path) -> None:
    """Simulate marks; takes about two minutes on 16 cores."""
    calls = [delayed(run)(chosen, seed) for seed in range(runs) for chosen in CHOSEN]
    calls += [delayed(run_known_normal)(seed) for seed in range(runs)]
    found = Parallel(n_jobs)(calls)
    table = pd.DataFrame([row for rows in found for row in rows])
    groups = table.groupby(["chosen", "marks"], sort=False)
    means, errors = groups.mean(), groups.sem()
    summary = means.join(errors, rsuffix="_error")
    summary.insert(0, "runs", groups.size())
    rounded = summary.round(4).reset_index()
    write_csv(output / "marks_promise.csv", rounded.columns, rounded.itertuples(index=False))
    console.print(rounded.to_string(index=False))
    console.print(f"allowed: shares of {LOW}, and a share of false flags of {LEVEL:g}")


if __name__ == "__main__":
    main()

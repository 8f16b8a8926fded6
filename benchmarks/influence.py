"""Measure how far one row's label moves the decisions: the stability terms of docs/promises.md.

A normal row j of a batch and the known-normal rows T make n + 1 rows. In the world of each of these
rows it is the one in the batch, and all others are known to be normal. The detector is fitted in
every world, with the same random numbers. The proof of the false discovery rate needs

- R, the number of rows flagged in a world: the ratio of the largest to the smallest;
- N(q), the number of rows whose rank, in their own world, is at most q: by how much it exceeds q
  where rows are flagged;
- m0, the estimated number of normal rows: the ratio of the largest to the smallest.

    python benchmarks/influence.py --output benchmarks/results
"""

from __future__ import annotations

import warnings
from pathlib import Path

import click
import numpy as np
import pandas as pd
from fdr_sets import Labeled, made_datasets, n_jobs_option
from joblib import Parallel, delayed
from reporting import console, output_option, write_csv

from qms22 import QMS22Ensemble
from qms22.decisions.ruler import highest_flagged_rank, share_of_normal

N_KNOWN, N_NORMAL, N_OUTLIERS = 150, 60, 15
LEVEL = 0.1


def measure(name: str, labeled: Labeled, seed: int) -> dict[str, object]:
    """Fit the detector in all worlds of one batch, and compute the terms and the bound."""
    rows, is_outlier = labeled
    rng = np.random.RandomState(seed)
    normal = rows[rng.permutation(np.flatnonzero(~is_outlier))[: N_KNOWN + N_NORMAL]]
    outliers = rows[rng.permutation(np.flatnonzero(is_outlier))[:N_OUTLIERS]]
    exchanged, others = normal[: N_KNOWN + 1], normal[N_KNOWN + 1 :]
    n_flagged, ranks, shares, is_flagged = [], [], [], []
    for world in range(len(exchanged)):
        known = np.delete(exchanged, world, axis=0)
        batch = np.concatenate([exchanged[[world]], others, outliers])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detector = QMS22Ensemble(random_state=seed, contamination=1).fit(known, unlabeled=batch)
        last = highest_flagged_rank(detector._compared.counts, LEVEL)
        n_flagged.append(np.count_nonzero(detector._compared.ranks <= last))
        ranks.append(int(detector._compared.ranks[0]) + 1)
        shares.append(share_of_normal(detector._compared.counts))
        is_flagged.append(detector._compared.ranks[0] <= last)
    flagged = np.maximum(n_flagged, 1)
    lines = LEVEL * len(exchanged) * flagged / (len(batch) * np.array(shares))
    q = max(1.0, lines.max())
    n_low = np.count_nonzero(np.array(ranks) <= q)
    # What the proof bounds: the part that row j has in the false discovery rate, times m.
    part = len(batch) * float(np.mean(np.array(is_flagged) / flagged))
    return {
        "dataset": name,
        "seed": seed,
        "flagged": float(np.mean(n_flagged)),
        "ratio_flagged": flagged.max() / flagged.min(),
        "ranks_above": max(0.0, n_low / q - 1.0),
        "ratio_share": max(shares) / min(shares),
        "part": part,
    }


@click.command()
@n_jobs_option
@click.option("--repeats", default=2, show_default=True, help="Batches of each set.")
@output_option("influence.csv")
def main(n_jobs: int, repeats: int, output: Path) -> None:
    """Measure, print and write."""
    sets = made_datasets()
    jobs = [(name, sets[name], seed) for seed in range(repeats) for name in sets]
    results = pd.DataFrame(Parallel(n_jobs=n_jobs)(delayed(measure)(*job) for job in jobs))
    console.print(results.round(3).to_string(index=False))
    console.print(results.mean(numeric_only=True).round(3).to_string())
    write_csv(output / "influence.csv", results.columns, results.itertuples(index=False))


if __name__ == "__main__":
    main()

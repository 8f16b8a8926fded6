"""Compare our BRM with the authors' package `brminer`: time, and scores up to the random draws.

    python benchmarks/brm.py --sizes 500 1000 2000 --output brm.csv

Both fit the same normal rows and score the same batch, once per seed. The mean scores over the
seeds may differ only by the random draws of the bags: `difference` is the root mean square, over
the rows, of the difference of the two means, and `noise` is its expected value if both draw from
the same distribution.
"""

from __future__ import annotations

import argparse
import csv
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import import_module, util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qms22_bench.rivals import BRM

Rows = NDArray[np.float64]
Scorer = Callable[[Rows, Rows, int], Rows]


@dataclass(frozen=True)
class Line:
    """One line of the table; NaN where `brminer` is not installed."""

    n_normal: int
    n_features: int
    n_unlabeled: int
    seconds: float
    brminer_seconds: float
    ratio: float
    difference: float
    noise: float
    largest_difference: float


def score_ours(normal: Rows, unlabeled: Rows, seed: int) -> Rows:
    return BRM(random_state=seed).fit(normal).score_samples(unlabeled)


def score_brminer(normal: Rows, unlabeled: Rows, seed: int) -> Rows:
    random.seed(seed)  # the package draws from Python's global generator
    detector = import_module("brminer").BRM()
    detector.fit(normal, np.ones(len(normal)))
    return (np.asarray(detector.score_samples(unlabeled)) + 1) / 2


def measure(scorer: Scorer, normal: Rows, unlabeled: Rows, n_seeds: int) -> tuple[float, Rows]:
    """Return the least seconds of a fit with its scores, and the scores of every seed."""
    seconds, scores = [], []
    for seed in range(n_seeds):
        start = time.perf_counter()
        scores.append(scorer(normal, unlabeled, seed))
        seconds.append(time.perf_counter() - start)
    return min(seconds), np.array(scores)


def compare(n_normal: int, n_features: int, n_seeds: int) -> Line:
    """Measure both on one synthetic task: correlated Gaussians and a batch a quarter as large."""
    rng = np.random.default_rng(n_normal)
    mixing = rng.normal(size=(n_features, n_features))
    normal = rng.normal(size=(n_normal, n_features)) @ mixing
    unlabeled = 1.5 * rng.normal(size=(max(1, n_normal // 4), n_features)) @ mixing
    score_ours(normal[:100], unlabeled, 0)  # imports and thread pools are not timed
    seconds, ours = measure(score_ours, normal, unlabeled, n_seeds)
    theirs_seconds, theirs = float("nan"), np.full_like(ours, np.nan)
    if util.find_spec("brminer") is not None:
        theirs_seconds, theirs = measure(score_brminer, normal, unlabeled, n_seeds)
    gap = ours.mean(axis=0) - theirs.mean(axis=0)
    variance = (ours.var(axis=0, ddof=1) + theirs.var(axis=0, ddof=1)) / n_seeds
    return Line(
        n_normal=n_normal,
        n_features=n_features,
        n_unlabeled=len(unlabeled),
        seconds=seconds,
        brminer_seconds=theirs_seconds,
        ratio=theirs_seconds / seconds,
        difference=float(np.sqrt(np.mean(gap**2))),
        noise=float(np.sqrt(np.mean(variance))),
        largest_difference=float(np.abs(gap).max()),
    )


def write_csv(results: Sequence[Line], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows(asdict(result) for result in results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000], metavar="N")
    parser.add_argument("--features", type=int, default=8, metavar="P")
    parser.add_argument("--seeds", type=int, default=3, metavar="K", help="at least 2")
    parser.add_argument("--output", type=Path, metavar="CSV")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds must be at least 2, to tell noise; got {options.seeds}")
    if util.find_spec("brminer") is None:
        print("brminer is not installed, so only ours is timed; pip install brminer to compare")
    names = [field.name for field in fields(Line)]
    print("  ".join(names))
    results = []
    for size in options.sizes:
        results.append(compare(size, options.features, options.seeds))
        cells = asdict(results[-1]).items()
        print("  ".join(f"{value:{len(name)}.4g}" for name, value in cells), flush=True)
    if options.output:
        write_csv(results, options.output)


if __name__ == "__main__":
    main()

"""Measure what outliers among the known-normal rows do to scores and flags, and what helps.

    python benchmarks/dirty.py --adbench DIRECTORY --output benchmarks/results

ADBench's and made data sets are split at random: up to 600 known-normal rows, a third as many
normal rows to search, and one outlier for every four of those. Then 0, 1, 2 and 5 % of the
known-normal rows are replaced by other outliers of the set. What is compared:

- QMS22Ensemble as it is, and kNN and Isolation Forest with half of T held out;
- "trimmed": the 5 % most suspicious rows of T are dropped, and the rest is learned again; all rows
  are compared with the batch;
- "naively trimmed": the 5 % most suspicious rows of T are removed before anything else, whatever
  they are, and not compared with the batch: this breaks the level;
- "checked": somebody looks at the 5 % most suspicious rows, and removes those that are outliers;
- "checked and learned from": these become known outliers, as marks on known-normal rows do.

Rules were chosen on one half of the data sets; the numbers of the other half confirm them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click
import numpy as np
import pandas as pd
from fdr import Rows, Scores, by_half, flag
from fdr_sets import (
    Found,
    Labeled,
    adbench_option,
    adbench_sets,
    made_datasets,
    n_jobs_option,
    search_all,
    write,
)
from numpy.typing import NDArray
from reporting import console, output_option
from sklearn.ensemble import IsolationForest

from qms22 import QMS22Ensemble
from qms22.estimators.batch_detector import FitInputs
from qms22.estimators.suspicious_normal import score_known
from qms22.estimators.views import KnownRows
from qms22.metrics import roc
from qms22_bench.rivals import KNNDetector

LEVEL = 0.1
SHARES = (0.0, 0.01, 0.02, 0.05)
LOOKED_AT = 0.05  # share of T that is trimmed or checked

MOST_KNOWN = 600
KNOWN_PER_SEARCHED = 3
NORMAL_PER_OUTLIER = 4
LEAST_OUTLIERS = 10


class Trimmed(QMS22Ensemble):
    """QMS22Ensemble that learns again without the most suspicious of the rows that teach."""

    def _learn(self, inputs: FitInputs) -> None:
        super()._learn(inputs)
        scores = score_known(self.views_, self.weights_, KnownRows(self._known, self._held_out))
        n_kept = len(scores) - count_looked_at(inputs.normal)
        kept = np.sort(np.argsort(scores, kind="stable")[:n_kept])
        super()._learn(replace(inputs, normal=inputs.normal[kept]))


def by_ensemble(
    known: Rows, batch: Rows, seed: int, *, outliers: Rows | None = None, is_trimmed: bool = False
) -> Scores:
    detector = (Trimmed if is_trimmed else QMS22Ensemble)(contamination=1, random_state=seed)
    detector.fit(known, unlabeled=batch, outliers=outliers)
    return detector.score_normals(), detector.unlabeled_scores_


Score = Callable[[Rows, Rows, int], Scores]
DETECTORS: dict[str, Score] = {
    "QMS22Ensemble": by_ensemble,
    "QMS22Ensemble, trimmed": partial(by_ensemble, is_trimmed=True),
    "kNN": partial(by_half, KNNDetector()),
    "Isolation Forest": partial(by_half, IsolationForest(random_state=0)),
}


@dataclass(frozen=True)
class Sample:
    """Known-normal rows, some planted outliers among them, and a batch that ends in outliers."""

    known: NDArray[np.float64]
    is_planted: NDArray[np.bool_]
    batch: NDArray[np.float64]
    n_outliers: int
    share: float  # of planted outliers, before any was removed

    def without(self, positions: NDArray[np.intp]) -> Sample:
        """Return a copy without some of the known-normal rows."""
        return replace(
            self,
            known=np.delete(self.known, positions, axis=0),
            is_planted=np.delete(self.is_planted, positions),
        )


def count_looked_at(known: NDArray[np.float64]) -> int:
    return round(LOOKED_AT * len(known))


def draw_samples(labeled: Labeled, rng: np.random.RandomState) -> list[Sample]:
    """Draw a split of a data set; return it with each of the shares of planted outliers."""
    rows, is_outlier = labeled
    normal = rows[rng.permutation(np.flatnonzero(~is_outlier))]
    outliers = rows[rng.permutation(np.flatnonzero(is_outlier))]
    # Half of the outliers can be planted, and the largest share has to be reached.
    n_plantable = len(outliers) // 2
    n_known = int(min(MOST_KNOWN, 3 * len(normal) // 4, n_plantable / max(SHARES)))
    n_normal = min(n_known // KNOWN_PER_SEARCHED, len(normal) - n_known)
    n_outliers = min(len(outliers) - n_plantable, max(1, n_normal // NORMAL_PER_OUTLIER))
    batch = np.concatenate([normal[n_known : n_known + n_normal], outliers[-n_outliers:]])
    places = rng.permutation(n_known)
    samples = []
    for share in SHARES:
        planted = places[: round(share * n_known)]
        known = normal[:n_known].copy()
        known[planted] = outliers[: len(planted)]
        is_planted = np.isin(np.arange(n_known), planted)
        samples.append(Sample(known, is_planted, batch, n_outliers, share))
    return samples


def search(halves: dict[str, str], name: str, labeled: Labeled, seed: int) -> list[Found]:
    """Draw one split of a data set and search it with each share of planted outliers."""
    found = []
    for sample in draw_samples(labeled, np.random.RandomState(seed)):
        about: Found = {"dataset": name, "half": halves[name], "planted": sample.share}
        for detector_name, score in DETECTORS.items():
            found.append(about | {"detector": detector_name} | judge(sample, score, seed))
        fitted = QMS22Ensemble(contamination=1, random_state=seed)
        fitted.fit(sample.known, unlabeled=sample.batch)
        found.append(about | {"detector": "suspicious rows"} | judge_suspicious(sample, fitted))
        found += [about | row for row in remove_rows(sample, fitted, seed)]
    return found


def remove_rows(sample: Sample, fitted: QMS22Ensemble, seed: int) -> list[Found]:
    """Search again without suspicious rows of T: all of them, or those that are outliers."""
    suspicious = fitted.suspicious_normal(count_looked_at(sample.known))
    checked = suspicious[sample.is_planted[suspicious]]
    learned = partial(by_ensemble, outliers=sample.known[checked])
    removed: dict[str, tuple[NDArray[np.intp], Score]] = {
        "naively trimmed": (suspicious, by_ensemble),
        "checked": (checked, by_ensemble),
        "checked and learned from": (checked, learned),
    }
    return [
        {"detector": f"QMS22Ensemble, {name}"} | judge(sample.without(positions), score, seed)
        for name, (positions, score) in removed.items()
    ]


def judge(sample: Sample, score: Score, seed: int) -> Found:
    """Compare scores and flags with the truth; with a clean T also in a batch without outliers."""
    n_normal = len(sample.batch) - sample.n_outliers
    scores = score(sample.known, sample.batch, seed)
    flagged = flag(scores, LEVEL)
    found: Found = {
        "auc": roc(np.arange(len(sample.batch)) >= n_normal, scores[1]).auc,
        "fdp": flagged[:n_normal].sum() / max(1, flagged.sum()),
        "power": flagged[n_normal:].mean(),
    }
    if sample.share == 0.0:
        null = score(sample.known, sample.batch[:n_normal], seed)
        found["null_flags"] = float(flag(null, LEVEL).any())
    return found


def judge_suspicious(sample: Sample, fitted: QMS22Ensemble) -> Found:
    """Compare the ranking of the known-normal rows, and those that stand out, with the truth."""
    n_planted = np.count_nonzero(sample.is_planted)
    ranked = sample.is_planted[fitted.suspicious_normal(len(sample.known))]
    stands_out = sample.is_planted[fitted.suspicious_normal()]
    found: Found = {
        "alarm": float(len(stands_out) > 0),
        "n_named": len(stands_out),
        "named_right": stands_out.mean() if len(stands_out) else np.nan,
    }
    if n_planted:
        found["right_of_as_many"] = ranked[:n_planted].mean()
        found["in_first_5_percent"] = ranked[: count_looked_at(sample.known)].sum() / n_planted
    return found


def all_datasets(adbench: Path | None) -> dict[str, Labeled]:
    made = made_datasets()
    if adbench is None:
        console.print("no ADBench files; give their directory with --adbench to use them")
        return made
    loaded = adbench_sets(adbench).items()
    enough = {name: data for name, data in loaded if data[1].sum() >= LEAST_OUTLIERS}
    return enough | made


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Return means over the runs of each half of the data sets, and over all."""
    both = pd.concat([runs, runs.assign(half="all")])
    groups = both.groupby(["half", "detector", "planted"], sort=False)
    numbers = groups.mean(numeric_only=True)
    numbers.insert(0, "n_runs", groups.size())
    numbers.insert(3, "fdp_se", groups["fdp"].sem())
    return numbers


@click.command()
@adbench_option
@click.option("--repeats", default=2, show_default=True, help="Random splits of each data set.")
@n_jobs_option
@output_option("dirty.csv")
def main(adbench: Path | None, repeats: int, n_jobs: int, output: Path) -> None:
    """Measure scores, flags and suspicious rows; takes about four minutes on 16 cores."""
    begin = time.perf_counter()
    datasets = all_datasets(adbench)
    halves = {
        name: "chosen on" if number % 4 < 2 else "confirmed on"
        for number, name in enumerate(datasets)
    }
    runs = search_all(partial(search, halves), datasets, repeats, n_jobs)
    numbers = summarise(runs)
    write(output / "dirty.csv", numbers.reset_index())
    shown = numbers.loc["all"].drop(columns=["n_runs", "fdp_se"])
    console.print(shown.round(3).to_string())
    console.print(f"{(time.perf_counter() - begin) / 60:.1f} minutes")


if __name__ == "__main__":
    main()

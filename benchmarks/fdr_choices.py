"""Compare choices behind flagging: how many rows to hold out, and how to merge several splits.

    python benchmarks/fdr_choices.py --keel DIRECTORY --output benchmarks/results

The data sets and splits are those of fdr.py. Merging by twice the mean p-value is not known to keep
the level; it is included for comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import click
import numpy as np
from fdr import (
    LEVELS,
    Found,
    Labeled,
    all_datasets,
    draw_split,
    keel_option,
    n_jobs_option,
    search_all,
    write,
)
from numpy.typing import NDArray
from reporting import console, output_option

from qms22 import QMS22Ensemble
from qms22.estimators import calibration as calibration_module
from qms22.estimators.conformal import (
    benjamini_hochberg,
    e_benjamini_hochberg,
    e_values,
    merge_p_values,
)

ONE_HELD_OUT_IN = (4, 3, 2)
N_SPLITS = 5
CUTS = (1, 2, 3, 5)

Flags = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def ways_to_merge(
    p_values: NDArray[np.float64], n: int, level: float
) -> Iterator[tuple[str, Flags]]:
    """Flag rows in every way, twice: with the first splits and with as many others."""
    halves = p_values[:N_SPLITS], p_values[N_SPLITS:]
    first, second = (benjamini_hochberg(half[0], level) for half in halves)
    yield "one split", (first, second)
    first, second = (benjamini_hochberg(merge_p_values(half), level) for half in halves)
    yield f"{N_SPLITS} splits, twice the mean p-value", (first, second)
    for cut in CUTS:
        first, second = (
            e_benjamini_hochberg(
                np.mean([e_values(split, n, level / cut) for split in half], axis=0), level
            )
            for half in halves
        )
        yield f"{N_SPLITS} splits, e-values, cut at level / {cut}", (first, second)


def search(_: str, labeled: Labeled, seed: int) -> list[Found]:
    """Flag rows of one batch in all ways."""
    split = draw_split(labeled, np.random.RandomState(seed))
    is_outlier = np.arange(len(split.batch)) >= split.n_normal
    found: list[Found] = []

    def note(choice: str, level: float, flags: Flags) -> None:
        first, second = flags
        n_either, n_both = np.count_nonzero(first | second), np.count_nonzero(first & second)
        found.append(
            {
                "choice": choice,
                "level": level,
                "fdp": (first & ~is_outlier).sum() / max(1, np.count_nonzero(first)),
                "power": first[is_outlier].mean(),
                # Share of the rows flagged by either, if there are any.
                "agreement": n_both / n_either if n_either else np.nan,
            }
        )

    for one_in in ONE_HELD_OUT_IN:
        with mock.patch.object(calibration_module, "_ONE_HELD_OUT_IN", one_in):
            detector = QMS22Ensemble(dtype="float32", contamination=1, random_state=seed)
            detector.fit(split.known, unlabeled=split.batch)
            calibration = detector._calibrated()
            n_splits = 2 * N_SPLITS if one_in == 3 else 2
            p_values = calibration.p_values_by_split(n_splits)
        for level in LEVELS:
            first, second = (benjamini_hochberg(p_values[at], level) for at in (0, 1))
            note(f"one row in {one_in} held out", level, (first, second))
            if one_in == 3:
                for choice, flags in ways_to_merge(p_values, calibration.n_held_out, level):
                    note(choice, level, flags)
    return found


@click.command()
@keel_option
@click.option("--repeats", default=8, show_default=True, help="Random splits of each data set.")
@n_jobs_option
@output_option("fdr-choices.csv")
def main(keel: Path | None, repeats: int, n_jobs: int, output: Path) -> None:
    """Compare the choices; takes about six minutes on two cores."""
    runs = search_all(search, dict(all_datasets(keel)), repeats, n_jobs)
    groups = runs.groupby(["choice", "level"], sort=False)
    means = groups.mean().assign(n_runs=groups.size()).reset_index()
    write(output / "fdr-choices.csv", means)
    console.print(means.to_string(index=False, float_format="%.3f"))


if __name__ == "__main__":
    main()

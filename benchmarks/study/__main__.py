"""Run the study and write its report: ``PYTHONPATH=benchmarks python -m study --help``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from qms22._runtime.stages import progress_bar
from qms22_bench.cli import choose_names, explained, keel_option
from qms22_bench.datasets import list_keel
from study.families import halves_of
from study.measure import measure, plan
from study.problems import (
    ADBENCH,
    KEEL,
    MIXED,
    adbench_problems,
    keel_problems,
    mixed_names,
    mixed_problems,
)
from study.report import write_study


@click.command()
@click.option(
    "-d",
    "--dataset",
    "patterns",
    multiple=True,
    metavar="NAME",
    help="A data set, or a pattern such as 'glass*', '*_wine' or 'orders: *'; may be repeated. "
    "The default is all of them.",
)
@keel_option
@click.option(
    "--adbench",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="QMS22_ADBENCH",
    help="Folder with ADBench's .npz files. Without it, ADBench is left out.",
)
@click.option(
    "--folds",
    type=click.IntRange(1, 5),
    default=5,
    show_default=True,
    help="Folds of each data set of KEEL.",
)
@click.option("--seeds", default=1, show_default=True, help="Seeds of all variants.")
@click.option(
    "--ablation-seeds",
    default=3,
    show_default=True,
    help="Seeds of the shipped variant and of those without one view.",
)
@click.option("--n-jobs", default=1, show_default=True, help="Parallel folds; -1 uses all cores.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("study"),
    show_default=True,
    help="Directory for study.md, study.csv and study-ablation.csv.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
def main(
    patterns: Sequence[str],
    keel: Path | None,
    adbench: Path | None,
    folds: int,
    seeds: int,
    ablation_seeds: int,
    n_jobs: int,
    output: Path,
    quiet: bool,
) -> None:
    """Compare variants of the recommended detector, and check the choice of one.

    The best variant on one half of the families is confirmed on the other half, and vice versa.
    """
    with explained():
        sets = {problem.name: problem for problem in adbench_problems(adbench)} if adbench else {}
        names = {KEEL: list_keel(), ADBENCH: list(sets), MIXED: mixed_names()}
        every = [name for listed in names.values() for name in listed]
        chosen = set(choose_names(every, patterns))
        names = {key: [name for name in listed if name in chosen] for key, listed in names.items()}
        for collection, listed in names.items():
            if listed:
                halves_of(collection, listed)  # raises before the work starts, not after it
        problems = [
            *keel_problems(names[KEEL], keel, folds),
            *(sets[name] for name in names[ADBENCH]),
            *mixed_problems(names[MIXED]),
        ]
        jobs = plan(problems, seeds, ablation_seeds)
        with progress_bar("problems", len(jobs), enabled=not quiet) as show:
            variants, ablation = measure(jobs, n_jobs=n_jobs, show=show)
        page = write_study(variants, ablation, max(seeds, ablation_seeds), output)
    click.echo(f"study written to {page}")


if __name__ == "__main__":
    main()

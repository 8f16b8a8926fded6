"""Run the study and write its report: ``PYTHONPATH=benchmarks python -m study --help``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from qms22._runtime.progress import progress_bar
from qms22.cli.bench import choose_names, keel_option, show_origins
from qms22.cli.shared import explained
from qms22.datasets import list_keel, load_keel
from study.elsewhere import sets_elsewhere
from study.families import halves_of
from study.measure import measure
from study.report import write_study
from study.variants import FEW, all_variants


@click.command()
@click.option(
    "-d",
    "--dataset",
    "patterns",
    multiple=True,
    metavar="NAME",
    help="A data set of KEEL or scikit-learn, or a pattern such as 'glass*'; may be repeated. "
    "The default is all of them.",
)
@click.option(
    "--seed",
    "seeds",
    multiple=True,
    type=click.IntRange(min=0, max=2**32 - 1),
    default=(0, 1),
    show_default=True,
    help="A seed of the variants; may be repeated.",
)
@keel_option
@click.option("--n-jobs", default=1, show_default=True, help="Parallel folds; -1 uses all cores.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("study"),
    show_default=True,
    help="Directory for study.md, study.png and CSV tables.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
def main(
    patterns: Sequence[str],
    seeds: Sequence[int],
    keel: Path | None,
    n_jobs: int,
    output: Path,
    quiet: bool,
) -> None:
    """Compare variants of the recommended detector, and check the choice of one.

    The best variant on one half of KEEL's families is confirmed on the other half, and vice versa.
    The whole study takes a quarter of an hour on two cores.
    """
    with explained():
        others = {dataset.name: dataset for dataset in sets_elsewhere()}
        chosen = choose_names([*list_keel(), *others], patterns)
        names = [name for name in chosen if name not in others]
        halves_of(names)  # raises before the work starts, not after it
        datasets = [load_keel(name, keel) for name in names]
        elsewhere = [others[name] for name in chosen if name in others]
        seeds = list(dict.fromkeys(seeds))
        n_keel = sum(dataset.n_folds for dataset in datasets) * len(seeds)
        n_all = n_keel + sum(dataset.n_folds for dataset in elsewhere)
        if not quiet:
            show_origins(datasets)
        with progress_bar("folds", n_all, enabled=not quiet) as show:
            table = measure(datasets, list(all_variants()), seeds, n_jobs=n_jobs, show=show)
            few = measure(
                elsewhere,
                FEW,
                seeds[:1],
                n_jobs=n_jobs,
                show=lambda done, name: show(n_keel + done, name),
            )
        page = write_study(table, few, seeds, output)
    click.echo(f"study written to {page}")


if __name__ == "__main__":
    main()

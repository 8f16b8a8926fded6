"""`qms22 demo`: find anomalies in real data that need no download."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qms22.cli.shared import check_output, explained, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qms22 import QMS22


@click.command(short_help="Try the detector on real data that need no download.")
@click.option(
    "-k",
    "--top",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many rows to flag.",
)
@click.option(
    "--show",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many of them to print.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of the split and the shuffle.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("demo-roc.png"),
    show_default=True,
    help="Where to write the ROC curve: a .png, .pdf or .svg file.",
)
def demo(top: int, show: int, seed: int, output: Path) -> None:
    """Find malignant tumours among 391 patients, given 178 benign ones.

    Splits scikit-learn's breast-cancer data: half of the benign rows are the known-normal rows (T),
    the other half and all malignant rows are the unlabeled batch (S). Fits QMS22 with the settings
    of the paper, prints the most suspicious rows and how many outliers are among them, and draws
    the ROC curve.

    \b
    Example:
        qms22 demo --top 100 --output roc.png
    """
    # Imported here to keep `qms22 --help` fast.
    from qms22 import QMS22

    normal, unlabeled, is_outlier = _breast_cancer(seed)
    if top > len(unlabeled):
        raise click.UsageError(f"--top {top} is more than the {len(unlabeled)} unlabeled rows")
    require("the picture", "plot", "matplotlib")
    check_output(output, (".png", ".pdf", ".svg"), "--output")
    detector = QMS22(random_state=seed).fit(normal, unlabeled=unlabeled)
    _print_result(detector, len(normal), is_outlier, top, show)
    _write_picture(output, is_outlier, detector.unlabeled_scores_, top)
    click.echo(f"ROC curve written to {output}")


def _breast_cancer(
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return known-normal rows, unlabeled rows, and which of the latter are outliers."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    benign = np.random.RandomState(seed).permutation(np.flatnonzero(y == 1))
    malignant = np.flatnonzero(y == 0)
    n_known = len(benign) // 2
    rows = np.concatenate([benign[n_known:], malignant])
    return X[benign[:n_known]], X[rows], y[rows] == 0


def _print_result(
    detector: QMS22, n_normal: int, is_outlier: NDArray[np.bool_], top: int, show: int
) -> None:
    from rich.console import Console
    from rich.table import Table

    from qms22.metrics import roc, true_positive_rate_at

    scores = detector.unlabeled_scores_
    picked = detector.top_k(top)
    table = Table(title="Most suspicious rows")
    for heading in ("rank", "row of S", "score η"):
        table.add_column(heading, justify="right")
    table.add_column("truth")
    for rank, row in enumerate(picked[:show], start=1):
        truth = "malignant" if is_outlier[row] else "benign"
        table.add_row(str(rank), str(row), f"{scores[row]:.3f}", truth)

    true_rate = true_positive_rate_at(is_outlier, scores, top)
    summary = Table(title="How well they were found", show_header=False)
    summary.add_column()
    summary.add_column(justify="right")
    summary.add_row("known-normal rows (T)", str(n_normal))
    summary.add_row("unlabeled rows (S)", str(len(scores)))
    summary.add_row("malignant among them", str(int(is_outlier.sum())))
    summary.add_row(f"malignant in the top {top}", str(int(is_outlier[picked].sum())))
    summary.add_row(f"TPR at k = {top}", f"{true_rate:.4f}")
    summary.add_row("AUC", f"{roc(is_outlier, scores).auc:.4f}")

    console = Console()
    console.print(table)
    console.print(summary)


def _write_picture(
    output: Path, is_outlier: NDArray[np.bool_], scores: NDArray[np.float64], top: int
) -> None:
    from matplotlib.figure import Figure

    from qms22._runtime.files import atomic_path
    from qms22.plotting import plot_roc

    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = plot_roc(is_outlier, scores, k=top, label="QMS22", ax=figure.add_subplot())
    axes.set_title("Breast cancer: malignant among unlabeled rows")
    with explained(), atomic_path(output) as temporary:
        figure.savefig(temporary, dpi=150)

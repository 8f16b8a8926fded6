"""Pictures, with Matplotlib (``pip install "qms22[plot]"``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from qms22.metrics import roc, true_positive_rate_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_roc(
    is_outlier: ArrayLike,
    scores: ArrayLike,
    *,
    k: int | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the ROC curve of outlier scores.

    Parameters
    ----------
    is_outlier : array-like of shape (n,)
        True (or 1) for outliers, False (or 0) for normal rows.
    scores : array-like of shape (n,)
        Outlier scores: higher is more suspicious.
    k : int, optional
        Marks the point where the k most suspicious rows are picked.
    label : str, optional
        Name of the curve in the legend; the AUC is added to it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure where not given.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        ax = _new_axes()
    curve = roc(is_outlier, scores)
    name = f"AUC = {curve.auc:.4f}" if label is None else f"{label} (AUC = {curve.auc:.4f})"
    (line,) = ax.plot(curve.false_positive_rate, curve.true_positive_rate, label=name)
    ax.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1, zorder=0)
    if k is not None:
        n_rows, n_outliers = len(scores), sum(map(bool, is_outlier))  # type: ignore[arg-type]
        true_rate = true_positive_rate_at(is_outlier, scores, k)
        false_rate = (k - true_rate * n_outliers) / (n_rows - n_outliers)
        ax.plot(
            [false_rate],
            [true_rate],
            "o",
            color=line.get_color(),
            label=f"k = {k}: TPR {true_rate:.3f}, FPR {false_rate:.3f}",
        )
    ax.set(xlabel="False positive rate", ylabel="True positive rate", aspect="equal")
    ax.legend(loc="lower right")
    return ax


def _new_axes() -> Axes:
    # Not pyplot: a library must not choose a window system or keep figures alive.
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need Matplotlib: pip install "qms22[plot]"') from error
    return Figure(figsize=(6, 6), layout="constrained").add_subplot()

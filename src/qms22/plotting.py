"""Plots, with Matplotlib (``pip install "qms22[plot]"``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qms22._runtime.packages import need
from qms22.metrics import roc, true_positive_rate_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from qms22.estimators.explain import Explanation


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
        Mark the point of the k most suspicious rows.
    label : str, optional
        Name of the curve in the legend, which adds the AUC.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

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


def plot_reasons(
    explanation: Explanation, row: int, *, k: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw the reasons of one row as bars, the strongest first.

    Parameters
    ----------
    explanation : Explanation
        Returned by `explain`.
    row : int
        Position of the row among those explained.
    k : int, default=10
        Most features to show. Features that do not make the row suspicious are left out.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    features = explanation.order(row, k)
    if ax is None:
        ax = _new_axes(width=8, height=1.5 + 0.35 * max(1, len(features)))
    labels = []
    for feature in features:
        value = _describe(explanation, explanation.values[row], feature)
        usual = _describe(explanation, explanation.typical, feature)
        labels.append(f"{explanation.names[feature]} = {value} (typical: {usual})")
    ax.barh(range(len(features)), explanation.drop[row, features])
    # Matplotlib reads text between dollar signs as a formula.
    ax.set_yticks(range(len(features)), [label.replace("$", r"\$") for label in labels])
    ax.invert_yaxis()
    ax.set(xlabel="Drop of the score", title=f"Row {row}: score {explanation.scores[row]:.4g}")
    if not features:
        ax.text(0.5, 0.5, "no single feature", ha="center", va="center", transform=ax.transAxes)
    return ax


def _describe(explanation: Explanation, row: NDArray[np.float64], feature: int) -> str:
    columns = explanation.groups[feature]
    if len(columns) == 1:
        return f"{row[columns[0]]:.4g}"
    # For a group of one-hot columns, the names of those that are 1.
    named = [(explanation.columns[column], row[column]) for column in columns if row[column]]
    if all(value == 1.0 for _, value in named):
        return ", ".join(name for name, _ in named) or "none"
    return ", ".join(f"{name} {value:.4g}" for name, value in named)


def _new_axes(width: float = 6, height: float = 6) -> Axes:
    # Not pyplot: it would choose a window system and keep figures in memory.
    figures = need("matplotlib.figure", "a plot", "plot")
    axes: Axes = figures.Figure(figsize=(width, height), layout="constrained").add_subplot()
    return axes

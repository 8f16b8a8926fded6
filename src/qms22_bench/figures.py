"""Figures of the benchmark report: each function returns a Matplotlib Figure."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qms22_bench.statistics import Ranking, growth

# Text and axes. The page replaces this color by its own text color, dark or light.
INK = "#1b1f24"
# Readable on white and on near black. A detector has the same color in every figure.
COLORS = (
    "#2f7fd1",
    "#d9631e",
    "#2b8f63",
    "#9a63c9",
    "#d1495b",
    "#1f93a8",
    "#9c7a1b",
    "#7a828c",
    "#c2528f",
    "#5f8f1f",
    "#5a6bd6",
    "#a8553a",
    "#b03fc0",
    "#8a7a5c",
)
MARKERS = "os^Dv<>PX*ph8d"


def color_of(position: int) -> str:
    """Return the color of a detector by its position among all detectors."""
    return COLORS[position % len(COLORS)]


def boxplots(auc: pd.DataFrame) -> Figure:
    """Draw the paper's Figure 4: a box of AUC over data sets per detector; a dot is the mean."""
    names = list(auc.columns)
    axes = new_axes(7.2, 1.2 + 0.5 * len(names))
    boxes = axes.boxplot(
        [auc[name].dropna().to_numpy() for name in names],
        orientation="horizontal",
        widths=0.55,
        patch_artist=True,
        showmeans=True,
        medianprops={"color": INK, "linewidth": 1.6},
        meanprops={"marker": "o", "markerfacecolor": INK, "markeredgecolor": INK, "markersize": 4},
        boxprops={"edgecolor": INK},
        whiskerprops={"color": INK},
        capprops={"color": INK},
        flierprops={"marker": ".", "markeredgecolor": INK, "markersize": 5},
    )
    for position, box in enumerate(boxes["boxes"]):
        box.set_facecolor((*matplotlib.colors.to_rgb(color_of(position)), 0.55))
    axes.set_yticks(range(1, len(names) + 1), [plain_name(name) for name in names])
    axes.invert_yaxis()
    axes.axvline(0.5, color=INK, linewidth=1, linestyle=":", alpha=0.6)
    axes.set_xlabel("raw AUC, one value per data set (dotted: guessing)")
    return figure_of(axes)


def critical_difference(ranking: Ranking) -> Figure:
    """Draw average ranks on a line, and a bar over those that Nemenyi's test cannot separate."""
    names, ranks = list(ranking.ranks.index), ranking.ranks.to_numpy()
    k, runs = len(names), ranking.cliques()
    n_left = (k + 1) // 2
    bars = 0.28 * len(runs)
    depth = bars + 0.45 * n_left
    margin = 0.4 * (k - 1)
    axes = new_axes(7.2, 1.0 + 0.55 * (depth + 0.9))
    axes.set(xlim=(1 - margin, k + margin), ylim=(-depth - 0.3, 0.9))
    axes.axis("off")
    _rank_scale(axes, k, ranking.critical_difference)
    for position, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        # The better half has its names on the left, the others on the right.
        is_left = position < n_left
        row = position if is_left else k - 1 - position
        height = -bars - 0.45 * (row + 0.6)
        edge, beyond, side = (0.9, 0.85, "right") if is_left else (k + 0.1, k + 0.15, "left")
        axes.plot([rank, rank, edge], [0, height, height], color=INK, linewidth=0.9)
        text = f"{plain_name(name)}  {rank:.2f}"
        axes.text(beyond, height, text, ha=side, va="center", color=INK)
    for number, (first, last) in enumerate(runs):
        height = -0.18 - 0.28 * number
        ends = [ranks[first] - 0.03, ranks[last] + 0.03]
        axes.plot(ends, [height, height], color=COLORS[0], linewidth=4, solid_capstyle="round")
    return figure_of(axes)


def _rank_scale(axes: Axes, k: int, critical: float) -> None:
    axes.plot([1, k], [0, 0], color=INK, linewidth=1.2)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.1], color=INK, linewidth=1.2)
        axes.text(tick, 0.16, str(tick), ha="center", va="bottom", color=INK)
    # With few data sets the critical difference can be longer than the axis.
    axes.plot([1, 1 + min(critical, k - 1)], [0.62, 0.62], color=INK, linewidth=2.5)
    label = f"critical difference {critical:.2f}"
    axes.text(1, 0.7, label, ha="left", va="bottom", color=INK)


def run_times(times: pd.DataFrame, names: Sequence[str]) -> Figure:
    """Draw the time of a fit against n·p on logarithmic axes, with the fitted power law."""
    axes = new_axes(7.2, 5.0)
    for position, name in enumerate(names):
        mine = times[(times["detector"] == name) & (times["fit_seconds"] > 0)]
        used, color = mine[mine["used"]], color_of(position)
        style: dict[str, Any] = {
            "color": color,
            "marker": MARKERS[position % len(MARKERS)],
            "linewidths": 0,
        }
        unused = mine[~mine["used"]]
        axes.scatter(unused["n"] * unused["p"], unused["fit_seconds"], s=12, alpha=0.3, **style)
        exponent, _, constant = growth(used["n"] * used["p"], used["fit_seconds"])
        label = (
            plain_name(name)
            if np.isnan(exponent)
            else f"{plain_name(name)}, exponent {exponent:.2f}"
        )
        size = used["n"] * used["p"]
        axes.scatter(size, used["fit_seconds"], s=16, alpha=0.75, label=label, **style)
        if not np.isnan(exponent):
            ends = np.array([size.min(), size.max()])
            axes.plot(ends, np.exp(constant) * ends**exponent, color=color, linewidth=1.5)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("n · p: rows of a fold times encoded features")
    axes.set_ylabel("CPU seconds of one fit (pale: too short to count)")
    _plain_log_ticks(axes)
    add_legend(axes)
    return figure_of(axes)


def auc_against_paper(table: pd.DataFrame) -> Figure:
    """Draw our clipped AUC against the paper's, a point per data set of Table 1."""
    both = table.dropna(subset=["paper_auc", "clipped"])
    axes = new_axes(7.2, 5.6)
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=":", alpha=0.7)
    axes.scatter(both["paper_auc"], both["clipped"], s=22, alpha=0.7, color=COLORS[0], linewidths=0)
    low = float(min(both["paper_auc"].min(), both["clipped"].min()))
    axes.set(xlim=(low - 0.02, 1.02), ylim=(low - 0.02, 1.02), aspect="equal")
    axes.set_xlabel("AUC in the paper's Table 1")
    axes.set_ylabel("ours, clipped as the paper seems to do")
    return figure_of(axes)


def total_times(table: pd.DataFrame) -> Figure:
    """Draw the CPU time of all data sets per detector, from Table 5: fit, then score."""
    names = list(table["detector"])
    axes = new_axes(7.2, 1.2 + 0.42 * len(names))
    fit, score = table["fit_seconds"].to_numpy(), table["score_seconds"].to_numpy()
    rows = np.arange(len(names))
    axes.barh(rows, fit, color=[color_of(row) for row in range(len(rows))], height=0.6)
    axes.barh(rows, score, left=fit, color=INK, alpha=0.45, height=0.6)
    for row, total in enumerate(fit + score):
        axes.annotate(
            f"{total:,.0f} s" if total >= 100 else f"{total:.2g} s",
            (total, row),
            (4, 0),
            textcoords="offset points",
            va="center",
            color=INK,
        )
    axes.set_yticks(rows, [plain_name(name) for name in names])
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set_xlabel("CPU seconds, all folds of every data set: fit (colour) and score (grey)")
    return figure_of(axes)


def to_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG for a page: no prolog, no date, unique ids, the page's text color."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(
            buffer, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
        )
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    return svg.replace(INK, "currentColor").strip()


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure, in the style of the report."""
    # Not pyplot: it would choose a window system and keep figures in memory.
    axes = Figure(figsize=(width, height), layout="constrained").add_subplot()
    axes.tick_params(which="both", colors=INK)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    axes.grid(color=INK, alpha=0.12, linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def figure_of(axes: Axes) -> Figure:
    """Return the figure of some axes."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def add_legend(axes: Axes) -> None:
    """Add a legend without a frame."""
    axes.legend(frameon=False, labelcolor=INK, fontsize="small")


def plain_name(name: str) -> str:
    """Escape dollar signs, which Matplotlib would read as mathematics."""
    return name.replace("$", r"\$")


def _plain_log_ticks(axes: Axes) -> None:
    def write(value: float, _: Any) -> str:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(write)
        axis.set_minor_formatter(lambda *_: "")

"""The figure of the study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from qms22.bench.figures import (
    INK,
    MARKERS,
    add_legend,
    color_of,
    figure_of,
    new_axes,
    plain_name,
)


def two_halves(table: pd.DataFrame, named: Sequence[str], starred: str) -> Figure:
    """Draw the means of the study's variants on half B against those on half A."""
    axes = new_axes(7.2, 5.6)
    for position, (group, mine) in enumerate(table.groupby("group", sort=False)):
        style: dict[str, Any] = {
            "color": color_of(position),
            "marker": MARKERS[position % len(MARKERS)],
            "linewidths": 0,
        }
        axes.scatter(mine["A"], mine["B"], s=26, alpha=0.75, label=plain_name(str(group)), **style)
    for variant, a, b in zip(table["variant"], table["A"], table["B"], strict=True):
        if variant in named:
            axes.annotate(
                plain_name(variant),
                (a, b),
                (-5, 3),
                textcoords="offset points",
                ha="right",
                color=INK,
                fontsize="small",
            )
    star = table[table["variant"] == starred]
    axes.scatter(star["A"], star["B"], s=150, color=INK, marker="*", label=plain_name(starred))
    axes.set_xlabel("mean AUC on half A of the families")
    axes.set_ylabel("mean AUC on half B")
    add_legend(axes)
    return figure_of(axes)

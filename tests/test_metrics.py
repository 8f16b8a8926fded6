"""ROC, AUC and TPR at k, ties included."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qms22.metrics import roc, true_positive_rate_at
from qms22.plotting import plot_roc

# Labels and scores with many ties.
labelled = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=6)


def algorithm_1(is_outlier: list[bool], scores: list[int]) -> set[tuple[float, float]]:
    """The points of the paper: β from a large value down to zero, Λ(β) = {η ≥ β}."""
    n_outliers = sum(is_outlier)
    points = set()
    for beta in [np.inf, *sorted(set(scores), reverse=True), 0.0]:
        chosen = [truth for truth, score in zip(is_outlier, scores, strict=True) if score >= beta]
        false_rate = (len(chosen) - sum(chosen)) / (len(scores) - n_outliers)
        points.add((false_rate, sum(chosen) / n_outliers))
    return points


@given(labelled.filter(lambda rows: 0 < sum(truth for truth, _ in rows) < len(rows)))
def test_roc_is_algorithm_1(rows: list[tuple[bool, int]]) -> None:
    is_outlier, scores = [row[0] for row in rows], [row[1] for row in rows]
    curve = roc(is_outlier, scores)
    points = zip(curve.false_positive_rate, curve.true_positive_rate, strict=True)
    assert {(float(x), float(y)) for x, y in points} == algorithm_1(is_outlier, scores)
    pairs = [
        (outlier > normal) + 0.5 * (outlier == normal)
        for outlier, normal in itertools.product(
            [s for t, s in rows if t], [s for t, s in rows if not t]
        )
    ]
    assert curve.auc == pytest.approx(np.mean(pairs))


def test_a_thinned_curve_keeps_its_shape() -> None:
    rng = np.random.RandomState(0)
    is_outlier = rng.rand(5000) < 0.3
    curve = roc(is_outlier, rng.normal(size=5000) + is_outlier)
    x, y = curve.thinned(100)
    assert len(x) == len(y) == 100
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(y, x) == pytest.approx(curve.auc, abs=1e-3)
    few = roc([0, 0, 1, 1], [0.0, 0.0, 0.0, 2.5])
    assert [part.tolist() for part in few.thinned(100)] == [[0, 0, 1], [0, 0.5, 1]]


@given(labelled.filter(lambda rows: any(truth for truth, _ in rows)), st.integers(0, 6))
def test_tpr_at_k_is_the_mean_over_tie_breaks(rows: list[tuple[bool, int]], k: int) -> None:
    k = min(k, len(rows))
    is_outlier, scores = [row[0] for row in rows], [row[1] for row in rows]
    rates = [
        sum(truth for truth, _ in sorted(order, key=lambda row: -row[1])[:k]) / sum(is_outlier)
        for order in itertools.permutations(rows)
    ]
    assert true_positive_rate_at(is_outlier, scores, k) == pytest.approx(np.mean(rates))


@pytest.mark.parametrize(
    ("is_outlier", "scores", "message"),
    [
        ([0, 0], [1.0, 2.0], "holds no outliers; a ROC curve needs both kinds"),
        ([1, 1], [1.0, 2.0], "holds no normal rows; a ROC curve needs both kinds"),
        ([0, 1, 1], [1.0, 2.0], r"got shapes \(3,\) and \(2,\)"),
        ([0, 2], [1.0, 2.0], "is_outlier must hold only True/False or 1/0"),
        ([0, 1], [1.0, np.nan], "scores holds nan at row 1"),
    ],
)
def test_bad_input(is_outlier: list[int], scores: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        roc(is_outlier, scores)


def test_bad_k() -> None:
    with pytest.raises(ValueError, match="k=3 is more than the 2 rows"):
        true_positive_rate_at([0, 1], [1.0, 2.0], 3)
    with pytest.raises(ValueError, match="k must be a whole number of at least 0; got -1"):
        true_positive_rate_at([0, 1], [1.0, 2.0], -1)
    with pytest.raises(ValueError, match="is_outlier holds no outliers"):
        true_positive_rate_at([0, 0], [1.0, 2.0], 1)


def test_plot_draws_curve_and_point() -> None:
    is_outlier, scores = np.array([0, 1, 0, 1, 0]), np.array([0.1, 0.9, 0.8, 0.3, 0.0])
    axes = plot_roc(is_outlier, scores, k=2, label="mine")
    curve, _, point = axes.get_lines()
    expected = roc(is_outlier, scores)
    np.testing.assert_array_equal(curve.get_xdata(), expected.false_positive_rate)
    np.testing.assert_array_equal(curve.get_ydata(), expected.true_positive_rate)
    assert np.asarray(point.get_xydata()).tolist() == [[pytest.approx(1 / 3), 0.5]]
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_texts()[0].get_text() == "mine (AUC = 0.8333)"


def test_plot_joins_given_axes() -> None:
    axes = plot_roc([0, 1], [0.0, 1.0])
    assert plot_roc([0, 1], [1.0, 0.0], ax=axes) is axes
    assert len(axes.get_lines()) == 4


def test_plot_leaves_pyplot_alone() -> None:
    code = "import sys; from qms22.plotting import plot_roc; plot_roc([0, 1], [0.0, 1.0]); "
    code += "sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

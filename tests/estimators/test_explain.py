"""Reasons: the drop of the score, feature by feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from qms22 import QMS22
from qms22.estimators import explain as explain_module
from qms22.estimators.explain import TypicalValues
from qms22.plotting import plot_reasons

COLORS = np.eye(3)[[0] * 40 + [1] * 35 + [2] * 25]


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Normal rows of four numbers, and a batch with outliers in one feature each."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(60, 4))
    for row in range(4):
        batch[row, row] = 8.0
    return rng.normal(size=(200, 4)), batch


@pytest.fixture(scope="module")
def fitted(rows: tuple[np.ndarray, np.ndarray]) -> QMS22:
    return QMS22(random_state=0).fit(rows[0], unlabeled=rows[1])


@pytest.fixture(scope="module")
def colored() -> tuple[QMS22, np.ndarray]:
    """A detector of two numbers and a one-hot color, none of whose levels reaches a half."""
    rng = np.random.RandomState(0)
    normal = np.hstack([rng.normal(size=(100, 2)), COLORS])
    batch = np.vstack([normal[::2], normal[::2]])
    batch[0, 2:] = 0.0  # a level never seen
    return QMS22(max_iter=20, random_state=0).fit(normal, unlabeled=batch), batch


def naive_drops(
    detector: QMS22, X: np.ndarray, groups: list[list[int]], typical: np.ndarray
) -> np.ndarray:
    drops = np.empty((len(X), len(groups)))
    for i, row in enumerate(X):
        for j, columns in enumerate(groups):
            changed = row.copy()
            for column in columns:
                changed[column] = typical[column]
            drops[i, j] = detector.score_samples([changed])[0] - detector.score_samples([row])[0]
    return drops


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"scaling": "standard", "dtype": "float32"},
        {"n_restarts": 3, "max_iter": 5},
        {"scaling": None, "init_b": 100.0, "step_b": 1.0},
    ],
)
def test_is_the_naive_loop(parameters: dict[str, Any], rows: tuple[np.ndarray, np.ndarray]) -> None:
    normal, batch = rows
    detector = QMS22(**parameters, random_state=0).fit(normal, unlabeled=batch)
    explanation = detector.explain(batch[:9])
    expected = naive_drops(detector, batch[:9], [[0], [1], [2], [3]], detector.typical_)
    np.testing.assert_allclose(explanation.drop, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(explanation.scores, detector.unlabeled_scores_[:9])
    np.testing.assert_array_equal(explanation.values, batch[:9])
    np.testing.assert_array_equal(explanation.typical, detector.typical_)


def test_batches_do_not_change_it(
    fitted: QMS22, rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fitted.explain(rows[1])
    monkeypatch.setattr(explain_module, "_ROWS_PER_BATCH", 7)
    np.testing.assert_array_equal(fitted.explain(rows[1]).drop, whole.drop)


def test_rows_and_detector_stay_as_they_were(
    fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    batch, typical = rows[1].copy(), fitted.typical_.copy()
    fitted.explain(batch, groups=[[0, 1]])
    np.testing.assert_array_equal(batch, rows[1])
    np.testing.assert_array_equal(fitted.typical_, typical)


def test_the_guilty_feature_is_named_first(
    fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    explanation = fitted.explain(rows[1][:4])
    assert explanation.names == ("x0", "x1", "x2", "x3")
    for row in range(4):
        name, drop, value, typical = explanation.top(row, k=1)[0]
        assert name == f"x{row}"
        assert drop == explanation.drop[row].max() > 0.5 * explanation.scores[row]
        assert value == 8.0
        assert typical == fitted.typical_[row]


def test_top_has_positive_drops_only_in_order(
    fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    explanation = fitted.explain(rows[1])
    for row, drops in enumerate(explanation.drop):
        reasons = explanation.top(row)
        assert [reason.drop for reason in reasons] == sorted(drops[drops > 0], reverse=True)
        assert explanation.top(row, 1) == reasons[:1]
    assert explanation.top(0, 0) == []


def test_typical_rows_have_no_reasons(fitted: QMS22) -> None:
    explanation = fitted.explain([fitted.typical_])
    assert (explanation.drop == 0).all()
    assert explanation.top(0) == []


def test_drops_need_not_add_up(fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]) -> None:
    # Each of four wild values is enough alone: no promise about sums can be made.
    wild = np.full((1, 4), 8.0)
    explanation = fitted.explain(np.vstack([wild, rows[1]]))
    assert explanation.scores[0] > 0
    assert not np.allclose(explanation.drop.sum(axis=1), explanation.scores)


def test_groups_change_together(fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]) -> None:
    explanation = fitted.explain(rows[1][:5], groups=[[3, 1]])
    assert explanation.names == ("x0", "x3, x1", "x2")
    assert explanation.groups == ((0,), (3, 1), (2,))
    expected = naive_drops(fitted, rows[1][:5], [[0], [3, 1], [2]], fitted.typical_)
    np.testing.assert_allclose(explanation.drop, expected, rtol=1e-9, atol=1e-9)
    reason = explanation.top(3, 1)[0]
    assert reason.name == "x3, x1"
    assert reason.value == (8.0, rows[1][3, 1])
    assert reason.typical == (fitted.typical_[3], fitted.typical_[1])


def test_one_hot_groups_take_the_most_frequent_level(colored: tuple[QMS22, np.ndarray]) -> None:
    detector, batch = colored
    assert detector.typical_[2:].tolist() == [0.0, 0.0, 0.0]
    explanation = detector.explain(batch[:3], groups={"color": [2, 3, 4]})
    assert explanation.names == ("x0", "x1", "color")
    assert explanation.typical[2:].tolist() == [1.0, 0.0, 0.0]
    changed = batch[:1].copy()
    changed[0, 2:] = [1.0, 0.0, 0.0]
    drop = detector.score_samples(changed) - detector.score_samples(batch[:1])
    assert explanation.drop[0, 2] == pytest.approx(drop[0], abs=1e-9)


@pytest.mark.parametrize(
    ("normal", "expected"),
    [
        (COLORS, [1, 0, 0]),
        (COLORS[:, 1:], [0, 0]),  # 40 : 35 : 25, the first level having lost its column
        (COLORS[30:, 1:], [1, 0]),  # 10 : 35 : 25
        (COLORS[:70, 1:], [0, 0]),  # 40 : 30 : 0
        (np.ones((5, 2)), [1, 1]),  # not one-hot: medians
        (COLORS * 7, [0, 0, 0]),
    ],
)
def test_typical_levels(normal: np.ndarray, expected: list[int]) -> None:
    columns = list(range(normal.shape[1]))
    assert TypicalValues.learn(normal).row([columns]).tolist() == expected


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8])
def test_typical_is_the_lower_median(n_rows: int) -> None:
    normal = np.random.RandomState(n_rows).normal(size=(n_rows, 3))
    expected = np.quantile(normal, 0.5, axis=0, method="lower")
    np.testing.assert_array_equal(TypicalValues.learn(normal).medians, expected)


def test_a_typical_row_can_be_given(fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]) -> None:
    typical = [0.1, 0.2, 0.3, 0.4]
    explanation = fitted.explain(rows[1][:5], typical=typical)
    assert explanation.typical.tolist() == typical
    expected = naive_drops(fitted, rows[1][:5], [[0], [1], [2], [3]], np.array(typical))
    np.testing.assert_allclose(explanation.drop, expected, rtol=1e-9, atol=1e-9)


def test_frames_give_their_names(rows: tuple[np.ndarray, np.ndarray]) -> None:
    names = ["age", "dose", "height", "weight"]
    normal, batch = (pd.DataFrame(part, columns=names) for part in rows)
    detector = QMS22(random_state=0).fit(normal, unlabeled=batch)
    explanation = detector.explain(batch.head(4), groups={"body": [2, 3]})
    assert explanation.names == ("age", "dose", "body")
    assert explanation.columns == tuple(names)
    assert [explanation.top(row, 1)[0].name for row in range(4)] == ["age", "dose", "body", "body"]


def test_extreme_values_stay_finite() -> None:
    rng = np.random.RandomState(0)
    normal, batch = rng.normal(size=(60, 2)), rng.normal(size=(30, 2))
    normal[:, 1] *= 4e307
    batch[:, 1] = 1.7e308
    detector = QMS22(max_iter=5, random_state=0).fit(normal, unlabeled=batch)
    assert np.isfinite(detector.typical_).all()
    assert np.isfinite(detector.explain(batch).drop).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [[0, 4]]}, r"group 0 of groups holds 4, which is not a column position from"),
        ({"groups": {"a": [-1]}}, r"group 'a' of groups holds -1, which is not a column"),
        ({"groups": [["x0"]]}, r"holds 'x0', which is not a column position from 0 to 3"),
        ({"groups": [[0], [1, 0]]}, r"column 0 is twice in groups, in group 0 and in group 1;"),
        ({"groups": [0, 1]}, r"group 0 of groups is 0; it must be a sequence of columns"),
        ({"groups": {"a": []}}, r"group 'a' of groups has no columns; leave it out"),
        ({"typical": [1.0, 2.0]}, r"one row of 4 values, one per column; got shape \(2,\)"),
        ({"typical": [1, 2, np.nan, 4]}, r"typical holds nan at column 2; it must be finite"),
        ({"typical": ["a", 2, 3, 4]}, r"typical must be a row of numbers"),
    ],
)
def test_bad_options(
    options: dict[str, Any], message: str, fitted: QMS22, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        fitted.explain(rows[1], **options)
    assert "\n" not in str(caught.value)


def test_bad_rows(fitted: QMS22) -> None:
    with pytest.raises(ValueError, match="X has 2 features, but QMS22 is expecting 4"):
        fitted.explain(np.ones((3, 2)))
    with pytest.raises(NotFittedError):
        QMS22().explain(np.ones((3, 2)))
    explanation = fitted.explain(np.ones((3, 4)))
    for row in (3, -1, 1.0):
        with pytest.raises(ValueError, match="row must be a position from 0 to 2, as 3 rows were"):
            explanation.top(row)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must be a whole number of at least 0; got -1"):
        explanation.top(0, -1)


def test_picture(colored: tuple[QMS22, np.ndarray]) -> None:
    detector, batch = colored
    names = ["in $", "out $", "red", "green", "blue"]
    detector = QMS22(max_iter=20, random_state=0)
    frame = pd.DataFrame(batch, columns=names)
    frame.loc[1, "in $"] = 9.0
    detector.fit(pd.DataFrame(batch[2:], columns=names), unlabeled=frame)
    explanation = detector.explain(frame, groups={"color": [2, 3, 4]})
    ax = plot_reasons(explanation, 1, k=2)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0].startswith(r"in \$ = 9 (typical: ")
    widths = [bar.get_width() for bar in ax.patches]  # type: ignore[attr-defined]
    assert widths == [reason.drop for reason in explanation.top(1, 2)]
    assert ax.yaxis_inverted()
    ax.figure.canvas.draw()


def test_picture_of_levels_and_of_nothing(colored: tuple[QMS22, np.ndarray]) -> None:
    detector, batch = colored
    explanation = detector.explain(batch, groups={"color": [2, 3, 4]})
    level = explain_module.Explanation(
        np.array([[0.0, 0.0, 2.0]]),
        np.array([3.0]),
        np.array([[0.0, 0.0, 0.0, 1.0, 0.0]]),
        np.array([0.0, 0.0, 0.0, 0.0, 0.0]),
        explanation.names,
        explanation.columns,
        explanation.groups,
    )
    ax = plot_reasons(level, 0)
    assert ax.get_yticklabels()[0].get_text() == "color = x3 (typical: none)"
    nothing = plot_reasons(detector.explain([detector.typical_]), 0, ax=ax.figure.add_subplot())
    assert nothing.texts[0].get_text() == "no single feature"

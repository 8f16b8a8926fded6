"""Rows of a table next to the known-normal ones: flags keep their bound, checks included."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from frames import encode_frames
from numpy.typing import NDArray
from promise import CASES, Case

from qms22 import QMS22, QMS22Ensemble, TabularEncoder
from qms22.checks import learn_checks
from qms22.checks.single import LevelCheck, ValueCheck
from qms22.decisions.comparison import Comparison
from qms22.decisions.ruler import Ruler
from qms22.detection.scorer import TableScorer, measure_normal
from qms22.tables.columns.arrow_columns import column_of_values
from qms22.tables.columns.cells import Cells

QUICK = {"n_splits": 2, "n_members": 3, "n_components": 2, "max_iter": 2}

Flags = NDArray[np.bool_]


def compare(normal: pd.DataFrame, batch: pd.DataFrame, seed: int = 0) -> Comparison:
    """Compare two tables as `qms22.detect` does, with a quick detector."""
    encoded = encode_frames(normal, batch)
    detector = QMS22Ensemble(**QUICK, random_state=seed, contamination=1)  # type: ignore[arg-type]
    detector.fit(encoded.known, unlabeled=encoded.rows, groups=encoded.encoder.groups_)
    learned = learn_checks(encoded.encoder, encoded.normal_cells, encoded.batch_cells, seed)
    scorer = TableScorer(encoded.encoder, detector, learned.checks)
    scores = scorer.score_batch(encoded).scores
    ruler = measure_normal(scorer, encoded, learned, scores, len(scores), seed)
    assert ruler is not None
    return Comparison.of(ruler, scores)


def encoded_by_normal_rows(normal: pd.DataFrame, batch: pd.DataFrame, seed: int) -> Flags:
    """Flag rows after an encoder has learned from the known-normal rows alone."""
    encoder = TabularEncoder().fit(normal)
    detector = QMS22Ensemble(**QUICK, random_state=seed)  # type: ignore[arg-type]
    detector.fit(encoder.transform(normal), unlabeled=encoder.transform(batch))
    return detector.flag(0.1)


def false_share(
    case: Case, flag: Callable[[pd.DataFrame, pd.DataFrame, int], Flags], seed: int
) -> float:
    rng = np.random.default_rng(seed)
    normal, batch = case.draw(1000, rng), case.draw(150, rng)
    is_outlier = np.arange(len(batch)) < case.n_outliers
    batch.loc[is_outlier, ["x", "y"]] += case.shift
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flagged = flag(normal, batch, seed)
    return float((flagged & ~is_outlier).sum() / max(1, flagged.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case.name)
def test_the_bound_holds_on_categories(case: Case) -> None:
    case = replace(case, n_outliers=case.n_outliers // 2)

    def flag(normal: pd.DataFrame, batch: pd.DataFrame, seed: int) -> Flags:
        return compare(normal, batch, seed).flag(0.1)

    shares = [false_share(case, flag, seed) for seed in range(12)]
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(len(shares))


def test_encoding_by_the_normal_rows_alone_breaks_the_bound() -> None:
    """The tables above are hard: what would be wrong is seen on them."""
    shares = [false_share(CASES[0], encoded_by_normal_rows, seed) for seed in range(10)]
    assert np.mean(shares) > 0.3


def draw(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw normal rows: a few of them have rare levels, heavy tails, gaps, and are repeated."""
    price = np.exp(rng.normal(3, 1, n_rows)).round(1)
    quantity = rng.integers(1, 6, n_rows)
    table = pd.DataFrame(
        {
            "price": price,
            "quantity": quantity,
            "total": price * quantity,
            "tail": rng.standard_t(2, n_rows).round(2),
            "level": [f"level {level}" for level in rng.zipf(2.0, n_rows)],
            "place": rng.choice(["a", "b", "c"], n_rows, p=[0.6, 0.3, 0.1]),
            "same": "x",
        }
    )
    table.loc[rng.uniform(size=n_rows) < 0.05, "total"] = np.nan
    table.loc[rng.uniform(size=n_rows) < 0.03, "place"] = None
    table.loc[rng.uniform(size=n_rows) < 0.005, "same"] = "y"
    sold = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.uniform(0, 50, n_rows), "D")
    table["sold"] = sold.floor("min")
    repeated = rng.uniform(size=n_rows) < 0.1
    usual = (20.0, 2, 40.0, 0.5, "level 1", "a", "x", pd.Timestamp("2024-01-20 12:00"))
    for name, value in zip(table, usual, strict=True):
        table.loc[repeated, name] = value
    return table


def odd_tables(n_outliers: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    normal, batch = draw(200, rng), draw(100, rng)
    batch.loc[: n_outliers - 1, "total"] = 1e5
    batch.loc[: n_outliers - 1, "place"] = "z"
    return normal, batch


@pytest.mark.slow
def test_the_bound_holds_with_checks() -> None:
    levels, n_runs = (0.1, 0.2), 15
    for n_outliers in (0, 10):
        runs = [compare(*odd_tables(n_outliers, seed), seed) for seed in range(n_runs)]
        for level in levels:
            flags = np.array([found.flag(level) for found in runs])
            shares = flags[:, n_outliers:].sum(axis=1) / np.maximum(1, flags.sum(axis=1))
            assert shares.mean() <= level + 2 * shares.std() / np.sqrt(n_runs)
            assert n_outliers == 0 or flags[:, :n_outliers].mean() > 0.8


def test_known_normal_rows_score_like_those_of_the_batch() -> None:
    found = compare(*odd_tables(0, 1))
    for share in (0.1, 0.3, 0.5, 0.7):
        assert np.mean(found.p_values <= share) == pytest.approx(share, abs=0.15)


def test_rows_without_a_score_are_compared_with_nothing() -> None:
    scores = np.array([9.0, np.nan, 0.5, np.nan])
    found = Comparison.of(Ruler.of(np.arange(30.0)), scores)
    np.testing.assert_array_equal(found.p_values, [22 / 31, np.nan, 30 / 31, np.nan])
    assert found.counts.sum() == 2
    high = Comparison.of(Ruler.of(np.arange(30.0)), np.where(scores > 1, 99.0, scores))
    assert high.flag(0.5).tolist() == [True, False, False, False]
    assert high.fewest_outliers(np.array([0])) == high.curve.fewest_outliers == 1
    # No row is flagged at the usual rate, and chance puts one beyond all others in 2 of 32 cases.
    assert high.bound(0.9) == (0, 1.0)
    assert high.bound(0.3).fewest == 1


def test_rows_of_one_case_count_once() -> None:
    scores = np.append(np.full(6, 99.0), np.linspace(0, 49, 54))
    ruler = Ruler.of(np.arange(200.0) / 4)
    rows = Comparison.of(ruler, scores)
    case = Comparison.of(ruler, scores, np.arange(1, 6))
    assert rows.flag(0.1)[:6].all()
    assert rows.bound(0.97).fewest > 0
    assert not case.flag(0.1).any()
    assert case.bound(0.97).fewest == 0
    # Nothing of it is lost: ranks and p-values are those of each row.
    np.testing.assert_array_equal(case.p_values, rows.p_values)
    assert case.counts.sum() == rows.counts.sum() == 60
    assert case.fewest_outliers(np.arange(6)) <= 1 < rows.fewest_outliers(np.arange(6))


def test_qms22_cannot_score_its_known_normal_rows() -> None:
    encoded = encode_frames(*odd_tables(0, 0))
    detector = QMS22(max_iter=2, random_state=0).fit(encoded.known, unlabeled=encoded.rows)
    learned = learn_checks(
        encoded.encoder, encoded.normal_cells, encoded.batch_cells, 0, is_scored=False
    )
    scorer = TableScorer(encoded.encoder, detector, learned.checks)
    assert measure_normal(scorer, encoded, learned, np.zeros(100), 100, 0) is None


def without(cells: Cells, row: int) -> Cells:
    return cells.take(np.delete(np.arange(len(cells.values)), row))


def learn(
    check: type[LevelCheck] | type[ValueCheck], cells: Cells
) -> LevelCheck | ValueCheck | None:
    if issubclass(check, LevelCheck):
        return check.learn(cells, np.arange(len(cells.values)))
    return check.learn(cells)


@pytest.mark.parametrize("check", [LevelCheck, ValueCheck])
def test_a_known_normal_row_is_checked_as_if_it_were_new(
    check: type[LevelCheck] | type[ValueCheck],
) -> None:
    """What one row alone finds odd is what a check finds that was learned without the row."""
    rng = np.random.default_rng(0)
    if check is LevelCheck:
        cells = column_of_values("x", [f"{level}" for level in rng.zipf(1.8, 80)])
    else:
        cells = Cells("x", "number", rng.standard_t(2, 80).round(1))
    learned = learn(check, cells)
    assert learned is not None
    found = learned.surprise({"x": cells}, own=True)
    for row in range(len(found)):
        again = learn(check, without(cells, row))
        assert again is not None
        if isinstance(again, ValueCheck) and isinstance(learned, ValueCheck):
            units = {name: getattr(learned.reference, name) for name in ("low_unit", "high_unit")}
            again = replace(again, reference=replace(again.reference, **units))
        expected = again.surprise({"x": cells.take(np.array([row]))})
        assert found[row] == pytest.approx(expected[0])


def test_of_many_rows_some_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relations learn from some known-normal rows; the others are new to them."""
    expected = compare(*odd_tables(0, 0)).ruler
    monkeypatch.setattr("qms22.checks.choice._MOST_LEARNED", 150)
    found = compare(*odd_tables(0, 0)).ruler
    assert found.n_known == expected.n_known == 200
    assert np.corrcoef(found.ascending, expected.ascending)[0, 1] > 0.9


def test_a_later_month_is_no_reason_to_flag() -> None:
    rng = np.random.default_rng(0)

    def month(n_rows: int, first: str) -> pd.DataFrame:
        days = pd.Timestamp(first) + pd.to_timedelta(rng.uniform(0, 28, n_rows), "D")
        return pd.DataFrame({"x": rng.normal(size=n_rows), "day": days, "month": days.month})

    june, july = month(900, "2024-06-01"), month(60, "2024-07-01")
    assert compare(june, july).flag(0.1).sum() < 3

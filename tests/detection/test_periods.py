"""Columns that only say when rows were made are left out, and nothing else is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from frames import encode_frames

from qms22.checks import TableChecks


def rows(n_rows: int, seed: int = 0, **columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=n_rows), **columns})


def notes(normal: pd.DataFrame, batch: pd.DataFrame, missing: str = "impute") -> dict[str, str]:
    """Return the notes of the columns that are left out."""
    encoded = encode_frames(normal, batch, missing=missing)
    return {column.name: column.note for column in encoded.encoder.columns_ if not column.outputs}


def test_months_counters_and_new_levels_are_left_out() -> None:
    normal = rows(
        200,
        month=np.repeat([1, 2], 100),
        quarter=["Q1", "Q2"] * 100,
        ticket=np.arange(1000, 1200),
        text_month=np.repeat(["01", "02"], 100),
    )
    batch = rows(
        50, month=3, quarter="Q3", ticket=np.arange(7000, 7050)[::-1].copy(), text_month="03"
    )
    left_out = notes(normal, batch)
    assert set(left_out) == {"month", "quarter", "ticket", "text_month"}
    assert "says when a row was made" in left_out["month"]
    assert "levels that no normal row has" in left_out["quarter"]


def test_constants_of_another_period_are_left_out() -> None:
    """Each table is of one month, and says so in every row."""
    normal = rows(200, month=4, period="Q2", day="2024-04-30", share=0.5, ok=True, fault=0)
    batch = rows(50, month=5, period="Q3", day="2024-05-31", share=0.7, ok=False, fault=0)
    normal["run"], batch["run"] = 7, 8
    batch.loc[:3, "fault"] = 7
    encoder = encode_frames(normal, batch).encoder
    assert set(encoder.ignored_) == {"month", "period", "day", "run"}
    note = {column.name: column.note for column in encoder.columns_}["run"]
    assert note.startswith("nearly all of the batch is outside the normal range")
    assert TableChecks(encoder).roles.names == ("x", "day", "share", "ok", "fault")


@pytest.mark.parametrize(
    ("usual", "new"),
    [
        pytest.param([1.5, 2.0], 30.0, id="measurements of the normal rows"),
        pytest.param([1.0, 2.0], 30.5, id="measurements of the batch"),
        pytest.param([True, False], True, id="booleans"),
    ],
)
def test_measurements_are_never_left_out(usual: list[float], new: float) -> None:
    assert not notes(rows(200, level=usual * 100), rows(50, level=new))


@pytest.mark.parametrize("n_new", [40, 45])
@pytest.mark.parametrize(("usual", "new"), [([1, 2], 9), (["a", "b"], "z")])
def test_many_anomalies_do_not_hide_their_column(usual: list[int], new: int, n_new: int) -> None:
    normal = rows(200, level=usual * 100)
    batch = rows(50, level=[new] * n_new + usual[:1] * (50 - n_new))
    assert not notes(normal, batch)
    assert notes(normal, batch.assign(level=[new] * 46 + usual[:1] * 4))


def test_numbers_on_both_sides_are_no_period() -> None:
    assert not notes(rows(200, level=[5, 6] * 100), rows(50, level=[1, 9] * 25))


def test_a_small_batch_keeps_its_columns() -> None:
    normal = rows(200, age=np.arange(200) % 70 + 18)
    assert not notes(normal, rows(9, age=999))
    assert notes(normal, rows(10, age=999))


def test_a_table_of_periods_only_keeps_them() -> None:
    normal, batch = rows(200, month=[1, 2] * 100), rows(50, month=3)
    assert not notes(normal[["month"]], batch[["month"]])


def test_imputed_months_do_not_matter() -> None:
    """The median of the months, which is imputed, is no whole number."""
    normal = rows(200, month=np.repeat([1.0, 2.0], 100))
    normal.loc[[0, 199], "month"] = np.nan
    batch = rows(100, month=3.0)
    batch.loc[:4, "month"] = np.nan
    assert set(notes(normal, batch, missing="impute")) == {"month"}
    assert set(notes(normal, batch, missing="drop")) == {"month"}


def test_hours_and_weekdays_of_later_dates_stay_if_normal_rows_cover_them() -> None:
    def used(n_days: float) -> list[str]:
        hours = np.linspace(0, 24 * n_days, 200).round()
        start = pd.Timestamp("2024-01-01")
        normal = rows(200, at=start + pd.to_timedelta(hours, unit="h"))
        batch = rows(50, at=start + pd.to_timedelta(2400 + 5 * np.arange(50), unit="h"))
        encoded = encode_frames(normal, batch)
        return [str(name) for name in encoded.encoder.get_feature_names_out()][1:]

    hour = ["at (hour sine)", "at (hour cosine)"]
    assert used(1.5) == []
    assert used(10) == hour
    assert used(20) == [*hour, "at (weekday sine)", "at (weekday cosine)"]


@pytest.mark.parametrize(
    ("n_hours", "expected"),
    [
        pytest.param(1, set(), id="an hour"),
        pytest.param(24, {"hour"}, id="a day"),
        pytest.param(3 * 24, {"hour"}, id="three days"),
        pytest.param(7 * 24, {"hour", "weekday"}, id="a week"),
    ],
)
def test_a_batch_of_one_day_is_not_compared_by_its_weekday(
    n_hours: int, expected: set[str]
) -> None:
    rng = np.random.default_rng(0)

    def made_in(first: str, n_rows: int, n_hours: int) -> pd.DataFrame:
        minutes = rng.integers(0, 60 * n_hours, n_rows)
        return rows(n_rows, at=pd.Timestamp(first) + pd.to_timedelta(minutes, unit="min"))

    normal = made_in("2024-01-01", 1000, 28 * 24)
    batch = made_in("2024-02-06", 200, n_hours)
    # A row of another time changes nothing.
    batch.loc[7, "at"] = pd.Timestamp("2024-02-25")
    outputs = encode_frames(normal, batch).encoder.get_feature_names_out()
    assert {part for part in ("hour", "weekday") if f"at ({part} sine)" in outputs} == expected


def test_working_days_cover_a_working_week() -> None:
    days = pd.bdate_range("2024-01-01", periods=60)
    normal = rows(1200, at=np.repeat(days[:40], 30) + pd.Timedelta(hours=9))
    batch = rows(100, at=np.repeat(days[40:45], 20) + pd.Timedelta(hours=9))
    outputs = encode_frames(normal, batch).encoder.get_feature_names_out()
    assert "at (weekday sine)" in outputs


def test_a_column_of_another_kind_is_left_out() -> None:
    normal = rows(200, size=np.arange(200) % 17 + 0.5)
    assert "of another kind" in notes(normal, rows(50, size="large"))["size"]
    assert not notes(normal, rows(50, size=["large"] * 40 + [1.5] * 10))
    words = rows(200, size=["large"] * 10 + [1.5, 2.5] * 95)
    assert not notes(words, rows(50, size="large"))


@pytest.mark.parametrize("exponent", [1.7, 2.2])
def test_rare_levels_do_not_hide_a_column(exponent: float) -> None:
    rng = np.random.default_rng(0)
    table = rows(4200, name=[f"level {level}" for level in rng.zipf(exponent, size=4200)])
    for n_batch in (10, 30, 60, 600):
        encoder = encode_frames(table[:-n_batch], table[-n_batch:]).encoder
        name = encoder.columns_[1]
        assert name.outputs or name.kind == "text"


def test_hours_of_later_dates_beside_periods() -> None:
    normal = rows(180, 1, month=np.arange(180) % 3, level=list("abcdef") * 30)
    batch = rows(60, 2, month=[5] * 55 + [1] * 5, level=["y"] * 30 + ["z"] * 26 + ["a"] * 4)
    for table in (normal, batch):
        table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(table)), unit="h")
        table.loc[::7, "day"] = None
    batch["day"] += pd.Timedelta(days=400)
    assert set(notes(normal, batch)) == {"month", "level"}
    days = encode_frames(normal, batch).encoder.columns_[-1]
    assert days.note == "most of the batch is outside the normal dates; only hour used"

"""Reasons of rows: the right cell to blame, in the words and formats of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qms22 import detect
from qms22.detection import Detection

ODD = 11


def orders(n_rows: int, seed: int) -> pd.DataFrame:
    """Orders with an exact relation, as a shop writes them."""
    rng = np.random.default_rng(seed)
    quantity = rng.integers(1, 9, n_rows)
    price = np.exp(rng.normal(3, 0.7, n_rows)).round(2)
    return pd.DataFrame(
        {
            "quantity": quantity,
            "unit_price": price,
            "total": (quantity * price).round(2),
            "color": rng.choice(["red", "green", "blue"], n_rows),
            "size": rng.normal(20, 2, n_rows).round(1),
        }
    )


def found_in(normal: pd.DataFrame, batch: pd.DataFrame, **options: Any) -> Detection:
    return detect(normal, batch, n_jobs=1, **{"k": 1, **options})


@pytest.mark.parametrize(
    ("cells", "columns", "text"),
    [
        (
            {"quantity": 4, "unit_price": 20.0, "total": 800.0},
            ("total", "quantity", "unit_price"),
            "total 800 where quantity × unit_price is 80; they are equal in all 500 normal rows",
        ),
        (
            {"quantity": 3, "unit_price": 2000.0, "total": 60.0},
            ("unit_price",),
            "unit_price 2000.00 where total and quantity suggest 20.00",
        ),
        (
            {"quantity": 500, "unit_price": 20.0, "total": 80.0},
            ("quantity",),
            "quantity 500 where total and unit_price suggest 4",
        ),
    ],
)
def test_the_cell_to_blame(cells: dict[str, float], columns: tuple[str, ...], text: str) -> None:
    normal, batch = orders(500, 0), orders(60, 1)
    for name, value in cells.items():
        batch[name] = batch[name].astype(float)
        batch.loc[ODD, name] = value
    found = found_in(normal, batch)
    assert found.top.tolist() == [ODD]
    reasons = found.reasons[ODD]
    assert reasons[0].columns == columns
    assert reasons[0].text == text
    # The others fit once that cell is taken as unknown.
    assert len(reasons) == 1


def test_all_flagged_rows_have_reasons_and_columns_have_one_each() -> None:
    normal, batch = orders(300, 0), orders(80, 1)
    batch.loc[ODD, ["size", "color"]] = 90.0, "pink"
    found = found_in(normal, batch, k=40)
    for row in found.top.tolist():
        reasons = found.reasons[row]
        assert 1 <= len(reasons) <= 3
        firsts = [reason.columns[0] for reason in reasons]
        assert len(set(firsts)) == len(firsts)
        for reason in reasons:
            assert str(reason) == reason.text
            assert reason.strength >= 0
            assert reason.text.startswith(reason.columns[0])
    assert {reason.columns[0] for reason in found.reasons[ODD]} == {"size", "color"}


def test_no_padding() -> None:
    """Cells that are usual are not named beside one that is absurd."""
    normal, batch = orders(300, 0), orders(80, 1)
    batch.loc[ODD, "size"] = 500.0
    found = found_in(normal, batch)
    assert [reason.columns for reason in found.reasons[ODD]] == [("size",)]


def test_formats_of_the_table() -> None:
    rng = np.random.default_rng(0)

    def accounts(n_rows: int) -> pd.DataFrame:
        days = pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 60, n_rows), "D")
        return pd.DataFrame(
            {
                "amount": [f"${value:,.2f}" for value in rng.normal(1500, 200, n_rows)],
                "rate": [f"{value:.0f} %" for value in rng.normal(50, 5, n_rows)],
                "day": days.strftime("%d.%m.%Y"),
            }
        )

    normal, batch = accounts(300), accounts(40)
    batch.loc[3, "amount"] = "$99,999.00"
    batch.loc[4, "rate"] = "99 %"
    batch.loc[5, "day"] = "05.11.2031"
    found = found_in(normal, batch, k=3)
    assert sorted(found.top.tolist()) == [3, 4, 5]
    amount, rate, day = (found.reasons[row][0].text for row in (3, 4, 5))
    assert amount.startswith("amount $99,999.00; 99 % of 300 normal rows are at most $1,")
    assert rate.startswith(
        "rate 99 %; 99 % of 300 normal rows are at most 59 %, none is above 62 %"
    )
    assert day.startswith("day 05.11.2031; ")
    assert day.endswith("none is above 29.04.2024")


def test_cells_that_are_odd_together() -> None:
    rng = np.random.default_rng(0)

    def switches(n_rows: int) -> pd.DataFrame:
        """The third is on if one of the other two is; no line tells it from them."""
        first, second = rng.uniform(size=(2, n_rows)) < 0.4
        rows = np.column_stack([first, second, first ^ second, rng.uniform(size=n_rows) < 0.4])
        return pd.DataFrame(10.0 * rows + rng.uniform(size=rows.shape), columns=[*"xyzw"]).round(3)

    normal, batch = switches(1000), switches(60)
    batch.loc[ODD, ["x", "y", "z", "w"]] = 10.4, 10.5, 10.6, 0.5
    found = found_in(normal, batch)
    assert found.top.tolist() == [ODD]
    reason = found.reasons[ODD][0]
    assert set(reason.columns) == {"x", "y", "z"}
    assert reason.text.endswith(" together, as in none of 1,000 normal rows")


def test_a_row_that_is_repeated_says_so_first() -> None:
    normal, batch = orders(300, 0), orders(60, 1)
    batch.loc[[5, 6]] = batch.loc[[7, 7]].to_numpy()
    found = found_in(normal, batch, k=3)
    assert sorted(found.top.tolist()) == [5, 6, 7]
    for row in (5, 6, 7):
        assert str(found.reasons[row][0]).startswith("the same row occurs 3 times")


def test_odd_cells_come_before_rows_that_are_alike() -> None:
    """Two stations are the same but for the line, which says less than their rare kind does."""
    rng = np.random.default_rng(0)

    def stations(n_rows: int) -> pd.DataFrame:
        table = {
            "id": [f"S{number}" for number in rng.permutation(10**6)[:n_rows]],
            "kind": rng.choice(["rail", "bus"], n_rows),
            "north": rng.uniform(47, 55, n_rows).round(4),
            "east": rng.uniform(6, 15, n_rows).round(4),
            "line": rng.choice([f"L{number}" for number in range(30)], n_rows),
        }
        return pd.DataFrame(table)

    normal, batch = stations(800), stations(150)
    normal.loc[5, "kind"] = "tram"
    batch.loc[[7, 70], ["kind", "north", "east"]] = ["tram", 50.1, 8.2]
    batch.loc[[7, 70], "line"] = ["L3", "L4"]
    found = detect(normal, batch, k=30)
    for row in (7, 70):
        texts = [reason.text for reason in found.reasons[row]]
        assert texts[0].startswith("kind tram, as in 1 of 800 normal rows")
        assert any("the same as another row but for line" in text for text in texts)
    # Rows that are usual but for being alike are told by that.
    batch.loc[[7, 70], "kind"] = "bus"
    (first, *_), *_ = (detect(normal, batch, k=30).reasons[row] for row in (7, 70))
    assert first.text.startswith("the same as another row but for line")


@pytest.mark.parametrize("n_files", [1, 2])
def test_decimal_commas_are_shown_as_the_file_has_them(n_files: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for folder, n_rows in (("normal", 300), ("new", 60)):
        (tmp_path / folder).mkdir()
        table = pd.DataFrame({"heat": rng.normal(20, 1, n_rows), "n": rng.integers(1, 99, n_rows)})
        if folder == "new":
            table.loc[7, "heat"] = 61.5
        for at, part in enumerate(np.array_split(np.arange(n_rows), n_files)):
            path = tmp_path / folder / f"{at}.csv"
            table.iloc[part].round(1).to_csv(path, sep=";", decimal=",", index=False)
    found = detect(tmp_path / "normal", tmp_path / "new", k=1, n_jobs=1)
    assert str(found.reasons[7][0]).startswith("heat 61,5; 99 % of 300 normal rows are at most 2")
    assert "." not in str(found.reasons[7][0])


def test_a_damaged_level_is_called_damaged() -> None:
    rng = np.random.default_rng(0)
    cities = ["Köln", "Mülheim", "Bonn"]
    normal = pd.DataFrame({"city": rng.choice(cities, 300), "price": rng.normal(size=300)})
    batch = pd.DataFrame({"city": rng.choice(cities, 60), "price": rng.normal(size=60)})
    batch.loc[7, "city"] = "MÃ¼lheim"
    found = detect(normal, batch, k=1, n_jobs=1)
    assert found.top.tolist() == [7]
    assert found.reasons[7][0].text.startswith(
        "city MÃ¼lheim looks like a damaged encoding (Mülheim?)"
    )


@pytest.mark.parametrize(
    ("usual", "odd", "how"),
    [
        ("{:.2f} kg", "912.05 g", "csv"),
        ("{:.2f} kg", "1,912.05 kg", "csv"),
        ("${:,.2f}", "$91,234.50", "frame"),
        ("{:.1f}", "9999", "csv"),
        ("{:.0f}", "9999.50", "csv"),
    ],
)
def test_cells_are_shown_as_they_are_written(
    tmp_path: Path, usual: str, odd: str, how: str
) -> None:
    frames = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        sizes = [usual.format(value) for value in rng.normal(60, 10, 300)]
        frames.append(pd.DataFrame({"size": sizes, "x": rng.normal(size=300)}))
    frames[1].loc[7, "size"] = odd
    tables: list[Any] = frames
    if how == "csv":
        tables = [tmp_path / "T.csv", tmp_path / "S.csv"]
        for frame, path in zip(frames, tables, strict=True):
            frame.to_csv(path, index=False)
    found = detect(*tables, k=5)
    assert f"size {odd}; " in str(found.reasons[7][0])

"""Checks of single cells and rows: what they find odd, and what they say about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from frames import encode_frames
from fuzzing import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qms22.checks import TableChecks, learn_checks
from qms22.checks.copies import CopyCheck
from qms22.checks.dates import IntervalCheck
from qms22.detection import detect
from qms22.detection.reasons.explaining import shower
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Cells, Columns, show_value

N_NORMAL, N_BATCH, ODD = 400, 60, 7


def orders(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    price = np.exp(rng.normal(3, 0.7, n_rows)).round(2)
    quantity = rng.integers(1, 9, n_rows)
    kind = rng.choice(["book", "film", "game"], n_rows, p=[0.5, 0.3, 0.2])
    hours = rng.uniform(8, 18, n_rows)
    days = rng.integers(0, 40, n_rows)
    days = np.where(days % 7 >= 5, days - 2, days)  # no weekends: 1 January 2024 is a Monday
    draws = np.random.default_rng(seed + 100).uniform(size=n_rows)
    sold = pd.Timestamp("2024-01-01") + pd.to_timedelta(days * 24 + hours, "h")
    return pd.DataFrame(
        {
            "price": price,
            "quantity": quantity,
            "total": (price * quantity).round(2),
            "kind": kind,
            "store": np.where(kind == "film", "north", rng.choice(["north", "south"], n_rows)),
            "country": "US",
            "sold": sold.floor("min"),
            "height": rng.normal(9, 1, n_rows).round(3),
            "weight": np.where(draws < 0.1, np.nan, rng.normal(5, 1, n_rows)),
            "depth": np.where(draws > 0.9, np.nan, rng.normal(5, 1, n_rows)),
        }
    )


def odd_batch(**cells: Any) -> pd.DataFrame:
    batch = orders(N_BATCH, 1).astype(dict.fromkeys(cells, object))
    for name, value in cells.items():
        batch.at[ODD, name] = value
    return batch


def read(normal: pd.DataFrame, batch: pd.DataFrame) -> tuple[TabularEncoder, TableChecks, Columns]:
    encoded = encode_frames(normal, batch)
    checks = learn_checks(encoded.encoder, encoded.normal_cells, encoded.batch_cells, 0).checks
    return encoded.encoder, checks, checks.read(encoded.batch_cells)


def copy_check(checks: TableChecks) -> int:
    return [isinstance(check, CopyCheck) for check in checks.checks].index(True)


def sentence(batch: pd.DataFrame, row: int = ODD) -> tuple[int, str]:
    """Return the oddest row, and what is the oddest about one."""
    encoder, checks, rows = read(orders(N_NORMAL, 0), batch)
    surprises = checks.surprises(rows)
    check = int(np.argmax(surprises[row]))
    text = checks.describe(rows, np.array([row]), check, shower(encoder))[0].text
    return int(np.argmax(surprises.max(axis=1))), text


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            {"height": 50.0},
            "height 50; 99 % of 400 normal rows are at most 11.045, none is above 11.49",
        ),
        (
            {"height": -50.0},
            "height -50; 99 % of 400 normal rows are at least 6.827, none is below 6.493",
        ),
        ({"kind": "hat"}, "kind hat; never seen in 400 normal rows (book, film, game)"),
        ({"country": "UK"}, "country UK; all 400 normal rows have US"),
        ({"country": None}, "country is missing; all 400 normal rows have US"),
        ({"height": "tall"}, "height “tall”; normal rows have a number"),
        ({"height": None}, "height is missing, as in none of 400 normal rows"),
        (
            {"kind": "film", "store": "south"},
            "kind film, as in none of 140 normal rows with store south; 105 have book",
        ),
        (
            {"sold": pd.Timestamp("2024-01-17 03:10")},
            "sold 2024-01-17 03:10; none of 400 normal rows is between 17:58 and 08:01",
        ),
        (
            {"sold": pd.Timestamp("2024-01-20 12:00")},
            "sold 2024-01-20 12:00 is a Saturday, as in none of 400 normal rows",
        ),
        (
            {"weight": None, "depth": None},
            "weight and depth are missing together, as in none of 400 normal rows",
        ),
    ],
)
def test_sentences(cells: dict[str, Any], expected: str) -> None:
    oddest, text = sentence(odd_batch(**cells))
    assert text == expected
    assert oddest == ODD


def test_a_misspelt_boolean() -> None:
    tables = (orders(N_NORMAL, 0), orders(N_BATCH, 1))
    normal, batch = (table.assign(paid=[True, False] * (len(table) // 2)) for table in tables)
    batch["paid"] = batch["paid"].astype(object)
    batch.loc[ODD, "paid"] = "RTUE"
    found = detect(normal, batch, k=1, kinds={"paid": "boolean"}, n_jobs=1)
    assert "paid “RTUE”; normal rows have true or false" in map(str, found.reasons[ODD])


def test_a_number_that_does_not_fit() -> None:
    batch = orders(N_BATCH, 1)
    batch.loc[ODD, ["price", "quantity", "total"]] = 20.0, 4, 240.0
    oddest, text = sentence(batch)
    # Each of the three may be wrong.
    assert text in (
        "total 240 where price and quantity suggest 80",
        "quantity 4 where total and price suggest 8",
    )
    assert oddest == ODD


@pytest.mark.parametrize(
    ("factor", "text", "usual"),
    [
        (1, "is 36 hours after begin 2024-01-01", "1 to 4 hours after"),
        (24, "is 1.5 days after begin 2024-01-01", "1 to 4 days after"),
        (-24, "is 1.5 days after begin 2024-01-01", "1 to 4 days before"),
        (0, "is 36 hours after begin 2024-01-01", "the same"),
    ],
)
def test_time_between_two_dates(factor: int, text: str, usual: str) -> None:
    begin = np.zeros(300)
    hours = np.random.default_rng(0).uniform(1, 4, 300) * factor
    dates = [
        Cells(name, "date", 1e6 * 86400 * 19723 + 3600e6 * values)
        for name, values in (("begin", begin), ("end", hours))
    ]
    check = IntervalCheck.learn(dates[0], dates[1])
    assert check is not None
    row = {cells.name: replace(cells, values=cells.values[:1].copy()) for cells in dates}
    row["begin"].values[0], row["end"].values[0] = 1e6 * 86400 * 19723, 1e6 * 86400 * 19724.5
    found = check.describe(row, lambda name, value: show_value("date", value))
    assert found[0].text.endswith(f"{text}; in 98 % of normal rows it is {usual}")


def test_minutes_between_two_times() -> None:
    def trips(n_rows: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        begin = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 40000, n_rows), "min")
        end = begin + pd.to_timedelta(rng.integers(20, 60, n_rows), "min")
        return pd.DataFrame({"begin": begin, "end": end, "fare": rng.normal(20, 3, n_rows)})

    normal, batch = trips(600, 0), trips(200, 1)
    begin, end = batch.loc[ODD, ["begin", "end"]]
    batch.loc[ODD, "begin"], batch.loc[ODD, "end"] = end, begin
    found = detect(normal, batch, k=1, n_jobs=1)
    assert found.top.tolist() == [ODD]
    words = str(found.reasons[ODD][0])
    assert " minutes before begin " in words
    assert words.endswith("; in 98 % of normal rows it is 20 to 59 minutes after")


def test_times_of_day_are_compared_with_each_other_only() -> None:
    def shifts(n_rows: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        day = pd.Timestamp("1960-03-01") + pd.to_timedelta(
            np.sort(rng.integers(0, 90, n_rows)), "D"
        )
        begin = rng.integers(7 * 60, 9 * 60, n_rows)
        end = begin + rng.integers(440, 500, n_rows)
        return pd.DataFrame(
            {
                "day": day.strftime("%Y-%m-%d"),
                "paid": (day + pd.Timedelta(days=10)).strftime("%Y-%m-%d"),
                "begin": [f"{at // 60:02d}:{at % 60:02d}" for at in begin],
                "end": [f"{at // 60:02d}:{at % 60:02d}" for at in end],
            }
        )

    normal, batch = shifts(600, 0), shifts(200, 1)
    batch.loc[ODD, ["begin", "end"]] = batch.loc[ODD, ["end", "begin"]].to_numpy()
    _, checks, _ = read(normal, batch)
    pairs = {each.columns for each in checks.checks if isinstance(each, IntervalCheck)}
    assert pairs == {("paid", "day"), ("end", "begin")}
    found = detect(normal, batch, k=1, n_jobs=1)
    assert found.top.tolist() == [ODD]


def test_rounding_is_not_odd() -> None:
    """No reason may say that a total of 80.04 does not fit the 80.04 that is suggested."""
    _, checks, rows = read(orders(N_NORMAL, 0), orders(N_BATCH, 1))
    total = len(checks.checks) + checks.fitting.numbers.index("total")
    assert not checks.surprises(rows)[:, total].any()


def test_numbers_that_fit_beyond_all_usual_ones_are_not_odd() -> None:
    """A total that is too small, and right: the price and the quantity are not to blame."""
    batch = orders(N_BATCH, 1)
    batch.loc[ODD, ["price", "quantity", "total"]] = 1.5, 1, 1.5
    _, checks, rows = read(orders(N_NORMAL, 0), batch)
    found = checks.fitting.surprises(rows)[ODD]
    assert not found[[checks.fitting.numbers.index(name) for name in ("price", "quantity")]].any()


def test_a_category_that_suggests_a_number() -> None:
    normal, batch = (
        table.assign(pages=table["kind"].map({"book": 300.0, "film": 2.0, "game": 50.0}))
        for table in (orders(N_NORMAL, 0), orders(N_BATCH, 1))
    )
    for table in (normal, batch):
        table["pages"] += np.random.default_rng(len(table)).normal(0, 1, len(table)).round(2)
    batch.loc[ODD, ["kind", "pages"]] = "game", 300.0
    encoder, checks, rows = read(normal, batch)
    surprises = checks.surprises(rows)
    assert np.argmax(surprises.max(axis=1)) == ODD
    check = int(np.argmax(surprises[ODD]))
    text = checks.describe(rows, np.array([ODD]), check, shower(encoder))[0].text
    assert text == "pages 300 where kind suggests 50"


def test_rows_that_are_repeated() -> None:
    batch = orders(N_BATCH, 1)
    batch = pd.concat([batch, *[batch.iloc[[ODD]]] * 5], ignore_index=True)
    _, text = sentence(batch)
    assert text == "the same row occurs 6 times; none of 400 normal rows are repeated"
    encoder, checks, rows = read(orders(N_NORMAL, 0), batch)
    surprises = checks.surprises(rows)
    repeated = surprises[:, copy_check(checks)]
    assert np.flatnonzero(repeated > 10).tolist() == [ODD, *range(N_BATCH, N_BATCH + 5)]
    # It is as odd if few rows are looked at, and not odd at all if nobody knows.
    some = {name: cells.take(np.array([3, ODD])) for name, cells in rows.items()}
    np.testing.assert_array_equal(checks.surprises(some), surprises[[3, ODD]])
    part = checks.read(encoder._typed_cells(batch.iloc[[ODD, N_BATCH]]), is_part=True)
    assert not checks.surprises(part)[:, copy_check(checks)].any()


def test_rows_that_are_repeated_among_normal_ones_too() -> None:
    normal = pd.DataFrame({"x": np.repeat([1.5, 2.5, 3.5], 100), "y": np.tile([1.5, 2.5], 150)})
    _, checks, rows = read(normal, normal[::5])
    assert not any(isinstance(check, CopyCheck) for check in checks.checks)
    assert checks.surprises(rows).max() < 3


def test_normal_rows_are_as_odd_as_others() -> None:
    """Scores of rows that were not learned from are about −log of uniform numbers."""
    _, checks, rows = read(orders(1000, 2), orders(1000, 3))
    shares = np.exp(-checks.scores(checks.surprises(rows)))
    for share in (0.01, 0.05, 0.2, 0.5):
        assert np.mean(shares <= share) == pytest.approx(share, abs=0.01 + 0.3 * share)


def test_the_order_of_rows_and_columns_does_not_matter() -> None:
    normal, batch = orders(N_NORMAL, 0), orders(N_BATCH, 1)
    _, checks, rows = read(normal, batch)
    expected = np.sort(checks.surprises(rows), axis=1)
    order = np.random.default_rng(0).permutation(N_BATCH)
    _, checks, rows = read(normal, batch.iloc[order])
    np.testing.assert_array_equal(np.sort(checks.surprises(rows), axis=1), expected[order])
    turned = [*reversed(normal.columns)]
    _, checks, rows = read(normal[turned], batch[turned])
    found = np.sort(checks.surprises(rows), axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_column_that_a_table_lacks() -> None:
    encoder, checks, rows = read(orders(N_NORMAL, 0), orders(N_BATCH, 1))
    for name in orders(1, 0):
        lacking = checks.read(encoder._typed_cells(orders(N_BATCH, 1).drop(columns=name)))
        found = checks.surprises(lacking)
        assert found.shape == checks.surprises(rows).shape
        assert np.isfinite(found).all()


NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.0, 0.1, -5.0, 1e300, -1e300, 1e-300, 1.7e308, -(2.0**63), 2.0**63 - 1]
)
CELLS = st.one_of(NUMBERS, st.none())
TEXTS = st.sampled_from(["a", "b", "", "inf", "nan", "12", "é" * 50, None])


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    n_normal, n_batch = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    n_rows = n_normal + n_batch
    columns: dict[str, Any] = {"x": np.arange(n_rows) % 7 * 0.37}
    for at in range(draw(st.integers(0, 3))):
        columns[f"n{at}"] = np.array(
            draw(st.lists(CELLS, min_size=n_rows, max_size=n_rows)), dtype=np.float64
        )
    for at in range(draw(st.integers(0, 2))):
        columns[f"t{at}"] = draw(st.lists(TEXTS, min_size=n_rows, max_size=n_rows))
    if draw(st.booleans()):
        columns["gone"] = [None] * n_rows
    if draw(st.booleans()):
        columns["same"] = 5
    table = pd.DataFrame(columns)
    return table[:n_normal], table[n_normal:].reset_index(drop=True)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(tables())
@example(
    (
        pd.DataFrame({"x": [0.0, 0.37], "t0": ["", None]}),
        pd.DataFrame({"x": [0.74], "t0": [None]}, dtype=object),
    )
)
def test_anything_goes(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    try:
        encoded = encode_frames(*both)
    except ValueError:
        return  # there is nothing to use
    own = learn_checks(encoded.encoder, encoded.normal_cells, encoded.batch_cells, 0)
    checks = own.checks
    rows = checks.read(encoded.batch_cells)
    surprises = checks.surprises(rows)
    assert np.isfinite(surprises).all()
    assert (surprises >= 0).all()
    assert np.isfinite(checks.scores(surprises)).all()
    show = shower(encoded.encoder)
    for check in range(surprises.shape[1]):
        places = np.flatnonzero(surprises[:, check])
        for text, _ in checks.describe(rows, places, check, show):
            assert "nan" not in text.replace("“nan”", "").replace(" nan", "").replace("(nan", "")
    assert np.isfinite(own.oddness).all()
    assert np.isfinite(own.score(own.places)).all()


def test_a_missing_cell_is_compared_with_nothing() -> None:
    batch = odd_batch(price=None, sold=None)
    encoder, checks, rows = read(orders(N_NORMAL, 0), batch)
    for check in range(len(checks.checks)):
        if checks.columns_of(check) in [("price",), ("sold",)]:
            text = checks.describe(rows, np.array([ODD]), check, shower(encoder))[0].text
            assert text.startswith(f"{checks.columns_of(check)[0]} is missing")
            assert "nan" not in text


def test_many_columns() -> None:
    rng = np.random.default_rng(0)
    normal, batch = (pd.DataFrame(rng.normal(size=(n, 200))).add_prefix("x") for n in (300, 20))
    batch.loc[4, "x17"] = 30.0
    _, checks, rows = read(normal, batch)
    surprises = checks.surprises(rows)
    assert np.isfinite(surprises).all()
    assert np.argmax(surprises.max(axis=1)) == 4


def test_only_categories() -> None:
    rng = np.random.default_rng(0)
    normal, batch = (
        pd.DataFrame({"a": rng.choice(["u", "v"], n), "b": rng.choice(["w", "z"], n)})
        for n in (200, 20)
    )
    batch.loc[3, "a"] = "t"
    _, checks, rows = read(normal, batch)
    assert np.argmax(checks.surprises(rows).max(axis=1)) == 3


@pytest.mark.parametrize(
    ("known", "given", "expected"),
    [(5, ["5", "abc"], [False, True]), ("A", [7, 8], [True, True]), (5, [5.0, 6.0], [False, True])],
)
def test_a_constant_that_is_of_another_type(
    known: object, given: list[Any], expected: list[bool]
) -> None:
    normal = pd.DataFrame({"x": np.arange(30) % 11 * 0.7, "same": known})
    batch = pd.DataFrame({"x": [0.7, 1.4], "same": given})
    _, checks, rows = read(normal, batch)
    found = checks.surprises(rows).max(axis=1) > 3
    assert found.tolist() == expected

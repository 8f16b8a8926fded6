"""Which cell is to blame if the cells of a row contradict each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from qms22 import TabularEncoder
from qms22.checks import learn_checks
from qms22.checks.relations import RelationInputs, Relations
from qms22.detection.reasons.explaining import shower
from qms22.detection.reasons.row_reasons import RowReason, blamed_reasons

TAXES = {"AT": 20.0, "BE": 21.0, "DE": 19.0, "FR": 20.0, "NL": 21.0}


def draw_orders(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    country = rng.choice(list(TAXES), n_rows)
    price, quantity = rng.lognormal(3, 0.5, n_rows), 1.0 + rng.poisson(2, n_rows)
    tax = np.array([TAXES[name] for name in country])
    total = price * quantity * (1 + tax / 100)
    columns = {"country": country, "price": price, "quantity": quantity, "tax": tax, "total": total}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def normal() -> pd.DataFrame:
    return draw_orders(3000, np.random.default_rng(0))


def explain(normal: pd.DataFrame, rows: pd.DataFrame) -> list[list[RowReason]]:
    encoder = TabularEncoder().fit(normal)
    known = encoder._typed_cells(normal)
    # The batch is like the normal rows: what odd rows have in common is not what all of it does.
    checks = learn_checks(encoder, known, known, 0).checks
    return blamed_reasons(checks, checks.read(encoder._typed_cells(rows)), shower(encoder))


def first_columns(reasons: list[list[RowReason]]) -> set[str]:
    return {found[0].columns[0] for found in reasons}


def draw_parcels(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw parcels whose days follow from their country."""
    country = rng.choice(list(TAXES), n_rows)
    days = 10 * (1 + np.searchsorted(list(TAXES), country)) + rng.normal(0, 0.1, n_rows)
    return pd.DataFrame({"country": country, "days": days, "weight": rng.lognormal(size=n_rows)})


def test_a_contradiction_blames_the_number_if_nothing_else_is_known() -> None:
    rng = np.random.default_rng(1)
    normal, row = draw_parcels(1000, rng), draw_parcels(1, rng).assign(country="BE", days=40.25)
    [[reason, *_]] = explain(normal, row)
    assert reason.columns == ("days",)
    assert reason.text == "days 40.25 where country suggests 20"


@pytest.mark.parametrize("name", ["salary", "tax"])
def test_a_number_that_is_odd_for_its_group_is_to_blame(name: str) -> None:
    rng = np.random.default_rng(3)
    grade = rng.choice([1, 2, 3], 600)
    salary = 2000 * grade * rng.lognormal(0, 0.07, 600)
    normal = pd.DataFrame({"grade": [f"G{each}" for each in grade], "salary": salary.round(2)})
    normal["tax"] = (0.19 * normal["salary"]).round(2)
    row = normal[normal["grade"] == "G1"].head(1)
    # As others of the table, and twice as much as others of the grade.
    [[reason, *_]] = explain(normal, row.assign(**{name: 2 * row[name]}))
    assert reason.columns[0] == name


def test_rows_that_agree_in_a_category_blame_it() -> None:
    rng = np.random.default_rng(2)
    normal, rows = draw_parcels(1000, rng), draw_parcels(40, rng)
    rows = rows[rows["country"] != "BE"].assign(
        country="BE", days=lambda part: part["days"].round()
    )
    reasons = explain(normal, rows)
    assert {found[0].columns for found in reasons} == {("country", "days")}
    for found, days in zip(reasons, rows["days"], strict=True):
        assert found[0].text == f"country BE does not fit days {days:g}; 20 would"


def test_a_missing_category_is_named_as_missing() -> None:
    rng = np.random.default_rng(2)
    normal, rows = draw_parcels(1000, rng), draw_parcels(40, rng)
    normal.loc[normal["country"] == "BE", "country"] = None
    rows = rows[rows["country"] != "BE"].assign(
        country=None, days=lambda part: part["days"].round()
    )
    for found in explain(normal, rows):
        assert found[0].text.startswith("a missing country does not fit days ")


def test_a_value_that_is_suggested_occurs() -> None:
    def draw(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        price = rng.choice([2.45, 18.75, 19.9, 74.9, 98.0], n_rows)
        form = np.where(price > 19, "bag", np.where(price > 10, "pen", "pill"))
        cost = price + rng.normal(0, 2, n_rows)
        return pd.DataFrame({"form": form, "price": price, "cost": cost})

    normal = draw(1000, np.random.default_rng(3))
    encoder = TabularEncoder().fit(normal)
    known = encoder._typed_cells(normal)
    checks = learn_checks(encoder, known, known, 0).checks
    rows = pd.DataFrame({"form": ["bag", "pen", "vial"], "price": 18.75, "cost": [18.7, 75, 18.7]})
    place, show = checks.fitting.numbers.index("price"), shower(encoder)
    cells = checks.read(encoder._typed_cells(rows))
    found = checks.fitting.describe_contradiction(cells, place, "form", show)
    assert [said.text for said in found] == [
        "form bag does not fit price 18.75; 19.9 would",
        # The only price that pens have, and none.
        "form pen does not fit price 18.75",
        "form vial does not fit price 18.75",
    ]
    said = checks.fitting.describe(cells, place, show)[1]
    assert said.text == "price 18.75 where cost suggests 74.9"
    assert said.usual == ("value", "74.9", (74.9,))


def test_a_number_that_others_support_is_not_to_blame(normal: pd.DataFrame) -> None:
    rows = draw_orders(10, np.random.default_rng(6))
    wrong = rows[rows["tax"] == 19].head(1).assign(country="BE")
    [[reason, *_]] = explain(normal, wrong)
    # The total has the tax in it.
    assert reason.columns == ("country", "tax")


def test_rows_that_agree_in_a_number_blame_it(normal: pd.DataFrame) -> None:
    rng = np.random.default_rng(3)
    rows = draw_orders(20, rng).assign(price=rng.normal(45.0, 0.5, 20))
    assert first_columns(explain(normal, rows)) == {"price"}
    # Without that it is the last number, which others are usually computed from.
    rows = draw_orders(20, rng)
    rows["price"] *= rng.uniform(1.5, 2.0, 20)
    assert first_columns(explain(normal, rows[rows["price"] < 60])) == {"total"}


def test_a_cell_that_is_odd_by_itself_is_to_blame(normal: pd.DataFrame) -> None:
    rows = draw_orders(20, np.random.default_rng(4))
    # No normal row has such a quantity.
    rows = rows[rows["price"] > 15]
    swapped = rows.assign(quantity=rows["price"], price=rows["quantity"])
    blamed = [found[0].columns[0] for found in explain(normal, swapped)]
    assert np.mean([name in {"quantity", "price"} for name in blamed]) > 0.8


def test_a_word_among_numbers_is_the_only_cell_to_blame(normal: pd.DataFrame) -> None:
    rows = draw_orders(20, np.random.default_rng(7)).astype({"quantity": object})
    rows["quantity"] = "two"
    for found in explain(normal, rows):
        assert [str(each) for each in found] == ["quantity “two”; normal rows have a number"]


def test_leaving_a_column_out_is_as_if_it_had_never_been_there() -> None:
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(900, 4)) @ rng.normal(size=(4, 4))
    level = (numbers[:, :1] + rng.normal(size=(900, 1)) > 0).astype(float)
    relations = Relations()
    relations.learn(RelationInputs(numbers, level), 0)
    for column in range(5):
        others = [at for at in range(4) if at != column]
        kept = level[:, column == 4 :]
        naive = Relations()
        naive.learn(RelationInputs(numbers[:, others], kept), 0)
        expected = naive.predict(RelationInputs(numbers[:, others], kept))
        found = relations.predict(RelationInputs(numbers, level), [column])
        np.testing.assert_allclose(found.values[:, others], expected.values, atol=1e-6)
        if column < 4:
            assert np.isnan(found.errors[:, column]).all()
        # Errors are in units that are as large as those of predictions without the column.
        sizes = np.median(np.abs(found.errors[:, others]), axis=0)
        assert (sizes < 2).all()


def test_a_level_that_was_never_seen_is_called_so(normal: pd.DataFrame) -> None:
    rows = draw_orders(20, np.random.default_rng(5))
    rows["country"] = "XX"
    for found in explain(normal, rows):
        assert found[0].text.startswith("country XX; never seen in 3,000 normal rows")


def test_rounding_is_no_reason() -> None:
    """Among small amounts a cent is the largest error of all."""
    rng = np.random.default_rng(0)

    def draw(n_rows: int, size: float) -> pd.DataFrame:
        net = rng.lognormal(size, 1, n_rows).round(2)
        return pd.DataFrame({"net": net, "gross": (1.19 * net).round(2)})

    reasons = explain(draw(2000, 4.0), draw(200, 1.0).query("net > 2.5"))
    assert not any("where" in str(reason) for found in reasons for reason in found)

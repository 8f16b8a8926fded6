"""Columns that the user has read in another way, by ``kinds``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from qms22.tables import TabularEncoder

N = 60


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "route": rng.choice([1010, 2020, 3030], N),
            "code": [f"{at % 20:03}" for at in range(N)],
            "paid": rng.choice(["yes", "no"], N),
            "day": [20240101 + at % 28 for at in range(N)],
            "size": rng.normal(size=N).round(3),
            "who": [f"customer {at}" for at in range(N)],
        }
    )


def kinds(**asked: str) -> dict[str, str]:
    encoder = TabularEncoder(kinds=asked).fit(table())
    assert encoder.transform(table()).shape == (N, len(encoder.get_feature_names_out()))
    return {column.name: column.kind for column in encoder.columns_}


def test_what_is_inferred() -> None:
    assert kinds() == {
        "route": "number",
        "code": "category",
        "paid": "category",
        "day": "date",
        "size": "number",
        "who": "text",
    }


def test_numbers_as_categories() -> None:
    encoder = TabularEncoder(kinds={"route": "category"}).fit(table())
    matrix = encoder.transform(table())[:, encoder.groups_["route"]]
    expected = table()["route"].to_numpy()[:, np.newaxis] == [1010, 2020, 3030, -1]
    np.testing.assert_array_equal(matrix, expected)
    unseen = encoder.transform(table().assign(route=4040))[:, encoder.groups_["route"]]
    assert unseen.tolist() == [[0, 0, 0, 1]] * N


def test_other_kinds() -> None:
    assert kinds(code="number")["code"] == "number"
    assert kinds(paid="boolean")["paid"] == "boolean"
    assert kinds(day="number")["day"] == "number"
    assert kinds(who="category")["who"] == "category"
    encoder = TabularEncoder(kinds={"code": "number", "paid": "boolean"}).fit(table())
    cells = encoder._typed_cells(table())
    assert cells["code"].values.tolist() == [at % 20 for at in range(N)]
    assert cells["paid"].values.tolist() == (table()["paid"] == "yes").tolist()


def test_columns_that_are_not_to_be_used() -> None:
    encoder = TabularEncoder(kinds={"route": "ignore", "size": "text"}).fit(table())
    notes = {column.name: column.note for column in encoder.columns_ if not column.outputs}
    assert notes["route"] == "ignored, as asked"
    assert notes["size"] == "read as asked; ignored"
    encoder.transform(table().drop(columns=["route", "size", "who"]))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"Zip": "category"},
            "there is no column 'Zip' to read as category; the columns",
        ),
        (
            {"route": "float"},
            "column 'route' cannot be read as 'float'; give one of the kinds number,",
        ),
        ({"who": "number"}, r"'who' cannot be read as asked \(number\): row 0 has 'customer 0'"),
        ({"size": "date"}, r"'size' cannot be read as asked \(date\): row 0 has"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        TabularEncoder(kinds=asked).fit(table())
    assert "\n" not in str(raised.value)

"""Cells without a value of the kind of their column: missing ones, words, infinite numbers."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from table_files import N, everything, people

from qms22.tables import TabularEncoder


def encoded(encoder: TabularEncoder, table: pd.DataFrame) -> pd.DataFrame:
    """Return the matrix with the names of its columns."""
    return pd.DataFrame(encoder.transform(table), columns=encoder.get_feature_names_out())


def test_missing_cells_of_normal_rows_get_columns() -> None:
    normal = people().astype({"age": float, "member": object})
    normal["when"] = pd.date_range("2024-01-01", periods=N, freq="7D")
    for column, rows in {"age": [3, 5], "city": [5], "member": [7], "when": [0, 9]}.items():
        normal.loc[rows, column] = None
    matrix = encoded(TabularEncoder().fit(normal), normal)
    for column in ("age", "city", "member", "when"):
        assert matrix[f"{column}=(missing)"].tolist() == normal[column].isna().tolist()
    assert matrix["age"].tolist() == normal["age"].fillna(normal["age"].median()).tolist()
    assert matrix["member"].tolist() == [value is True for value in normal["member"]]
    days = (normal["when"] - normal["when"].min()).dt.days
    assert matrix["when (days)"].tolist() == days.fillna(days.sort_values().iloc[18]).tolist()
    cities = matrix.filter(like="city=")
    assert cities.columns[-1] == "city=(unseen)"
    assert (cities.sum(axis=1) == 1).all()
    assert matrix.loc[5, "city=(missing)"] == 1


def test_missing_cells_that_normal_rows_never_have() -> None:
    normal = people()
    encoder = TabularEncoder().fit(normal)
    gaps = normal.astype({"age": float, "member": object})
    gaps.loc[5, ["age", "city", "member"]] = None
    row = encoded(encoder, gaps).loc[5]
    assert row["age"] == normal["age"].median()
    assert row["city=(unseen)"] == 1
    assert row["member"] == 0
    assert encoded(TabularEncoder().fit(normal), normal).equals(encoded(encoder, normal))


def test_rows_are_dropped_without_columns_for_gaps() -> None:
    gaps = people().astype({"age": float})
    gaps.loc[5, ["age", "city"]] = None
    encoder = TabularEncoder(missing="drop").fit(gaps)
    assert not any("(missing)" in name for name in encoder.get_feature_names_out())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"age": "old"}, "'old'"),
        ({"age": [[1]] * N}, "'(no text)'"),
        ({"age": [20, "x y", *[[1]] * (N - 2)]}, "20"),
        ({"age": np.inf}, "'inf'"),
        ({"age": pd.Timestamp("2024-03-01")}, "'2024-03-01'"),
        ({"city": range(N)}, "'0'"),
        ({"city": [[1]] * N}, "'(no text)'"),
        ({"city": date(2024, 3, 1)}, "'2024-03-01'"),
        ({"member": 2}, "'2'"),
        ({"member": "maybe"}, "'maybe'"),
        ({"visited": 1.5}, "'1.5'"),
        ({"visited": "soon"}, "'soon'"),
    ],
)
def test_cells_of_another_type_become_words(change: dict[str, Any], expected: str) -> None:
    encoder = TabularEncoder().fit(everything())
    [name] = change
    table = everything().drop(columns=name).assign(**change)
    cells = encoder._typed_cells(table)[name]
    assert cells.show(0) == expected
    assert not cells.missing.any()
    matrix = encoder.transform(table)
    assert np.isfinite(matrix).all()
    if name != "city":
        # Nothing but the typical value: a check beside the score names such cells.
        columns = encoder.groups_[name]
        usual = np.tile(encoder.typical_row_[list(columns)], (N, 1))
        found = matrix[:, columns]
        if expected.startswith("'"):
            np.testing.assert_array_equal(found, usual)


def test_infinite_values_of_normal_rows_are_a_word() -> None:
    normal = pd.DataFrame({"x": [1.0, 2.0, 4.0, np.inf, -np.inf] * 5})
    matrix = encoded(TabularEncoder().fit(normal), normal)
    assert matrix.columns.tolist() == ["x", "x=-inf", "x=inf"]
    assert matrix[:5].to_numpy().tolist() == [
        [1, 0, 0],
        [2, 0, 0],
        [4, 0, 0],
        [2, 0, 1],
        [2, 1, 0],
    ]


@pytest.mark.parametrize("large", [10**400, Fraction(10**400)])
def test_numbers_too_large_for_a_float_are_infinite(large: Any) -> None:
    infinite = pd.DataFrame({"x": [1.0, 2.0, 4.0, np.inf, -np.inf] * 5})
    too_large = pd.DataFrame({"x": pd.Series([1, 2, 4, large, -large] * 5, dtype=object)})
    expected = encoded(TabularEncoder().fit(infinite), infinite)
    pd.testing.assert_frame_equal(encoded(TabularEncoder().fit(too_large), too_large), expected)
    with pytest.raises(ValueError, match=r"infinite \(inf\) values: 'x' \(10, first at row 3\)"):
        TabularEncoder(missing="error").fit(too_large)


def test_columns_that_are_lacking_in_a_part_have_the_typical_value() -> None:
    encoder = TabularEncoder().fit(people())
    whole, part = people(), people().drop(columns=["age", "city"])
    _, expected = encoder._transform_part(whole.assign(age=whole["age"].median(), city="Rome"))
    _, found = encoder._transform_part(part)
    assert found.tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="lacks columns 'age', 'city', 'height', 'member'"):
        encoder._transform_part(pd.DataFrame({"other": [1.0]}))

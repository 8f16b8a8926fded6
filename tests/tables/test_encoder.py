from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from table_files import N, everything, people

from qms22.models import TRUSTED
from qms22.tables import ColumnInfo, TabularEncoder
from qms22.tables.columns.plan import ColumnPlan

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")


def with_gaps() -> pd.DataFrame:
    table = people().astype({"age": float, "member": object})
    table.loc[[3, 5], "age"] = None
    table.loc[5, "city"] = None
    table.loc[7, "member"] = None
    return table


def test_matrix_is_right() -> None:
    normal = people()
    encoder = TabularEncoder().fit(normal)
    expected = [
        normal["age"],
        normal["height"],
        normal["city"] == "Oslo",
        normal["city"] == "Rome",
        normal["city"] == "São Paulo, SP",
        np.zeros(N),
        normal["member"],
    ]
    found = encoder.transform(normal)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.column_stack(expected).astype(float))
    assert encoder.get_feature_names_out().tolist() == [
        "age",
        "height",
        "city=Oslo",
        "city=Rome",
        "city=São Paulo, SP",
        "city=(unseen)",
        "member",
    ]
    assert encoder.groups_ == {"age": (0,), "height": (1,), "city": (2, 3, 4, 5), "member": (6,)}
    assert encoder.columns_[2] == ColumnInfo("city", "category", "3 levels", (2, 3, 4, 5))
    assert encoder.typical_["age"] == f"{normal['age'].median():g}"
    typical = encoder.typical_row_
    assert typical[0] == normal["age"].median()
    assert typical[2:6].tolist() == [0, 1, 0, 0]  # Rome comes once more often


def test_libraries_agree_to_the_bit() -> None:
    table = everything()
    expected = TabularEncoder().fit(table)
    matrix = expected.transform(table)
    for other in (pl.from_pandas(table), pa.Table.from_pandas(table), table.convert_dtypes()):
        encoder = TabularEncoder().fit(other)
        assert encoder.columns_ == expected.columns_
        assert encoder.typical_ == expected.typical_
        assert encoder.transform(other).tobytes() == matrix.tobytes()
        assert expected.transform(other).tobytes() == matrix.tobytes()
    gaps = with_gaps()
    imputing = TabularEncoder(missing="impute").fit(gaps)
    other = TabularEncoder(missing="impute").fit(pl.from_pandas(gaps))
    assert imputing.transform(gaps).tobytes() == other.transform(pl.from_pandas(gaps)).tobytes()


def test_dates() -> None:
    table = everything()
    encoder = TabularEncoder().fit(table)
    matrix = encoder.transform(table)
    parts = matrix[:, encoder.groups_["visited"]]
    np.testing.assert_array_equal(parts, matrix[:, encoder.groups_["written"]])
    visited = table["visited"]
    np.testing.assert_allclose(parts[:, 0], 6 / 24 + 31 / 24 * np.arange(N))
    hour = 2 * np.pi * (visited.dt.hour / 24)
    weekday = 2 * np.pi * (visited.dt.day_of_week / 7)
    angles = [np.sin(hour), np.cos(hour), np.sin(weekday), np.cos(weekday)]
    np.testing.assert_allclose(parts[:, 1:], np.column_stack(angles), atol=1e-12)
    weekly = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=9, freq="7D")})
    assert TabularEncoder().fit(weekly).get_feature_names_out().tolist() == ["when (days)"]
    # Local time, in any time zone.
    berlin = table.assign(visited=visited.dt.tz_localize("Europe/Berlin"))
    assert encoder.transform(berlin).tobytes() == matrix.tobytes()


def test_typed_cells() -> None:
    table = everything().assign(member=lambda t: t["member"].astype(str), extra="x")
    encoder = TabularEncoder(ignore=["written"]).fit(table)
    batch = table.assign(age=table["age"].astype(str), height="tall", visited=table["written"])
    cells = encoder._typed_cells(batch[["age", "height", "member", "city", "written", "unit"]])
    forms = {name: column.form for name, column in cells.items()}
    assert forms == {
        "age": "number",
        "height": "number",  # with a word in every cell
        "member": "boolean",
        "city": "text",
        "written": "date",  # though it is ignored
        "unit": "text",
    }
    assert cells["age"].values.tolist() == table["age"].tolist()
    assert cells["age"].levels == ()
    assert cells["member"].values.tolist() == (people()["member"] * 1.0).tolist()
    stamps = table["visited"].to_numpy().astype("datetime64[us]").astype(np.int64)
    assert cells["written"].values.tolist() == stamps.tolist()
    unknown = encoder._typed_cells(batch.assign(other=1.5))["other"]
    assert (unknown.form, unknown.values[0]) == ("number", 1.5)
    assert cells["height"].levels == ("tall",)
    assert not cells["height"].has_value.any()
    assert not cells["height"].missing.any()


def test_rare_and_unseen_levels() -> None:
    cities = ["Rome"] * 50 + ["Oslo"] * 40 + ["Bern"] * 6 + ["Kyiv"] * 4
    encoder = TabularEncoder(min_frequency=0.1).fit(pd.DataFrame({"city": cities}))
    assert encoder.get_feature_names_out().tolist() == [
        "city=Oslo",
        "city=Rome",
        "city=(other)",
        "city=(unseen)",
    ]
    assert encoder.columns_[0].note == "4 levels, of which 2 are pooled"
    found = encoder.transform(pd.DataFrame({"city": ["Bern", "Kyiv", "Mars", "Rome"]}))
    assert found.argmax(axis=1).tolist() == [2, 2, 3, 1]
    assert (found.sum(axis=1) == 1).all()
    encoder._change_plans(ColumnPlan.pool_unseen)
    assert encoder.get_feature_names_out().tolist()[2:] == ["city=(other)"]
    found = encoder.transform(pd.DataFrame({"city": ["Bern", "Kyiv", "Mars", "Rome"]}))
    assert found.argmax(axis=1).tolist() == [2, 2, 2, 1]
    closed = TabularEncoder().fit(pd.DataFrame({"city": cities}))
    closed._change_plans(ColumnPlan.pool_unseen)
    assert closed.get_feature_names_out().tolist()[-1] == "city=(unseen)"
    counted = TabularEncoder(min_frequency=5).fit(pd.DataFrame({"city": cities}))
    assert "city=Bern" in counted.get_feature_names_out()
    pooled = TabularEncoder(min_frequency=60).fit(pd.DataFrame({"city": cities}))
    assert pooled.typical_ == {"city": "(other)"}
    assert pooled.typical_row_.tolist() == [1, 0]


def test_order_of_columns_does_not_matter() -> None:
    encoder = TabularEncoder().fit(people())
    shuffled = people()[["member", "city", "age", "height"]]
    assert encoder.transform(shuffled).tobytes() == encoder.transform(people()).tobytes()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.drop(columns="age"), "lacks column 'age' in"),
        (
            lambda t: t.rename(columns={"age": "Age", "city": "City"}),
            "lacks columns 'age', 'city' and adds columns 'Age', 'City'",
        ),
        (lambda t: t.iloc[:0], "0 rows of 10 columns"),
        (lambda t: pl.from_pandas(t).lazy(), "collect"),
        (lambda t: pd.concat([t, t["age"]], axis=1), "the table has 2 columns named 'age'"),
    ],
)
def test_other_tables_are_refused(change: Any, expected: str) -> None:
    encoder = TabularEncoder().fit(everything())
    with pytest.raises(ValueError, match=expected) as raised:
        encoder.transform(change(everything()))
    assert ". " not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_spellings_are_taken() -> None:
    table = people()
    expected = TabularEncoder().fit(table).transform(table)
    spelled = table.assign(
        age=table["age"].astype(str),
        member=table["member"].map({True: "TRUE", False: "false"}),
        city=table["city"].astype("category"),
    )
    for normal, other in ((table, spelled), (spelled, table)):
        assert TabularEncoder().fit(normal).transform(other).tobytes() == expected.tobytes()
    numbers = table.assign(member=table["member"].astype(int))
    assert TabularEncoder().fit(table).transform(numbers).tobytes() == expected.tobytes()


def test_levels_that_happen_to_be_numbers() -> None:
    normal = pd.DataFrame({"doors": ["2", "3", "5more"] * 5})
    encoder = TabularEncoder().fit(normal)
    found = encoder.transform(pd.DataFrame({"doors": [2.0, 3.0, 4.0, 2.0]}))
    assert found.argmax(axis=1).tolist() == [0, 1, 3, 0]


def test_ignored_columns_need_not_be_there() -> None:
    encoder = TabularEncoder(ignore=["age", "label"]).fit(people())
    assert encoder.columns_[0] == ColumnInfo("age", "number", "ignored, as asked", ())
    other = people().drop(columns="age").assign(label="x")
    assert encoder.transform(other).shape == (N, 6)


def test_missing_values_are_named() -> None:
    message = (
        r"^3 columns have missing \(NaN\) values: 'age' \(2, first at row 3\), 'city' \(1, first "
        r"at row 5\), 'member' \(1, first at row 7\); fill them in, or let them be imputed or drop"
    )
    with pytest.raises(ValueError, match=message):
        TabularEncoder(missing="error").fit(with_gaps())
    with pytest.raises(ValueError, match=message):
        TabularEncoder(missing="error").fit(people()).transform(with_gaps())
    with pytest.raises(ValueError, match=r"infinite \(inf\) values: 'age' \(40, first at row 0\)"):
        TabularEncoder(missing="error").fit(people()).transform(people().assign(age=np.inf))
    # Columns that are not used may have gaps.
    table = everything().assign(remark=None)
    TabularEncoder(missing="error", ignore=["remark"]).fit_transform(table)


def test_rows_without_missing_values() -> None:
    gaps = with_gaps()
    encoder = TabularEncoder(missing="drop").fit(gaps)
    rows = encoder.usable_rows(gaps)
    assert rows.tolist() == [at for at in range(N) if at not in (3, 5, 7)]
    assert encoder.transform(gaps.iloc[rows]).shape == (N - 3, 7)
    with pytest.raises(ValueError, match="transform only the rows that usable_rows returns"):
        encoder.transform(gaps)


def test_arrays() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 3))
    encoder = TabularEncoder().fit(rows)
    assert encoder.transform(rows).tobytes() == rows.tobytes()
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert encoder.transform(pd.DataFrame(rows, columns=list("abc"))).tobytes() == rows.tobytes()
    numbered = TabularEncoder().fit(pd.DataFrame(rows))
    assert numbered.get_feature_names_out().tolist() == ["0", "1", "2"]
    mixed = [[1, "a"], [2, "b"], [3, "a"]]
    assert TabularEncoder().fit_transform(mixed).tolist() == [
        [1, 1, 0, 0],
        [2, 0, 1, 0],
        [3, 1, 0, 0],
    ]
    stamps = np.array([["2024-01-01"], ["2024-01-08"]], dtype="datetime64[D]")
    assert TabularEncoder().fit_transform(stamps).tolist() == [[0], [7]]
    named = TabularEncoder().fit(pd.DataFrame(rows, columns=list("abc")))
    with pytest.warns(UserWarning, match="valid feature names"):
        assert named.transform(rows).tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"missing": "skip"}, "missing must be one of"),
        ({"ignore": "age"}, r"write \['age'\]"),
        ({"min_frequency": -1}, "min_frequency must be"),
        ({"min_frequency": 1.5}, "min_frequency must be"),
        ({"ignore": ("age", "height", "city", "member")}, "no column of the 40 normal rows"),
    ],
)
def test_parameters(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        TabularEncoder(**parameters).fit(people())


def test_not_fitted() -> None:
    encoder = TabularEncoder()
    assert not hasattr(encoder, "columns_")
    with pytest.raises(NotFittedError):
        encoder.get_feature_names_out()


def test_pickling_and_cloning() -> None:
    encoder = TabularEncoder(ignore=("age",)).fit(everything())
    again = pickle.loads(pickle.dumps(encoder))
    assert again.columns_ == encoder.columns_
    assert again.transform(everything()).tobytes() == encoder.transform(everything()).tobytes()
    assert clone(encoder).get_params() == encoder.get_params()


def test_skops() -> None:
    io = pytest.importorskip("skops.io")
    encoder = TabularEncoder(ignore=("age",)).fit(everything())
    saved = io.dumps(encoder)
    trusted = io.get_untrusted_types(data=saved)
    assert set(trusted) <= set(TRUSTED)  # all else is plain
    again = io.loads(saved, trusted=trusted)
    assert again.columns_ == encoder.columns_
    assert again.transform(everything()).tobytes() == encoder.transform(everything()).tobytes()


def test_pandas_output_and_pipelines() -> None:
    encoder = TabularEncoder().set_output(transform="pandas").fit(people())
    found = encoder.transform(people())
    assert found.columns.tolist() == encoder.get_feature_names_out().tolist()
    steps = make_pipeline(TabularEncoder(), StandardScaler())
    assert steps.fit_transform(people()).shape == (N, 7)
    assert steps.get_feature_names_out().tolist() == found.columns.tolist()


def test_imports_are_lazy() -> None:
    code = (
        "import sys, qms22.tables; "
        "assert not {'pandas', 'pyarrow', 'narwhals', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_periods_are_dates() -> None:
    days = pd.period_range("2024-01-01", periods=60, freq="D")
    order = np.random.RandomState(0).permutation(60)
    table = pd.DataFrame({"day": days[order], "x": np.arange(60) % 7})
    stamps = table.assign(day=table["day"].dt.start_time)
    table.loc[3, "day"] = stamps.loc[3, "day"] = pd.NaT
    encoder = TabularEncoder().fit(table)
    assert encoder.columns_[0].kind == "date"
    np.testing.assert_array_equal(
        encoder.transform(table), TabularEncoder().fit(stamps).transform(stamps)
    )


def test_a_list_of_dicts_is_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^a table must be a data frame or an array; got a list"):
        TabularEncoder().fit([{"x": 1, "y": 2}] * 30)

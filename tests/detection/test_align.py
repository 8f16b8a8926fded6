"""Columns of two tables that belong together, and those that only one of them has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run
from hypothesis import given
from hypothesis import strategies as st

from qms22 import detect
from qms22.detection import score
from qms22.detection.aligning.align import align_table
from qms22.models import load_model, save_model
from qms22.tables import open_table
from qms22.tables.columns.column_names import match_names


def tables(n_rows: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame(
            {
                "order_id": [f"{part}{at}" for at in range(n_rows)],
                "amount": rng.normal(10, 1, n_rows),
                "unit_price": rng.normal(5, 1, n_rows),
                "kind": rng.choice(["a", "b"], n_rows),
            }
        )
        for part in "NB"
    ]
    frames[1].loc[7, "amount"] = 99.0
    return frames[0], frames[1]


def test_other_case_and_blanks() -> None:
    normal, batch = tables()
    expected = detect(normal, batch, k=1, id="order_id")
    renamed = normal.set_axis(["Order ID", "AMOUNT", "Unit Price", "kind"], axis=1)
    found = detect(renamed, batch, k=1, id="order_id")
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert expected.notes == ()
    assert "'Order ID' for 'order_id', 'AMOUNT' for 'amount'" in found.notes[0]
    assert list(found.encoder.groups_) == ["amount", "unit_price", "kind"]


def test_columns_of_one_table_are_left_out() -> None:
    normal, batch = tables()
    expected = detect(normal.drop(columns="kind"), batch.drop(columns="kind"), k=1, id="order_id")
    found = detect(
        normal.assign(region="x"), batch.drop(columns="kind").assign(memo="y"), k=1, id="order_id"
    )
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert [note.split(" are ")[0].split(" is ")[0] for note in found.notes] == [
        "columns 'kind', 'region' of the normal frame",
        "column 'memo' of the batch",
    ]
    assert "memo" in found.table().columns  # results keep all columns of the batch


def test_flags_by_rate_with_lacking_columns() -> None:
    normal, batch = tables(200)
    batch = batch.drop(columns="kind")
    found = detect(normal, batch, fdr=0.5, id="order_id")
    expected = detect(normal.drop(columns="kind"), batch, fdr=0.5, id="order_id")
    np.testing.assert_array_equal(found.p_values, expected.p_values)


def test_no_column_in_common() -> None:
    normal, _ = tables()
    with pytest.raises(ValueError, match=r"no column in common \('order_id', .* but 'a', 'b'\)"):
        detect(normal, pd.DataFrame({"a": [1.0], "b": [2.0]}))


def test_tables_without_names_are_matched_by_order(tmp_path: Path) -> None:
    normal, batch = tables()
    normal[["amount", "unit_price", "kind"]].to_csv(tmp_path / "n.csv", index=False, header=False)
    batch[["amount", "unit_price", "kind"]].to_csv(tmp_path / "b.csv", index=False)
    found = detect(tmp_path / "n.csv", tmp_path / "b.csv", k=1)
    assert found.top.tolist() == [7]
    assert list(found.encoder.groups_) == ["amount", "unit_price", "kind"]
    assert "has no column names" in found.notes[0]
    assert "are matched by their order" in found.notes[1]


def test_a_saved_model_takes_other_names(tmp_path: Path) -> None:
    normal, batch = tables()
    made = detect(normal, batch, k=1, id="order_id")
    save_model(tmp_path / "m.skops", made.detector, encoder=made.encoder, checks=made.checks)
    model = load_model(tmp_path / "m.skops")
    other = batch.set_axis(["Order ID", "Amount", "Unit price", "Kind"], axis=1).assign(memo="y")
    found = score(model, other, id="Order ID", k=1)
    np.testing.assert_allclose(found.scores, score(model, batch, k=1).scores)
    assert found.table()["order_id"].tolist()[0] == "B7"
    assert "'memo'" in found.notes[1]
    lacking = score(model, other.drop(columns="Amount"), id="Order ID", k=1)
    assert "lacks 'amount', which the model uses" in lacking.notes[2]


def test_large_files_are_renamed(tmp_path: Path) -> None:
    normal, batch = tables()
    normal.set_axis(["Order ID", "AMOUNT", "Unit Price", "kind"], axis=1).to_csv(
        tmp_path / "n.csv", index=False
    )
    batch.to_csv(tmp_path / "b.csv", index=False)
    found = detect(tmp_path / "n.csv", tmp_path / "b.csv", id="order_id", max_samples=50, k=1)
    assert found.top.tolist() == [7]
    source = open_table(tmp_path / "n.csv").renamed({"AMOUNT": "amount"})
    assert source.names == ["Order ID", "amount", "Unit Price", "kind"]
    assert source.take([3, 1], ["amount"])["amount"].tolist() == normal["amount"][[3, 1]].tolist()
    assert source.read().columns.tolist() == source.names
    assert next(source.chunks()).columns.tolist() == source.names
    assert source.n_rows == 60
    assert source.place(3) == f"{tmp_path / 'n.csv'}, row 3"


def test_marks_with_other_names() -> None:
    normal, batch = tables()
    marks = pd.DataFrame({"Order-ID": ["B7"], "mark": ["anomaly"]})
    found = detect(normal, batch, k=1, id="order_id", marks=marks)
    assert found.marks is not None
    assert found.marks.decided.tolist() == [7]


def test_the_command_prints_notes(tmp_path: Path) -> None:
    normal, batch = tables()
    normal.rename(columns=str.upper).to_csv(tmp_path / "n.csv", index=False)
    (tmp_path / "b.csv").write_text("Orders of May\n\n" + batch.to_csv(index=False) + "Total,1,,\n")
    done = run("detect", "n.csv", "b.csv", "--id", "order_id", "--top", "1", "-q", cwd=tmp_path)
    assert "note: b.csv: 1 line above the header left out ('Orders of May')\n" in done.stderr
    assert "note: b.csv: 1 line below the table left out" in done.stderr
    assert "columns are matched with those of b.csv" in done.stderr


_NAMES = st.lists(st.sampled_from(["a b", "A_B", "ab", "c", "C", "d", "%", "&"]), unique=True)


@given(_NAMES, _NAMES)
def test_names_are_matched_once(names: list[str], known: list[str]) -> None:
    found = match_names(names, known)
    assert len(set(found.values())) == len(found)
    assert set(found) <= set(names)
    assert set(found.values()) <= set(known)
    assert all(found.get(name) == name for name in names if name in known)
    back = {theirs: ours for ours, theirs in found.items()}
    assert match_names(known, names) == {name: back[name] for name in known if name in back}


def test_ambiguous_names_are_not_matched() -> None:
    table = open_table(pd.DataFrame({"A b": [1], "a_B": [2], "x": [3]}))
    found = align_table(table, ["ab", "x"], "other")
    assert (found.extra, found.lacking, found.notes) == (["A b", "a_B"], ["ab"], ())

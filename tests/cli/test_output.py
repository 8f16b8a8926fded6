"""Results in files, in pipes and on the page are the same, and harmless."""

from __future__ import annotations

import json
import re
import resource
import signal
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xlsxwriter
from command_line import assert_coherent, read_exactly, run
from page_data import read_page
from visits import FAST, N_BATCH, visits, write_visits

from qms22 import Detection, detect
from qms22.detection import streaming
from qms22.detection.results.result_files import write_tables

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
openpyxl = pytest.importorskip("openpyxl")

READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    "csv": read_exactly,
    "parquet": pd.read_parquet,
    "json": pd.read_json,
    "jsonl": partial(pd.read_json, lines=True),
    "xlsx": partial(pd.read_excel, engine="calamine"),
}
VISITS = ("detect", "normal.csv", "batch.csv", "--id", "visit", "--ignore", "sick")
QUICK = (*VISITS, "--n-jobs", "1", "-q")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_visits(tmp_path)


@pytest.fixture
def found(files: Path, monkeypatch: pytest.MonkeyPatch) -> Detection:
    """A result in several parts."""
    monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", 300)
    return detect(files / "normal.csv", files / "batch.csv", max_samples=400, **FAST)


def test_all_outputs_of_a_false_discovery_rate_agree(files: Path) -> None:
    tables = {}
    for suffix, read in READERS.items():
        more = ("-o", f"o.{suffix}", "--report", "page.html")
        result = run(*VISITS, "--n-jobs", "1", "-q", "--fdr", "0.3", *more, cwd=files)
        assert result.exit_code == 0, result.stderr
        tables[suffix] = read(files / f"o.{suffix}")
    table = tables["csv"]
    flagged = table[table["flagged"]]
    assert_coherent(table)
    assert 0 < len(flagged) < N_BATCH / 2
    for suffix in list(READERS)[1:]:
        pd.testing.assert_frame_equal(
            tables[suffix].replace({"reasons": {"": np.nan}}),
            table,
            check_dtype=False,
            rtol=1e-8 if suffix.startswith("json") else 1e-15,
        )
    # On the terminal, or rather in a pipe: the flagged rows, by rank.
    names, *lines = (line.split(",") for line in result.stdout.splitlines())
    assert names == [
        *("rank", "visit", "score", "flagged", "reasons", "p_value", "false_at_most"),
    ]
    assert [int(line[0]) for line in lines] == flagged["rank"].tolist()
    assert [line[1] for line in lines] == flagged["visit"].tolist()
    assert [float(line[-2]) for line in lines] == flagged["p_value"].tolist()
    assert [int(line[-1]) for line in lines] == flagged["false_at_most"].tolist()
    header, _, columns = read_page(files / "page.html")
    assert header["nFlagged"] == len(flagged)
    assert columns["visit"] == table["visit"].tolist()
    np.testing.assert_allclose(columns["p_value"], table["p_value"], rtol=1e-8)
    assert "as flagged by a false discovery rate of 0.3" in (files / "page.html").read_text()


def test_json_rounds_no_number_and_writes_dates_as_text(tmp_path: Path) -> None:
    moments = pd.to_datetime(["2024-03-01 12:30", None, "1969-12-31 00:00"])
    table = pd.DataFrame(
        {
            "x": [1 / 3, 1.23456789012345678e-13, np.inf],
            "n": pd.array([2**63 - 1, None, 0], dtype="Int64"),
            "when": moments,
            "day": pd.array([19_000, None, 0], dtype=pd.ArrowDtype(pa.int32())).astype(
                pd.ArrowDtype(pa.date32())
            ),
            "any": ["Köln", np.nan, [1.5, np.nan, {"a": np.float32(0.5)}]],
            0: [True, False, True],
        }
    )
    write_tables([table, table.iloc[:0], table.iloc[:1]], tmp_path / "o.json")
    records = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"), parse_constant=int)
    assert {name: [record[name] for record in records[:3]] for name in records[0]} == {
        "x": [1 / 3, 1.23456789012345678e-13, None],
        "n": [2**63 - 1, None, 0],
        "when": ["2024-03-01 12:30:00", None, "1969-12-31 00:00:00"],
        "day": ["2022-01-08", None, "1970-01-01"],
        "any": ["Köln", None, [1.5, None, {"a": 0.5}]],
        "0": [True, False, True],
    }
    assert records[3] == records[0]


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("only_flagged", [True, False])
def test_output(files: Path, suffix: str, only_flagged: bool) -> None:
    path = files / f"out.{suffix}"
    flag = ["--only-flagged"] if only_flagged else []
    assert run(*QUICK, "-k", "5", "-o", path, *flag, cwd=files).exit_code == 0
    table = READERS[suffix](path)
    assert len(table) == (5 if only_flagged else N_BATCH)
    assert table["flagged"].sum() == 5
    assert table["rank"].tolist() == list(range(1, len(table) + 1))
    assert table["score"].is_monotonic_decreasing
    assert table["visit"].is_unique
    assert table["reasons"].iloc[0]
    assert "weight" in table.columns


@pytest.mark.parametrize("suffix", READERS)
def test_parts_make_one_table(files: Path, found: Detection, suffix: str) -> None:
    write_tables(found.tables(), files / f"o.{suffix}")
    whole = READERS[suffix](files / f"o.{suffix}")
    expected = detect(files / "normal.csv", files / "batch.csv", **FAST).table()
    ranked = whole.sort_values("rank").reset_index(drop=True)
    expected["reasons"] = expected["reasons"].replace(
        "", np.nan if suffix in ("csv", "xlsx") else ""
    )
    pd.testing.assert_frame_equal(
        ranked,
        expected.reset_index(drop=True),
        check_dtype=False,
        rtol=1e-8 if suffix.startswith("json") else 1e-15,
    )


def test_types_stay_alike_through_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in the first part says what a column holds; the file does."""
    monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", 300)
    rng = np.random.RandomState(0)
    columns = {
        "x": rng.normal(size=200),
        "n": pa.array([None] * 150 + list(range(50)), pa.int64()),
        "word": pa.array([None] * 150 + ["=1+1"] * 50),
        "list": pa.array([None] * 150 + [[1]] * 50),
        "day": pa.array([None] * 199 + [19_000], pa.date32()),
        "score": rng.normal(size=200),
    }
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=10)
    ignored = ["n", "word", "list", "day"]
    found = detect(path, path, ignore=ignored, max_samples=200)
    for suffix in READERS:
        write_tables(found.tables(), tmp_path / f"o.{suffix}")
    table = pq.read_table(tmp_path / "o.parquet")
    for name in ignored:
        assert table.column(name).equals(pa.table(columns).column(name))
    assert "score_" in table.column_names
    assert "'=1+1" in (tmp_path / "o.csv").read_text()
    records = json.loads((tmp_path / "o.json").read_text())
    assert [record["n"] for record in records] == columns["n"].to_pylist()
    assert found.report(tmp_path / "page.html").exists()


@pytest.mark.parametrize("suffix", READERS)
def test_a_run_that_is_stopped_leaves_nothing(files: Path, found: Detection, suffix: str) -> None:
    before = set(files.iterdir())

    def stopped() -> Iterator[pd.DataFrame]:
        tables = found.tables()
        yield next(tables)
        assert not (files / f"o.{suffix}").exists()
        signal.raise_signal(signal.SIGINT)
        yield from tables

    with pytest.raises(KeyboardInterrupt):
        write_tables(stopped(), files / f"o.{suffix}")
    assert set(files.iterdir()) == before


@pytest.mark.parametrize("suffix", READERS)
def test_a_full_disk_leaves_nothing(files: Path, found: Detection, suffix: str) -> None:
    before = set(files.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(OSError, match=rf"cannot write .*o\.{suffix}: "):
            write_tables(found.tables(), files / f"o.{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert set(files.iterdir()) == before


def test_formulas_and_scripts_are_harmless(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    evil = "<script>alert(1)</script>"
    normal = pd.DataFrame({evil: rng.normal(size=80), "b": rng.normal(size=80)})
    batch = pd.DataFrame({evil: rng.normal(size=20), "b": rng.normal(size=20)})
    batch["name"] = ["=cmd|' /C calc'!A0", "+1+2", "@x", "-5"] * 5
    batch.loc[0, "b"] = 50.0
    normal.to_csv(tmp_path / "n.csv", index=False)
    batch.to_csv(tmp_path / "b.csv", index=False)
    command = ("detect", "n.csv", "b.csv", "--id", "name", "-k", "4", "-q")
    result = run(*command, "-o", "o.csv", "--report", "r.html", cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    for text in (result.stdout, (tmp_path / "o.csv").read_text()):
        assert "'=cmd" in text
        assert ",=cmd" not in text
    assert "<script>alert(1)" not in (tmp_path / "r.html").read_text()
    run(*command, "-o", "o.json", cwd=tmp_path)
    assert json.loads((tmp_path / "o.json").read_text())[0]["name"] == "=cmd|' /C calc'!A0"


def test_columns_that_clash_are_renamed_alike_everywhere(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    for name, n in (("n.csv", 80), ("b.csv", 20)):
        pd.DataFrame(rng.normal(size=(n, 3)), columns=["score", "flagged", "rank"]).to_csv(
            tmp_path / name, index=False
        )
    expected = ["rank", "row", "score", "flagged", "reasons", "p_value", "false_at_most"]
    expected += ["score_", "flagged_", "rank_"]
    for suffix, read in READERS.items():
        command = ("detect", "n.csv", "b.csv", "-k", "3", "-o", f"o.{suffix}")
        result = run(*command, "--report", "page.html", cwd=tmp_path)
        assert result.exit_code == 0, result.stderr
        assert len(result.stdout.splitlines()) == 4
        assert read(tmp_path / f"o.{suffix}").columns.tolist() == expected
    _, _, columns = read_page(tmp_path / "page.html")
    assert sorted([*columns][-3:]) == sorted(expected[-3:])


def test_a_workbook_looks_like_the_one_that_was_searched(tmp_path: Path) -> None:
    normal, batch = visits(200, 0), visits(60, 1)
    for name, table in (("normal", normal), ("batch", batch)):
        with xlsxwriter.Workbook(tmp_path / f"{name}.xlsx") as book:
            money = book.add_format({"num_format": '#,##0.00 "€"'})
            share, day = (book.add_format({"num_format": each}) for each in (9, "dd.mm.yyyy"))
            sheet = book.add_worksheet("Visits")
            sheet.write(0, 1, "all visits")
            sheet.set_column(2, 2, 31.5)
            for at, column in enumerate(table.columns, 1):
                sheet.write(2, at, column)
            for row, cells in enumerate(table.itertuples(index=False), 3):
                for at, value in enumerate(cells, 1):
                    look = [None, money, share, day][at % 4]
                    sheet.write(row, at, value.item() if hasattr(value, "item") else value, look)
    tables = tmp_path / "normal.xlsx", tmp_path / "batch.xlsx"
    result = run("detect", *tables, "-k", "3", "-q", "-o", "found.xlsx", cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    sheet = openpyxl.load_workbook(tmp_path / "found.xlsx")["rows"]
    places = {cell.value: cell.column_letter for cell in sheet[1]}
    formats = ["General", '#,##0.00 "€"', "0%", "dd.mm.yyyy"]
    for at, name in enumerate(batch.columns, 1):
        cells = sheet[places[name]]
        assert {cells[2].number_format, cells[40].number_format} == {formats[at % 4]}
    widened = sheet.column_dimensions[places[batch.columns[1]]].width
    assert widened == pytest.approx(31.5 + 5 / 7, abs=0.1)


def test_a_workbook_is_ready_to_read(tmp_path: Path) -> None:
    """Columns are as wide as their texts, can be filtered, and hold no formula."""
    table = pd.DataFrame(
        {
            "a rather long name": [1, 2, 3],
            "reasons": ["x" * 50, "=1+1", "y" * 4000],
            "when": pd.to_datetime(["2024-01-01 12:30", "2024-01-02 08:00", None]),
        }
    )
    write_tables([table, table], tmp_path / "o.xlsx")
    with zipfile.ZipFile(tmp_path / "o.xlsx") as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    name, reasons, when = (int(width) for width in re.findall(r'<col [^>]*width="(\d+)', sheet))
    assert 18 < name < 30
    assert 50 < reasons <= 81
    assert when >= 19
    assert '<autoFilter ref="A1:C7"/>' in sheet
    assert 'state="frozen"' in sheet
    assert "<f>" not in sheet
    write_tables([table.iloc[:0]], tmp_path / "empty.xlsx")
    assert READERS["xlsx"](tmp_path / "empty.xlsx").columns.tolist() == list(table.columns)

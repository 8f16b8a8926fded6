"""Small files with one trouble each: columns, values, notes, and the anomaly on top.

The files are those of `make_files.py`. Each directory has an `expected.json` with what must come
out: the kinds of columns, the first values of the known-normal rows, a part of each note, and the
row of the batch that must be ranked first, with the column that its first reason names.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from case import Case
from command_line import run
from make_files import CASES, FOLDER

from qms22 import detection
from qms22.tables import open_table
from qms22.tables.columns.cells import Cells
from qms22.tables.texts.words import join_notes

pytest.importorskip("pyarrow")

FOLDERS = sorted(path for path in FOLDER.iterdir() if path.is_dir())
# Other files depend on the versions of the libraries that write them.
_TEXTS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".arff")


@pytest.mark.parametrize("folder", FOLDERS, ids=[path.name for path in FOLDERS])
def test_messy_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    found, output, errors = _run(folder, expected, monkeypatch)
    assert _differences(found, expected) == []
    assert [note for note in join_notes(found.notes) if f"note: {note}\n" not in errors] == []
    names = output.iloc[:, 1].tolist()
    assert expected["row"] in names
    assert output["reasons"][names.index(expected["row"])].startswith(expected["column"])


@pytest.mark.parametrize("folder", FOLDERS, ids=[path.name for path in FOLDERS])
def test_rows_as_they_are_written_are_the_table(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("*.[ct]*"):
        table = open_table(path)
        if (written := table.content.written) is not None:
            (tmp_path / "again.csv").write_bytes("".join(written()).encode())
            pd.testing.assert_frame_equal(open_table(tmp_path / "again.csv").read(), table.read())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_files_are_those_of_the_script(case: Case) -> None:
    seed = CASES.index(case)
    folder = FOLDER / case.name
    assert json.loads((folder / "expected.json").read_text()) == case.expected(seed)
    texts = {name: case.files(seed)[name] for name in case.files(seed) if name.endswith(_TEXTS)}
    assert {name: (folder / name).read_bytes() for name in texts} == texts


def test_every_directory_has_a_case() -> None:
    assert {path.name for path in FOLDERS} == {case.name for case in CASES}


def _differences(found: detection.Detection, expected: dict[str, Any]) -> list[str]:
    """Return what is not as expected about columns, values and notes."""
    kinds = {column.name: column.kind for column in found.encoder.columns_}
    wrong = [
        f"{name} is {kinds.get(name)}, not {kind}"
        for name, kind in expected["kinds"].items()
        if kinds.get(name) != kind
    ]
    cells = found.encoder._typed_cells(found.normal)
    for name, values in expected["values"].items():
        there = _first_values(cells[name], len(values))
        if there != values and not _are_close(there, values):
            wrong.append(f"{name} has {there}, not {values}")
    notes = list(found.notes)
    for part in expected["notes"]:
        note = next((note for note in notes if part in note), None)
        if note is None:
            wrong.append(f"no note on {part}")
        else:
            notes.remove(note)
    return wrong + notes


def _run(
    folder: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[detection.Detection, pd.DataFrame, str]:
    """Run the command; return the result, what it prints, and what it says beside."""
    results = []
    detect = detection.detect

    def keep(*tables: Any, **options: Any) -> detection.Detection:
        results.append(detect(*tables, **options))
        return results[0]

    monkeypatch.setattr(detection, "detect", keep)
    inputs = [
        *expected["inputs"],
        *expected["options"],
        "--top",
        expected["within"],
        "--n-jobs",
        "1",
    ]
    done = run("detect", *inputs, cwd=folder)
    assert done.exit_code == 0, done.stderr
    return results[0], pd.read_csv(io.StringIO(done.stdout)), done.stderr


def _first_values(cells: Cells, count: int) -> list[Any]:
    """Return values as JSON has them; None where there is none."""
    if cells.form not in ("number", "date"):
        return [cells.form]
    values = [None if value != value else value for value in cells.values[:count].tolist()]
    if cells.form == "number":
        return values
    return [
        None
        if value is None
        else datetime.fromtimestamp(value / 1e6, UTC).replace(tzinfo=None).isoformat()
        for value in values
    ]


def _are_close(some: list[Any], others: list[Any]) -> bool:
    """Return whether numbers are equal but for rounding, and None where the others are."""
    pairs = list(zip(some, others, strict=False))
    return len(some) == len(others) and all(
        one == other if one is None or other is None else one == pytest.approx(other, rel=1e-9)
        for one, other in pairs
    )

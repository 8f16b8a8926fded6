"""Files and names that are made to break what reads them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from command_line import COMMAND, assert_refused, run
from test_workbooks import ods_row, write_ods
from visits import N_BATCH, N_NORMAL, visits

from qms22 import BatchHistory
from qms22.tables import read_table

DETECT = ("detect", "normal.csv", "batch.csv", "--id", "visit", "--n-jobs", "1")
LONG = "x" * 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    visits(N_NORMAL, 0).to_csv(tmp_path / "normal.csv", index=False)
    visits(N_BATCH, 1).to_csv(tmp_path / "batch.csv", index=False)
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "deep.jsonl").write_text('{"a":' * 5000 + "1" + "}" * 5000)
    (tmp_path / "deep.toml").write_text("a=" + "[" * 20_000 + "]" * 20_000)
    (tmp_path / "digits.toml").write_text("k=" + "9" * 10_000)
    with ZipFile(tmp_path / "deep.skops", "w") as archive:
        archive.writestr("schema.json", '{"a":' * 50_000 + "1" + "}" * 50_000)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("detect", "normal.csv", "circle.csv", "-o", "o.csv"), "Too many levels of symbolic"),
        (("detect", "circle.csv", "batch.csv"), "Too many levels of symbolic"),
        (("detect", "normal.csv", f"{LONG}.csv"), "File name too long"),
        ((*DETECT, "-o", f"{LONG}.csv"), f"{LONG}.csv cannot be opened (File name too long)"),
        ((*DETECT, "--report", f"{LONG}.html"), "File name too long"),
        (("detect", "normal.csv", "/dev/zero", "--memory-limit", "50MB"), "/dev/zero takes"),
        (("detect", "normal.csv", "deep.json"), "deep.json is not valid JSON"),
        (("detect", "normal.csv", "deep.jsonl"), "deep.jsonl, line 1"),
        ((*DETECT, "--config", "deep.toml"), "deep.toml is not a TOML file"),
        ((*DETECT, "--config", "digits.toml"), "digits.toml is not a TOML file"),
        (("score", "deep.skops", "batch.csv"), "not a model of qms22"),
    ],
)
def test_refused(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    """Links in a circle, endless devices, names too long, nesting too deep: one sentence"""
    assert_refused(run(*arguments, cwd=folder), words)


def test_models_of_other_classes(folder: Path) -> None:
    """Model files that name other classes load nothing"""
    run(*DETECT, "--save-model", "m.skops", cwd=folder)
    with ZipFile(folder / "m.skops") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    schema = content.pop("schema.json").decode()
    for old, new in (
        ('"__module__": "qms22', '"__module__": "os'),
        ('"QMS22Ensemble"', '"system"'),
    ):
        with ZipFile(folder / "evil.skops", "w") as archive:
            archive.writestr("schema.json", schema.replace(old, new))
            for name, each in content.items():
                archive.writestr(name, each)
        words = "which is not part of a qms22 model, so nothing was loaded"
        assert_refused(run("score", "evil.skops", "batch.csv", cwd=folder), words)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_histories(folder: Path, seed: int) -> None:
    """A history with flipped bytes is refused, or read"""
    rng = np.random.default_rng(seed)
    run(*DETECT, "--history", "h.sqlite", "--accept", cwd=folder)
    content = bytearray((folder / "h.sqlite").read_bytes())
    for at in rng.integers(100, len(content), size=400):
        content[at] = rng.integers(256)
    (folder / "h.sqlite").write_bytes(content)
    found = run(*DETECT, "--history", "h.sqlite", "--accept", cwd=folder)
    if found.exit_code:
        assert_refused(found, "h.sqlite")


def test_one_history_for_many(folder: Path) -> None:
    """Four runs at once with one new history: one batch, accepted once"""
    runs = [
        Popen([COMMAND, *DETECT, "--history", "h.sqlite", "--accept"], cwd=folder, stderr=PIPE)
        for _ in range(4)
    ]
    for each in runs:
        assert not each.communicate()[1].count(b"Traceback")
        assert each.returncode == 0
    [entry] = BatchHistory(folder / "h.sqlite").entries()
    assert entry.accepted


def test_many_tables_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of a thousand tables, whose list of files is not read anew for each"""
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        for at in range(1000):
            archive.writestr(f"/etc/qms22/{at}.csv", f"x,y\n{at},2\n")
    opened = []

    class Counted(ZipFile):
        def __init__(self, *arguments: Any) -> None:
            opened.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    assert sorted(read_table(tmp_path / "a.zip")["x"]) == list(range(1000))
    assert len(opened) < 5
    assert not Path("/etc/qms22").exists()


ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "'
    + b"word" * 100
    + b'"><!ENTITY file SYSTEM "file:///etc/passwd">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + at, b"&%c;" % (97 + at) * 10) for at in range(9))
    + b"]>"
)


def write_xlsx(path: Path) -> None:
    visits(40, 0).to_excel(path, index=False)


def write_letters(path: Path) -> None:
    write_ods(path, "".join(ods_row([f"A{at}", at]) for at in range(30)))


@pytest.mark.parametrize(
    ("name", "write", "member"),
    [
        ("a.xlsx", write_xlsx, "xl/sharedStrings.xml"),
        ("b.xlsx", write_xlsx, "xl/workbook.xml"),
        ("a.ods", write_letters, "content.xml"),
    ],
)
def test_entities(tmp_path: Path, name: str, write: Callable[[Path], None], member: str) -> None:
    """Workbooks whose XML defines entities: no file is read, nothing grows"""
    write(tmp_path / f"whole-{name}")
    with (
        ZipFile(tmp_path / f"whole-{name}") as old,
        ZipFile(tmp_path / name, "w", ZIP_DEFLATED) as new,
    ):
        for each in old.namelist():
            content = old.read(each)
            if each == member:
                content = ENTITIES + content.split(b"?>", 1)[-1].replace(b">A", b">&j;&file;")
            new.writestr(each, content)
    try:
        text = json.dumps(read_table(tmp_path / name).astype(str).to_dict())
    except ValueError as error:
        text = str(error)
    assert "root:" not in text
    assert len(text) < 100_000

"""`qms22 mcp` over its real protocol: what an assistant can ask, and what it cannot have."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from command_line import COMMAND, assert_refused, run, run_process
from visits import SICK, visits, write_visits

import qms22
from qms22 import BatchHistory

mcp = pytest.importorskip("mcp")
anyio = pytest.importorskip("anyio")

SEARCH = {"normal": "normal.csv", "batch": "batch.csv", "id": "visit", "ignore": ["sick"]}


class Answer(NamedTuple):
    is_error: bool
    text: str

    @property
    def data(self) -> dict[str, Any]:
        assert not self.is_error, self.text
        found: dict[str, Any] = json.loads(self.text)
        return found


def ask(*questions: tuple[str, dict[str, Any]], options: tuple[object, ...]) -> list[Answer]:
    """Start a server, ask it in one session, and end it."""
    # With all variables, such as those that choose threads.
    server = mcp.StdioServerParameters(
        command=str(COMMAND), args=["mcp", *map(str, options)], env={**os.environ}
    )

    async def talk() -> list[Answer]:
        answers = []
        async with mcp.Client(mcp.stdio_client(server)) as client:
            for name, arguments in questions:
                found = await client.call_tool(name, arguments)
                answers.append(Answer(bool(found.is_error), found.content[0].text))
        return answers

    answers: list[Answer] = anyio.run(talk)
    return answers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    return write_visits(folder)


def test_an_unknown_argument_is_an_error(folder: Path) -> None:
    [answer] = ask(("detect", {**SEARCH, "time_column": "day"}), options=(folder,))
    assert answer.is_error
    assert "time_column" in answer.text


def test_a_talk(folder: Path) -> None:
    before = sorted(folder.iterdir())
    early, searched, verdict, sick, usual, none = ask(
        ("explain", {"row": 17}),
        ("detect", SEARCH),
        ("verdict", {}),
        ("explain", {"row": f"V1-{SICK[0]:05d}"}),
        ("explain", {"row": "V1-00001"}),
        ("explain", {"row": "V9"}),
        options=(folder,),
    )
    assert early.is_error
    assert "there is no result yet; call detect first" in early.text
    expected = qms22.detect(
        folder / "normal.csv", folder / "batch.csv", id="visit", ignore=["sick"]
    ).to_dict()
    data = searched.data
    for name in ("answer", "verdict", "counts", "settings", "history"):
        assert data[name] == expected[name]
    n_more = max(len(expected["rows"]) - 20, 0)
    for found, known in zip(data["rows"], expected["rows"][:20], strict=True):
        assert found == known
    assert data["left_out"].get("rows", 0) == n_more
    assert data["provenance"]["scores_sha256"] == expected["provenance"]["scores_sha256"]
    assert verdict.data["verdict"] == expected["verdict"]
    assert "rows" not in verdict.data
    [row] = sick.data["rows"]
    assert row["flagged"]
    assert row["row"] == SICK[0]
    assert row["cells"]["visit"] == row["id"]
    assert row["reasons"][0]["cell"]["value"] == row["cells"][row["reasons"][0]["cell"]["column"]]
    [row] = usual.data["rows"]
    assert not row["flagged"]
    assert row["rank"] > len(expected["rows"])
    assert "there is no row 'V9' in column 'visit'" in none.text
    assert sorted(folder.iterdir()) == before


def test_it_reads_only_what_it_is_given(folder: Path) -> None:
    outside = folder.parent / "secret.csv"
    outside.write_text((folder / "normal.csv").read_text())
    (folder / "link.csv").symlink_to(outside)
    (folder / "linked").mkdir()
    (folder / "linked" / "part.csv").symlink_to(outside)
    for name in ("known.db", "other.db"):
        with closing(sqlite3.connect(folder / name)) as database:
            visits(150, 1).assign(sick=0).to_sql("visits", database, index=False)
    refused = [outside, "../secret.csv", "../*.csv", "link.csv", "linked", "l*.csv"]
    refused += ["other.db#visits", "postgresql://somebody:password@host/shop#visits", "-"]
    *answers, absolute, known = ask(
        *(("detect", {**SEARCH, "normal": str(place)}) for place in refused),
        ("detect", {**SEARCH, "marks": "../secret.csv"}),
        ("history", {"file": "../secret.csv"}),
        ("detect", {**SEARCH, "history": str(outside)}),
        ("detect", {**SEARCH, "normal": str(folder / "normal.csv")}),
        ("detect", {**SEARCH, "batch": "known.db#visits"}),
        options=(folder, "--database", folder / "known.db"),
    )
    for answer in answers:
        assert answer.is_error
        assert "password" not in answer.text
        assert any(
            words in answer.text
            for words in ("is outside of the folders", "does not read the database", "no table")
        )
    assert absolute.data["counts"]["rows"] == known.data["counts"]["rows"] == 150


def test_it_writes_only_where_it_may(folder: Path) -> None:
    before = sorted(folder.iterdir())
    pages = folder.parent / "pages"
    pages.mkdir()
    (pages / "old.csv").write_text("mine\n")
    (pages / "dangling.html").symlink_to(folder / "page.html")
    names = ["old.csv", "dangling.html", "../page.html", "/tmp/page.html", "page.txt", "."]
    *refused, written, again = ask(
        *(("detect", {**SEARCH, "outputs": [name]}) for name in names),
        ("detect", {**SEARCH, "outputs": ["page.html", "found.csv"]}),
        ("detect", {**SEARCH, "outputs": ["page.html"]}),
        options=(folder, "--write", pages),
    )
    assert all(answer.is_error for answer in refused)
    assert written.data["written"] == [str(pages / "page.html"), str(pages / "found.csv")]
    assert len((pages / "found.csv").read_text().splitlines()) == 151
    assert (pages / "page.html").read_text().rstrip().endswith("</html>")
    assert "exists and is not replaced" in again.text
    assert (pages / "old.csv").read_text() == "mine\n"
    [off] = ask(("detect", {**SEARCH, "outputs": ["p.html"]}), options=(folder,))
    assert "this server writes nothing" in off.text
    assert sorted(folder.iterdir()) == before


def test_a_history_is_read_and_not_changed(folder: Path) -> None:
    visits(150, 2).assign(sick=0).to_csv(folder / "clean.csv", index=False)
    more = ("--id", "visit", "--ignore", "sick", "--history", "h.sqlite", "--accept", "-q")
    done = run("detect", "normal.csv", "clean.csv", *more, cwd=folder)
    assert done.exit_code == 0, done.stderr
    before = (folder / "h.sqlite").read_bytes()
    searched, listed, missing = ask(
        ("detect", {**SEARCH, "history": "h.sqlite"}),
        ("history", {"file": "h.sqlite"}),
        ("history", {"file": "no.sqlite"}),
        options=(folder,),
    )
    assert searched.data["history"]["learned_from"] == [1]
    [entry] = listed.data["batches"]
    [known] = BatchHistory(folder / "h.sqlite").entries()
    assert entry["sentence"] == known.sentence
    assert entry["accepted"]
    assert "no.sqlite does not exist" in missing.text
    assert (folder / "h.sqlite").read_bytes() == before


def test_answers_are_short(folder: Path) -> None:
    batch = visits(2000, 1).assign(note="z" * 9000)
    batch["pulse"] = 900 + batch["pulse"]
    wide = pd.DataFrame(0, batch.index, [f"more{at}" for at in range(300)])
    pd.concat([batch, wide], axis=1).to_csv(folder / "wide.csv", index=False)
    searched, row = ask(
        ("detect", {"normal": "normal.csv", "batch": "wide.csv", "top": 1500, "id": "visit"}),
        ("explain", {"row": "V1-00001"}),
        options=(folder,),
    )
    assert len(searched.text) < 100_000
    assert len(searched.data["rows"]) == 20
    assert searched.data["left_out"]["rows"] == 1480
    assert len(row.text) < 20_000
    assert row.data["left_out"]["rows.cells"] > 200


def test_bad_arguments(folder: Path) -> None:
    assert_refused(run("mcp", "nowhere", cwd=folder), "'nowhere' does not exist")
    options = ("--database", "normal.csv")
    assert_refused(run("mcp", ".", *options, cwd=folder), "normal.csv is no database")
    wrong, kind = ask(
        ("detect", {**SEARCH, "id": "nobody"}), ("detect", {"normal": 3}), options=(folder,)
    )
    assert "has no column 'nobody'" in wrong.text
    assert kind.is_error


def test_the_end_of_messages_ends_it(folder: Path) -> None:
    done = run_process("mcp", folder, cwd=folder, input="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run_process("mcp", folder, cwd=folder, input="no message\n")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(folder: Path, number: int) -> None:
    message = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    with subprocess.Popen(
        [COMMAND, "mcp", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(message)
        process.stdin.flush()
        assert process.stdout.readline()  # it is there
        process.send_signal(number)
        assert process.wait(60) == 130


def test_without_the_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from qms22.cli import main; main(['mcp', '.'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert_refused(done, "qms22 mcp needs mcp, which cannot be imported", "'qms22[mcp]'")

"""`qms22 detect --history` and `qms22 history`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_refused, run, words_of

from qms22 import BatchHistory
from qms22.cli.history import _print_on_terminal

DETECT = ("detect", "normal.csv")
FAST = ("--n-jobs", "1", "--history", "h.sqlite", "--quiet")


def orders(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "order": [f"{seed}-{at}" for at in range(n_rows)],
            "amount": rng.normal(50, 9, n_rows),
            "country": rng.choice(["US", "DE"], n_rows),
        }
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    orders(400, 1).to_csv(tmp_path / "normal.csv", index=False)
    orders(200, 2).to_csv(tmp_path / "clean.csv", index=False)
    bad = orders(200, 3)
    bad.loc[:9, "amount"] = 5000.0
    bad.to_csv(tmp_path / "=bad.csv", index=False)
    return tmp_path


def listed(files: Path, *options: object) -> list[dict[str, str]]:
    result = run("history", "h.sqlite", *options, cwd=files)
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(result.stdout.splitlines()))


def test_batches_are_listed_and_accepted(files: Path) -> None:
    result = run(*DETECT, "clean.csv", *FAST, "--accept", cwd=files)
    assert "batch 1 of the history is known-normal, accepted 20" in result.stderr
    result = run(*DETECT, "=bad.csv", *FAST, "--accept", cwd=files)
    assert "note: the batch was not accepted as known-normal: its verdict" in result.stderr
    first, second = listed(files)
    assert (first["batch"], first["table"], first["verdict"]) == ("1", "clean.csv", "fine")
    assert (second["table"], second["verdict"]) == ("'=bad.csv", "anomalies")
    assert first["accepted"]
    assert not second["accepted"]
    assert json.loads(first["settings"])["fdr"] == 0.1
    assert first["fewest_outliers"] == "0"
    assert 0 < int(second["fewest_outliers"]) <= 10
    assert int(second["flagged"]) >= 10
    assert int(second["known_normal_rows"]) == 600
    first, second = listed(files, "--take-back", 1, "--accept", 2)
    assert not first["accepted"]
    assert second["accepted"]


def test_a_run_tells_of_the_accepted_batches(files: Path) -> None:
    run(*DETECT, "clean.csv", *FAST, cwd=files)
    result = run("history", "h.sqlite", "--accept", "1", cwd=files)
    assert "batch 1 (clean.csv) is known-normal from now on" in result.stderr
    result = run(*DETECT, "=bad.csv", *FAST[:-1], "--top", "3", cwd=files)
    note = "note: known-normal: normal.csv + 1 accepted batch (200 rows)"
    assert note in result.stderr


def test_the_table_fits_the_width(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "clean.csv").rename(files / "a-long-name-of-a-file-of-orders-2026.csv")
    run(*DETECT, "a-long-name-of-a-file-of-orders-2026.csv", *FAST, "--accept", cwd=files)
    entries = BatchHistory(files / "h.sqlite").entries()
    for width, time in ((60, entries[0].time[5:16]), (100, entries[0].time[:16])):
        monkeypatch.setenv("COLUMNS", str(width))
        _print_on_terminal(entries, Path("h.sqlite"))
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].startswith("1 batch in h.sqlite")
        assert lines[2].startswith(f"1  {time}  a-long-name")
        assert "fine, accepted" in words_of(" ".join(line[-20:] for line in lines))


def test_marked_anomalies_are_told(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = pd.read_csv(files / "=bad.csv")
    bad[:10].assign(mark="anomaly").to_csv(files / "marks.csv", index=False)
    marked = ("--marks", "marks.csv", "--id", "order")
    run(*DETECT, "=bad.csv", *FAST, *marked, "--accept", cwd=files)
    (entry,) = listed(files)
    assert (entry["verdict"], entry["marked"]) == ("fine", "10")
    monkeypatch.setenv("COLUMNS", "200")
    _print_on_terminal(BatchHistory(files / "h.sqlite").entries(), Path("h.sqlite"))
    words = "fine (10 rows marked as anomalies), accepted"
    assert words in words_of(capsys.readouterr().out)


def test_refusals(files: Path) -> None:
    refused = run("history", "none.sqlite", cwd=files)
    assert_refused(refused, "the history file none.sqlite does not exist")
    assert_refused(
        run("history", "normal.csv", cwd=files), "normal.csv is not a history of batches"
    )
    refused = run(*DETECT, "clean.csv", "--accept", cwd=files)
    assert_refused(refused, "--accept needs --history")
    refused = run(*DETECT, "clean.csv", *FAST, "--accept", "--top", "5", cwd=files)
    assert_refused(refused, "--accept cannot be used with --top")
    refused = run(*DETECT, "clean.csv", "--history", "clean.csv", cwd=files)
    assert_refused(refused, "--history clean.csv would overwrite the input clean.csv")
    refused = run(*DETECT, "clean.csv", "--history", "h.csv", "-o", "h.csv", cwd=files)
    assert_refused(refused, "h.csv")
    run(*DETECT, "clean.csv", *FAST, cwd=files)
    assert_refused(run("history", "h.sqlite", "--accept", "7", cwd=files), "has no batch 7")
    for options, sentence in (
        (("--incident", 1), "--incident needs a reason"),
        (("--except", "amount", "--until", "9998-01-01"), "--except needs a reason"),
        (("--except", "amount", "--because", "sale"), "--except needs its last day"),
        (("--because", "sale"), "--because needs --incident or --except"),
        (("--incident", 1, "--because", "x", "--until", "9998-01-01"), "--until needs --except"),
        (("--incident", 7, "--because", "x"), "has no batch 7"),
        (("--end-exception", "amount"), "column 'amount' has no exception; there is no exception"),
        (
            ("--except", "sum", "--because", "x", "--until", "9998-01-01"),
            "no compared column 'sum'",
        ),
        (("--except", "amount", "--because", "x", "--until", "1998-01-01"), "today or later"),
    ):
        assert_refused(run("history", "h.sqlite", *options, cwd=files), sentence)


def test_incidents_and_exceptions(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*DETECT, "clean.csv", *FAST, "--accept", cwd=files)
    because = ("--because", "half of it is missing")
    result = run("history", "h.sqlite", "--incident", 1, *because, cwd=files)
    assert "batch 1 (clean.csv) is an incident: half of it is missing" in result.stderr
    (entry,) = listed(files)
    assert (entry["accepted"], entry["incident"]) == ("", "half of it is missing")
    refused = run("history", "h.sqlite", "--accept", 1, cwd=files)
    assert_refused(refused, "batch 1 (clean.csv) is tagged as an incident: half of it is missing")
    result = run(*DETECT, "clean.csv", *FAST, "--accept", cwd=files)
    assert "not accepted as known-normal: it is tagged as an incident" in words_of(result.stderr)
    monkeypatch.setenv("COLUMNS", "200")
    _print_on_terminal(BatchHistory(files / "h.sqlite").entries(), Path("h.sqlite"))
    assert "fine, incident (half of it is missing)" in words_of(capsys.readouterr().out)

    until = ("--because", "new prices", "--until", "9998-12-31")
    result = run("history", "h.sqlite", "--except", "amount", *until, cwd=files)
    exception = "exception: column 'amount' may move until 9998-12-31: new prices"
    assert exception in result.stderr
    dear = orders(200, 4).assign(amount=lambda table: 4 * table["amount"])
    dear.to_csv(files / "dear.csv", index=False)
    policy = ("--fail-on", "anomalies,drift,schema,flagged")
    result = run(*DETECT, "dear.csv", *FAST[:-1], *policy, "--json", "r.json", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "noticed: Column 'amount' has moved (" in result.stderr
    data = json.loads((files / "r.json").read_text())
    assert [each["kind"] for each in data["noticed"]] == ["exception"]
    run("history", "h.sqlite", "--end-exception", "amount", cwd=files)
    assert exception not in run("history", "h.sqlite", cwd=files).stderr
    # The search is repeated as it was, with the exception.
    verify = ("verify", "r.json", "normal.csv", "dear.csv", "--n-jobs", "1", "-q")
    result = run(*verify, "--history", "h.sqlite", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert_refused(run(*verify, cwd=files), "the search had exceptions; give the file of history")
    assert run(*DETECT, "dear.csv", *FAST, *policy, cwd=files).exit_code == 1

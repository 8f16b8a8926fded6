"""Exit codes, options from files, and results for programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from command_line import assert_refused, run, run_process, words_of
from result_schema import valid
from visits import SICK, visits, write_visits

import qms22
from qms22 import BatchHistory
from qms22.decisions.over_time import LEAST_PAST
from qms22.models import save_model

DETECT = (
    *("detect", "normal.csv", "batch.csv", "--id", "visit", "--ignore", "sick"),
    *("--n-jobs", "1", "-q"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Visits, a clean batch, and a model."""
    folder = tmp_path_factory.mktemp("visits")
    write_visits(folder)
    visits(150, 2).to_csv(folder / "clean.csv", index=False)
    found = qms22.detect(folder / "normal.csv", folder / "batch.csv", id="visit", ignore=["sick"])
    save_model(folder / "m.skops", found.detector, encoder=found.encoder)
    return folder


@pytest.fixture
def files(folder: Path, tmp_path: Path) -> Path:
    for name in ("normal.csv", "batch.csv", "clean.csv", "m.skops"):
        (tmp_path / name).symlink_to(folder / name)
    return tmp_path


def last_line(result: Result) -> str:
    return str(result.stderr.strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("rules", "code", "words"),
    [
        (["--fail-on", "anomalies"], 1, "policy violated by anomalies: The batch contains"),
        (
            ["--fail-on", "drift, volume,schema"],
            0,
            "policy met: drift, volume (not checked), schema",
        ),
        (["--fail-on", "flagged"], 1, "policy violated by flagged: "),
        (["--max-flagged", "3"], 1, "policy violated by max-flagged: "),
        (["--max-flagged", "100"], 0, "policy met: max-flagged"),
        (["--max-share", "1%"], 1, "the limit is 1 %."),
        (["--max-share", "0.5"], 0, "policy met: max-share"),
        (["--fail-on", "drift", "--max-flagged", "0"], 1, "policy violated by max-flagged: "),
        (["--fail-on", "flagged", "--max-flagged", "0"], 1, "(90 % sure). 8 of 150 rows are "),
    ],
)
def test_the_policy_decides_the_exit_code(
    files: Path, rules: list[str], code: int, words: str
) -> None:
    result = run(*DETECT, *rules, cwd=files)
    assert result.exit_code == code, result.stderr
    assert words in last_line(result)
    assert result.stdout.startswith("rank,visit")  # the result is there in any case


def test_without_a_policy_all_is_fine(files: Path) -> None:
    result = run(*DETECT, cwd=files)
    assert result.exit_code == 0
    assert "policy" not in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fail-on", "anomaly"], "'anomaly' is not one of anomalies, drift, flagged"),
        (["--max-flagged", "-1"], "-1 is not in the range x>=0"),
        (["--max-share", "2"], "did you mean 2%?"),
        (["--junit", "j.xml"], "--junit has one case per rule; give --fail-on"),
        (["--json", "r.txt"], "--json r.txt must end in .json"),
        (["--summary", "s.html"], "--summary s.html must end in .md"),
        (["--good", "a.csv", "--bad", "a.csv"], "is also the file of --good"),
        (["--good", "a.db#x", "--bad", "./a.db#x"], "is also the file of --good"),
        (["--good", "a.db#x", "--history", "a.db"], "is also the file of --good"),
        (["--bad", "batch.csv"], "--bad batch.csv would overwrite the input"),
        (["--json", "nowhere/r.json"], "the directory nowhere does not exist"),
    ],
)
def test_wrong_options(files: Path, options: list[str], words: str) -> None:
    assert_refused(run(*DETECT, *options, cwd=files), words)


def test_a_model_has_rules_too(files: Path) -> None:
    score = ("score", "m.skops", "batch.csv", "--id", "visit", "-q")
    result = run(*score, "--fail-on", "flagged,schema", "--json", "r.json", "-k", "4", cwd=files)
    assert result.exit_code == 1, result.stderr
    assert "policy violated by flagged: 4 of 150 rows are flagged" in last_line(result)
    data = valid(files / "r.json")
    assert data["verdict"] is None
    assert [each["role"] for each in data["provenance"]["inputs"]] == ["model", "batch"]
    visits(150, 2).assign(extra=1).drop(columns="pulse").to_csv(files / "other.csv", index=False)
    result = run(*score[:2], "other.csv", "--fail-on", "schema", cwd=files)
    assert result.exit_code == 1
    assert "Column 'extra' is new. Column 'pulse' is gone." in last_line(result)
    assert_refused(run(*score, "--fail-on", "drift", cwd=files), "'drift' is not one of flagged")
    equal = run("verify", "r.json", "m.skops", "batch.csv", cwd=files)
    assert equal.exit_code == 0, equal.stderr


def test_options_from_files(files: Path) -> None:
    (files / "pyproject.toml").write_text(
        "[tool.qms22]\nid = 'visit'\nignore = ['sick']\nquiet = true\nn_jobs = 1\nmax-flagged = 0\n"
    )
    plain = ("detect", "normal.csv", "batch.csv")
    result = run(*plain, cwd=files)
    assert result.exit_code == 1, result.stderr
    assert result.stdout.startswith("rank,visit")
    (files / "orders.toml").write_text(
        "max-flagged = 99\nfail-on = ['drift', 'schema']\nas = {ward = 'category'}\n"
        "json = 'r.json'\n"
    )
    result = run(*plain, "--config", "orders.toml", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert last_line(result) == "policy met: drift, schema, max-flagged"
    assert valid(files / "r.json")["settings"]["kinds"] == {"ward": "category"}
    result = run(*plain, "--config", "orders.toml", "--max-flagged", "1", cwd=files)
    assert result.exit_code == 1  # the command line has the last word
    result = run("score", "m.skops", "batch.csv", "--top", "1", cwd=files)
    assert result.exit_code == 1  # one file serves several commands
    (files / "both.toml").write_text("fail-on = ['anomalies', 'drift', 'flagged']\nmax-flagged = 9")
    config = ("--config", "both.toml", "--top", "1")
    result = run("score", "m.skops", "batch.csv", *config, cwd=files)
    assert last_line(result).startswith("policy violated by flagged: 1 of 150")
    (files / "both.toml").write_text("fail-on = ['dirt']")
    assert_refused(run("score", "m.skops", "batch.csv", *config, cwd=files), "'dirt' is not one of")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fail_onn = 'drift'", "o.toml: there is no option 'fail_onn'; did you mean 'fail-on'?"),
        ("zzz = 1", "there is no option 'zzz'; known are accept, as,"),
        ("config = 'x'", "there is no option 'config'"),
        ("fail-on = 'dirt'", "o.toml: fail-on = 'dirt': 'dirt' is not one of"),
        ("max-share = 3", "o.toml: max-share = 3: 3 is not a share"),
        ("quiet = 'yes'", "o.toml: quiet = 'yes': write true or false"),
        ("top = true", "o.toml: top = True: write a value"),
        ("= 1", "o.toml is not a TOML file"),
    ],
)
def test_wrong_options_in_files(files: Path, text: str, words: str) -> None:
    (files / "o.toml").write_text(text)
    assert_refused(run(*DETECT, "--config", "o.toml", cwd=files), words)


def test_a_config_that_is_not_there(files: Path) -> None:
    assert_refused(run(*DETECT, "--config", "no.toml", cwd=files), "--config no.toml cannot be")
    (files / "pyproject.toml").write_text("tool.qms22 = 3")
    assert_refused(run(*DETECT, cwd=files), "pyproject.toml [tool.qms22] is no table of options")


def test_one_result_in_all_files(files: Path) -> None:
    options = ("--fail-on", "flagged,drift", "--json", "r.json", "--junit", "j.xml")
    result = run(*DETECT, *options, "--summary", "s.md", "-o", "o.csv", cwd=files)
    assert result.exit_code == 1, result.stderr
    data = valid(files / "r.json")
    table = pd.read_csv(files / "o.csv")
    flagged = table[table["flagged"]]
    assert data["counts"]["flagged"] == len(flagged) == len(data["rows"])
    assert [row["id"] for row in data["rows"]] == flagged["visit"].tolist()
    assert [row["score"] for row in data["rows"]] == pytest.approx(flagged["score"].tolist())
    assert [row["text"] for row in data["rows"]] == flagged["reasons"].tolist()
    for row in data["rows"]:
        assert row["text"] == "; ".join(reason["text"] for reason in row["reasons"])
        assert all(reason["kind"] for reason in row["reasons"])
    blamed = data["rows"][0]["reasons"][0]["cell"]
    assert flagged[blamed["column"]].iloc[0] == blamed["value"]
    assert data["policy"]["text"] == last_line(result)
    suite = ElementTree.parse(files / "j.xml").getroot()
    assert suite.attrib["tests"] == "2"
    assert suite.attrib["failures"] == "1"
    cases = {case.attrib["name"]: case for case in suite.iter("testcase")}
    assert cases["flagged"].find("failure") is not None
    assert cases["drift"].find("failure") is None
    summary = (files / "s.md").read_text()
    assert data["verdict"]["text"].replace("<", "&lt;") in summary
    assert all(str(row["id"]) in summary for row in data["rows"][:20])


def test_json_on_standard_output(files: Path) -> None:
    result = run(*DETECT, "--json", "-", cwd=files)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["schema_version"] == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".json", ".xlsx"])
def test_each_row_is_good_or_bad(files: Path, suffix: str) -> None:
    good, bad = files / f"good{suffix}", files / f"bad{suffix}"
    result = run(*DETECT, "--good", good.name, "--bad", bad.name, "--json", "r.json", cwd=files)
    assert result.exit_code == 0, result.stderr
    whole = qms22.tables.read_table(files / "batch.csv")
    parts = [qms22.tables.read_table(path) for path in (good, bad)]
    assert [*parts[0].columns] == [*whole.columns]
    assert [*parts[1].columns] == [*whole.columns, "reasons"]
    assert len(parts[0]) + len(parts[1]) == len(whole)
    both = pd.concat(parts)["visit"]
    assert sorted(both) == sorted(whole["visit"])
    rows = valid(files / "r.json")["rows"]
    assert sorted(row["id"] for row in rows) == sorted(parts[1]["visit"])
    assert {*parts[1]["reasons"]} == {row["text"] for row in rows}


@pytest.mark.parametrize("above", ["sep=;\r\n", "", "Sales of May\n\n"])
def test_rows_of_a_text_stay_as_they_are_written(tmp_path: Path, above: str) -> None:
    header, end = "country;phone;user;sold;rate;note", "\r\n" if "\r" in above else "\n"
    rng = np.random.default_rng(0)
    cells = [["NA", "DE", ""], ["+49 30 5258", "-"], ["@u4", "@u5"], ["TRUE", "FALSE"]]
    lines = [
        ";".join([*(rng.choice(each) for each in cells), f"{rng.uniform(0.1, 0.9):.3f}0", note])
        for note in ['"a; ""b"""', '""', '"two\nlines"', "=1+1"] * 75
    ]
    lines[7] = f"{lines[7]};"  # one cell too many
    lines[240] = "DE;-;@u4;TRUE;99.50;=1+1"
    for name, some in (("n", lines[:200]), ("b", lines[200:])):
        (tmp_path / f"{name}.csv").write_bytes((above + end.join([header, *some, ""])).encode())
    options = ("--good", "g.csv", "--bad", "x.csv", "-k", "1", "-q", "--n-jobs", "1")
    result = run("detect", "n.csv", "b.csv", *options, cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    good, bad = ((tmp_path / name).read_bytes().decode() for name in ("g.csv", "x.csv"))
    assert good == above + end.join([header, *lines[200:240], *lines[241:], ""])
    start = above + f'{header};reasons{end}{lines[240]};"rate 99.50; '
    assert bad.startswith(start)
    table = qms22.tables.open_table(tmp_path / "x.csv")
    assert (table.n_rows, table.names[-1]) == (1, "reasons")


def test_good_and_bad_tables_of_one_database(files: Path) -> None:
    parts = ("--good", "load.db#good", "--bad", "load.db#bad")
    result = run(*DETECT, *parts, cwd=files)
    assert result.exit_code == 0, result.stderr
    good, bad = (qms22.tables.read_table(f"{files}/load.db#{name}") for name in ("good", "bad"))
    assert sorted([*good["visit"], *bad["visit"]]) == sorted(visits(150, 1)["visit"])
    assert bad["reasons"].str.len().all()
    assert_refused(run(*DETECT, *parts, cwd=files), "load.db", "good")


def test_parts_of_a_large_file(files: Path) -> None:
    options = ("--max-samples", "300", "--good", "g.parquet", "--bad", "b.parquet")
    result = run(*DETECT, *options, cwd=files)
    assert result.exit_code == 0, result.stderr
    good, bad = (pd.read_parquet(files / f"{name}.parquet") for name in "gb")
    assert sorted([*good["visit"], *bad["visit"]]) == sorted(visits(150, 1)["visit"])
    assert len(bad)


def test_known_anomalies_are_bad(files: Path) -> None:
    marks = pd.DataFrame(
        {"visit": [f"V1-{SICK[0]:05d}", "V1-00001"], "mark": ["anomaly", "normal"]}
    )
    marks.to_csv(files / "marks.csv", index=False)
    options = ("--marks", "marks.csv", "--good", "g.csv", "--bad", "b.csv", "--json", "r.json")
    result = run(*DETECT, *options, cwd=files)
    assert result.exit_code == 0, result.stderr
    bad = pd.read_csv(files / "b.csv").set_index("visit")["reasons"]
    assert bad[f"V1-{SICK[0]:05d}"] == "marked as anomaly"
    assert "V1-00001" in {*pd.read_csv(files / "g.csv")["visit"]}
    refused = run("verify", "r.json", "normal.csv", "batch.csv", cwd=files)
    assert_refused(refused, "the search used 1 table of marks, not 0; give the same marks")
    again = run("verify", "r.json", "normal.csv", "batch.csv", "--marks", "marks.csv", cwd=files)
    assert again.exit_code == 0, again.stderr


@pytest.mark.parametrize("output", ["/proc/out.csv", "/proc/out.xlsx"])
def test_a_failed_command_accepts_nothing(files: Path, output: str) -> None:
    clean = ("detect", "normal.csv", "clean.csv", "--history", "h.sqlite", "--accept", "-q")
    assert_refused(run(*clean, "-o", output, cwd=files), "cannot write")
    assert not any(entry.accepted for entry in BatchHistory(files / "h.sqlite").entries())
    result = run(*clean, "--json", "r.json", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "is known-normal, accepted" in result.stderr
    [entry] = BatchHistory(files / "h.sqlite").entries()
    assert entry.accepted
    assert valid(files / "r.json")["history"]["number"] == 1


def test_a_violated_policy_accepts_nothing(files: Path) -> None:
    visits(150, 2).assign(extra=1).to_csv(files / "extra.csv", index=False)
    more = ("--history", "h.sqlite", "--accept", "--fail-on", "schema", "--id", "visit")
    result = run("detect", "normal.csv", "extra.csv", *more, "-q", cwd=files)
    assert result.exit_code == 1
    note = "the batch was not accepted as known-normal: it does not meet the policy"
    assert note in words_of(result.stderr)
    assert not BatchHistory(files / "h.sqlite").entries()[0].accepted


@pytest.mark.slow
def test_a_batch_of_a_long_history_is_valid_and_verified(files: Path) -> None:
    table = pd.read_csv(files / "normal.csv")
    history = BatchHistory(files / "h.sqlite")
    for at in range(LEAST_PAST):
        visits(60, 100 + at).to_csv(files / f"{at}.csv", index=False)
        qms22.detect(table, files / f"{at}.csv", id="visit", history=history.path, n_jobs=1)
        history.accept(at + 1)
    more = ("--history", "h.sqlite", "--id", "visit", "--n-jobs", "1", "-q", "--json", "r.json")
    assert run("detect", "normal.csv", "clean.csv", *more, cwd=files).exit_code == 0
    data = valid(files / "r.json")
    assert data["history"]["over_time"]["compared_with"] == LEAST_PAST
    assert data["history"]["incident"] is None
    # What has come since is forgotten when the search is repeated.
    time.sleep(1.1)
    run("detect", "normal.csv", "batch.csv", *more[:-2], cwd=files)
    history.accept(LEAST_PAST + 2)
    verify = ("verify", "r.json", "normal.csv", "clean.csv", "--n-jobs", "1", "-q")
    result = run(*verify, "--history", "h.sqlite", cwd=files)
    assert result.exit_code == 0, result.stderr
    history.tag_incident(3, "a late discovery")
    refused = run(*verify, "--history", "h.sqlite", cwd=files)
    assert_refused(refused, "rows of batch 3", "are no longer kept")
    assert_refused(run(*verify, cwd=files), "the search learned from accepted batches (1, 2, 3,")


def test_verify(files: Path) -> None:
    rules = ("--fail-on", "drift,schema", "--max-flagged", "99", "--max-share", "50%")
    assert run(*DETECT, *rules, "--json", "r.json", cwd=files).exit_code == 0
    verify = ("verify", "r.json", "normal.csv", "batch.csv", "--n-jobs", "1", "-q")
    result = run(*verify, cwd=files)
    assert result.exit_code == 0, result.stderr
    assert last_line(result) == "equal: the scores of 150 rows are the same to the bit"
    data = valid(files / "r.json")

    def differs(change: dict[str, Any], words: str) -> None:
        (files / "r.json").write_text(json.dumps({**data, **change}))
        result = run(*verify, cwd=files)
        assert result.exit_code == 1, result.stderr
        assert words in last_line(result)

    differs({"rows": data["rows"][1:]}, "not what the file says about rows")
    differs({"answer": "None."}, "not what the file says about answer")
    differs({"notes": ["fine"]}, "not what the file says about notes")
    differs({"noticed": [{"kind": "volume"}]}, "not what the file says about noticed")
    differs({"policy": {**data["policy"], "is_met": False}}, "what the file says about policy")
    *rules_then, last = data["policy"]["rules"]
    edited = {**data["policy"], "rules": [*rules_then, {**last, "is_met": False}]}
    differs({"policy": edited}, "says about policy")
    differs({"settings": {**data["settings"], "seed": 1}}, "the scores differ, though inputs")
    other = {**data["provenance"], "scores_sha256": "0" * 64}
    other["versions"] = {**other["versions"], "numpy": "1.0"}
    differs({"provenance": other}, "the scores differ; versions differ: numpy 1.0 then, ")
    other = {**data["provenance"], "versions": other["versions"]}
    (files / "r.json").write_text(json.dumps({**data, "provenance": other}))
    assert (
        "the same to the bit; versions differ: numpy 1.0 then, " in run(*verify, cwd=files).stderr
    )
    # Files may be called otherwise, and lie elsewhere.
    (files / "r.json").write_text(json.dumps(data))
    shutil.copy(files / "normal.csv", files / "old.csv")
    result = run("verify", "r.json", files / "old.csv", "batch.csv", "-q", cwd=files)
    assert result.exit_code == 0, result.stderr
    (files / "r.json").write_text(json.dumps(data))
    result = run("verify", "r.json", "normal.csv", "clean.csv", cwd=files)
    assert result.exit_code == 1
    assert "the input clean.csv (batch) is not the one that was searched" in last_line(result)
    seedless = {**data, "settings": {**data["settings"], "seed": None}}
    (files / "r.json").write_text(json.dumps(seedless))
    assert_refused(run(*verify, cwd=files), "the search had no seed")
    for text in ("[]", "no JSON", '{"schema_version": 1}'):
        (files / "r.json").write_text(text)
        assert_refused(run(*verify, cwd=files), "r.json is not a result that qms22 has written")
    (files / "r.json").unlink()
    assert_refused(run(*verify, cwd=files), "there is no file 'r.json'; correct the path")


@pytest.mark.slow
def test_verify_on_other_cpus(files: Path) -> None:
    """Instruction sets, threads, and what NumPy, BLAS and the C library choose by the CPU"""
    there = {"QMS22_ISA": "scalar", "OPENBLAS_NUM_THREADS": "1"}
    done = run_process(*DETECT, "--json", "r.json", cwd=files, env={**os.environ, **there})
    assert done.returncode == 0, done.stderr
    here = [{"QMS22_ISA": name} for name in qms22.build_info()["runs_here"]]
    here += [
        {"NPY_DISABLE_CPU_FEATURES": "X86_V4", "OPENBLAS_CORETYPE": "Prescott"},
        {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2", "OPENBLAS_CORETYPE": "Haswell"},
    ]
    for env in here:
        verify = ("verify", "r.json", "normal.csv", "batch.csv", "--n-jobs", "2")
        variables = {**os.environ, "OPENBLAS_NUM_THREADS": "2", **env}
        again = run_process(*verify, cwd=files, env=variables)
        assert again.returncode == 0, again.stderr
        assert "equal: the scores of 150 rows are the same to the bit" in again.stderr


def test_verify_with_a_marker(files: Path) -> None:
    both = pd.concat([visits(200, 0).assign(known="yes"), visits(80, 1).assign(known="no")])
    both.to_csv(files / "both.csv", index=False)
    mixed = ("detect", "both.csv", "--marker", "known", "--json", "r.json", "-q")
    result = run(*mixed, "--normal-value", "yes", cwd=files)
    assert result.exit_code == 0, result.stderr
    result = run("verify", "r.json", "both.csv", cwd=files)
    assert result.exit_code == 0, result.stderr


def test_a_workbook_shows_what_is_to_blame(files: Path) -> None:
    from zipfile import ZipFile

    result = run(*DETECT, "-o", "found.xlsx", "--json", "r.json", cwd=files)
    assert result.exit_code == 0, result.stderr
    data = valid(files / "r.json")
    rows = pd.read_excel(files / "found.xlsx", sheet_name="rows", engine="calamine")
    assert rows["flagged"].tolist() == sorted(rows["flagged"], reverse=True)
    about = pd.read_excel(files / "found.xlsx", sheet_name="result", engine="calamine", header=None)
    assert data["verdict"]["text"] in {*about[1]}
    with ZipFile(files / "found.xlsx") as book:
        sheet, comments = (
            book.read(f"xl/{name}.xml").decode() for name in ("worksheets/sheet1", "comments1")
        )
        styles = book.read("xl/styles.xml").decode()
    assert 'state="frozen"' in sheet
    assert "<autoFilter" in sheet
    assert "FFFFD9B3" in styles
    blamed = data["rows"][0]["reasons"][0]
    column = chr(ord("A") + [*rows.columns].index(blamed["cell"]["column"]))
    assert f'<comment ref="{column}2"' in comments
    assert blamed["text"] in comments
    assert f'<c r="{column}2" s="' in sheet


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_libreoffice_opens_workbooks(files: Path) -> None:
    result = run(*DETECT, "-o", "found.xlsx", "--bad", "bad.xlsx", "--json", "r.json", cwd=files)
    assert result.exit_code == 0, result.stderr
    # A home of its own, so that several of them can run.
    convert = ("soffice", f"-env:UserInstallation={(files / 'home').as_uri()}", "--headless")
    done = subprocess.run(
        [*convert, "--convert-to", "csv", "--outdir", "out", "found.xlsx", "bad.xlsx"],
        cwd=files,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stdout + done.stderr
    rows = valid(files / "r.json")["rows"]
    found, bad = (pd.read_csv(files / f"out/{name}.csv") for name in ("found", "bad"))
    assert found["visit"].tolist()[: len(rows)] == [row["id"] for row in rows]
    assert found["flagged"].tolist() == [True] * len(rows) + [False] * (150 - len(rows))
    assert sorted(bad["reasons"]) == sorted(row["text"] for row in rows)


def test_a_fault_is_no_violated_policy() -> None:
    code = (
        "import sys; from qms22.cli import main\n"
        "main.commands['history'].callback = lambda **_: 1 / 0\n"
        "sys.argv = ['qms22', 'history', 'x']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "ZeroDivisionError" in done.stderr


def test_python_has_the_same(files: Path) -> None:
    options: dict[str, Any] = {"id": "visit", "ignore": ["sick"], "n_jobs": 1}
    found = qms22.detect(files / "normal.csv", files / "batch.csv", **options)
    rules = found.check(fail_on=["anomalies", "drift"], max_flagged=500)
    assert [rule.is_met for rule in rules] == [False, True, True]
    (files / "p.json").write_text(json.dumps(found.to_dict(rules)))
    ours = valid(files / "p.json")
    run(*DETECT, "--json", "r.json", "--fail-on", "anomalies,drift", cwd=files)
    theirs = valid(files / "r.json")
    for name in ("verdict", "rows", "findings", "counts", "moved", "noticed"):
        assert ours[name] == theirs[name]
    assert ours["provenance"]["scores_sha256"] == theirs["provenance"]["scores_sha256"]
    with pytest.raises(ValueError, match="fail_on"):
        found.check(fail_on=["anomaly"])
    frames = qms22.detect(visits(100, 0), visits(50, 1).assign(x=np.inf), id="visit")
    (files / "f.json").write_text(json.dumps(frames.to_dict(), allow_nan=False))
    [normal, _] = valid(files / "f.json")["provenance"]["inputs"]
    assert not normal["files"]
    assert normal["cells_sha256"]

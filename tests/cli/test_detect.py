"""`qms22 detect` and `qms22 score`."""

from __future__ import annotations

import gzip
import os
import pty
import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from command_line import COMMAND, assert_coherent, assert_refused, run, without_reasons
from keel_files import real_keel
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from qms22 import QMS22, detect
from qms22.cli.shared import SHARE
from qms22.models import save_model


@pytest.fixture(scope="module")
def cancer() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Known patients; and others with a diagnosis and a name."""
    data = load_breast_cancer(as_frame=True)
    few = data.data.iloc[:, [0, 1, 3, 7, 20, 21, 23, 24, 27]]  # of thirty columns: it is quicker
    rng = np.random.RandomState(0)
    benign = rng.permutation(np.flatnonzero(data.target == 1))
    rows = np.concatenate([benign[178:], np.flatnonzero(data.target == 0)[:40]])
    batch = few.iloc[rows].reset_index(drop=True)
    batch["diagnosis"] = np.where(data.target.iloc[rows] == 0, "positive", "negative")
    batch["patient"] = [f"P{number:04d}" for number in range(len(batch))]
    return few.iloc[benign[:178]].reset_index(drop=True), batch


@pytest.fixture
def files(cancer: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path) -> Path:
    cancer[0].to_csv(tmp_path / "normal.csv", index=False)
    cancer[1].to_csv(tmp_path / "batch.csv", index=False)
    return tmp_path


# One thread: tests run side by side, and threads that wait for each other take time.
EVERYDAY = (
    *("detect", "normal.csv", "batch.csv", "--id", "patient", "--label", "diagnosis"),
    *("--n-jobs", "1"),
)


def auc_of(result: Result) -> float:
    """The AUC that a command has printed."""
    found = re.search(r"AUC (\d\.\d{4})", result.stderr)
    assert found is not None, result.stderr
    return float(found[1])


def test_into_a_pipe_goes_csv(files: Path) -> None:
    result = run(*EVERYDAY, "-k", "20", cwd=files)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "rank,patient,score,flagged,reasons,p_value,false_at_most"
    assert len(lines) == 21
    assert "normal rows are at most" in lines[1]
    assert "by the labels:" in result.stderr
    assert auc_of(result) > 0.93
    assert "numbers: " in result.stderr  # the types of the columns are shown
    assert "learning" not in result.stderr  # and stages only on a terminal


def test_quiet(files: Path) -> None:
    result = run(*EVERYDAY, "-q", cwd=files)
    assert result.exit_code == 0
    assert "160/160" not in result.stderr
    assert "numbers: " not in result.stderr
    assert result.stdout.startswith("rank,patient,score")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--fdr", "0.1", "-k", "5"], "--top and --fdr both set how many rows to flag"),
        (["--fdr", "1"], "'1' is not a share between 0 and 1; write 0.1 or 10%"),
        (["--fdr", "10"], "10 is not a share between 0 and 1; did you mean 10%?"),
        (["--fdr", "110%"], "'110%' is not a share between 0 and 1; write 0.1 or 10%"),
        (["--fdr", "many"], "'many' is not a share between 0 and 1; write 0.1 or 10%"),
    ],
)
def test_bad_false_discovery_rates(files: Path, more: list[str], sentence: str) -> None:
    result = run(*EVERYDAY, *more, cwd=files)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("text", ["0.1", ".1", "10%", "10 %", "10,0 %", "0,1"])
def test_shares_as_people_write_them(text: str) -> None:
    assert SHARE.convert(text, None, None) == pytest.approx(0.1)


def test_flags_by_false_discovery_rate(files: Path) -> None:
    result = run(*EVERYDAY, "-o", "out.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    table = pd.read_csv(files / "out.csv")
    assert_coherent(table)
    flagged = table[table["flagged"]]
    assert 0 < len(flagged) < len(table) / 2
    assert flagged["p_value"].max() <= 0.2
    n_hits = int((flagged["diagnosis"] == "positive").sum())
    assert n_hits > 0.6 * len(flagged)
    assert f"{len(flagged)} of 219 rows are flagged (false discovery rate 0.1); at" in result.stderr
    words = f"{n_hits} of the {len(flagged)} flagged rows are outliers, TPR {n_hits / 40:.4f}"
    assert words in result.stderr
    top = run(*EVERYDAY, "--top", len(flagged), "-o", "top.csv", "-q", cwd=files)
    assert top.exit_code == 0, top.stderr
    pd.testing.assert_frame_equal(pd.read_csv(files / "top.csv"), table)


def test_nothing_flagged_is_a_result(files: Path) -> None:
    result = run(*EVERYDAY, "--fdr", "0.0001", "--report", "out.html", "-q", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) == 1
    assert (files / "out.html").exists()


def test_on_a_terminal_there_is_a_table(files: Path) -> None:
    primary, secondary = pty.openpty()
    with subprocess.Popen(
        [str(COMMAND), *EVERYDAY, "-k", "3", "-q"],
        cwd=files,
        stdout=secondary,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "120"},
    ) as process:
        assert process.wait(timeout=300) == 0
    os.close(secondary)
    shown = os.read(primary, 100_000).decode()
    assert "The 3 most suspicious rows" in shown
    assert "why" in shown


def test_a_script_gets_the_same_to_the_bit(
    files: Path, cancer: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    assert run(*EVERYDAY, "-o", "out.parquet", "-q", cwd=files).exit_code == 0
    table = pd.read_parquet(files / "out.parquet")
    found = detect(*cancer, id="patient", ignore=["diagnosis"]).table().reset_index(drop=True)
    # A reason has a number as its file has it.
    tables = [each.drop(columns="reasons") for each in (found, table)]
    pd.testing.assert_frame_equal(*tables, check_dtype=False)


def test_presets_and_seeds_matter_and_repeat(files: Path) -> None:
    def flagged(*more: str) -> str:
        return run(*EVERYDAY, "-k", "5", "-q", *more, cwd=files).stdout

    first = flagged()
    assert first == flagged("--seed", "0", "--n-jobs", "2")
    assert first != flagged("--seed", "1")
    assert first != flagged("--preset", "paper")


def test_one_file_with_a_marker(files: Path, cancer: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = cancer
    mixed = pd.concat([normal.assign(checked="ok"), batch.drop(columns=["diagnosis", "patient"])])
    mixed.to_csv(files / "mixed.csv", index=False)
    result = run("detect", "mixed.csv", "--marker", "checked", "-k", "5", "-q", cwd=files)
    left_out = ("--ignore", "patient", "--ignore", "diagnosis")
    two = run("detect", "normal.csv", "batch.csv", "-k", "5", "-q", *left_out, cwd=files)
    assert result.exit_code == 0, result.stderr
    assert without_reasons(result.stdout) == without_reasons(two.stdout)


def test_model_round_trip(files: Path) -> None:
    result = run(*EVERYDAY, "--save-model", "m.skops", "-o", "out.csv", "-q", cwd=files)
    assert result.exit_code == 0, result.stderr
    result = run("score", "m.skops", "batch.csv", "--id", "patient", "-o", "again.csv", cwd=files)
    assert result.exit_code == 0, result.stderr
    first, again = (pd.read_csv(files / name) for name in ("out.csv", "again.csv"))
    pd.testing.assert_frame_equal(
        first.drop(columns=["reasons", "p_value", "false_at_most"]), again.drop(columns="reasons")
    )
    # A model has no normal rows to count those alike.
    reasons = first["reasons"].replace(", as in [^;]*", "", regex=True)
    flagged = first["flagged"]
    assert (reasons[flagged] == again["reasons"][flagged]).mean() > 0.95
    few = run("score", "m.skops", "batch.csv", "--id", "patient", "-k", "3", cwd=files)
    assert len(few.stdout.splitlines()) == 4
    every = run("score", "m.skops", "batch.csv", "-k", "999", cwd=files)
    assert len(every.stdout.splitlines()) == 1 + 219
    assert_refused(run("score", "batch.csv", "batch.csv", cwd=files), "batch.csv")
    assert_refused(run("score", "m.skops", "normal.csv", "--id", "patient", cwd=files), "'patient'")


def test_report(files: Path) -> None:
    result = run(*EVERYDAY, "--report", "page.html", cwd=files)
    assert result.exit_code == 0, result.stderr
    page = (files / "page.html").read_text()
    assert "Suspicious rows of batch.csv" in page
    assert "written: page.html" in result.stderr


def test_any_table(tmp_path: Path) -> None:
    """Dates, identifiers, text, missing values, truth values, categories; latin-1, semicolons."""
    rng = np.random.RandomState(0)

    def rows(n: int, first: int) -> pd.DataFrame:
        days = pd.to_datetime("2026-01-05") + pd.to_timedelta(np.arange(n) % 30, unit="D")
        words = [f"Bestellung über {rng.randint(9)} Stück, geprüft am Tor {i}" for i in range(n)]
        return pd.DataFrame(
            {
                "order_id": np.arange(first, first + n),
                "date": days.strftime("%Y-%m-%d"),
                "amount": rng.gamma(3, 10, n).round(2),
                "land": rng.choice(["Österreich", "Schweiz", "Italien"], n),
                "note": words,
                "express": rng.choice([True, False], n),
                "currency": "EUR",
            }
        )

    normal, batch = rows(300, 1), rows(60, 301)
    batch.loc[7, "amount"] = 900.0
    batch.loc[9, "land"] = "Französisch-Polynesien"
    normal.loc[3, "amount"] = np.nan
    for name, table in (("normal.csv", normal), ("batch.csv", batch)):
        text = table.to_csv(index=False, sep=";", decimal=",")
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    refused = run("detect", "normal.csv", "batch.csv", "--missing", "error", cwd=tmp_path)
    assert_refused(refused, "'amount' (1, first at row 3)")
    for missing in ("impute", "drop"):
        result = run(
            "detect", "normal.csv", "batch.csv", "--missing", missing, "-k", "2", cwd=tmp_path
        )
        assert result.exit_code == 0, result.stderr
        assert {line.split(",")[1] for line in result.stdout.splitlines()[1:]} == {"7", "9"}
        assert "amount 900" in result.stdout
        assert "land Französisch-Polynesien; never seen in" in result.stdout
    for kind in ("dates: ", "identifier", "text", "categories: ", "numbers: "):
        assert kind in result.stderr


def test_columns_are_read_as_asked(files: Path) -> None:
    options = ("-k", "2", "--as", "mean area=category", "--as", "mean texture=ignore")
    result = run(*EVERYDAY, *options, cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "categories: mean area" in result.stderr
    for option, words in {
        "area": "--as area: give a column and a kind, such as zip=category",
        "mean area=acres": "column 'mean area' cannot be read as 'acres'; give one of the kinds",
        "area=number": "there is no column 'area' to read as number; the columns are 'mean radius'",
        "mean area=date": "column 'mean area' cannot be read as asked (date)",
    }.items():
        assert_refused(run(*EVERYDAY, "--as", option, cwd=files), words)


def test_compressed_and_binary_formats_agree(files: Path) -> None:
    normal, batch = pd.read_csv(files / "normal.csv"), pd.read_csv(files / "batch.csv")
    (files / "n.csv.gz").write_bytes(gzip.compress((files / "normal.csv").read_bytes()))
    batch.to_parquet(files / "b.parquet")
    normal.to_feather(files / "n.feather")
    expected = without_reasons(run(*EVERYDAY, "-k", "5", "-q", cwd=files).stdout)
    for first in ("n.csv.gz", "n.feather"):
        result = run("detect", first, "b.parquet", *EVERYDAY[3:], "-k", "5", "-q", cwd=files)
        assert without_reasons(result.stdout) == expected, result.stderr


def test_keel_abalone(tmp_path: Path) -> None:
    from qms22_bench.datasets import load_keel

    dataset = load_keel("abalone19", real_keel())
    table = pd.DataFrame(dict(zip(dataset.features, dataset.columns, strict=True)))
    table[~dataset.is_outlier][:3000].to_csv(tmp_path / "normal.csv", index=False)
    batch = pd.concat([table[~dataset.is_outlier][3000:], table[dataset.is_outlier]])
    batch["Class"] = [0] * (len(batch) - dataset.n_outliers) + [1] * dataset.n_outliers
    batch.to_csv(tmp_path / "batch.csv", index=False)
    result = run("detect", "normal.csv", "batch.csv", "--label", "Class", cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "categories: Sex" in result.stderr
    assert auc_of(result) == pytest.approx(0.73, abs=0.05)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"a,b,c\n", "no rows"),
        (bytes(range(256)) * 20, "other.csv"),
        (b"x,y\n1,2\n3,4\n", "no column in common"),
    ],
)
def test_wrong_files(files: Path, content: bytes, words: str) -> None:
    (files / "other.csv").write_bytes(content)
    before = set(files.iterdir())
    result = run(
        "detect", "normal.csv", "other.csv", "-o", "o.csv", "--report", "r.html", cwd=files
    )
    assert_refused(result, words)
    assert set(files.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["detect", "normal.csv", "nowhere.csv"], "nowhere.csv"),
        (["detect", "normal.csv", "*.tsv"], "no file matches '*.tsv'; correct the pattern"),
        (["detect", "-", "-"], "standard input can be read only once"),
        (["detect", "-", "batch.csv"], "standard input is empty"),
        (["detect", "normal.csv"], "give a second file"),
        (
            ["detect", "normal.csv", "./normal.csv"],
            "normal.csv is given both as known-normal and as the table to search",
        ),
        (
            ["detect", "*.csv", "batch.csv"],
            "batch.csv is given both as known-normal and as the table to search",
        ),
        ([*EVERYDAY, "-k", "0"], "0 is not in the range x>=1"),
        ([*EVERYDAY, "-o", "out.xls"], "must end in .csv, .parquet, .json, .jsonl or .xlsx"),
        ([*EVERYDAY, "-o", "no/out.csv"], "the directory no"),
        ([*EVERYDAY, "--report", "page.pdf"], "--report page.pdf must end in .html"),
        ([*EVERYDAY, "--save-model", "m.pkl"], "--save-model m.pkl must end in .skops"),
        (
            [*EVERYDAY[:3], "--id", "name"],
            "batch.csv has no column 'name' for the names of rows; its columns are",
        ),
        ([*EVERYDAY[:3], "--ignore", "x"], "there is no column 'x' to ignore; the columns are"),
        ([*EVERYDAY[:3], "--label", "mean area"], "none is surely the outlier"),
        ([*EVERYDAY[:3], "--label", "truth"], "batch.csv has no column 'truth' for true labels"),
        ([*EVERYDAY, "--marker", "x"], "--marker and --normal-value are for one file"),
        ([*EVERYDAY[:3], "--outlier", "1"], "--outlier needs --label"),
        ([*EVERYDAY, "--only-flagged"], "--only-flagged needs --output"),
        ([*EVERYDAY, "--n-jobs", "0"], "--n-jobs must be a number of threads, or -1"),
        ([*EVERYDAY, "--device", "tpu"], "'tpu' is not one of 'cpu', 'cuda', 'auto'"),
        (["score", "nothing.skops", "batch.csv"], "nothing.skops"),
        (["score", "m.skops", "batch.csv", "--only-flagged"], "--only-flagged needs --output"),
    ],
)
def test_refusals(files: Path, arguments: list[str], words: str) -> None:
    before = set(files.iterdir())
    assert_refused(run(*arguments, cwd=files), words)
    assert set(files.iterdir()) == before


def test_names_are_matched_without_case(files: Path) -> None:
    options = ("--id", "Patient", "--label", "DIAGNOSIS", "--ignore", "mean_area", "-k", "5")
    kinds = ("--as", "Mean Radius=category")
    result = run(*EVERYDAY[:3], *options, *kinds, "--n-jobs", "1", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "by the labels: " in result.stderr
    assert "categories: mean radius" in result.stderr
    assert "left out: mean area" in result.stderr
    assert result.stdout.splitlines()[1].split(",")[1].startswith("P0")


def test_unwritable_output(files: Path) -> None:
    result = run(*EVERYDAY, "-o", "/proc/out.csv", "-q", cwd=files)
    assert_refused(result, "/proc/out.csv")


def test_one_row_each(files: Path) -> None:
    one = (files / "normal.csv").read_text().splitlines()[:2]
    (files / "one.csv").write_text("\n".join(one) + "\n")
    assert_refused(
        run("detect", "one.csv", "normal.csv", cwd=files), "1 known-normal rows are too few"
    )
    result = run("detect", "normal.csv", "one.csv", "--top", "1", "-q", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) == 2


def test_parquet_with_an_absurd_footer(files: Path) -> None:
    pd.read_csv(files / "normal.csv").to_parquet(files / "n.parquet")
    whole = (files / "n.parquet").read_bytes()
    # The footer's length is said to be two gigabytes.
    (files / "bad.parquet").write_bytes(whole[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    assert_refused(run("detect", "bad.parquet", "batch.csv", cwd=files), "bad.parquet")


def test_a_model_whose_encoder_reads_no_tables(files: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2))
    scaler = StandardScaler().fit(rows)
    detector = QMS22(max_iter=5, random_state=0).fit(rows, unlabeled=rng.normal(size=(20, 2)))
    save_model(files / "m.skops", detector, encoder=scaler)
    result = run("score", "m.skops", "batch.csv", cwd=files)
    assert_refused(result, "the encoder of the model is a StandardScaler, which cannot read tables")

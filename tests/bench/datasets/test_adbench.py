"""ADBench's files as data sets: the split, what is left out, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from qms22_bench.cli import main
from qms22_bench.datasets import load_adbench
from qms22_bench.report import write_report
from qms22_bench.store import Store
from qms22_bench.tables import auc_table, missing_folds, sizes


def write(path: Path, n_rows: int = 60, n_outliers: int = 6, n_features: int = 3) -> None:
    rng = np.random.default_rng(n_rows)
    y = rng.permutation(np.arange(n_rows) < n_outliers).astype(np.int32)
    X = np.round(50 * (rng.normal(size=(n_rows, n_features)) + 4 * y[:, None]))
    np.savez(path, X=X.astype(np.int16), y=y)


def naive_split(path: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return T, S and the labels of S, in the steps in which the splits are described."""
    with np.load(path) as file:
        X, y = file["X"].astype(float), file["y"].astype(int)
    rng = np.random.default_rng(0)
    if len(X) > 6000:
        drawn = rng.permutation(len(X))[:6000]
        X, y = X[drawn], y[drawn]
    normal = rng.permutation(np.flatnonzero(y == 0))
    half = len(normal) // 2
    batch = rng.permutation(np.r_[normal[half:], np.flatnonzero(y == 1)])
    return X[normal[:half]], X[batch], y[batch]


@pytest.mark.parametrize("n_rows", [61, 6000, 6001, 9000])
def test_splits_are_the_described_ones(tmp_path: Path, n_rows: int) -> None:
    path = tmp_path / "7_toy.npz"
    write(path, n_rows, n_rows // 10)
    (dataset,) = load_adbench(tmp_path)
    (fold,) = dataset.folds()
    normal, batch, labels = naive_split(path)
    np.testing.assert_array_equal(fold.normal, normal)
    np.testing.assert_array_equal(fold.unlabeled, batch)
    np.testing.assert_array_equal(fold.is_outlier, labels == 1)
    assert dataset.name == "7_toy"
    assert dataset.n_rows == min(n_rows, 6000)
    assert dataset.folds_source == "half of the normal rows, seed 0"


def test_sets_that_are_too_wide_or_lack_outliers_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "2_few.npz", n_outliers=4)
    write(tmp_path / "3_wide.npz", n_features=201)
    with pytest.raises(ValueError, match=r"has no \.npz file with at least 5 outliers and at most"):
        load_adbench(tmp_path)
    write(tmp_path / "4_enough.npz", n_outliers=5)
    write(tmp_path / "1_widest.npz", n_features=200)
    assert [dataset.name for dataset in load_adbench(tmp_path)] == ["1_widest", "4_enough"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        load_adbench(tmp_path / "nowhere")


class Trap:
    """An object whose unpickling leaves a trace."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    objects = np.array([[Trap(trace)]] * 20, dtype=object)
    np.savez(tmp_path / "trap.npz", X=objects, y=np.zeros(20))
    with pytest.raises(ValueError, match=r"trap.npz is damaged, or holds pickled objects, which"):
        load_adbench(tmp_path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"X": np.zeros((20, 2))}, "has no array X or y"),
        ({"X": np.zeros(20), "y": np.zeros(20)}, r"has X of shape \(20,\) and type float64, and y"),
        ({"X": np.zeros((20, 2)), "y": np.zeros(19)}, r"y of shape \(19,\); X has to hold"),
        ({"X": np.full((9, 2), "a"), "y": np.zeros(9)}, "type <U1, and y"),
        ({"X": np.array([[1.0, 2.0], [3.0, np.nan]]), "y": np.zeros(2)}, "row 1 of feature 1"),
        ({"X": np.zeros((9, 2)), "y": np.arange(9)}, "labels y of .* are not all 0"),
        ({"X": np.zeros((9, 2)), "y": np.arange(9) > 0}, r"has 1 normal rows \(y = 0\)"),
    ],
)
def test_faults_are_named(tmp_path: Path, arrays: dict[str, Any], complaint: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=f"bad.npz.*{complaint}|{complaint}.*"):
        load_adbench(tmp_path)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.npz"
    write(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"cut\.npz is damaged, or"):
        load_adbench(tmp_path)
    path.write_text("no archive at all")
    with pytest.raises(ValueError, match=r"cut\.npz is damaged, or"):
        load_adbench(tmp_path)


def test_the_benchmark_runs_on_the_folder_and_reports_it(tmp_path: Path) -> None:
    folder, path = tmp_path / "sets", tmp_path / "results.sqlite"
    folder.mkdir()
    for name, n_rows in (("1_one", 60), ("2_two", 80), ("3_three", 90)):
        write(folder / f"{name}.npz", n_rows)
    chosen = ["--dataset", "1_*", "--dataset", "2_*", "--detector", "kNN", "--detector", "DTE-NP"]
    arguments = ["run", "--adbench", str(folder), "--store", str(path), *chosen]
    first = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert "4 fits made, 0 were stored already" in first.output
    assert "2 from" in first.output
    assert "half of the normal rows, seed 0" in first.output
    again = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert "0 fits made, 4 were stored already" in again.output
    with Store(path) as store:
        results, runs = store.results(), store.runs()
    assert len(missing_folds(results)) == 0
    assert auc_table(results).shape == (2, 2)
    assert (auc_table(results) > 0.9).all(axis=None)
    assert sizes(results)["n"].tolist() == [33, 43]
    page = write_report(results, runs, tmp_path / "report")
    assert "2_two" in page.read_text()


def test_one_source_of_data_at_a_time(tmp_path: Path) -> None:
    write(tmp_path / "1_one.npz")
    both = ["run", "--adbench", str(tmp_path), "--folder", str(tmp_path)]
    assert "either --folder or --adbench" in CliRunner().invoke(main, both).output
    labeled = ["run", "--adbench", str(tmp_path), "--label", "y"]
    assert "--label and --outlier need --folder" in CliRunner().invoke(main, labeled).output

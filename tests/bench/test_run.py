"""The benchmark survives kills, rivals' bugs, full disks and company."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from qms22_bench import registry
from qms22_bench.cli import main
from qms22_bench.datasets import Dataset, LabeledRows
from qms22_bench.run import FitJob, run_benchmark, run_job
from qms22_bench.store import FitResult, Store

QMS22_BENCH = Path(sysconfig.get_path("scripts")) / "qms22-bench"


def toy(name: str = "toy", n_rows: int = 60, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    is_outlier = np.arange(n_rows) % 6 == 0
    columns = tuple(rng.normal(size=n_rows) + 4 * is_outlier for _ in range(2))
    return Dataset(name, ("a", "b"), LabeledRows(columns, is_outlier))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three CSV files with a label column."""
    target = tmp_path / "data"
    target.mkdir()
    for number in range(3):
        dataset = toy(seed=number, n_rows=120)
        frame = pd.DataFrame(dict(zip("ab", dataset.columns, strict=True)))
        frame["kind"] = np.where(dataset.is_outlier, "outlier", "normal")
        frame.to_csv(target / f"set{number}.csv", index=False)
    return target


def command(folder: Path, store: Path, *more: str) -> list[str]:
    options = ["--folder", str(folder), "--store", str(store), "-m", "QMS22", "-m", "kNN"]
    return ["run", *options, *more]


def run(arguments: list[str]) -> Result:
    return CliRunner().invoke(main, arguments)


def start(arguments: list[str], **options: Any) -> subprocess.Popen[str]:
    """Start a process of its own, for what would harm or change this one."""
    return subprocess.Popen([str(QMS22_BENCH), *arguments], text=True, **options)


def table(store: Path) -> list[tuple[object, ...]]:
    query = (
        "select dataset, fold, detector, seed, auc, status, folds from results order by 1, 2, 3, 4"
    )
    with sqlite3.connect(store) as connection:
        return connection.execute(query).fetchall()


def test_stores_what_a_fit_came_to(tmp_path: Path) -> None:
    with Store(tmp_path / "r.sqlite") as store:
        n_made = run_benchmark(store, [toy()], ["QMS22", "kNN"], [0, 1], keep_scores=True)
        results, runs, scores = store.results(), store.runs(), store.scores()
    assert n_made == len(results) == 5 * 2 * 2
    assert (results.status == "ok").all()
    assert results.auc.between(0.9, 1).all()
    assert (results.fit_seconds >= 0).all()
    assert set(results.folds) == {"stratified, seed 0"}
    assert results.n_features.unique().tolist() == [2]
    assert '"n_members": 7' in results[results.detector == "QMS22"].parameters.iloc[0]
    assert runs[0]["versions"]["scikit-learn"]
    assert runs[0]["machine"]["cores"] == os.cpu_count()
    truth, values = scores["toy", 1, "QMS22", 0]
    assert truth.shape == values.shape == (12,)
    assert values[truth].min() > values[~truth].mean()


def test_goes_on_where_it_was(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []

    def show(done: int, of: int, name: str) -> None:
        told.append((done, of, name))

    with Store(tmp_path / "r.sqlite") as store:
        assert run_benchmark(store, [toy()], ["kNN"], [0]) == 5
        assert run_benchmark(store, [toy()], ["kNN", "LOF"], [0], show=show) == 5
        assert told[0] == (0, 5, "")
        assert told[-1] == (5, 5, "LOF on toy")
        assert run_benchmark(store, [toy()], ["kNN", "LOF"], [0]) == 0
        # Scores were not kept before: those fits are made again.
        assert run_benchmark(store, [toy()], ["kNN"], [0], keep_scores=True) == 5


def test_a_failing_detector_is_recorded_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of luck\nand more")

    with Store(tmp_path / "r.sqlite") as store:
        with monkeypatch.context() as patched:
            patched.setattr(registry, "fit", fail)
            assert run_benchmark(store, [toy()], ["kNN"], [0]) == 5
        assert set(store.results().error) == {"RuntimeError: out of luck"}
        assert store.failures()[0] == "kNN on toy, fold 1, seed 0: RuntimeError: out of luck"
        assert run_benchmark(store, [toy()], ["kNN"], [0]) == 5
        assert not store.failures()


def test_scores_that_are_not_finite_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fold = next(toy().folds())
    monkeypatch.setattr(registry, "score", lambda *_: np.full(len(fold.unlabeled), np.nan))
    result = run_job(FitJob("toy", "official", 5, fold, "kNN", 0, keep_scores=False))
    assert result.error is not None
    assert "scores holds nan at row 0" in result.error


def test_unknown_detector(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "r.sqlite") as store,
        pytest.raises(ValueError, match="did you mean 'QMS22'"),
    ):
        run_benchmark(store, [toy()], ["QMS2"], [0])


def test_results_of_other_folds_are_not_mixed(tmp_path: Path) -> None:
    with Store(tmp_path / "r.sqlite") as store:
        run_benchmark(store, [toy()], ["kNN"], [0])
        with pytest.raises(ValueError, match=r"other folds \(stratified, seed 0\) than this run's"):
            run_benchmark(store, [toy().stratified(7)], ["kNN"], [0])


def test_processes_give_the_same_results(tmp_path: Path) -> None:
    for name, jobs in (("one", 1), ("more", 2)):
        with Store(tmp_path / name) as store:
            run_benchmark(store, [toy(), toy("other", seed=1)], ["QMS22"], [0], n_jobs=jobs)
    assert table(tmp_path / "one") == table(tmp_path / "more")


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
@pytest.mark.filterwarnings("ignore")
def test_cluster_backends(tmp_path: Path, folder: Path, backend: str, package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    few = ["-d", "set0", "-q"]
    parallel = command(folder, tmp_path / "c", *few, "--backend", backend, "--n-jobs", "2")
    with start(parallel, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert run(command(folder, tmp_path / "one", *few)).exit_code == 0
    assert table(tmp_path / "c") == table(tmp_path / "one")


@pytest.mark.slow
def test_kill_loses_only_what_was_in_flight(tmp_path: Path, folder: Path) -> None:
    whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    slow = ["-d", "set[01]", "-m", "OCKRA"]  # its fits take long enough to be killed
    first = run(command(folder, whole, *slow))
    assert first.exit_code == 0
    assert "data sets: 2 from 2 places, folds: stratified, seed 0" in first.stderr
    n_before = 0
    for _ in range(2):
        with start(
            command(folder, killed, *slow, "--n-jobs", "2"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline and process.poll() is None:
                if killed.exists() and count(killed) >= n_before + 3:
                    break
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGKILL)
        n_after = count(killed)
        assert n_after >= n_before + 3, "nothing that was reported may be lost"
        n_before = n_after
    result = run(command(folder, killed, *slow))
    assert result.exit_code == 0, result.stderr
    assert f"{n_before} were stored already" in result.stdout
    assert table(killed) == table(whole)


def count(store: Path) -> int:
    try:
        with sqlite3.connect(store, timeout=30) as connection:
            return int(connection.execute("select count(*) from results").fetchone()[0])
    except sqlite3.OperationalError:  # no table yet
        return 0


@pytest.mark.slow
def test_two_runs_at_once_do_not_harm_each_other(tmp_path: Path, folder: Path) -> None:
    shared, alone = tmp_path / "shared.sqlite", tmp_path / "alone.sqlite"
    runs = [start(command(folder, shared, "-q")) for _ in range(2)]
    assert [process.wait(timeout=300) for process in runs] == [0, 0]
    assert run(command(folder, alone, "-q")).exit_code == 0
    assert table(shared) == table(alone)


def test_full_disk(tmp_path: Path, folder: Path) -> None:
    store = tmp_path / "r.sqlite"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    arguments = command(folder, store, "-q", "--keep-scores")
    with start(arguments, stderr=subprocess.PIPE, preexec_fn=limit) as process:
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "cannot use the results in" in errors
    assert "results written before are kept" in errors
    assert "Traceback" not in errors
    kept = count(store)
    assert kept > 0
    again = run(arguments)
    assert again.exit_code == 0
    assert f"{kept} were stored already" in again.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "broken.csv"),
        ("a,b,kind\n1,2,normal\n", "one"),
        ("a,b,kind\n" + "1,2,outlier\n" * 20, "label"),
        ("a,b,kind\n" + "1,2,blue\n1,2,red\n" * 20, "outlier="),
    ],
)
def test_broken_data_sets(tmp_path: Path, folder: Path, content: str, words: str) -> None:
    (folder / "broken.csv").write_text(content)
    result = run(command(folder, tmp_path / "r.sqlite", "-q"))
    assert result.exit_code == 2
    assert "broken" in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "-d", "nonsense*"], "no data set is called 'nonsense*'"),
        (["run", "-d", "iris0", "-m", "Magic"], "no detector is called 'Magic'"),
        (["run", "-d", "iris0", "--label", "x"], "--label and --outlier need --folder"),
        (["run", "--folder", "nowhere"], "Directory 'nowhere' does not exist"),
        (["report", "--store", "none.sqlite"], "there are no results in none.sqlite"),
    ],
)
def test_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_a_file_that_holds_no_results(tmp_path: Path, folder: Path) -> None:
    store = tmp_path / "r.sqlite"
    store.write_text("something else " * 100)
    result = run(command(folder, store))
    assert result.exit_code == 2
    assert "file is not a database" in result.stderr
    assert store.read_text().startswith("something else")


def test_a_store_under_a_name_that_the_report_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("report").mkdir()
    with Store("report/index.html"):
        pass
    before = Path("report/index.html").read_bytes()
    result = run(["report", "--store", "report/index.html", "-o", "./report"])
    assert result.exit_code == 2
    assert "has a file 'index.html' that no report wrote" in " ".join(result.stderr.split())
    assert Path("report/index.html").read_bytes() == before


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("matplotlib", ["report"], "bench"),
        ("joblib", ["run"], "bench"),
        ("ray", ["run", "-d", "iris0", "-m", "kNN", "--backend", "ray"], "ray"),
    ],
)
def test_a_missing_package_is_named_with_the_command(
    tmp_path: Path, module: str, arguments: list[str], extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; from qms22_bench.cli import main; "
        f"main({arguments})"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2, result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith(f"Error: this needs {module}, which is not installed; run pip install")
    assert last.endswith(f"'qms22[{extra}]'")


def test_list() -> None:
    result = run(["list"])
    assert result.exit_code == 0
    assert "abalone19" in result.stdout
    assert "IsolationForest" in result.stdout


def test_result_key() -> None:
    result = FitResult("d", 1, "x", 0, "official", 5, 5, 4, 1, 2, "{}", "now")
    assert result.key == ("d", 1, "x", 0)

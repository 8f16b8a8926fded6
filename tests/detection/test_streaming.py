"""Files read part by part give the answer that tables in memory give."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from qms22._runtime import memory as _memory
from qms22.cli import main
from qms22.cli.detect import _auc
from qms22.cli.shared import write_tables
from qms22.detection import streaming
from qms22.detection.run import detect, score_table
from qms22.detection.streaming import detect_files, is_large, most_suspicious, score_file
from qms22.metrics import roc
from qms22.models import load_model, save_model
from qms22.tables import open_table, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COMMAND = Path(sysconfig.get_path("scripts")) / "qms22"
N_NORMAL, N_BATCH = 400, 150
SICK = [*range(20, 26), 130, 132]
FAST: dict[str, Any] = {"preset": "paper", "k": 8}


def visits(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.RandomState(seed)
    days = pd.Timestamp("2026-01-05") + pd.to_timedelta(rng.randint(0, 60, n_rows), unit="D")
    return pd.DataFrame(
        {
            "visit": [f"V{seed}-{at:05d}" for at in range(n_rows)],
            "day": days.strftime("%Y-%m-%d"),
            "age": rng.randint(18, 90, n_rows),
            "weight": rng.normal(70, 9, n_rows).round(3),
            "pulse": rng.normal(65, 7, n_rows),
            "ward": rng.choice(["A", "B", "C"], n_rows),
            "urgent": rng.choice([True, False], n_rows),
        }
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    normal, batch = visits(N_NORMAL, 0), visits(N_BATCH, 1)
    batch.loc[SICK, "weight"] += 90.0
    batch.loc[SICK, "pulse"] += 60.0
    batch.loc[SICK[-1], "ward"] = "Z"
    batch["sick"] = np.isin(np.arange(N_BATCH), SICK).astype(int)
    for name, table in (("normal", normal), ("batch", batch)):
        table.to_parquet(tmp_path / f"{name}.parquet", row_group_size=37)
        table.to_feather(tmp_path / f"{name}.feather", chunksize=41)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several parts of the small tables here."""
    monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", 300)


def change(path: Path, row: int, column: str, value: object) -> None:
    """Write another value, and let a column be text if it has to."""
    table = pd.read_parquet(path)
    table[column] = table[column].astype(object)
    table.loc[row, column] = value
    if isinstance(value, str):
        table[column] = table[column].astype(str)
    table.to_parquet(path, row_group_size=37)
    table.to_csv(path.with_suffix(".csv"), index=False)


LEFT_OUT: dict[str, Any] = {"ignore": ["visit", "sick"]}


@pytest.mark.parametrize("preset", ["paper", "recommended"])
@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_the_answer_is_that_of_memory(files: Path, kind: str, preset: str) -> None:
    normal, batch = files / f"normal.{kind}", files / f"batch.{kind}"
    expected = detect(read_table(normal), read_table(batch), preset=preset, k=8, **LEFT_OUT)
    found = detect_files(normal, batch, max_samples=400, preset=preset, k=8, **LEFT_OUT)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.top, expected.top)
    assert found.flagged.reasons == expected.reasons
    assert found.flagged.detector.offset_ == expected.detector.offset_
    table = expected.table("visit")
    pd.testing.assert_frame_equal(found.excerpt(N_BATCH).table("visit"), table)
    pd.testing.assert_frame_equal(found.flagged.table("visit"), table[:8])
    whole = pd.concat(found.tables("visit")).sort_values("rank").reset_index(drop=True)
    pd.testing.assert_frame_equal(whole, table, check_dtype=False)


@pytest.mark.parametrize("missing", ["impute", "drop"])
def test_missing_values(files: Path, missing: str) -> None:
    for name, row in (("normal", 390), ("batch", 5), ("batch", 140)):
        change(files / f"{name}.parquet", row, "pulse", None)
    for kind in ("parquet", "csv"):
        normal, batch = files / f"normal.{kind}", files / f"batch.{kind}"
        tables = read_table(normal), read_table(batch)
        options = {**FAST, **LEFT_OUT, "missing": missing}
        expected = detect(*tables, **options)
        found = detect_files(normal, batch, **options)
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(found.scores)), expected.positions)
        np.testing.assert_array_equal(found.scores[expected.positions], expected.scores)
        assert found.n_scored == N_BATCH - 2 * (missing == "drop")
        whole = pd.concat(found.tables("visit"))
        assert len(whole) == found.n_scored
        assert sorted(whole["rank"]) == list(range(1, found.n_scored + 1))


def test_false_discovery_rate(files: Path) -> None:
    normal, batch = files / "normal.parquet", files / "batch.parquet"
    expected = detect(read_table(normal), read_table(batch), fdr=0.3, preset="paper", **LEFT_OUT)
    found = detect_files(normal, batch, fdr=0.3, max_samples=200, preset="paper", **LEFT_OUT)
    assert len(found.flagged.normal) == 200
    assert found.p_values is not None
    found = detect_files(normal, batch, fdr=0.3, preset="paper", **LEFT_OUT)
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    pd.testing.assert_frame_equal(found.excerpt(N_BATCH).table(), expected.table())
    whole = pd.concat(found.tables()).sort_values("rank").reset_index(drop=True)
    pd.testing.assert_frame_equal(whole, expected.table(), check_dtype=False)
    with pytest.raises(ValueError, match=r"needs all 150 rows .* only 100 are drawn"):
        detect_files(normal, batch, fdr=0.3, max_samples=100, **LEFT_OUT)


def test_draws(files: Path) -> None:
    def scores(seed: int, n: int = 100, kind: str = "parquet") -> list[float]:
        known, rows = files / f"normal.{kind}", files / f"batch.{kind}"
        found = detect_files(known, rows, max_samples=n, seed=seed, **FAST, **LEFT_OUT)
        assert (len(found.flagged.normal), found.n_drawn) == (n, n)
        assert found.n_scored == N_BATCH
        return list(found.scores)

    first = scores(0)
    assert first == scores(0) == scores(0, kind="csv") == scores(0, kind="feather")
    assert first != scores(1)
    assert first != scores(0, n=101)
    assert len(set(np.argsort(first)[-8:]) & set(SICK)) >= 6


def test_chunks_do_not_matter(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    normal, batch = files / "normal.csv", files / "batch.csv"
    found = []
    for cells in (1, 100, 10**6):
        monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", cells)
        answer = detect_files(normal, batch, max_samples=90, **FAST, **LEFT_OUT)
        found.append((answer.scores.tolist(), pd.concat(answer.tables())["rank"].tolist()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("pulse", None, "1 column has missing values (NaN): 'pulse' (1, first at row 140)"),
        ("pulse", np.inf, "column 'pulse' has 1 infinite (inf) values (first at row 140)"),
        (
            "weight",
            "heavy",
            "'weight' is numeric among the normal rows but holds 'heavy' here (row 140)",
        ),
        ("day", "soon", "'day' is date among the normal rows"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_faults_name_the_row_of_the_file(
    files: Path, kind: str, column: str, value: object, words: str
) -> None:
    change(files / "batch.parquet", 140, column, value)
    normal, batch = files / f"normal.{kind}", files / f"batch.{kind}"
    with pytest.raises(ValueError, match="row 140") as drawn:
        detect_files(normal, batch, max_samples=400, **LEFT_OUT)
    assert words in str(drawn.value)
    # Not among the rows drawn: the fault is met when its part of the file is scored.
    with pytest.raises(ValueError, match=r"rows \d+ to \d+: .*row 140") as late:
        detect_files(normal, batch, max_samples=40, seed=0, **LEFT_OUT)
    assert words in str(late.value)
    # Among them, though not all rows are.
    with pytest.raises(ValueError, match=r"among the rows drawn, .*row 140"):
        detect_files(normal, batch, max_samples=149, seed=0, **LEFT_OUT)


def test_a_part_without_any_value(files: Path) -> None:
    """Texts of nothing tell no kind: neither dates nor categories mind."""
    table = pd.read_parquet(files / "batch.parquet")
    table["urgent"] = table["urgent"].astype("boolean")
    table.loc[100:, ["day", "ward", "urgent", "pulse"]] = None
    for name in ("batch.parquet", "batch.csv"):
        getattr(table, f"to_{name.split('.')[1]}")(files / name, index=False)
        normal, batch = files / name.replace("batch", "normal"), files / name
        expected = detect(
            read_table(normal), read_table(batch), missing="impute", **FAST, **LEFT_OUT
        )
        found = detect_files(normal, batch, missing="impute", **FAST, **LEFT_OUT)
        np.testing.assert_array_equal(found.scores, expected.scores)


def test_numbers_for_levels(tmp_path: Path) -> None:
    """Parts of a column of numbers that stand for levels need not hold a level that is known."""
    rng = np.random.RandomState(0)
    normal = pd.DataFrame({"x": rng.normal(size=90), "zone": rng.choice(["1", "2", "b"], 90)})
    batch = pd.DataFrame({"x": rng.normal(size=300), "zone": np.repeat([1, 2, 7], 100)})
    normal.to_parquet(tmp_path / "normal.parquet")
    batch.to_parquet(tmp_path / "batch.parquet")
    found = detect_files(tmp_path / "normal.parquet", tmp_path / "batch.parquet", **FAST)
    np.testing.assert_array_equal(found.scores, detect(normal, batch, **FAST).scores)


def test_models(files: Path) -> None:
    found = detect_files(
        files / "normal.csv", files / "batch.csv", max_samples=100, **FAST, **LEFT_OUT
    )
    save_model(files / "m.skops", found.flagged.detector, encoder=found.flagged.encoder)
    model = load_model(files / "m.skops")
    again = score_file(model, files / "batch.parquet")
    np.testing.assert_array_equal(again.scores, found.scores)
    np.testing.assert_array_equal(again.top, found.top)
    for k in (None, 3):
        expected = score_table(model, read_table(files / "batch.parquet"), k=k, id_column="visit")
        scored = score_file(model, files / "batch.parquet", k=k)
        pd.testing.assert_frame_equal(scored.excerpt(N_BATCH).table("visit"), expected)
    with pytest.raises(ValueError, match="k=151 is more than the 150 rows"):
        score_file(model, files / "batch.parquet", k=151)
    pd.DataFrame({"x": [1]}).to_csv(files / "x.csv", index=False)
    with pytest.raises(ValueError, match="lacks columns 'age'"):
        score_file(model, files / "x.csv")


def test_nothing_flagged(files: Path) -> None:
    found = detect_files(files / "normal.csv", files / "batch.csv", **FAST, **LEFT_OUT)
    found.flagged.detector.offset_ = -1e9
    save_model(files / "m.skops", found.flagged.detector, encoder=found.flagged.encoder)
    scored = score_file(load_model(files / "m.skops"), files / "batch.csv")
    assert not len(scored.top)
    assert scored.flagged.table("visit").empty
    assert sum(map(len, scored.tables("visit"))) == N_BATCH


def test_most_suspicious() -> None:
    rng = np.random.RandomState(0)
    scores = rng.randint(0, 5, 1000).astype(float)  # many are tied
    scores[rng.choice(1000, 100, replace=False)] = np.nan
    expected = np.argsort(-scores, kind="stable")
    for k in (0, 1, 10, 900):
        assert most_suspicious(scores, k).tolist() == expected[:k].tolist()


def test_auc_needs_no_curve() -> None:
    rng = np.random.RandomState(0)
    truth = rng.rand(700) < 0.2
    scores = rng.randint(0, 20, 700) + 2.0 * truth  # many are tied
    assert _auc(truth, scores) == pytest.approx(roc(truth, scores).auc, abs=1e-12)


def test_parameters(files: Path) -> None:
    paths = files / "normal.csv", files / "batch.csv"
    for options, words in (
        ({"max_samples": 0}, "max_samples must be a whole number of at least 1"),
        ({"k": 151}, "k=151 is more than the 150 unlabeled rows"),
        ({"k": 0}, "k must be a whole number"),
        ({"k": 3, "fdr": 0.1}, "give one of them"),
        ({"preset": "best"}, "preset must be one of"),
    ):
        with pytest.raises(ValueError, match=words):
            detect_files(*paths, **options)


def test_what_is_large(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = files / "batch.parquet"
    size = open_table(batch).n_bytes
    monkeypatch.setattr(streaming, "memory_left", lambda: 8 * size)
    assert not is_large(batch)
    assert is_large(batch, batch)
    assert not is_large(files / "nowhere.csv", files)
    monkeypatch.setattr(streaming, "memory_left", lambda: None)
    assert not is_large(batch, batch)


def test_memory_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = _memory.memory_left()
    assert left is None or left > 0
    code = "from qms22._runtime.memory import memory_left; print(memory_left())"
    cap = 4 << 30
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (cap, cap)),
    )
    assert 0 < int(result.stdout) < cap
    # A container may use less than the group that it is in.
    (tmp_path / "pod" / "box").mkdir(parents=True)
    (tmp_path / "pod" / "memory.max").write_text("5000\n")
    (tmp_path / "pod" / "box" / "memory.max").write_text("max\n")
    (tmp_path / "group").write_text("0::/pod/box\n")
    monkeypatch.setattr(_memory, "_CGROUPS", tmp_path)
    monkeypatch.setattr(_memory, "_OWN_CGROUP", tmp_path / "group")
    assert _memory.memory_left() == 5000


def run(*arguments: object, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


DETECT = ("detect", "normal.parquet", "batch.parquet", "--id", "visit", "--label", "sick")
DRAWN = (*DETECT, "--preset", "paper", "-k", "8", "--max-samples", "100")


def test_command(files: Path) -> None:
    result = run(*DRAWN, "-o", "o.csv", "--report", "p.html", "--save-model", "m.skops", cwd=files)
    assert result.returncode == 0, result.stderr
    assert "rows/s" in result.stderr
    assert "by the labels: 7 of the 8 flagged rows are outliers" in result.stderr
    found = detect_files(
        files / "normal.parquet", files / "batch.parquet", max_samples=100, **FAST, **LEFT_OUT
    )
    flagged = found.flagged.table("visit")
    shown = pd.DataFrame(line.split(",")[:2] for line in result.stdout.splitlines()[1:])
    assert shown[1].tolist() == flagged["visit"].tolist()
    whole = pd.read_csv(files / "o.csv")
    assert whole["visit"].tolist() == read_table(files / "batch.csv")["visit"].tolist()
    np.testing.assert_array_equal(whole["score"], found.scores)
    assert whole["flagged"].sum() == 8
    assert (whole["reasons"].notna() == whole["flagged"]).all()
    page = (files / "p.html").read_text()
    assert "unlabeled rows learned from" in page
    result = run("score", "m.skops", "batch.csv", "--id", "visit", "-o", "s.parquet", cwd=files)
    assert result.returncode == 0, result.stderr
    scored = pd.read_parquet(files / "s.parquet")
    assert scored["score"].is_monotonic_decreasing
    assert scored["visit"][:8].tolist() == flagged["visit"].tolist()


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="needs /dev/stdin, as on Linux")
def test_pipes(files: Path) -> None:
    table = (files / "batch.csv").read_text()
    command = (*DRAWN[:2], "/dev/stdin", *DRAWN[3:], "-q", "--save-model", "m.skops")
    result = run(*command, cwd=files, input=table)
    assert result.returncode == 0, result.stderr
    scored = run("score", "m.skops", "/dev/stdin", "--id", "visit", cwd=files, input=table)
    assert scored.stdout == result.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_outputs(files: Path, suffix: str) -> None:
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}[suffix]
    found = detect_files(files / "normal.parquet", files / "batch.parquet", **FAST, **LEFT_OUT)
    write_tables(found.tables("visit"), files / f"o.{suffix}")
    whole = read(files / f"o.{suffix}")
    expected = detect(
        read_table(files / "normal.parquet"),
        read_table(files / "batch.parquet"),
        **FAST,
        **LEFT_OUT,
    ).table("visit")
    ranked = whole.sort_values("rank").reset_index(drop=True)
    exact = {} if suffix != "json" else {"rtol": 1e-8}
    expected["reasons"] = expected["reasons"].replace("", np.nan if suffix == "csv" else "")
    pd.testing.assert_frame_equal(ranked, expected, check_dtype=False, **exact)


def test_types_stay_alike_through_the_parts(tmp_path: Path) -> None:
    """Nothing in the first part says what a column holds; the file does."""
    rng = np.random.RandomState(0)
    columns = {
        "x": rng.normal(size=200),
        "n": pa.array([None] * 150 + list(range(50)), pa.int64()),
        "word": pa.array([None] * 150 + ["=1+1"] * 50),
        "list": pa.array([None] * 150 + [[1]] * 50),
        "day": pa.array([None] * 199 + [19_000], pa.date32()),
        "score": rng.normal(size=200),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=10)
    ignored = ["n", "word", "list", "day"]
    found = detect_files(tmp_path / "t.parquet", tmp_path / "t.parquet", ignore=ignored, **FAST)
    for suffix in ("csv", "parquet", "json"):
        write_tables(found.tables(), tmp_path / f"o.{suffix}")
    table = pq.read_table(tmp_path / "o.parquet")
    for name in ignored:
        assert table.column(name).equals(pa.table(columns).column(name))
    assert "score_" in table.column_names
    assert "'=1+1" in (tmp_path / "o.csv").read_text()
    records = json.loads((tmp_path / "o.json").read_text())
    assert [record["n"] for record in records] == columns["n"].to_pylist()


def test_large_files_are_read_part_by_part_by_themselves(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setattr(streaming, "memory_left", lambda: 1000)
    command = [*DETECT, "--preset", "paper", "-k", "8", "-o", "o.csv", "--save-model", "m.skops"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stderr.split())
    assert "note: normal.parquet and batch.parquet would take much of the memory" in words
    assert "at most 100000 rows of each are learned from (--max-samples)" in words
    names = read_table("batch.csv")["visit"].tolist()
    assert pd.read_csv("o.csv")["visit"].tolist() == names
    result = CliRunner().invoke(
        main, ["score", "m.skops", "batch.csv", "--id", "visit", "-o", "s.csv"]
    )
    assert result.exit_code == 0, result.output
    assert "note: batch.csv would take much of the memory" in " ".join(result.stderr.split())
    assert pd.read_csv("s.csv")["visit"].tolist() == names
    monkeypatch.setattr(streaming, "DEFAULT_DRAW", 100)
    monkeypatch.setattr(streaming, "LEAST_DRAW", 100)
    result = CliRunner().invoke(main, [*DETECT, "--fdr", "0.1"])
    assert result.exit_code == 2
    assert "a false discovery rate needs all 150 rows" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--fdr", "0.1", "--max-samples", "100"], "only 100 are drawn"),
        (["--max-samples", "0"], "0 is not in the range x>=1"),
        (["--max-samples", "100", "--ignore", "height"], "--ignore height: the unlabeled table"),
        (
            ["--max-samples", "100", "--outlier", "7"],
            "--label sick: the column has the values 0, 1",
        ),
    ],
)
def test_refusals(files: Path, more: list[str], words: str) -> None:
    before = set(files.iterdir())
    result = run(*DETECT, "-o", "o.csv", *more, cwd=files)
    assert result.returncode == 2
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert set(files.iterdir()) == before


def test_a_marker_needs_memory(files: Path) -> None:
    result = run("detect", "normal.csv", "--marker", "ward", "--max-samples", "9", cwd=files)
    assert result.returncode == 2
    assert "--max-samples draws from two files" in result.stderr


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_a_run_that_is_stopped_leaves_nothing(files: Path, suffix: str) -> None:
    found = detect_files(files / "normal.csv", files / "batch.csv", **FAST, **LEFT_OUT)
    before = set(files.iterdir())

    def stopped() -> Iterator[pd.DataFrame]:
        tables = found.tables("visit")
        yield next(tables)
        assert not (files / f"o.{suffix}").exists()
        signal.raise_signal(signal.SIGINT)
        yield from tables

    with pytest.raises(KeyboardInterrupt):
        write_tables(stopped(), files / f"o.{suffix}")
    assert set(files.iterdir()) == before


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_full_disk(files: Path, suffix: str) -> None:
    before = set(files.iterdir())
    result = run(
        *(*DRAWN, "-q", "-o", f"o.{suffix}"),
        cwd=files,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert result.returncode == 2, result.stderr
    assert f"cannot write o.{suffix}: " in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert set(files.iterdir()) == before


def test_help_tells_of_order_and_memory(tmp_path: Path) -> None:
    words = " ".join(run("detect", "--help", cwd=tmp_path).stdout.split())
    assert "they may be larger than memory" in words
    assert "in the order of the file" in words
    words = " ".join(run("score", "--help", cwd=tmp_path).stdout.split())
    assert "in the order of the file" in words


FEW_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
}
GROWTH = 80_000_000
CAPPED = f"""
import resource
from pathlib import Path
import numpy as np
from qms22.cli.shared import write_tables
from qms22.cli.detect import _auc
from qms22.detection.streaming import detect_files

def work(name):
    found = detect_files("n.parquet", name, max_samples=2000, preset="paper", n_jobs=1)
    write_tables(found.tables(), Path("o.parquet"))
    return found

work("n.parquet")  # loads all that is loaded when first needed
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + {GROWTH},) * 2)
try:
    bytearray({2 * GROWTH})
except MemoryError:
    print("capped")
print(work("b.parquet").n_scored)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc, as on Linux")
def test_a_file_larger_than_memory(tmp_path: Path) -> None:
    n_columns = 40
    schema = pa.schema([(f"x{at}", pa.float64()) for at in range(n_columns)])
    rng = np.random.default_rng(0)
    for name, n_groups in (("n.parquet", 1), ("b.parquet", 31)):
        with pq.ParquetWriter(tmp_path / name, schema, use_dictionary=False) as writer:
            for _ in range(n_groups):
                rows = rng.normal(size=(25_000, n_columns))
                writer.write_table(pa.table(list(rows.T), schema))
    assert (tmp_path / "b.parquet").stat().st_size > 3 * GROWTH
    result = subprocess.run(
        [sys.executable, "-c", CAPPED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **FEW_THREADS},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["capped", "775000"]

"""Tables read part by part give the result that tables in memory give."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from visits import FAST, LEFT_OUT, N_BATCH, SICK, change, write_visits

from qms22 import detect
from qms22.detection import Detection, score, streaming
from qms22.detection.rows import most_suspicious
from qms22.detection.streaming import is_large
from qms22.models import load_model, save_model
from qms22.tables import open_table, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_visits(tmp_path)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several parts of the small tables here."""
    monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", 300)


def by_rank(found: Detection) -> pd.DataFrame:
    """All parts of a result, in order of rank."""
    return pd.concat(found.tables()).sort_values("rank")


def without_p_values(table: pd.DataFrame) -> pd.DataFrame:
    """A table as a saved model has it."""
    return table.drop(columns=["p_value", "false_at_most"])


@pytest.mark.parametrize("preset", ["paper", "recommended"])
@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_the_result_is_that_of_memory(files: Path, kind: str, preset: str) -> None:
    normal, batch = files / f"normal.{kind}", files / f"batch.{kind}"
    options = {**FAST, "preset": preset}
    expected = detect(normal, batch, **options)
    found = detect(normal, batch, max_samples=400, **options)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.flagged, expected.flagged)
    assert found.reasons == expected.reasons
    assert found.detector.offset_ == expected.detector.offset_
    table = expected.table()
    pd.testing.assert_frame_equal(found.table(), table)
    pd.testing.assert_frame_equal(found.table(only_flagged=True), table[:8])
    n_first = 5 if preset == "paper" else 7  # with p-values and bounds
    pd.testing.assert_frame_equal(
        found.summary().reset_index(drop=True), table.iloc[:8, :n_first].reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(by_rank(found), table, check_dtype=False)
    assert len(list(found.tables())) > 2


@pytest.mark.parametrize("missing", ["impute", "drop"])
def test_missing_values(files: Path, missing: str) -> None:
    for name, row in (("normal", 390), ("batch", 5), ("batch", 140)):
        change(files / f"{name}.parquet", row, "pulse", None)
    for kind in ("parquet", "csv"):
        normal, batch = files / f"normal.{kind}", files / f"batch.{kind}"
        expected = detect(normal, batch, **FAST, missing=missing)
        found = detect(normal, batch, **FAST, missing=missing, max_samples=400)
        np.testing.assert_array_equal(found.scores, expected.scores)
        assert np.isnan(found.scores[[5, 140]]).all() == (missing == "drop")
        assert found.n_scored == N_BATCH - 2 * (missing == "drop")
        assert by_rank(found)["rank"].tolist() == list(range(1, found.n_scored + 1))
        assert len(expected.table()) == found.n_scored


def test_false_discovery_rate(files: Path) -> None:
    normal, batch = files / "normal.parquet", files / "batch.parquet"
    options = {**LEFT_OUT, "fdr": 0.3, "n_jobs": 1}
    expected = detect(normal, batch, **options)
    found = detect(normal, batch, max_samples=200, **{**options, "fdr": 0.5})
    assert found.normal is not None
    assert len(found.normal) == 200
    assert found.p_values is not None
    found = detect(normal, batch, max_samples=400, **options)
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    pd.testing.assert_frame_equal(by_rank(found), expected.table(), check_dtype=False)
    # Rows of the batch that are not drawn are compared like the others.
    drawn = detect(normal, batch, max_samples=100, **options)
    assert drawn.p_values is not None
    assert np.isfinite(drawn.p_values).all()


def test_draws(files: Path) -> None:
    def scores(seed: int, n: int = 100, kind: str = "parquet") -> list[float]:
        known, rows = files / f"normal.{kind}", files / f"batch.{kind}"
        found = detect(known, rows, max_samples=n, seed=seed, **FAST)
        assert found.normal is not None
        assert (len(found.normal), found.n_drawn) == (n, n)
        assert found.n_scored == N_BATCH
        return list(found.scores)

    first = scores(0)
    assert first == scores(0) == scores(0, kind="csv") == scores(0, kind="feather")
    assert first != scores(1)
    assert first != scores(0, n=101)
    assert len(set(np.argsort(first)[-8:]) & set(SICK)) >= 6
    frames = (read_table(files / f"{name}.csv") for name in ("normal", "batch"))
    assert list(detect(*frames, max_samples=100, **FAST).scores) == first


def test_chunks_do_not_matter(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    normal, batch = files / "normal.csv", files / "batch.csv"
    found = []
    for cells in (1, 100, 10**6):
        monkeypatch.setattr(streaming, "_CELLS_PER_CHUNK", cells)
        result = detect(normal, batch, max_samples=90, **FAST)
        found.append((result.scores.tolist(), pd.concat(result.tables())["rank"].tolist()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("pulse", None, "1 column has missing (NaN) values: 'pulse' (1, first at row 140)"),
        ("pulse", np.inf, "1 column has infinite (inf) values: 'pulse' (1, first at row 140)"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_faults_name_the_row_of_the_file(
    files: Path, kind: str, column: str, value: object, words: str
) -> None:
    change(files / "batch.parquet", 140, column, value)
    normal, batch = files / f"normal.{kind}", files / f"batch.{kind}"
    options = {**LEFT_OUT, "missing": "error"}
    with pytest.raises(ValueError, match="row 140") as drawn:
        detect(normal, batch, max_samples=400, **options)
    assert words in str(drawn.value)
    # Not among the rows drawn: the fault is met when its part of the file is scored.
    with pytest.raises(ValueError, match=r"rows \d+ to \d+: .*row 140") as late:
        detect(normal, batch, max_samples=40, seed=0, **options)
    assert words in str(late.value)
    # Among them, though not all rows are.
    with pytest.raises(ValueError, match=r"among the rows drawn, .*row 140"):
        detect(normal, batch, max_samples=149, seed=0, **options)


def test_a_part_without_any_value(files: Path) -> None:
    """Texts of nothing tell no kind: neither dates nor categories mind."""
    table = pd.read_parquet(files / "batch.parquet")
    table["urgent"] = table["urgent"].astype("boolean")
    table.loc[100:, ["day", "ward", "urgent", "pulse"]] = None
    for name in ("batch.parquet", "batch.csv"):
        getattr(table, f"to_{name.split('.')[1]}")(files / name, index=False)
        normal, batch = files / name.replace("batch", "normal"), files / name
        expected = detect(normal, batch, missing="impute", **FAST)
        found = detect(normal, batch, missing="impute", max_samples=400, **FAST)
        np.testing.assert_array_equal(found.scores, expected.scores)


def test_numbers_for_levels(tmp_path: Path) -> None:
    """Parts of a column of numbers that stand for levels need not hold a level that is known."""
    rng = np.random.RandomState(0)
    normal = pd.DataFrame({"x": rng.normal(size=90), "zone": rng.choice(["1", "2", "b"], 90)})
    batch = pd.DataFrame({"x": rng.normal(size=300), "zone": np.repeat([1, 2, 7], 100)})
    normal.to_parquet(tmp_path / "normal.parquet")
    batch.to_parquet(tmp_path / "batch.parquet")
    paths = tmp_path / "normal.parquet", tmp_path / "batch.parquet"
    found = detect(*paths, preset="paper", max_samples=300)
    np.testing.assert_array_equal(found.scores, detect(normal, batch, preset="paper").scores)


def test_models(files: Path) -> None:
    found = detect(files / "normal.csv", files / "batch.csv", max_samples=100, **FAST)
    save_model(files / "m.skops", found.detector, encoder=found.encoder, checks=found.checks)
    model = load_model(files / "m.skops")
    again = score(model, files / "batch.csv", id="visit")
    np.testing.assert_array_equal(again.scores, found.scores)
    np.testing.assert_array_equal(again.flagged, found.flagged)
    # A model has no normal rows to compare with, or to count those alike.
    expected = without_p_values(found.table()).replace({"reasons": ", as in [^;]*"}, "", regex=True)
    pd.testing.assert_frame_equal(again.table(), expected)
    assert score(model, files / "batch.parquet", k=3).top.tolist() == found.top[:3].tolist()
    assert len(score(model, files / "batch.parquet", k=500).top) == 150
    for k in (-1, 0, 2.5):
        with pytest.raises(ValueError, match=rf"k must be a whole number of at least 1; got {k}"):
            score(model, files / "batch.parquet", k=k)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no column 'name' for the names of rows"):
        score(model, files / "batch.parquet", id="name")
    pd.DataFrame({"x": [1]}).to_csv(files / "x.csv", index=False)
    with pytest.raises(ValueError, match="no column in common"):
        score(model, files / "x.csv")


def test_a_large_file_is_scored_part_by_part(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = detect(files / "normal.csv", files / "batch.csv", **FAST)
    save_model(files / "m.skops", found.detector, encoder=found.encoder, checks=found.checks)
    monkeypatch.setattr(streaming, "memory_allowed", lambda: 1000)
    with pytest.warns(UserWarning, match=r"batch\.csv is too large to hold in memory"):
        scored = score(load_model(files / "m.skops"), files / "batch.csv", id="visit")
    pd.testing.assert_frame_equal(scored.table(), without_p_values(found.table()))
    parts = list(scored.tables())
    assert len(parts) > 2
    assert pd.concat(parts)["visit"].tolist() == read_table(files / "batch.csv")["visit"].tolist()


def test_nothing_flagged(files: Path) -> None:
    found = detect(files / "normal.csv", files / "batch.csv", **FAST)
    assert found.checks is not None
    found.checks.threshold = 1e9
    save_model(files / "m.skops", found.detector, encoder=found.encoder, checks=found.checks)
    scored = score(load_model(files / "m.skops"), files / "batch.csv", id="visit")
    assert not len(scored.top)
    assert scored.reasons == {}
    assert scored.summary().empty
    assert scored.table(only_flagged=True).empty
    assert len(scored.table()) == N_BATCH
    assert "0 of 150 rows flagged" in scored._repr_html_()


def test_most_suspicious() -> None:
    rng = np.random.RandomState(0)
    scores = rng.randint(0, 5, 1000).astype(float)  # many are tied
    scores[rng.choice(1000, 100, replace=False)] = np.nan
    expected = np.argsort(-scores, kind="stable")
    for k in (0, 1, 10, 900):
        assert most_suspicious(scores, k).tolist() == expected[:k].tolist()


def test_what_is_large(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = open_table(files / "batch.parquet")
    frame = open_table(batch.read())
    monkeypatch.setattr(streaming, "memory_allowed", lambda: 16 * batch.n_bytes)
    assert not is_large(batch)
    assert not is_large(batch, frame)
    assert is_large(batch, batch)
    monkeypatch.setattr(streaming, "memory_allowed", lambda: None)
    assert not is_large(batch, batch)


def test_large_files_are_drawn_from(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    normal, batch = files / "normal.parquet", files / "batch.parquet"
    monkeypatch.setattr(streaming, "memory_allowed", lambda: 1000)
    monkeypatch.setattr(streaming, "LEAST_DRAW", 100)
    words = r"normal\.parquet and .*batch\.parquet .* at most 100 rows of each"
    with pytest.warns(UserWarning, match=words) as caught:
        found = detect(normal, batch, **FAST)
    assert caught[0].filename == __file__
    expected = detect(normal, batch, max_samples=100, **FAST)
    np.testing.assert_array_equal(found.scores, expected.scores)
    frames = read_table(normal), read_table(batch)
    assert detect(*frames, **FAST).n_drawn == N_BATCH  # they are in memory already


FEW_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
}
GROWTH = 50_000_000
CAPPED = f"""
import resource
from pathlib import Path
import numpy as np
from qms22 import detect
from qms22.detection.results.result_files import write_tables

# All columns are written, and to score few of them takes less time.
ignored = ["x%d" % at for at in range(16, 40)]

def work(name):
    found = detect(
        "n.parquet", name, max_samples=2000, preset="paper", n_jobs=1, ignore=ignored
    )
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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc, as on Linux")
def test_a_file_larger_than_memory(tmp_path: Path) -> None:
    n_columns = 40
    schema = pa.schema([(f"x{at}", pa.float64()) for at in range(n_columns)])
    rng = np.random.default_rng(0)
    for name, n_groups in (("n.parquet", 1), ("b.parquet", 13)):
        with pq.ParquetWriter(tmp_path / name, schema, use_dictionary=False) as writer:
            for _ in range(n_groups):
                rows = rng.normal(size=(25_000, n_columns))
                writer.write_table(pa.table(list(rows.T), schema))
    assert (tmp_path / "b.parquet").stat().st_size > 2 * GROWTH
    result = subprocess.run(
        [sys.executable, "-c", CAPPED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **FEW_THREADS},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["capped", "325000"]

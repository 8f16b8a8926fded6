"""Learning from drawn rows, and scoring rows that are in no memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from qms22 import QMS22, QMS22Ensemble
from qms22._runtime.chunks import draw_rows, row_chunks
from qms22.estimators import ensemble
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.ensemble import AUTO_SAMPLES

QUICK: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 3, "random_state": 0}
DETECTORS: list[BatchDetector] = [QMS22(**QUICK), QMS22Ensemble(n_splits=2, **QUICK)]
each_detector = pytest.mark.parametrize("detector", DETECTORS, ids=["QMS22", "QMS22Ensemble"])

Rows = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Normal rows, and a batch whose first 30 rows are outliers."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(300, 3))
    batch[:30] += 5
    return rng.normal(size=(500, 3)), batch


@each_detector
@pytest.mark.parametrize("max_samples", [500, 10**9])
def test_a_limit_that_limits_nothing(detector: BatchDetector, max_samples: int, rows: Rows) -> None:
    expected = clone(detector).fit(rows[0], unlabeled=rows[1])
    found = clone(detector).set_params(max_samples=max_samples).fit(rows[0], unlabeled=rows[1])
    assert found.unlabeled_scores_.tobytes() == expected.unlabeled_scores_.tobytes()
    assert found.typical_.tobytes() == expected.typical_.tobytes()
    assert found.offset_ == expected.offset_


@each_detector
def test_everything_is_learned_on_the_draw(detector: BatchDetector, rows: Rows) -> None:
    rng = np.random.RandomState(0)
    drawn = [table[draw_rows(len(table), 200, rng)] for table in rows]
    expected = clone(detector).set_params(random_state=rng).fit(drawn[0], unlabeled=drawn[1])
    found = clone(detector).set_params(max_samples=200).fit(rows[0], unlabeled=rows[1])
    np.testing.assert_array_equal(found.score_samples(rows[0]), expected.score_samples(rows[0]))
    np.testing.assert_array_equal(found.typical_, expected.typical_)
    np.testing.assert_array_equal(found.unlabeled_scores_, -expected.score_samples(rows[1]))
    assert set(found.top_k(30)) == set(range(30))


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_auto_is_a_number(more: int, monkeypatch: pytest.MonkeyPatch, rows: Rows) -> None:
    monkeypatch.setattr(ensemble, "AUTO_SAMPLES", len(rows[0]) + more)
    detector = QMS22Ensemble(n_splits=2, **QUICK)
    auto = clone(detector).fit(rows[0], unlabeled=rows[1])
    assert auto.max_samples == "auto"
    number = detector.set_params(max_samples=len(rows[0]) + more).fit(rows[0], unlabeled=rows[1])
    np.testing.assert_array_equal(auto.unlabeled_scores_, number.unlabeled_scores_)
    everything = detector.set_params(max_samples=None).fit(rows[0], unlabeled=rows[1])
    is_all = (auto.unlabeled_scores_ == everything.unlabeled_scores_).all()
    assert is_all == (more >= 0)


def test_the_docstring_states_what_auto_is() -> None:
    assert f'"auto" is {AUTO_SAMPLES:,};' in str(QMS22Ensemble.__doc__)


@each_detector
def test_draws_are_seeded(detector: BatchDetector, rows: Rows) -> None:
    def scores(seed: int) -> np.ndarray:
        drawing = clone(detector).set_params(max_samples=100, random_state=seed)
        found: np.ndarray = drawing.fit(rows[0], unlabeled=rows[1]).unlabeled_scores_
        return found

    np.testing.assert_array_equal(scores(0), scores(0))
    assert (scores(0) != scores(1)).any()


def test_all_known_normal_rows_are_compared_with(rows: Rows) -> None:
    found = QMS22Ensemble(n_splits=2, **QUICK, max_samples=150).fit(rows[0], unlabeled=rows[1])
    assert found.p_values().min() == 1 / 501
    flagged = found.flag(0.2)
    assert flagged[:30].all()
    assert flagged.sum() <= 45


def test_p_values_of_normal_rows_are_uniform_on_draws() -> None:
    """Known-normal rows that were drawn are scored like those that were not."""
    rng = np.random.RandomState(0)
    means = []
    for seed in range(100):
        drawing = QMS22Ensemble(n_splits=2, **{**QUICK, "random_state": seed}, max_samples=40)
        drawing.fit(rng.normal(size=(60, 2)), unlabeled=rng.normal(size=(15, 2)))
        means.append(drawing.p_values().mean())
    assert abs(np.mean(means) - 62 / 122) < 4 * np.std(means) / np.sqrt(100)


def test_without_a_batch(rows: Rows) -> None:
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        detector = QMS22(**QUICK, max_samples=50).fit(rows[0])
    assert detector.unlabeled_scores_.shape == (500,)


def test_data_frames(rows: Rows) -> None:
    normal, batch = (pd.DataFrame(table, columns=[*"abc"]) for table in rows)
    found = QMS22(**QUICK, max_samples=100).fit(normal, unlabeled=batch)
    expected = QMS22(**QUICK, max_samples=100).fit(rows[0], unlabeled=rows[1])
    assert list(found.feature_names_in_) == [*"abc"]
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)
    scores = QMS22Ensemble(n_splits=2, **QUICK, max_samples=100, contamination=5)
    scores.fit(normal, unlabeled=batch)
    before = clone(scores).fit(normal, unlabeled=batch).p_values()
    normal["score"] = 1.0  # what became of a table after the fit does not matter
    np.testing.assert_array_equal(scores.p_values(), before)


@each_detector
@pytest.mark.parametrize("dtype", ["float32", "int16", "bool"])
def test_numbers_of_any_kind(detector: BatchDetector, dtype: str, rows: Rows) -> None:
    narrow = [np.rint(table).astype(dtype) for table in rows]
    wide = [table.astype(float) for table in narrow]
    found = clone(detector).fit(narrow[0], unlabeled=narrow[1])
    expected = clone(detector).fit(wide[0], unlabeled=wide[1])
    np.testing.assert_array_equal(found.unlabeled_scores_, expected.unlabeled_scores_)
    assert found.offset_ == expected.offset_


def test_bad_rows_are_named_by_their_place_in_the_table(rows: Rows) -> None:
    normal, batch = (table.copy() for table in rows)
    drawing = QMS22(**QUICK, max_samples=100)
    drawn = draw_rows(500, 100, np.random.RandomState(0))
    bad = np.delete(np.arange(500), drawn)[3]
    normal[bad, 1] = np.nan  # not drawn, and never looked at
    drawing.fit(normal, unlabeled=batch)
    normal[drawn[7], 2] = np.nan
    with pytest.raises(ValueError, match=r"column 1 of X has 1 NaN .*, as have 1 more columns"):
        drawing.fit(normal, unlabeled=batch)
    batch[[299, 44], 0] = np.inf
    message = r"column 0 of unlabeled has 2 infinite \(inf\) values \(first at row 44\); drop"
    with pytest.raises(ValueError, match=message):
        drawing.fit(rows[0], unlabeled=batch)


def test_bad_rows_far_down(rows: Rows) -> None:
    detector = QMS22(**QUICK).fit(rows[0], unlabeled=rows[1])
    many = np.zeros((200_000, 3))
    many[150_000, 2] = np.nan
    many[160_000:, 2] = np.inf
    message = r"column 2 of X has 40001 NaN .* values \(first at row 150000\); drop or impute"
    with pytest.raises(ValueError, match=message):
        detector.set_params(n_jobs=2).score_samples(many)


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (QMS22(max_samples=0), "max_samples must be a whole number of at least 1; got 0"),
        (QMS22(max_samples=0.5), "max_samples must be a whole number"),  # type: ignore[arg-type]
        (QMS22(max_samples=5), "max_samples=5 known-normal rows are too few to learn from; draw"),
        (QMS22Ensemble(max_samples=6), "max_samples=6 known-normal rows are too few"),
    ],
)
def test_bad_limits(detector: BatchDetector, message: str, rows: Rows) -> None:
    with pytest.raises(ValueError, match=message):
        detector.fit(rows[0], unlabeled=rows[1])


@each_detector
def test_scores_have_the_same_bits_in_any_company(detector: BatchDetector, rows: Rows) -> None:
    many = np.random.RandomState(1).normal(size=(100_003, 3))
    assert len(row_chunks(many.shape)) > 2
    fitted = clone(detector).fit(rows[0], unlabeled=rows[1])
    expected = fitted.score_samples(many)
    for n_jobs in (2, 3, -1):
        np.testing.assert_array_equal(
            fitted.set_params(n_jobs=n_jobs).score_samples(many), expected
        )
    for part in (slice(0, 1), slice(77, 50_000), slice(0, None, 7)):
        np.testing.assert_array_equal(fitted.score_samples(many[part]), expected[part])
    np.testing.assert_array_equal(fitted.score_samples(np.asfortranarray(many)), expected)


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.memmap, np.memmap]:
    """Two files of 64 MB, of which the first rows are noise and the others 0."""
    tables = []
    for name in ("normal", "batch"):
        path = tmp_path_factory.mktemp("mapped") / name
        table = np.memmap(path, np.float32, "w+", shape=(800_000, 20))
        table[:20_000] = np.random.RandomState(0).normal(size=(20_000, 20))
        table.flush()
        tables.append(np.memmap(path, np.float32, "r", shape=table.shape))
    return tables[0], tables[1]


def peak_megabytes(work: Callable[[], object]) -> float:
    """Memory that NumPy asked for; pages of a mapped file are not among it."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_mapped_files_are_not_read_into_memory(mapped: tuple[np.memmap, np.memmap]) -> None:
    normal, batch = mapped
    drawing = QMS22(**QUICK, max_samples=2000, n_jobs=2)
    # Scores take 8 bytes per row, twice while they are put together: 13 MB, to a file's 64.
    assert peak_megabytes(lambda: drawing.fit(normal, unlabeled=batch)) < 40
    assert peak_megabytes(lambda: drawing.score_samples(batch)) < 40
    expected = clone(drawing).fit(normal[:], unlabeled=np.asarray(batch, dtype=np.float64))
    assert drawing.unlabeled_scores_.tobytes() == expected.unlabeled_scores_.tobytes()


def test_decisions_about_mapped_files(mapped: tuple[np.memmap, np.memmap]) -> None:
    normal, batch = mapped
    drawing = QMS22Ensemble(n_splits=2, **QUICK, max_samples=500, n_jobs=2, contamination=5)
    drawing.fit(normal, unlabeled=batch[:20_000])
    # Of 800,000 known-normal rows 40,000 are compared with.
    assert peak_megabytes(drawing.p_values) < 40
    assert drawing.p_values().min() >= 1 / 40_001


def test_paths_of_mapped_files(rows: Rows, tmp_path: Path) -> None:
    for name, table in zip(("normal.npy", "batch.npy"), rows, strict=True):
        np.save(tmp_path / name, table)
    normal, batch = (
        np.load(tmp_path / name, mmap_mode="r") for name in ("normal.npy", "batch.npy")
    )
    found = QMS22(**QUICK).fit(normal, unlabeled=batch)
    expected = QMS22(**QUICK).fit(rows[0], unlabeled=rows[1])
    assert found.A_.tobytes() == expected.A_.tobytes()
    assert found.explain(batch[:3]).drop.tobytes() == expected.explain(rows[1][:3]).drop.tobytes()

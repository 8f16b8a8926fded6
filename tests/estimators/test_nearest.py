"""Distances to the nearest references: compared with naive ones, to the bit where possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

import qms22
from qms22.estimators.nearest import mean_log_distances

INSTRUCTION_SETS = qms22.build_info()["runs_here"]
LARGEST = 255.0 * 1e5  # of scaled rows

Rows = NDArray[Any]


def naive(rows: Rows, references: Rows, skip: Rows | None = None) -> Rows:
    """Compute them row by row, with the same roundings up to the logarithm."""
    real = references.dtype.type
    typical = np.sqrt(2.0 * references.var(axis=0, dtype=np.float64).sum()) or 1.0
    floor = real(1e-3 * typical)
    scores = []
    for number, row in enumerate(rows.astype(real)):
        squares = np.zeros(len(references), real)
        for value, column in zip(row, references.T, strict=True):
            squares += (value - column) ** 2
        if skip is not None and skip[number] >= 0:
            squares = np.delete(squares, skip[number])
        nearest = np.sqrt(np.sort(squares)[:16]) + floor
        product = real(1)
        for distance in nearest[::-1]:
            product = np.sqrt(product * distance)
        scores.append(np.log(np.float64(product)) / (1.0 - 0.5 ** len(nearest)))
    return np.array(scores)


def make(n: int, n_references: int, p: int, kind: str = "plain") -> tuple[Rows, Rows]:
    rng = np.random.default_rng(n + n_references + p)
    rows, references = rng.normal(size=(n, p)), rng.normal(size=(n_references, p))
    if kind == "ties":
        rows, references = np.rint(rows), np.rint(references)
    elif kind == "duplicates":
        references = references[rng.integers(3, size=n_references)]
        rows[::2] = references[0]
    elif kind == "equal references":
        references[:] = references[0]
    elif kind == "extreme":
        rows[::3] = LARGEST * np.sign(rows[::3])
        references[::5, 0] = -LARGEST
    return rows, references


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["plain", "ties", "duplicates", "equal references", "extreme"])
@pytest.mark.parametrize("n_references", [1, 2, 15, 16, 17, 33, 200])
def test_equals_the_naive_computation(kind: str, n_references: int, dtype: str) -> None:
    rows, references = make(37, n_references, 3, kind)
    references = references.astype(dtype)
    expected = naive(rows, references)
    np.testing.assert_allclose(mean_log_distances(rows, references), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("p", [1, 2, 7, 8, 300])
def test_any_number_of_columns(p: int, dtype: str) -> None:
    rows, references = make(21, 70, p)
    references = references.astype(dtype)
    expected = naive(rows, references)
    np.testing.assert_allclose(mean_log_distances(rows, references), expected, rtol=0, atol=1e-14)


def test_single_precision_is_close() -> None:
    rows, references = make(300, 200, 5)
    single = mean_log_distances(rows, references.astype(np.float32))
    np.testing.assert_allclose(single, mean_log_distances(rows, references), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_references", [2, 15, 16, 17, 100])
def test_a_skipped_reference_does_not_count(n_references: int, dtype: str) -> None:
    _, references = make(1, n_references, 4)
    rows = references.astype(dtype)
    itself = np.arange(n_references)
    alone = mean_log_distances(rows, rows, skip=itself)
    np.testing.assert_allclose(alone, naive(rows, rows, itself), rtol=0, atol=1e-14)
    assert (alone > mean_log_distances(rows, rows)).all()
    some = np.where(itself % 3 == 0, -1, itself[::-1]).astype(np.int32)
    mixed = mean_log_distances(rows, rows, skip=some)
    np.testing.assert_allclose(mixed, naive(rows, rows, some), rtol=0, atol=1e-14)
    none = mean_log_distances(rows, rows, skip=np.full(n_references, -1))
    assert none.tobytes() == mean_log_distances(rows, rows).tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_bits_however_it_is_computed(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, references = make(1003, 300, 5)
    rows, references = rows.astype(dtype), references.astype(dtype)
    skip = np.arange(1003) % 301 - 1
    expected = mean_log_distances(rows, references, skip=skip)
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv("QMS22_ISA", name)
        for n_threads in (1, 2, 7, 100):
            found = mean_log_distances(rows, references, skip=skip, n_threads=n_threads)
            assert found.tobytes() == expected.tobytes()
        for size in (1, 3, 8, 250):
            cuts = np.arange(size, len(rows), size)[:50]
            parts = zip(np.split(rows, cuts), np.split(skip, cuts), strict=True)
            found = np.concatenate(
                [mean_log_distances(part, references, skip=its_skip) for part, its_skip in parts]
            )
            assert found.tobytes() == expected.tobytes()


def test_the_order_of_references_changes_no_bit() -> None:
    rows, references = make(50, 64, 5, "ties")
    order = np.random.default_rng(0).permutation(64)
    # The variance of 64 rows of integers, on which the result depends, is exact.
    found = mean_log_distances(rows, references[order])
    assert found.tobytes() == mean_log_distances(rows, references).tobytes()


def test_rows_may_have_any_layout() -> None:
    rows, references = make(50, 40, 6)
    expected = mean_log_distances(rows, references)
    found = mean_log_distances(np.asfortranarray(rows), np.asfortranarray(references))
    np.testing.assert_array_equal(found, expected)
    found = mean_log_distances(np.repeat(rows, 2, axis=0)[::2], references)
    np.testing.assert_array_equal(found, expected)
    assert mean_log_distances(rows[:0], references).shape == (0,)


@pytest.mark.parametrize(
    ("n_references", "skip", "sentence"),
    [
        (5, [0, 1], "skip and rows differ in length"),
        (5, [0, 1, 5], "skip holds no number of a reference"),
        (5, [0, 1, -2], "skip holds no number of a reference"),
        (1, [-1, -1, 0], "skip leaves a row without references"),
    ],
)
def test_bad_skip(n_references: int, skip: list[int], sentence: str) -> None:
    rows, references = np.ones((3, 2)), np.zeros((n_references, 2))
    with pytest.raises(ValueError, match=sentence):
        mean_log_distances(rows, references, skip=np.array(skip))


def test_columns_must_match() -> None:
    with pytest.raises(ValueError, match="rows and references differ in columns"):
        mean_log_distances(np.ones((3, 2)), np.ones((3, 1)))


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_it_is_the_mean_over_random_halves(n: int, p: int, seed: int) -> None:
    """The weighted mean over neighbors is the expectation over coin tosses, nothing left out."""
    rng = np.random.RandomState(seed)
    references, row = rng.normal(size=(n, p)), rng.normal(size=(1, p))
    score = mean_log_distances(row, references)[0]
    floor = 1e-3 * (np.sqrt(2 * references.var(axis=0).sum()) or 1.0)
    logs = np.log(cdist(row, references)[0] + floor)
    if n <= 8:
        halves = [[i for i in range(n) if bits >> i & 1] for bits in range(1, 2**n)]
        expected = np.mean([logs[half].min() for half in halves])
        assert score == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert logs.min() - 1e-9 <= score <= logs.max() + 1e-9

"""Functions and products with the same bits on every CPU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import qms22
from qms22._runtime import exact

NUMBERS = np.random.default_rng(0).uniform(-700.0, 700.0, 20_000)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (exact.log, np.exp(NUMBERS)),
        (exact.log, 1.0 + NUMBERS / 1e6),
        (exact.log1p, np.exp(NUMBERS / 10)),
        (exact.log1p, np.expm1(NUMBERS / 1e5)),
        (exact.exp, NUMBERS),
    ],
)
def test_functions_are_off_by_a_unit_of_the_last_bit_at_most(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], values: NDArray[np.float64]
) -> None:
    known = getattr(np, function.__name__)(values)
    assert (np.abs(function(values) - known) <= np.spacing(np.abs(known))).all()


def test_the_ends_of_functions() -> None:
    ends = np.array([0.0, -1.0, np.inf, np.nan, 1.0, 5e-324])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(exact.log(ends), np.log(ends), rtol=1e-15)
        np.testing.assert_array_equal(exact.log1p(ends[:5]), np.log1p(ends[:5]))
        ends = np.array([0.0, -np.inf, np.inf, np.nan])
        np.testing.assert_array_equal(exact.exp(ends), np.exp(ends))
    assert exact.log(2) == math.log(2)
    np.testing.assert_array_equal(exact.add_logarithms(NUMBERS, NUMBERS - 800), NUMBERS)


def test_sines() -> None:
    angles = NUMBERS / 50
    np.testing.assert_allclose(exact.sine(angles), np.sin(angles), rtol=0, atol=3e-16)
    np.testing.assert_array_equal(exact.sine(np.array([0.0, np.pi / 2])), [0.0, 1.0])


def test_the_bits_do_not_change() -> None:
    """Hashes from one machine, for all others"""
    parts = [exact.log(np.abs(NUMBERS)), exact.log1p(np.abs(NUMBERS)), exact.exp(NUMBERS)]
    parts += [exact.sine(NUMBERS / 50), exact.add_logarithms(NUMBERS, NUMBERS[::-1])]
    columns = NUMBERS.reshape(-1, 20)
    covariance = exact.moments(columns) / len(columns)
    parts += [covariance, exact.inverse(covariance), exact.product(columns, covariance)]
    bits = b"".join(part.astype("<f8").tobytes() for part in parts)
    assert sha256(bits).hexdigest()[:16] == "2bcd472ae582b956"


@pytest.mark.parametrize("n_terms", [1, 7, 300, 5000])
def test_a_product_does_not_depend_on_the_order_of_its_sums(n_terms: int) -> None:
    rng = np.random.default_rng(1)
    left = rng.normal(size=(4, n_terms)) * 10.0 ** rng.integers(-9, 9, (4, n_terms))
    right = rng.normal(size=(n_terms, 3))
    found, order = exact.product(left, right), rng.permutation(n_terms)
    np.testing.assert_array_equal(exact.product(left[:, order], right[order]), found)
    limit = n_terms * 2.0 ** (n_terms.bit_length() - 51)
    limits = limit * np.abs(left).max(axis=1)[:, np.newaxis] * np.abs(right).max(axis=0)
    for row, column in np.ndindex(found.shape):
        pairs = zip(left[row].tolist(), right[:, column].tolist(), strict=True)
        true = float(sum(Fraction(one) * Fraction(other) for one, other in pairs))
        assert abs(found[row, column] - true) <= limits[row, column]


def test_the_inverse_of_a_matrix_with_dependent_columns() -> None:
    columns = np.random.default_rng(2).normal(size=(3000, 12))
    columns[:, 3] = columns[:, 0] + columns[:, 1]
    matrix = exact.moments(columns) / 3000 + 1e-6 * np.eye(12)
    np.testing.assert_allclose(exact.inverse(matrix) @ matrix, np.eye(12), atol=1e-7)
    root = exact.inverse_root(matrix)
    assert not np.triu(root, 1).any()
    np.testing.assert_allclose(root @ matrix @ root.T, np.eye(12), atol=1e-7)


def test_scores_take_no_functions_that_depend_on_the_cpu() -> None:
    of_cpu = re.compile(r"\b(np\.(log1?p?|exp|sin|cos|dot|matmul|einsum)\(|(np|scipy)\.linalg\b)")
    package = Path(qms22.__file__).parent
    rooms = ("checks", "decisions", "detection", "estimators", "tables")
    found = [
        f"{path.relative_to(package)}: {line.strip()}"
        for room in rooms
        for path in (package / room).rglob("*.py")
        if "cuda" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if of_cpu.search(line)
    ]
    assert not found, "use qms22._runtime.exact instead"

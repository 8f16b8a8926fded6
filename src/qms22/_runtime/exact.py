"""Functions and products with the same bits on every CPU.

NumPy and BLAS have code of their own for each generation of CPUs, and so has the C library: the
last bits of logarithms and of products of matrices depend on it, and on the number of threads.
Here are only sums, products, quotients and roots of single numbers in a fixed order, which IEEE 754
defines to the bit, and products of matrices that need no rounding. A GPU has functions of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import is_on_gpu

# Coefficients of polynomials that are off by less than the last bit: those of FreeBSD's msun
# (e_log.c, e_exp.c, k_sin.c, k_cos.c), from the lowest power up.
_LOG = (
    *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01),
    *(2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01),
    1.479819860511658591e-01,
)
_EXP = (
    *(1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05),
    *(-1.65339022054652515390e-06, 4.13813679705723846039e-08),
)
_SINE = (
    *(-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04),
    *(2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
)
_COSINE = (
    *(4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05),
    *(-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
)
# Constants in two parts, so that multiples of the first by small whole numbers are exact.
_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_QUARTER_TURN = 1.57079632673412561417e00, 6.07710050650619224932e-11

# Rows, and numbers, that are looked at together: what a cache holds. Moments of more rows would
# leave fewer bits for their numbers.
_ROWS_AT_ONCE = 2**10

# OpenBLAS uses a single thread for so many products of two numbers. Blocks of fewer rows or columns
# than the second number would take longer than waiting does.
_PRODUCTS_AT_ONCE = 2**18
_LEAST_STEP = 16
_NUMBERS_AT_ONCE = 2**14


def log(values: Any) -> NDArray[np.float64]:
    """Compute natural logarithms, off by less than a unit of the last bit; −inf for 0."""
    if is_on_gpu(values):
        found: NDArray[np.float64] = np.log(values)
        return found
    values = values + np.float64(0)
    if np.size(values) > _NUMBERS_AT_ONCE:
        parts = np.array_split(values.ravel(), -(-np.size(values) // _NUMBERS_AT_ONCE))
        return np.concatenate([log(part) for part in parts]).reshape(values.shape)
    is_usual = (values > 0) & (values < np.inf)
    fraction, power = np.frexp(np.where(is_usual, values, 1.0))
    is_low = fraction < np.sqrt(0.5)
    fraction = np.where(is_low, 2 * fraction, fraction) - 1.0
    power = power - is_low
    ratio = fraction / (2.0 + fraction)
    square = ratio * ratio
    half = 0.5 * fraction * fraction
    rest = ratio * (half + square * _polynomial(square, _LOG)) + power * _LN2[1]
    found = power * _LN2[0] - ((half - rest) - fraction)
    if is_usual.all():
        return found
    unusual = np.where(values > 0, np.inf, np.where(values == 0, -np.inf, np.nan))
    return np.where(is_usual, found, unusual)[()]


def log1p(values: Any) -> NDArray[np.float64]:
    """Compute the logarithms of 1 + values, which may be small."""
    if is_on_gpu(values):
        found: NDArray[np.float64] = np.log1p(values)
        return found
    whole = 1.0 + (values + np.float64(0))
    with np.errstate(invalid="ignore", divide="ignore"):
        lost = ((whole - 1.0) - values) / whole
    return log(whole) - np.where(np.isfinite(lost), lost, 0.0)


def exp(values: Any) -> NDArray[np.float64]:
    """Compute the exponential function, off by less than a unit of the last bit."""
    if is_on_gpu(values):
        found: NDArray[np.float64] = np.exp(values)
        return found
    values = np.clip(values + np.float64(0), -800.0, 800.0)
    power = np.rint(np.where(np.isnan(values), 0.0, values) / _LN2[0])
    high, low = values - power * _LN2[0], power * _LN2[1]
    rest = high - low
    square = rest * rest
    even = rest - square * _polynomial(square, _EXP)
    fraction = 1.0 - ((low - (rest * even) / (2.0 - even)) - high)
    found = np.ldexp(fraction, power.astype(np.int32))
    return found


def add_logarithms(one: Any, other: Any) -> NDArray[np.float64]:
    """Compute the logarithms of sums of numbers whose logarithms are given."""
    larger: NDArray[np.float64] = np.maximum(one, other)
    return larger + log1p(exp(-np.abs(one - other)))


def sine(angles: Any) -> NDArray[np.float64]:
    """Compute the sine of angles of a few turns at most."""
    quarter = np.rint(angles / (_QUARTER_TURN[0] + _QUARTER_TURN[1]))
    rest = (angles - quarter * _QUARTER_TURN[0]) - quarter * _QUARTER_TURN[1]
    square = rest * rest
    of_even = rest + rest * square * _polynomial(square, _SINE)
    of_odd = 1.0 - 0.5 * square + square * square * _polynomial(square, _COSINE)
    found: NDArray[np.float64] = np.where(quarter % 2 == 1, of_odd, of_even)
    return np.where(quarter % 4 >= 2, -found, found)


def _polynomial(values: Any, coefficients: Sequence[float]) -> Any:
    found = coefficients[-1] * values + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        found = found * values + coefficient
    return found


def product(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply matrices, off by less than n² 2**-50 of the largest numbers of row and column.

    Each is cut into two parts of so few digits that sums of n products of parts, by BLAS, need no
    rounding, in whatever order they are summed.
    """
    n_bits = (53 - left.shape[1].bit_length()) // 2
    right_high, right_low = _cut(right, n_bits, 0)
    found = np.empty((len(left), right.shape[1]))
    for first in range(0, len(left), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        high, low = _cut(left[part], n_bits, 1)
        mixed = _multiply(high, right_low) + _multiply(low, right_high)
        found[part] = _multiply(high, right_high) + mixed
    return found


def _multiply(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply matrices without rounding, in blocks for which BLAS takes a single thread.

    Other threads of OpenBLAS wait for more work in a loop, for longer than the work takes.
    """
    by_row = len(left) > len(right)
    of_step = right.size if by_row else len(left) * right.shape[1]
    step = _PRODUCTS_AT_ONCE // max(of_step, 1)
    if step < _LEAST_STEP:
        return left @ right
    if by_row:
        starts = range(0, len(left), step)
        return np.concatenate([left[first : first + step] @ right for first in starts])
    found = np.zeros((len(left), right.shape[1]))
    for first in range(0, len(right), step):
        found += left[:, first : first + step] @ right[first : first + step]
    return found


def _cut(
    values: NDArray[np.float64], n_bits: int, axis: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers rounded to so many bits below the largest along an axis, and what is left."""
    power = np.frexp(np.abs(values).max(axis=axis, keepdims=True, initial=0.0))[1]
    # The sum with such a number ends where the bits end.
    ends = (np.ldexp(1.5, power + 52 - n_kept) for n_kept in (n_bits, 2 * n_bits))
    high, low = ((values + end) - end for end in ends)
    return high, low - high


def moments(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums over rows of the products of all pairs of columns."""
    found = np.zeros((rows.shape[1], rows.shape[1]))
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[first : first + _ROWS_AT_ONCE]
        found += product(part.T, part)
    return found


def inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse of a symmetric matrix whose eigenvalues are above 0."""
    root = inverse_root(matrix)
    return product(root.T, root)


def inverse_root(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangle L for which Lᵀ L is the inverse of such a matrix."""
    rest, found = matrix.copy(), np.eye(len(matrix))
    for at in range(len(matrix)):
        root = np.sqrt(rest[at, at])
        found[at, : at + 1] /= root
        row = rest[at, at + 1 :] / root
        # What is left of the rows below without this one.
        found[at + 1 :, : at + 1] -= row[:, np.newaxis] * found[at, : at + 1]
        rest[at + 1 :, at + 1 :] -= row[:, np.newaxis] * row
    return found

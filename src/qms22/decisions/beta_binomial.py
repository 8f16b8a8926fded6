"""Probabilities of the beta-binomial distribution, in time that grows with its deviation only."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaln  # type: ignore[import-untyped, unused-ignore]

# Terms of a tail that are added at once, at least.
_LEAST_TERMS = 64


def beta_binomial_cdf(k: int, n: int, a: float, b: float) -> float:
    """Return the probability of at most k successes among n.

    SciPy adds the probabilities of all numbers up to k, which takes seconds for millions. This adds
    the tail that does not hold the mean, from k outwards, until its terms no longer count. The
    probability of a success follows a beta distribution with parameters a and b.
    """
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if k <= n * a / (a + b):
        return _lower_tail(k, n, a, b)
    # Failures follow the same distribution with a and b exchanged.
    return 1.0 - _lower_tail(n - k - 1, n, b, a)


def _lower_tail(k: int, n: int, a: float, b: float) -> float:
    """Return the probability of at most k successes, k not above the mean."""
    share = a / (a + b)
    deviation = math.sqrt(n * share * (1 - share) * (a + b + n) / (a + b + 1))
    size = _LEAST_TERMS + int(deviation)
    term = math.exp(
        betaln(k + a, n - k + b) - betaln(a, b) - betaln(n - k + 1, k + 1) - math.log(n + 1)
    )
    total = term
    while k > 0 and term > 1e-18 * total:
        numbers = np.arange(k, max(k - size, 0), -1, dtype=np.float64)
        ratios = numbers * (n - numbers + b) / ((n - numbers + 1) * (a + numbers - 1))
        terms = term * np.cumprod(ratios)
        total += float(terms.sum())
        term, k = float(terms[-1]), k - len(numbers)
    return min(total, 1.0)

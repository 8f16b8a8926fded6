"""Check the page "What is promised": what it cites exists, and what it states holds."""

from __future__ import annotations

import doctest
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import kolmogorov
from scipy.stats import ks_2samp

from qms22.estimators.conformal import conformal_p_values, flag_rows, storey_rank

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "promises.md"
CITED = sorted(set(re.findall(r"`((?:benchmarks|tests)/[\w/]+\.py(?:::\w+)?)`", PAGE.read_text())))


def test_examples() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 3
    assert failed == 0


@pytest.mark.parametrize("cited", CITED)
def test_what_the_page_cites_exists(cited: str) -> None:
    path, _, name = cited.partition("::")
    assert f"def {name}" in (ROOT / path).read_text()


def false_discovery_rate(
    pool: NDArray[np.float64],
    n_held_out: int,
    others_held_out: NDArray[np.float64],
    outliers: NDArray[np.float64],
    level: float,
) -> float:
    """Return the mean share of false alarms over all choices of the normal held-out rows."""
    shares = []
    for chosen in combinations(range(len(pool)), n_held_out):
        is_held_out = np.isin(np.arange(len(pool)), chosen)
        held_out = np.concatenate([pool[is_held_out], others_held_out])
        n_normal = len(pool) - n_held_out
        scores = np.concatenate([pool[~is_held_out], outliers])
        p_values = conformal_p_values(scores, held_out)
        flagged = flag_rows(p_values[np.newaxis], len(held_out), level)
        shares.append(flagged[:n_normal].sum() / max(1, flagged.sum()))
    return float(np.mean(shares))


@pytest.mark.parametrize("where", ["low", "anywhere", "high"])
def test_flags_with_outliers_among_the_held_out_rows(where: str) -> None:
    rng = np.random.default_rng(0)
    edges = {"low": (-2.0, -1.0), "anywhere": (-1.0, 9.0), "high": (9.0, 10.0)}[where]
    for _ in range(60):
        n_normal_held_out, n_others = int(rng.integers(4, 7)), int(rng.integers(1, 3))
        n = n_normal_held_out + n_others
        pool = np.floor(np.arange(9.0) * rng.choice([1.0, 0.5]))
        level = float(rng.choice([0.2, 0.4, 0.6, 0.8]))
        rate = false_discovery_rate(
            pool,
            n_normal_held_out,
            rng.uniform(*edges, size=n_others),
            rng.uniform(0.0, 12.0, size=rng.integers(0, 4)),
            level,
        )
        first_high = storey_rank(n)
        bound = level * (n + 1 - first_high) / (n_normal_held_out + 1 - first_high)
        assert rate <= bound + 1e-9


def test_outliers_among_the_held_out_rows_that_score_low_cost_the_level() -> None:
    low, outliers = np.full(3, -1.0), np.full(2, 99.0)
    assert 0.27 < false_discovery_rate(np.arange(7.0), 3, low, outliers, 0.2) < 0.8


@pytest.mark.parametrize(
    ("n", "m"), [(20, 20), (60, 60), (300, 300), (40, 20), (90, 31), (300, 50)]
)
def test_the_limit_of_kolmogorov_and_smirnov_is_on_the_safe_side(n: int, m: int) -> None:
    sample = (np.arange(n) + 0.5) / n
    size = np.sqrt(n * m / (n + m))
    n_compared = 0
    for shift in np.arange(1, 80) / 80:
        shifted = (np.arange(m) + 0.5) / m + shift
        limit = kolmogorov(size * ks_2samp(sample, shifted, method="asymp").statistic)
        if 1e-6 < limit < 0.02:
            assert ks_2samp(sample, shifted, method="exact").pvalue <= limit
            n_compared += 1
    assert n_compared > 5

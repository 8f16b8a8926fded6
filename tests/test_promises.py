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

from qms22.decisions.comparison import Comparison
from qms22.decisions.ruler import Ruler, storey_rank

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
    n_known: int,
    others_known: NDArray[np.float64],
    outliers: NDArray[np.float64],
    level: float,
) -> float:
    """Return the mean share of false alarms over all choices of the known-normal rows of a pool.

    `others_known` are the scores of known-normal rows that are not normal.
    """
    shares = []
    n_normal = len(pool) - n_known
    for chosen in combinations(range(len(pool)), n_known):
        is_known = np.isin(np.arange(len(pool)), chosen)
        ruler = Ruler.of(np.concatenate([pool[is_known], others_known]))
        scores = np.concatenate([pool[~is_known], outliers])
        flagged = Comparison.of(ruler, scores).flag(level)
        shares.append(flagged[:n_normal].sum() / max(1, flagged.sum()))
    return float(np.mean(shares))


@pytest.mark.parametrize("level", [0.1, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("n_outliers", [0, 1, 3])
def test_flags(n_outliers: int, level: float) -> None:
    """All orders of small urns, with outliers above all normal rows."""
    outliers = np.full(n_outliers, 99.0)
    for n_known, n_normal in ((2, 3), (4, 4), (7, 3), (8, 2)):
        pool = np.arange(float(n_known + n_normal))
        rate = false_discovery_rate(pool, n_known, np.empty(0), outliers, level)
        assert rate <= level + 1e-9


@pytest.mark.parametrize("where", ["low", "anywhere", "high"])
def test_flags_with_outliers_among_the_known_normal_rows(where: str) -> None:
    rng = np.random.default_rng(0)
    edges = {"low": (-2.0, -1.0), "anywhere": (-1.0, 9.0), "high": (9.0, 10.0)}[where]
    for _ in range(60):
        n_normal_known, n_others = int(rng.integers(4, 7)), int(rng.integers(1, 3))
        n = n_normal_known + n_others
        pool = np.floor(np.arange(9.0) * rng.choice([1.0, 0.5]))
        level = float(rng.choice([0.2, 0.4, 0.6, 0.8]))
        rate = false_discovery_rate(
            pool,
            n_normal_known,
            rng.uniform(*edges, size=n_others),
            rng.uniform(0.0, 12.0, size=rng.integers(0, 4)),
            level,
        )
        first_high = storey_rank(n)
        bound = level * (n - first_high) / (n_normal_known - first_high)
        assert rate <= bound + 1e-9


def test_outliers_among_the_known_normal_rows_that_score_low_cost_the_level() -> None:
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

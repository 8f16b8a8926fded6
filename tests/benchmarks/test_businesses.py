"""The tables of benchmarks/businesses: the same each time, and errors that are errors."""

from __future__ import annotations

import numpy as np
import pytest
from businesses.measure import BUSINESSES, measure_clean, measure_planted
from businesses.parts import iban
from businesses.plant import FAMILIES, Business, plant


@pytest.fixture(params=list(BUSINESSES))
def business(request: pytest.FixtureRequest) -> Business:
    return BUSINESSES[request.param]


def test_tables_are_drawn_by_seed(business: Business) -> None:
    normal, later = business.written(business.normal(3)), business.written(business.batch(3, 1))
    assert normal.equals(business.written(business.normal(3)))
    assert not normal.equals(business.written(business.normal(4)))
    assert list(normal) == list(later)
    assert 2000 <= len(normal) <= 4000
    assert 800 <= len(business.batch(3, 0)) <= 1250
    assert 800 <= len(later) <= 1250


def test_errors_change_few_rows_of_all_families(business: Business) -> None:
    assert {error.family for error in business.errors} == set(FAMILIES)
    rows = business.batch(0, 1)
    planted = plant(business, rows, 0, 1)
    assert 25 <= len(planted.errors) <= 45
    is_same = (planted.batch == planted.before).all(axis=1)
    assert set(is_same.index[~is_same]) == set(planted.errors)
    rng, is_free = np.random.default_rng(0), np.ones(len(rows), dtype=bool)
    assert all(any(error.spread(rows, is_free, rng).values()) for error in business.errors)


def test_checksums_of_ibans() -> None:
    rng = np.random.default_rng(0)
    for country in ("DE", "NL"):
        number = iban(country, rng)
        turned = number[4:] + number[:4]
        assert int("".join(str(int(letter, 36)) for letter in turned)) % 97 == 1


def test_measures_count_rows() -> None:
    business = BUSINESSES["transfers"]
    batch, errors = measure_planted(business, 0, 1)
    assert batch.n_planted == len(errors)
    assert batch.recall_top == pytest.approx(np.mean([error.is_top for error in errors]))
    assert batch.recall_flagged == pytest.approx(np.mean([error.is_flagged for error in errors]))
    assert 0 < batch.average_precision <= 1
    clean = measure_clean(business, 0, 1)
    assert clean.n_planted == 0
    assert clean.decision in ("fine", "anomalies", "drift")

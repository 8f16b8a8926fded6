"""Findings: groups of flagged rows, their names and their p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qms22.detection.findings.finding import Finding, find_findings
from qms22.detection.findings.finding_columns import _hour_range, attributes_of
from qms22.detection.findings.finding_numbers import round_between
from qms22.detection.findings.subgroups import SubgroupSearch
from qms22.tables.columns.arrow_columns import column_of_values
from qms22.tables.columns.cells import Cells
from qms22.tables.columns.date_parts import DAY

N_NORMAL, N_BATCH = 2000, 500
Columns = dict[str, NDArray[np.object_]]


def draw(n_rows: int, rng: np.random.Generator) -> Columns:
    """Orders: levels, numbers, a date from 7 to 22 o'clock, missing ratings."""
    minutes = rng.integers(60 * 7, 60 * 22, n_rows) + 1440 * rng.integers(100, size=n_rows)
    columns = {
        "when": minutes * 60e6,
        "country": rng.choice(["AT", "BE", "DE", "FR"], n_rows, p=[0.1, 0.1, 0.6, 0.2]),
        "channel": rng.choice(["app", "phone", "web"], n_rows, p=[0.3, 0.1, 0.6]),
        "payment": rng.choice(["card", "invoice"], n_rows),
        "express": rng.random(n_rows) < 0.2,
        "price": np.round(rng.lognormal(3, 0.5, n_rows), 2),
        "quantity": 1.0 + rng.poisson(2, n_rows),
        "rating": np.where(rng.random(n_rows) < 0.3, np.nan, rng.integers(1, 6, n_rows)),
    }
    return {name: values.astype(object) for name, values in columns.items()}


def to_cells(columns: Mapping[str, NDArray[np.object_]]) -> dict[str, Cells]:
    forms = {"when": "date", "express": "boolean"}
    cells = {}
    for name, values in columns.items():
        if name in ("country", "channel", "payment"):
            cells[name] = column_of_values(name, values.tolist())
        else:
            numbers = values.astype(np.float64)
            cells[name] = Cells(name, forms.get(name, "number"), numbers)  # type: ignore[arg-type]
    return cells


def find(
    batch: Columns,
    flagged: NDArray[np.intp],
    reasons: list[list[tuple[str, ...]]] | None = None,
    seed: int = 0,
) -> tuple[Finding, ...]:
    normal = to_cells(draw(N_NORMAL, np.random.default_rng(seed)))
    return find_findings(normal, to_cells(batch), flagged, reasons or [[] for _ in flagged])


@pytest.fixture
def batch() -> Columns:
    return draw(N_BATCH, np.random.default_rng(1))


FRAUD = {"country": "BE", "channel": "phone", "payment": "invoice"}


def test_all_rows_of_an_entity(batch: Columns) -> None:
    flagged = np.arange(6)
    batch["price"][flagged] = 5000.0
    batch["country"][batch["country"] == "AT"] = "BE"
    batch["country"][flagged] = "AT"
    (found,) = find(batch, flagged)
    assert found.name.endswith("all 6 rows with country AT")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"payment": "voucher"}, "payment = voucher, never seen in 2,000 rows"),
        ({"price": -5.0}, "price < 0, outside all normal rows"),
        ({"price": 5000.0}, "price > 1000, outside all normal rows"),
        ({"quantity": 40.0}, "quantity >= 40, outside all normal rows"),
        ({"quantity": 2.5}, "quantity = 2.5, never seen in 2,000 rows"),
        ({"price": math.nan}, "price is missing"),
        ({"country": None, "price": math.nan}, "country and price are missing"),
        (FRAUD, "country = BE, channel = phone, payment = invoice"),
        ({"payment": "voucher", "country": "AT"}, "payment = voucher (never seen), country = AT"),
        ({"country": "AT", "express": True}, "country = AT, express = true"),
    ],
)
def test_names(batch: Columns, change: dict[str, object], name: str) -> None:
    flagged = np.arange(30)
    for column, value in change.items():
        batch[column][flagged] = value
    (found,) = find(batch, flagged)
    assert found.name == name
    assert set(found.columns) == set(change)
    assert found.rows.tolist() == flagged.tolist()
    assert found.p_value is not None
    assert found.p_value < 0.01
    assert str(found) == f"30 rows: {name}"


def test_times(batch: Columns) -> None:
    flagged = np.arange(30)
    later = dict(batch, when=batch["when"].copy())
    later["when"][flagged] += 200 * DAY
    (found,) = find(later, flagged)
    assert found.name.startswith("when from 1970-07-")
    assert found.name.endswith(", outside all normal rows")
    batch["when"][flagged] += 2.5 * DAY / 24 - batch["when"][flagged] % DAY
    (found,) = find(batch, flagged)
    assert (found.name, found.columns) == ("2-3 a.m.", ("when",))


def test_values_on_both_sides_are_one_finding(batch: Columns) -> None:
    flagged = np.arange(20)
    batch["price"][flagged] = np.where(flagged % 2 == 0, -3.0, 700.0)
    (found,) = find(batch, flagged)
    assert found.name == "price < 0 or > 500, outside all normal rows"
    assert found.normal_share == 0.0


def test_three_kinds_at_once_are_three_findings(batch: Columns) -> None:
    parts = np.array_split(np.random.default_rng(2).permutation(N_BATCH)[:70], [20, 40, 60])
    for name, level in FRAUD.items():
        batch[name][parts[0]] = level
    batch["price"][parts[1]] = -1.0
    for name in ("price", "quantity", "country"):
        batch[name][parts[2]] = None
    # The last ten are flagged by mistake.
    flagged = np.sort(np.concatenate(parts))
    found = find(batch, flagged)
    members = {finding.columns: set(finding.rows.tolist()) for finding in found}
    # One of the mistakes is like the first kind.
    fraud = members.pop(("country", "channel", "payment"))
    assert fraud >= set(parts[0].tolist())
    assert len(fraud) <= len(parts[0]) + 1
    assert members == {
        ("price",): set(parts[1].tolist()),
        ("country", "price", "quantity"): set(parts[2].tolist()),
    }


def test_rows_are_in_one_finding_and_order_does_not_matter(batch: Columns) -> None:
    rng = np.random.default_rng(3)
    flagged = np.arange(60)
    batch["price"][:30] = -1.0
    batch["payment"][20:50] = "voucher"
    found = find(batch, flagged)
    rows = np.concatenate([finding.rows for finding in found])
    assert len(np.unique(rows)) == len(rows)
    assert [len(finding.rows) for finding in found] == sorted(
        (len(finding.rows) for finding in found), reverse=True
    )
    order = rng.permutation(N_BATCH)
    shuffled = {name: values[order] for name, values in batch.items()}
    again = find(shuffled, np.flatnonzero(order < 60))
    assert [finding.name for finding in again] == [finding.name for finding in found]
    assert [set(order[finding.rows]) for finding in again] == [set(x.rows) for x in found]


def test_rows_without_anything_in_common_are_no_finding(batch: Columns) -> None:
    flagged = np.sort(np.random.default_rng(4).permutation(N_BATCH)[:40])
    assert find(batch, flagged) == ()
    assert find(batch, flagged[:2]) == ()


def test_what_the_whole_batch_has_is_no_finding(batch: Columns) -> None:
    batch["payment"][:] = "voucher"
    batch["price"][:25] = -1.0
    (found,) = find(batch, np.arange(25))
    assert found.columns == ("price",)


def test_unflagged_rows_of_the_same_kind_do_not_hide_it(batch: Columns) -> None:
    batch["payment"][:100] = "voucher"
    (found,) = find(batch, np.arange(25))
    assert (found.name, len(found.rows)) == ("payment = voucher, never seen in 2,000 rows", 25)


@pytest.mark.parametrize("is_reason", [False, True])
def test_repeated_rows(batch: Columns, is_reason: bool) -> None:
    flagged = np.arange(15)
    for values in batch.values():
        values[flagged] = values[0]
    reasons: list[list[tuple[str, ...]]] = [[(), ("price",)] if is_reason else [] for _ in flagged]
    (found,) = find(batch, flagged, reasons)
    assert found.name == "the same row 15 times"
    assert (found.columns, found.normal_share, found.p_value) == ((), 0, None)


def test_reasons_that_name_several_columns(batch: Columns) -> None:
    flagged = np.arange(20)
    batch["payment"][15:20] = "voucher"
    batch["quantity"][:15] = 4
    reasons: list[list[tuple[str, ...]]] = [[("price", "quantity")] for _ in range(15)]
    reasons += [[("payment",)] for _ in range(5)]
    misfit, voucher = find(batch, flagged, reasons)
    assert misfit.name == "price does not fit quantity 4"
    assert misfit.columns == ("price", "quantity")
    assert misfit.rows.tolist() == list(range(15))
    assert (misfit.normal_share, misfit.p_value) == (None, None)
    assert voucher.rows.tolist() == list(range(15, 20))


def test_formats_of_the_input(batch: Columns) -> None:
    batch["price"][:10] = -1.0
    normal = to_cells(draw(N_NORMAL, np.random.default_rng(0)))
    (found,) = find_findings(
        normal,
        to_cells(batch),
        np.arange(10),
        [[] for _ in range(10)],
        {"price": lambda value: f"${value:,.2f}"},
    )
    assert found.name == "price < $0.00, outside all normal rows"


@pytest.mark.parametrize(
    ("is_seen", "name"), [(False, "price = n/k, not a number"), (True, "price = n/k")]
)
def test_words_among_numbers(batch: Columns, is_seen: bool, name: str) -> None:
    tables = to_cells(draw(N_NORMAL, np.random.default_rng(0))), to_cells(batch)
    for table, n_words in zip(tables, (10 * is_seen, 20), strict=True):
        values = table["price"].values.copy()
        values[:n_words] = np.nan
        words = np.where(np.isnan(values), 0, -1)
        table["price"] = Cells("price", "number", values, ("n/k",), words=words)
    (found,) = find_findings(*tables, np.arange(20), [[] for _ in range(20)])
    assert (found.name, found.normal_share) == (name, 10 * is_seen / N_NORMAL)


def test_words_among_booleans(batch: Columns) -> None:
    normal, searched = to_cells(draw(N_NORMAL, np.random.default_rng(0))), to_cells(batch)
    values = searched["express"].values.copy()
    values[:10] = np.nan
    words = np.where(np.isnan(values), 0, -1)
    searched["express"] = Cells("express", "boolean", values, ("maybe",), words=words)
    (found,) = find_findings(normal, searched, np.arange(10), [[] for _ in range(10)])
    assert found.name == "express = maybe, never seen in 2,000 rows"


def search_of(batch: Columns, n_flagged: int) -> SubgroupSearch:
    normal = to_cells(draw(N_NORMAL, np.random.default_rng(0)))
    attributes = attributes_of(normal, to_cells(batch), np.arange(n_flagged), {})
    costs = np.full(len(attributes), math.log(len(attributes)))
    batch_rows = N_NORMAL + np.arange(N_BATCH)
    return SubgroupSearch(
        attributes, np.arange(N_NORMAL), batch_rows[:n_flagged], batch_rows[n_flagged:], costs
    )


def test_counts_are_those_of_naive_counting(batch: Columns) -> None:
    batch["when"][:3] = np.nan
    batch["price"][3:6] = [-1, 9999, np.nan]
    search = search_of(batch, 50)
    counts = search._count(search._flagged)
    at = 0
    for attribute in search.attributes:
        flagged = attribute.codes[N_NORMAL : N_NORMAL + 50]
        for condition, (first, last) in enumerate(attribute.spans):
            inside = {int(code) % attribute.cycle for code in range(first, last + 1)}
            naive = np.array([code in inside for code in flagged])
            assert counts[at] == naive.sum()
            if condition % 50 == 0:
                holds = attribute.holds(condition)[N_NORMAL : N_NORMAL + 50]
                assert holds.tolist() == naive.tolist()
                assert search._meets(search._flagged, at).tolist() == naive.tolist()
            at += 1
    assert at == len(counts)


def test_weights_of_conditions_sum_to_one_at_most(batch: Columns) -> None:
    batch["quantity"][:6] = [-4, 2.5, 3.5, 77, 78, 79]
    batch["payment"][:2] = ["a", "b"]
    batch["price"][:4] = [-4, -3, 5000, np.nan]
    for attribute in search_of(batch, 50).attributes:
        assert np.exp(-attribute.costs).sum() <= 1 + 1e-9


@pytest.mark.parametrize("adversary", ["extreme", "excess"])
def test_p_values_hold_whichever_rows_are_flagged(adversary: str) -> None:
    n_small = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = draw(800, rng)
        normal = {name: values[:500] for name, values in rows.items()}
        batch = {name: values[500:] for name, values in rows.items()}
        if adversary == "extreme":
            scores = np.abs(batch["price"].astype(float) - 20)
        else:
            # The hours in which the batch has most rows in comparison.
            hours = (rows["when"].astype(float) % DAY // (DAY / 24)).astype(int)
            counts = [np.bincount(part, minlength=24) for part in (hours[:500], hours[500:])]
            scores = (counts[1] / (counts[0] + 1))[hours[500:]]
        flagged = np.sort(np.argsort(-scores, kind="stable")[:25])
        found = find_findings(to_cells(normal), to_cells(batch), flagged, [[] for _ in flagged])
        n_small += any(x.p_value is not None and x.p_value <= 0.1 for x in found)
    assert n_small <= 12  # 6 would be expected at most; 13 or more are less likely than 1 %


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(1e-6, 1e6, allow_subnormal=False))
def test_round_numbers_are_between(low: float, width: float) -> None:
    high = low + width
    assert low < round_between(low, high) < high


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [
        (-3, 5, 0),
        (97, 213, 100),
        (41, 44, 42),
        (94, 97, 95),
        (0.12, 0.13, 0.125),
        (10.0, 13.5, 11),
        (4, 4, 4),
    ],
)
def test_round_numbers(low: float, high: float, number: float) -> None:
    assert round_between(low, high) == number


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (2, 3, "2-4 a.m."),
        (0, 4, "midnight-5 a.m."),
        (22, 25, "10 p.m.-2 a.m."),
        (11, 12, "11 a.m.-1 p.m."),
        (12, 13, "noon-2 p.m."),
        (20, 23, "8 p.m.-midnight"),
    ],
)
def test_hours(first: int, last: int, text: str) -> None:
    assert _hour_range(first, last) == text


def test_two_dates_are_told_apart(batch: Columns) -> None:
    normal, searched = to_cells(draw(N_NORMAL, np.random.default_rng(0))), to_cells(batch)
    for cells in (normal, searched):
        cells["sent"] = replace(cells["when"], name="sent")
    values = searched["when"].values.copy()
    values[:20] += DAY / 24 * 3 - values[:20] % DAY
    searched["when"] = replace(searched["when"], values=values)
    (found,) = find_findings(normal, searched, np.arange(20), [[] for _ in range(20)])
    assert found.name == "when 3-4 a.m."

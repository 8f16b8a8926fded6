"""Findings: flagged rows that are anomalous in the same way, with a name."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from qms22._runtime import exact
from qms22._runtime.chunks import spread_rows
from qms22.checks.copies import row_hashes
from qms22.detection.findings.finding_columns import attributes_of
from qms22.detection.findings.subgroups import (
    Attribute,
    Condition,
    Show,
    Subgroup,
    SubgroupSearch,
    join_some,
    likelihood_ratios,
)
from qms22.tables.columns.cells import Cells, count_rows

# Two rows may be alike by chance, and nobody reads more findings than fit on a screen.
_LEAST_MEMBERS = 3
_MOST_FINDINGS = 20
# Rows of a kind to compare with: shares of one in a thousand are known to a fifth of their size.
_MOST_COMPARED = 20_000
# Most of the rows of the batch that a finding is true of are flagged, or else it is ten times as
# frequent there as among known-normal rows: not all anomalies may be flagged.
_LEAST_PRECISION = 0.5
_LEAST_LIFT = 10
# What one known-normal row in a hundred has is rare: such a finding may stand for a stricter one as
# well. Rows that are fine are taken to have reasons that name several columns as rarely.
_RARE_SHARE = 0.01
# All sets of so many of the conditions of a finding are tested, 31 of them.
_MOST_TESTED = 5
# Weights of the parts of a column in p-values; they sum to 1.
_PART_WEIGHTS = {
    "value": 1 / 2,
    "new": 1 / 4,
    "missing": 1 / 8,
    "hour": 1 / 16,
    "weekday": 1 / 32,
    "word": 1 / 32,
}


@dataclass(frozen=True, eq=False)
class Finding:
    """Rows that are anomalous in the same way.

    Parameters
    ----------
    name : str
        What they have in common, such as "country = US, 2-4 a.m.".
    rows : ndarray of int
        The flagged ones, by position in the batch.
    columns : tuple of str
        The columns that the name is about; none if whole rows are repeated.
    normal_share : float or None
        The share of known-normal rows of which the name is true; None if it is not known.
    p_value : float or None
        How likely it is, at most, that a batch of rows like the known-normal ones has any finding
        with as small a value. It allows for the search over all conditions: if findings with a
        value up to 0.05 are believed, one batch in twenty without anomalies has a false one. None
        if the name is not made of conditions.
    fewest_outliers : int or None
        How many of `rows` are outliers at least (90 % sure, of all findings at once); None where
        rows were not compared with known-normal ones.
    """

    name: str
    rows: NDArray[np.intp]
    columns: tuple[str, ...]
    normal_share: float | None
    p_value: float | None
    fewest_outliers: int | None = None

    @property
    def is_beyond_chance(self) -> bool:
        """Whether the p-value is below 0.05; a larger one, as small groups have, is not shown."""
        return self.p_value is not None and self.p_value < 0.05

    def __str__(self) -> str:
        return f"{len(self.rows):,} rows: {self.name}"


@dataclass(frozen=True, eq=False)
class _Rows:
    """The tables that findings are about."""

    normal: Mapping[str, Cells]
    batch: Mapping[str, Cells]
    flagged: NDArray[np.intp]
    reasons: Sequence[Sequence[tuple[str, ...]]]
    shows: Mapping[str, Show]

    @cached_property
    def hashes(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Numbers of the known-normal rows and of those of the batch; equal rows have the same."""
        names = [name for name in self.batch if name in self.normal]
        return row_hashes(self.normal, names), row_hashes(self.batch, names)

    @property
    def n_normal(self) -> int:
        """Number of known-normal rows."""
        return count_rows(self.normal)

    def name_with_value(self, name: str, rows: NDArray[np.intp]) -> str:
        """Return the name of a column, and the value that all these rows of the batch have."""
        cells = self.batch[name]
        values = cells.values[rows]
        if cells.missing[rows].any() or (values != values[0]).any():
            return name
        shown = cells.levels[values[0]] if cells.is_text else self.shows[name](values[0])
        return f"{name} {shown}"


def find_findings(
    normal: Mapping[str, Cells],
    batch: Mapping[str, Cells],
    rows: NDArray[np.intp],
    reasons: Sequence[Sequence[tuple[str, ...]]],
    shows: Mapping[str, Show] | None = None,
) -> tuple[Finding, ...]:
    """Return groups of flagged `rows` that are anomalous in the same way, the largest first.

    `reasons` has the columns of each reason of each row, the strongest reason first and in each the
    column to blame first; none if the whole row is repeated. `shows` write values as the input
    does. A row is in one finding at most; rows that share nothing are in none.

    First, rows that are repeated. Then findings of two kinds compete, and the one that explains
    most is taken first: conditions that many flagged rows meet and few others (see
    `SubgroupSearch`), and rows whose first reason is that the same column does not fit others.
    """
    if len(rows) < _LEAST_MEMBERS or not normal:
        return ()
    every_show = defaultdict(lambda: "{:g}".format, shows or {})
    tables = _Rows(normal, batch, rows, reasons, every_show)
    found, left = _repeated_rows(tables)
    attributes = attributes_of(normal, batch, rows, shows or {})
    search = _build_search(attributes, tables) if attributes else None
    while np.count_nonzero(left) >= _LEAST_MEMBERS and len(found) < _MOST_FINDINGS:
        subgroup = _best_subgroup(search, tables, left) if search else None
        misfit = _largest_misfit(tables, left)
        if misfit and (subgroup is None or misfit[1] > subgroup.score):
            found.append(misfit[0])
        elif subgroup:
            found = _add(subgroup, tables, left, found)
        else:
            break
        left &= ~np.isin(rows, found[-1].rows)
    return tuple(sorted(found, key=lambda finding: (-len(finding.rows), finding.name)))


def _add(
    subgroup: Subgroup, tables: _Rows, left: NDArray[np.bool_], found: Sequence[Finding]
) -> list[Finding]:
    """Return findings with one more, which takes in those that it is a milder form of."""
    finding, holds = _finding(subgroup, tables, left), subgroup.holds()[tables.n_normal :]
    is_rare = finding.normal_share is not None and finding.normal_share <= _RARE_SHARE
    kept, rows = [], [finding.rows]
    for other in found:
        if is_rare and {*other.columns} == {*finding.columns} and holds[other.rows].all():
            rows.append(other.rows)
        else:
            kept.append(other)
    return [*kept, replace(finding, rows=np.sort(np.concatenate(rows)))]


def _build_search(attributes: Sequence[Attribute], tables: _Rows) -> SubgroupSearch:
    others = np.setdiff1d(np.arange(count_rows(tables.batch)), tables.flagged)
    named = Counter(name for row in tables.reasons for name in {*itertools.chain(*row)})
    # A column costs less to name if it is a reason of many rows.
    weights = np.array([1 + named[attribute.column] for attribute in attributes], dtype=float)
    return SubgroupSearch(
        attributes,
        spread_rows(tables.n_normal, _MOST_COMPARED),
        tables.n_normal + tables.flagged,
        tables.n_normal + others[spread_rows(len(others), _MOST_COMPARED)],
        -exact.log(weights / weights.sum()),
    )


def _best_subgroup(
    search: SubgroupSearch, tables: _Rows, left: NDArray[np.bool_]
) -> Subgroup | None:
    """Return the best subgroup that is large enough and mostly of flagged rows."""
    for subgroup in search.best(left):
        holds = subgroup.holds()
        in_batch = holds[tables.n_normal :]
        n_members = np.count_nonzero(in_batch[tables.flagged] & left)
        # Rows that other findings explain do not count.
        n_like = np.count_nonzero(in_batch) - np.count_nonzero(in_batch[tables.flagged] & ~left)
        is_pure = n_members >= _LEAST_PRECISION * n_like
        is_new = n_like / len(in_batch) >= _LEAST_LIFT * np.mean(holds[: tables.n_normal])
        if subgroup.score > 0 and n_members >= _LEAST_MEMBERS and (is_pure or is_new):
            return subgroup
    return None


def _finding(subgroup: Subgroup, tables: _Rows, left: NDArray[np.bool_]) -> Finding:
    holds = subgroup.holds()
    members = holds[tables.n_normal :][tables.flagged] & left
    row = int(tables.flagged[np.argmax(members)])
    ours = tables.hashes[1]
    if len(subgroup.conditions) > 1 and (ours[tables.flagged][members] == ours[row]).all():
        return _repeated_row(tables, row, members)
    rows = tables.flagged[members]
    name, columns = _name(subgroup, tables, rows)
    normal_share = float(np.mean(holds[: tables.n_normal]))
    return Finding(name, rows, columns, normal_share, _p_value(subgroup, tables))


def _p_value(subgroup: Subgroup, tables: _Rows) -> float:
    """Return a bound for how likely it is that any conditions are so much more frequent by chance.

    If known-normal rows and batch are drawn alike, the number of rows of the batch among all rows
    that meet given conditions is hypergeometric. Each set of conditions has a weight that corrects
    for the search, however it is done: the weights of all sets sum to at most 1. So the smallest
    value of some of the conditions of a finding may stand for it.
    """
    conditions = subgroup.conditions[:_MOST_TESTED]
    masks = [each.holds() for each in conditions]
    costs = [
        each.attribute.costs[each.number]
        + math.log(len(tables.normal) / _PART_WEIGHTS[each.attribute.part])
        for each in conditions
    ]
    best = 0.0
    for size in range(1, len(conditions) + 1):
        # One set out of all sets of this size; the order of conditions does not matter.
        more = math.log(size * (size + 1)) - math.lgamma(size + 1)
        for chosen in itertools.combinations(range(len(conditions)), size):
            holds = np.all([masks[at] for at in chosen], axis=0)
            cost = more + sum(costs[at] for at in chosen)
            best = min(best, _log_chance(holds, tables.n_normal) + cost)
    return math.exp(best)


def _log_chance(holds: NDArray[np.bool_], n_normal: int) -> float:
    """Return the logarithm of the chance that so many of these rows, or more, are of the batch."""
    n_batch = len(holds) - n_normal
    n_like, n_found = int(np.count_nonzero(holds)), int(np.count_nonzero(holds[n_normal:]))
    counts = np.arange(n_found, min(n_like, n_batch) + 1)
    logs = stats.hypergeom.logpmf(counts, len(holds), n_like, n_batch)
    return float(logs.max() + exact.log(exact.exp(logs - logs.max()).sum()))


def _name(subgroup: Subgroup, tables: _Rows, rows: NDArray[np.intp]) -> tuple[str, tuple[str, ...]]:
    """Return the name of a subgroup of rows, and its columns: what no normal row has comes first.

    A level, such as a meter, may have no other rows: then the name says so.
    """

    def order(condition: Condition) -> tuple[bool, bool, int]:
        part = condition.attribute.part
        return part != "new", part in ("hour", "weekday"), condition.place

    conditions, texts, missing = sorted(subgroup.conditions, key=order), [], []
    for condition in conditions:
        column, part = condition.attribute.column, condition.attribute.part
        if part == "missing":
            missing.append(column)
            continue
        text, remark = condition.label()
        if remark == "never seen" and len(conditions) == 1:
            remark = f"never seen in {tables.n_normal:,} rows"
        if remark:
            text += f", {remark}" if len(conditions) == 1 else f" ({remark})"
        is_level = part == "value" and tables.batch[column].is_text
        if is_level and np.array_equal(np.flatnonzero(condition.holds()[tables.n_normal :]), rows):
            text = f"all {len(rows):,} rows with {tables.name_with_value(column, rows)}"
        texts.append(text)
    if missing:
        texts.append(f"{join_some(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return ", ".join(texts), tuple(dict.fromkeys(each.attribute.column for each in conditions))


def _largest_misfit(tables: _Rows, left: NDArray[np.bool_]) -> tuple[Finding, float] | None:
    """Return rows whose first reason is that the same column does not fit others, and a score."""
    first = {at: next(iter(tables.reasons[at]), ()) for at in np.flatnonzero(left).tolist()}
    blamed = {at: columns for at, columns in first.items() if len(columns) > 1}
    counts = Counter(columns[0] for columns in blamed.values())
    column, count = min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    if count < _LEAST_MEMBERS:
        return None
    members = [at for at, columns in blamed.items() if columns[0] == column]
    named = Counter(name for at in members for name in blamed[at][1:])
    others = [name for name in tables.normal if named[name] >= count / 2]
    rows = tables.flagged[members]
    rest = [tables.name_with_value(name, rows) for name in others] or ["the other columns"]
    share = exact.log([_RARE_SHARE])
    ratios = likelihood_ratios(np.array([float(count)]), int(np.count_nonzero(left)), share)
    score = float(ratios[0]) - math.log(len(tables.normal))
    name = f"{tables.name_with_value(column, rows)} does not fit {join_some(rest)}"
    return (Finding(name, rows, (column, *others), None, None), score) if score > 0 else None


def _repeated_rows(tables: _Rows) -> tuple[list[Finding], NDArray[np.bool_]]:
    """Return findings of equal rows whose first reason is that, and which rows are left."""
    is_repeated = np.array([bool(row) and not row[0] for row in tables.reasons])
    left = np.ones(len(tables.flagged), dtype=bool)
    found: list[Finding] = []
    while is_repeated.any() and len(found) < _MOST_FINDINGS:
        row = int(tables.flagged[np.argmax(is_repeated)])
        members = tables.hashes[1][tables.flagged] == tables.hashes[1][row]
        is_repeated &= ~members
        if np.count_nonzero(members) >= _LEAST_MEMBERS:
            left &= ~members
            found.append(_repeated_row(tables, row, members))
    return found, left


def _repeated_row(tables: _Rows, row: int, members: NDArray[np.bool_]) -> Finding:
    of_normal, of_batch = (hashes == tables.hashes[1][row] for hashes in tables.hashes)
    name = f"the same row {np.count_nonzero(of_batch):,} times"
    return Finding(name, tables.flagged[members], (), float(np.mean(of_normal)), None)

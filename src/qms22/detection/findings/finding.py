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
        elif search and subgroup:
            holds = search.holds(subgroup.conditions)[tables.n_normal :]
            found = _add(_finding(search, subgroup, tables, left), holds, found)
        else:
            break
        left &= ~np.isin(rows, found[-1].rows)
    return tuple(sorted(found, key=lambda finding: (-len(finding.rows), finding.name)))


def _add(finding: Finding, holds: NDArray[np.bool_], found: Sequence[Finding]) -> list[Finding]:
    """Return findings with one more, which takes in those that it is a milder form of."""
    is_rare = finding.normal_share is not None and finding.normal_share <= _RARE_SHARE
    is_same = [
        is_rare and set(other.columns) == set(finding.columns) and bool(holds[other.rows].all())
        for other in found
    ]
    parts = [other.rows for other, same in zip(found, is_same, strict=True) if same]
    kept = [other for other, same in zip(found, is_same, strict=True) if not same]
    return [*kept, replace(finding, rows=np.sort(np.concatenate([finding.rows, *parts])))]


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
        holds = search.holds(subgroup.conditions)
        in_batch = holds[tables.n_normal :]
        n_members = np.count_nonzero(in_batch[tables.flagged] & left)
        # Rows that other findings explain do not count.
        n_like = np.count_nonzero(in_batch) - np.count_nonzero(in_batch[tables.flagged] & ~left)
        is_pure = n_members >= _LEAST_PRECISION * n_like
        is_new = n_like / len(in_batch) >= _LEAST_LIFT * np.mean(holds[: tables.n_normal])
        if subgroup.score > 0 and n_members >= _LEAST_MEMBERS and (is_pure or is_new):
            return subgroup
    return None


def _finding(
    search: SubgroupSearch, subgroup: Subgroup, tables: _Rows, left: NDArray[np.bool_]
) -> Finding:
    holds = search.holds(subgroup.conditions)
    members = holds[tables.n_normal :][tables.flagged] & left
    row = int(tables.flagged[np.argmax(members)])
    ours = tables.hashes[1]
    if len(subgroup.conditions) > 1 and (ours[tables.flagged][members] == ours[row]).all():
        return _repeated_row(tables, row, members)
    whole = _whole_levels(search, subgroup, tables, members)
    name, columns = _name(search.attributes, subgroup, tables.n_normal, whole)
    normal_share = float(np.mean(holds[: tables.n_normal]))
    p_value = _p_value(search, subgroup, tables)
    return Finding(name, tables.flagged[members], columns, normal_share, p_value)


def _whole_levels(
    search: SubgroupSearch, subgroup: Subgroup, tables: _Rows, members: NDArray[np.bool_]
) -> dict[tuple[int, int], str]:
    """Return by their conditions the levels, such as a meter, of which the members are all rows."""
    found = {}
    for at, condition in subgroup.conditions:
        attribute = search.attributes[at]
        if attribute.part == "value" and tables.batch[attribute.column].is_text:
            of_level = np.flatnonzero(attribute.holds(condition)[tables.n_normal :])
            if np.array_equal(of_level, tables.flagged[members]):
                which = tables.name_with_value(attribute.column, of_level)
                found[at, condition] = f"all {len(of_level):,} rows with {which}"
    return found


def _p_value(search: SubgroupSearch, subgroup: Subgroup, tables: _Rows) -> float:
    """Return a bound for how likely it is that any conditions are so much more frequent by chance.

    If known-normal rows and batch are drawn alike, the number of rows of the batch among all rows
    that meet given conditions is hypergeometric. Each set of conditions has a weight that corrects
    for the search, however it is done: the weights of all sets sum to at most 1. So the smallest
    value of some of the conditions of a finding may stand for it.
    """
    conditions = subgroup.conditions[:_MOST_TESTED]
    masks = [search.holds([condition]) for condition in conditions]
    costs = [
        search.attributes[at].costs[condition]
        + math.log(len(tables.normal) / _PART_WEIGHTS[search.attributes[at].part])
        for at, condition in conditions
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


def _name(
    attributes: Sequence[Attribute],
    subgroup: Subgroup,
    n_normal: int,
    whole: Mapping[tuple[int, int], str],
) -> tuple[str, tuple[str, ...]]:
    """Return the name of a subgroup, and its columns: what no normal row has comes first.

    `whole` has the names of conditions that are all rows of a level.
    """
    pairs = sorted(subgroup.conditions, key=lambda pair: _place(attributes[pair[0]], pair[0]))
    columns = tuple(dict.fromkeys(attributes[at].column for at, _ in pairs))
    missing = [attributes[at].column for at, _ in pairs if attributes[at].part == "missing"]
    texts = []
    for at, condition in pairs:
        attribute = attributes[at]
        if attribute.part == "missing":
            continue
        text, remark = attribute.label(*attribute.spans[condition].tolist())
        if remark == "never seen" and len(pairs) == 1:
            remark = f"never seen in {n_normal:,} rows"
        if remark:
            text += f", {remark}" if len(pairs) == 1 else f" ({remark})"
        texts.append(whole.get((at, condition), text))
    if missing:
        texts.append(f"{join_some(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return ", ".join(texts), columns


def _place(attribute: Attribute, position: int) -> tuple[bool, bool, int]:
    return attribute.part != "new", attribute.part in ("hour", "weekday"), position


def _largest_misfit(tables: _Rows, left: NDArray[np.bool_]) -> tuple[Finding, float] | None:
    """Return rows whose first reason is that the same column does not fit others, and a score."""
    blamed = {
        at: tables.reasons[at][0]
        for at in np.flatnonzero(left).tolist()
        if tables.reasons[at] and len(tables.reasons[at][0]) > 1
    }
    counts = Counter(columns[0] for columns in blamed.values())
    if not counts:
        return None
    column, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
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

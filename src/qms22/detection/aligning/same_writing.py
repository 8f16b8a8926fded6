"""Two tables that write the same numbers and moments in different ways."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np
from scipy import stats  # type: ignore[import-untyped, unused-ignore]

from qms22._runtime.chunks import spread_rows
from qms22.tables import Table, TabularEncoder
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.columns.kinds import level_counts
from qms22.tables.columns.rewriting import Rewriting, find_writing, write_truths, writing_of
from qms22.tables.columns.typed import are_truths, read_booleans
from qms22.tables.sources.compressed import bytes_at_once
from qms22.tables.texts.text_columns import LEAST_SHARE
from qms22.tables.texts.words import NA, list_quoted

# So many rows show how a table is written: what one in a thousand has, ten of them show.
_SAMPLE = 10_000

# If a difference this large has a chance above one in a thousand, both are written the same way.
_CHANCE = 1e-3

# "NA" is a value where so many different codes are written as it is, and not more frequent than
# each of them.
_CODE = re.compile("[A-Z]{2}")
_LEAST_CODES = 5


def match_writing(
    normal: Table, batch: Table, ignored: Collection[str], asked: Mapping[str, str] | None = None
) -> tuple[Table, Table, list[str]]:
    """Write numbers and dates of the known-normal table as the batch does, if it differs.

    Each table is read by its own texts, and as a whole: in "1.234" alone, nothing says which sign
    is the decimal one. So this is done before any row of the known-normal table joins the batch.
    Moments of another time zone are converted in the batch. A column that one table has as texts,
    which are no numbers or dates, is one of texts in both: "1.10" is no number beside "1.1b".

    "NA" is a value in both among codes of two letters, and where the user wants a category.

    Columns in `ignored` do not matter. Those in `asked`, of which the user has said what they are,
    are not rewritten. Return both tables, and notes.
    """
    columns = [name for name in normal.names if name in batch.names and name not in ignored]
    asked = asked or {}
    normal, batch = _with_codes(normal, batch, columns, asked)
    known, new = _sample(normal, columns), _sample(batch, columns)
    texts = [
        [name for name in columns if _is_text_beside(one[name], other[name])]
        for one, other in ((known, new), (new, known))
    ]
    normal, batch = normal.with_texts(texts[0]), batch.with_texts(texts[1])
    if any(texts):
        known, new = _sample(normal, columns), _sample(batch, columns)
    zones, notes = _find_zones(known, new, (normal.name, batch.name))
    if zones:
        batch = batch.in_zones(zones)
    guessed = [name for name in columns if name not in asked]
    changes: dict[str, Callable[[Cells], Cells]] = {}
    for name in guessed:
        if (change := _compare(known[name], new[name])) is not None:
            changes[name] = change.apply
    for name in guessed:
        if words := _truth_words(known[name], new[name]):
            changes[name] = partial(write_truths, words=words)
    if changes:
        normal = normal.with_changes(changes)
        notes.append(_note(changes, batch.name, normal.name))
    return normal, batch, notes


def match_model(table: Table, encoder: TabularEncoder) -> tuple[Table, list[str]]:
    """Write numbers and dates of a table as a model knows them, if they differ."""
    plans = {name: encoder._plans_by_name[name] for name in encoder.groups_ if name in table.names}
    cells = _sample(table, list(plans))
    known = {name for name, plan in plans.items() if NA in plan.levels}
    table = table.with_codes(known & table.with_na).with_texts(
        [name for name, plan in plans.items() if plan.has_texts and not cells[name].is_text]
    )
    changes: dict[str, Callable[[Cells], Cells]] = {}
    for name, plan in plans.items():
        old, new = find_writing(cells[name]), writing_of(plan)
        if old and new and not new.fits(cells[name]) and old.has_unit_of(new):
            changes[name] = Rewriting(old, new).apply
    if not changes:
        return table, []
    return table.with_changes(changes), [_note(changes, table.name, "the model")]


def _with_codes(
    normal: Table, batch: Table, columns: Sequence[str], asked: Mapping[str, str]
) -> tuple[Table, Table]:
    """Return the tables with "NA" as a value where it is one of many codes, or of a category."""
    names = [name for name in columns if name in normal.with_na | batch.with_na]
    if not names:
        return normal, batch
    samples = [_sample(table.with_codes(names), names) for table in (normal, batch)]
    found = []
    for name in names:
        counts = Counter[str]()
        for cells in (sample[name] for sample in samples):
            counts.update(dict(zip(cells.levels, level_counts(cells).tolist(), strict=True)))
        n_na = counts.pop(NA, 0)
        codes = [counts[level] for level in counts if _CODE.fullmatch(level)]
        are_codes = len(codes) >= _LEAST_CODES and sum(codes) >= LEAST_SHARE * counts.total()
        if asked.get(name, "").startswith("categor") or (are_codes and n_na <= max(codes)):
            found.append(name)
    return normal.with_codes(found), batch.with_codes(found)


def _is_text_beside(cells: Cells, other: Cells) -> bool:
    """Return whether values of a column are texts in another table, and none of the same sort."""
    if cells.is_text or not other.is_text or not cells.has_value.any():
        return False
    writing = find_writing(other)
    # Infinite numbers are words.
    return writing is None or not writing.is_of(cells.form) or bool(np.isinf(cells.values).any())


def _compare(known: Cells, new: Cells) -> Rewriting | None:
    """Return how to write a known-normal column as the batch does; None if it can stay."""
    if known.form == new.form and not known.is_text:
        return None
    old = find_writing(known)
    if old is None or old.fits(new):
        return None
    other = find_writing(new)
    if other is None or not old.has_unit_of(other):
        return None
    change = Rewriting(old, other)
    # Where both tables mix two ways to write values, their rows are to be compared as they are: it
    # must not be chance that the batch writes so many more cells in its way.
    n_known, n_new = change.count(known), change.count(new)
    sizes = [np.count_nonzero(cells.has_value) for cells in (known, new)]
    chance = stats.hypergeom.cdf(n_known, sum(sizes), n_known + n_new, sizes[0])
    return change if chance <= _CHANCE else None


def _truth_words(known: Cells, new: Cells) -> dict[float, str]:
    """Return how the batch writes true and false, if known-normal rows do so in other words."""
    is_truth = known.form == "boolean" or (known.is_text and are_truths(known.levels))
    if not is_truth or not new.is_text:
        return {}
    values, counts = read_booleans(new.levels), level_counts(new)
    reads = ~np.isnan(values)
    is_alike = any(are_truths([level]) for level in new.levels)
    if is_alike or not reads.any() or np.average(reads, weights=counts) < LEAST_SHARE:
        return {}
    order = sorted(np.flatnonzero(reads).tolist(), key=lambda at: (counts[at], new.levels[at]))
    return {float(values[at]): new.levels[at] for at in order}


def _note(changes: Collection[str], table: str, other: str) -> str:
    names = list_quoted(changes)
    return f"{table} writes {names} in another format than {other}; the values are compared"


def _sample(table: Table, columns: list[str]) -> dict[str, Cells]:
    is_here = table.is_loaded or table.is_distributed
    most = _SAMPLE if is_here else min(_SAMPLE, table.rows_in(bytes_at_once()))
    return table.columns(columns, spread_rows(table.n_rows, most))


def _find_zones(
    known: Columns, new: Columns, tables: tuple[str, str]
) -> tuple[dict[str, str], list[str]]:
    zones, local = {}, []
    for name in known:
        zone, other = known[name].zone, new[name].zone
        if zone and other and zone != other:
            zones[name] = zone
        elif None not in (zone, other) and bool(zone) != bool(other):
            local.append(name)
    notes = [
        f"{tables[1]}: {name!r} is converted to the time zone of {tables[0]}, {zone}"
        for name, zone in zones.items()
    ]
    if local:
        listed = list_quoted(local)
        notes.append(
            f"only one of {tables[0]} and {tables[1]} has a time zone in {listed}; local times are "
            "compared"
        )
    return zones, notes

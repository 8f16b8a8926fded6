"""The kinds of columns, and the rules that decide them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells
from qms22.tables.columns.plan import ColumnPlan
from qms22.tables.columns.typed import are_truths, to_levels
from qms22.tables.texts.date_format import find_date_format
from qms22.tables.texts.number_format import (
    NumberFormat,
    find_duration_format,
    find_number_format,
    find_value_format,
)

# Texts with at most so many levels, or so small a share of the rows, are categories.
MOST_LEVELS = 50
MOST_DISTINCT = 0.05
# So are more levels if they recur: with at most one level in so many rows, and so small a share of
# rows with a level that no other row has (Good and Turing: as few rows will have a new one).
ROWS_PER_LEVEL = 5
MOST_SINGLE = 0.02
LEAST_RECURRING = 3
# Else so large a share of the rows must have levels that are this frequent; the other rows, and new
# levels, are then one level.
_LEAST_FREQUENT = 0.5
_FREQUENT = 0.01
# So many different texts show how a column is written.
_MOST_READ = 5000
# In fewer rows than this, all values may differ by chance.
LEAST_ROWS = 10
# Numbers that rise in so many rows, with gaps of no more than this on average, are a counter.
_LEAST_COUNTED = 30
_MEAN_GAP = 10
# Whole numbers of which so many times more pairs would be equal, had each been drawn on its own,
# number the rows in some other order.
_FEWER_EQUAL = 30.0
# Texts without blanks that are no longer than this may be identifiers.
LONGEST_IDENTIFIER = 64
# Whole numbers in this range may be dates such as 20241231.
_COMPACT_DATES = (1900_01_01, 2100_12_31)
_YEARS = ("1900", "2100")
_ID_WORDS = frozenset(
    ["id", "ids", "cid", "uid", "uuid", "guid", "key", "pk", "nr", "no", "number", "idx"]
)
# Names of columns with codes: whole numbers of which neither order nor size means anything.
_CODE_NAMES = (
    "num nummer code plz zip zipcode postcode postleitzahl cep phone telephone telefon tel mobile "
    "handy fax account acct konto iban ssn ean gtin upc isbn issn fips geoid barcode sku matrikel"
)
_CODE_WORDS = _ID_WORDS | frozenset(_CODE_NAMES.split())
_CODE_ENDS = ("nummer", "nr", "code")
# Numbers of these are codes, however small.
_NUMBERED = (
    "state county country region district precinct ward tract team club store branch bus truck "
    "tram vehicle turbine machine device station status code"
)
_NUMBERED_WORDS = frozenset(_NUMBERED.split())
# Codes have at least four digits: fewer may be counts, such as a visit_no.
_LEAST_CODE = 1000
# Numbers of eight digits or more may be codes whatever their name is: if so small a share of the
# whole numbers in their middle half is there, and so few of them end with 0. Shorter ones may be
# prices.
_LEAST_SPARSE = 1e7
_MOST_DENSE = 0.1
_MOST_ROUND = 0.4
# So few of the numbers may be smaller: a round number.
_RARELY = 0.05
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def infer_kind(
    cells: Cells, *, keeps_missing: bool = False, decimal_hint: str | None = None
) -> ColumnPlan:
    """Return a plan with the kind of a column, decided from its values in the normal rows.

    The first rule that applies decides; missing values are left out.

    - no value, or the same in all rows: constant. If `keeps_missing`, a value that is missing in
      other rows is a category with two levels.
    - true and false, as booleans or in words: boolean.
    - texts that are nearly all durations, dates or numbers, and whole numbers such as 20241231: see
      `find_duration_style`, `find_date_format` and `find_number_format`.
    - numbers, unless declared categorical: an identifier if they count rows, or if the name says so
      (id, key, nr, …) and they all differ; like texts if the name says that they are codes (plz,
      phone, …), or if they recur and are of places, machines, statuses (county, bus, …).
    - texts of four digits or more, of one width, that recur and are no years: like other texts.
    - texts that all differ, in ten rows or more, unless declared categorical: an identifier if all
      are short and without blanks, else text.
    - texts of few levels, of levels that recur, or half of which are frequent: category.
    - other texts: text if most have blanks, else an identifier.

    `decimal_hint` is the decimal sign of other columns, if it is known.
    """
    name = cells.name
    if cells.form == "other":
        return ColumnPlan(name, "text", "values that are neither numbers, texts nor dates")
    present = cells.values[~cells.missing]
    if not len(present):
        return ColumnPlan(name, "constant", "no values")
    if bool((present == present[0]).all()):
        if keeps_missing and len(present) < len(cells.values):
            return ColumnPlan(name, "category")
        first = int(np.argmin(cells.missing))
        return ColumnPlan(name, "constant", f"always {cells.show(first)}")
    if cells.form in ("boolean", "date"):
        return ColumnPlan(name, "boolean" if cells.form == "boolean" else "date")
    if cells.form == "number":
        form = find_value_format(cells.values, shows_comma=cells.has_commas)
        return _judge_compact_dates(cells) or _judge_numbers(cells, cells.values, form)
    if are_truths(cells.levels):
        return ColumnPlan(name, "boolean")
    if cells.form == "text":
        texts, counts = some_levels(cells)
        if (durations := find_duration_format(name, texts, counts)) is not None:
            return _judge_number_texts(cells, durations)
        if (dates := find_date_format(texts, counts)) is not None:
            return ColumnPlan(name, "date", dates.note, date_format=dates)
        if _are_codes(texts, counts):
            return _judge_texts(cells)
        if (numbers := find_number_format(texts, counts, decimal_hint)) is not None:
            return _judge_number_texts(cells, numbers)
    return _judge_texts(cells)


def level_counts(cells: Cells) -> NDArray[np.intp]:
    """Return the number of rows of each level of a column of texts."""
    return np.bincount(cells.values[cells.values >= 0], minlength=len(cells.levels))


def some_levels(cells: Cells) -> tuple[Sequence[str], NDArray[np.intp]]:
    """Return enough levels of a column of texts to find its format, and their numbers of rows."""
    levels, counts = cells.levels, level_counts(cells)
    if len(levels) <= _MOST_READ:
        return levels, counts
    # By name: which table's rows come first must not decide.
    some = _sorted_places(levels)[:: -(-len(levels) // _MOST_READ)]
    return [levels[at] for at in some.tolist()], counts[some]


def _sorted_places(texts: Sequence[str]) -> NDArray[np.intp]:
    try:
        places: NDArray[np.intp] = pc.array_sort_indices(pa.array(texts)).to_numpy()
    except UnicodeEncodeError:  # a half of a character, which Arrow does not have
        places = np.array(sorted(range(len(texts)), key=texts.__getitem__))
    return places.astype(np.intp)


def single_share(cells: Cells) -> float:
    """Return the share of rows whose level no other row has."""
    return float(np.count_nonzero(level_counts(cells) == 1) / len(cells.values))


def _judge_compact_dates(cells: Cells) -> ColumnPlan | None:
    """Return the plan of whole numbers that are dates such as 20241231; None if they are not."""
    low, high = np.nanmin(cells.values), np.nanmax(cells.values)
    if low < _COMPACT_DATES[0] or high > _COMPACT_DATES[1]:
        return None
    dates = find_date_format(*some_levels(to_levels(cells)))
    return None if dates is None else ColumnPlan(cells.name, "date", dates.note, date_format=dates)


def _are_codes(texts: Sequence[str], counts: NDArray[np.intp]) -> bool:
    """Return whether texts that recur are nearly all digits of one width, and no years.

    Where the table stores numbers as such, these are the numbers of buses, stores or articles.
    """
    least = len(str(_LEAST_CODE))
    is_code = [text.isascii() and text.isdecimal() and text[0] != "0" for text in texts]
    widths = np.where(is_code, np.fromiter(map(len, texts), np.intp, len(texts)), 0)
    usual = int(np.bincount(widths, counts).argmax())
    are_usual = widths == usual
    codes = list(compress(texts, are_usual))
    n_rows = int(counts[are_usual].sum())
    if usual < least or n_rows < (1 - _RARELY) * counts.sum():
        return False
    are_years = usual == least and _YEARS[0] <= min(codes) and max(codes) <= _YEARS[1]
    return not are_years and LEAST_RECURRING * len(codes) <= n_rows


def _judge_number_texts(cells: Cells, form: NumberFormat) -> ColumnPlan:
    first = cells.values[:_MOST_READ]
    # Reading all texts takes long, and only whole numbers can be identifiers.
    numbers = form.read([cells.levels[code] for code in first[first >= 0].tolist()])
    numbers = numbers[~np.isnan(numbers)]
    if bool((numbers == np.rint(numbers)).all()):
        numbers = np.append(form.read(cells.levels), np.nan)[cells.values]
    return _judge_numbers(cells, numbers, form)


def _judge_numbers(cells: Cells, numbers: NDArray[np.float64], form: NumberFormat) -> ColumnPlan:
    """Return the kind of numbers: an identifier only if the values look like one."""
    name = cells.name
    present = numbers[np.isfinite(numbers)]
    if bool((present == np.rint(present)).all()):
        steps = np.diff(present)
        # The rows of a second table may be counted from the start again.
        up = steps[steps > 0]
        is_rising = len(present) >= _LEAST_COUNTED and len(steps) - len(up) <= int(steps[-1] > 0)
        if is_rising and up.sum() <= _MEAN_GAP * len(up):
            return ColumnPlan(name, "identifier", "a running number: it rises from row to row")
        if says_identifier(name) and len(np.unique(present)) == len(present):
            return ColumnPlan(name, "identifier", "whole numbers that all differ")
        if _number_rows(present):
            return ColumnPlan(name, "identifier", "a running number in another order")
        if says_identifier(name) and bool(np.isin(steps, (0.0, 1.0)).all()):
            return ColumnPlan(name, "identifier", "a running number")
        is_plain = not form.unit and not form.thousands
        is_code = code_word(name) and np.quantile(present, _RARELY) >= _LEAST_CODE
        different = np.unique(present)
        recur = len(different) * LEAST_RECURRING <= len(present)
        is_numbered = _last_word(name) in _NUMBERED_WORDS or (
            len(present) >= _LEAST_COUNTED and _are_sparse(present, different)
        )
        if is_plain and (is_code or (is_numbered and recur)):
            return _judge_texts(to_levels(cells))
    return ColumnPlan(name, "number", number_format=form)


def _are_sparse(whole: NDArray[np.float64], different: NDArray[np.float64]) -> bool:
    """Return whether nearly all whole numbers are of one width and far apart, and not round.

    So are the codes of networks, or numbers of persons, and no measurements that recur.
    """
    low, high = np.quantile(whole, [_RARELY / 2, 1 - _RARELY / 2], method="nearest")
    if low < _LEAST_SPARSE or len(f"{low:.0f}") != len(f"{high:.0f}"):
        return False
    middle = different[len(different) // 4 : -(-3 * len(different) // 4) + 1]
    is_dense = len(middle) > _MOST_DENSE * (np.ptp(middle) + 1)
    return not is_dense and float(np.mean(different % 10 == 0)) <= _MOST_ROUND


def _number_rows(whole: NDArray[np.float64]) -> bool:
    """Return whether far fewer pairs of whole numbers are equal than in so narrow a range."""
    counts = np.unique(whole, return_counts=True)[1]
    n_pairs, n_equal = (float((n * (n - 1) / 2).sum()) for n in (np.array([len(whole)]), counts))
    return n_pairs / (float(np.ptp(whole)) + 1.0) >= _FEWER_EQUAL * (1.0 + n_equal)


def _judge_texts(cells: Cells) -> ColumnPlan:
    n_rows, n_levels = int((~cells.missing).sum()), len(cells.levels)
    differ = f"{n_levels} different texts in {n_rows} rows"
    name = cells.name
    is_named = says_identifier(name)
    if n_levels == n_rows and (n_rows >= LEAST_ROWS or is_named) and cells.form != "category":
        longest = max(map(len, cells.levels))
        if longest <= LONGEST_IDENTIFIER and not any(" " in text for text in cells.levels):
            return ColumnPlan(name, "identifier", differ)
        return ColumnPlan(name, "text", differ)
    if n_levels <= MOST_LEVELS or n_levels <= MOST_DISTINCT * n_rows:
        return ColumnPlan(name, "category")
    is_open = has_open_levels(cells)
    counts = level_counts(cells)
    frequent = counts[counts >= max(_FREQUENT * n_rows, ROWS_PER_LEVEL)]
    # If every level recurs, fewer rows of each are enough: 51 states in three years.
    rows_per_level = ROWS_PER_LEVEL if (counts == 1).any() else LEAST_RECURRING
    recurs = n_levels * rows_per_level <= n_rows and not is_open
    if recurs or frequent.sum() >= _LEAST_FREQUENT * n_rows:
        return ColumnPlan(name, "category", is_open=is_open)
    with_blanks = sum(" " in text for text in cells.levels)
    return ColumnPlan(name, "text" if 2 * with_blanks > n_levels else "identifier", differ)


def has_open_levels(cells: Cells) -> bool:
    """Return whether a column of texts has many levels, and new ones would not be unusual."""
    return len(cells.levels) > MOST_LEVELS and single_share(cells) > MOST_SINGLE


def code_word(name: str) -> str | None:
    """Return the last word of a name if it says that a column has codes, else None."""
    last = _last_word(name)
    return last if last in _CODE_WORDS or last.endswith(_CODE_ENDS) else None


def _last_word(name: str) -> str:
    words = [word.lower() for word in _WORDS.findall(name) if not word.isdigit()]
    return words[-1] if words else ""


def says_identifier(name: str) -> bool:
    """Return whether a name says that a column has numbers or names of rows or things."""
    words = [word.lower() for word in _WORDS.findall(name)]
    # pandas names a column without a name, such as that of row numbers, "Unnamed: 0".
    return words == ["index"] or (
        bool(words) and (words[-1] in _ID_WORDS or words[0] in ("id", "unnamed"))
    )

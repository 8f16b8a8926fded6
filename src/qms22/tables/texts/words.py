"""What texts mean (numbers, missing values, true and false), and lists in messages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

# The texts that `parse_number` reads, as a pattern for Python and for pyarrow.
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
BOOLEANS = {"true": 1.0, "false": 0.0}
# Other words for them, where a column is known to have them.
TRUTHS = {
    **BOOLEANS,
    **dict.fromkeys(("yes", "y", "t", "on", "1"), 1.0),
    **dict.fromkeys(("no", "n", "f", "off", "0"), 0.0),
}

# Missing values in KEEL and ARFF files, in lower case.
KEEL_MISSING = frozenset({"", "?", "<null>"})
# Missing values in CSV files: those of pandas and those above.
CSV_MISSING = KEEL_MISSING | {
    *("#N/A", "N/A", "n/a", "NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "NaT"),
    "\\N",  # of databases: MySQL, PostgreSQL, Hive
}
# One of them, which is a value among codes such as those of countries: Namibia.
NA = "NA"

# Spreadsheets take a text that begins with one of these for a formula, also with the wide signs of
# East Asia. `_scripts/text.js` of the page has the same ones.
FORMULA_STARTS = (*"=+-@\t\r\n＝＋－＠",)
# A table, and what a note says about it.
_NOTE = re.compile(r"(\S*[./#]\S*?)(: | (?=is |has ))(.+)")
# The words of the table at the end of a note.
_EXAMPLE = re.compile(r" \('.*'\)$")
_OF_SEVERAL = {"is ": "are ", "has ": "have ", " its ": " their "}


def parse_number(text: str) -> float:
    """Return the number that a text writes; raise ValueError if it is not a finite number."""
    number = float(text)
    # Python also reads "1_0", "inf", "nan" and the digits of other scripts.
    if not math.isfinite(number) or "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a finite number")
    return number


def is_number_text(text: str) -> bool:
    """Return whether a text writes a finite number."""
    try:
        parse_number(text)
    except ValueError:
        return False
    return True


def number_text(number: float) -> str:
    """Return a number as text, the same for 1 and 1.0."""
    return str(int(number)) if number.is_integer() else repr(number)


def canonical(value: object) -> str:
    """Return a value as text, the same for 1, 1.0, "1", True and "true"."""
    text = str(value).strip()
    if text.lower() in BOOLEANS:
        return number_text(BOOLEANS[text.lower()])
    return number_text(float(text)) if is_number_text(text) else text


def without_apostrophe(text: str) -> str:
    """Return a text without the apostrophe that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text


def list_quoted(names: Iterable[str]) -> str:
    """Return the first five names for a message, in quotes, and the number of the others."""
    return list_some([repr(name) for name in names])


def list_some(values: list[str], most: int = 5) -> str:
    """Return the first values for a message, and the number of the others."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(values[:most]) + more


def join_notes(notes: Iterable[str]) -> list[str]:
    """Return notes, with one in the place of several that say the same about different tables.

    Examples
    --------
    >>> join_notes(["a.csv: 1 line below the table left out ('Total')", "missing: size 5 %",
    ...             "b.csv: 1 line below the table left out ('Sum')"])
    ["a.csv, b.csv: 1 line below the table left out ('Total', …)", 'missing: size 5 %']
    """
    by_said: dict[tuple[str, str], dict[str, str]] = {}
    for note in notes:
        match = _NOTE.fullmatch(note)
        table, mark, said = match.groups() if match else ("", "", note)
        by_said.setdefault((mark, _EXAMPLE.sub("", said)), {}).setdefault(table, said)
    return [_joined(mark, said) for (mark, _), said in by_said.items()]


def _joined(mark: str, said: dict[str, str]) -> str:
    text = next(iter(said.values()))
    if len(set(said.values())) > 1:
        text = f"{text.removesuffix(')')}, …)"
    if mark == " " and len(said) > 1:
        for one, several in _OF_SEVERAL.items():
            text = text.replace(one, several, 1)
    return list_some(list(said)) + mark + text

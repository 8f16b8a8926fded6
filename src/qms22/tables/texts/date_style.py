"""How the dates of a column look, as a template that writes others in the same way."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qms22.tables.texts.date_text import match_date
from qms22.tables.texts.month_names import month_style
from qms22.tables.texts.text_columns import most_frequent

# The most frequent texts show how a column is written.
_SAMPLE = 1000
# Parts that are not written: fractions, "th" and offsets; and those of a fixed width.
_SILENT = ("f", "o", "zone")
_WIDTHS = {"Y": "{Y:04}", "y": "{y:02}", "M": "{M:02}", "S": "{S:02}", "G": "{G:04}", "V": "{V:02}"}


def find_date_style(
    texts: Sequence[tuple[str, float]], month_first: str, precision: str
) -> tuple[str, tuple[str, ...]]:
    """Return the template of most dates of a column, and the names of the months in it.

    Each date comes with the number of rows in which it occurs. `month_first` and `precision` are as
    in `DateFormat`.
    """
    frequent = sorted(texts, key=lambda pair: -pair[1])[:_SAMPLE]
    found = [(match_date(text), weight) for text, weight in frequent]
    matches = [(each[1], weight) for each, weight in found if each is not None]
    templates = [(_template(match, month_first, precision), n) for match, n in matches]
    # Some texts of a column of times may have no time, or no seconds.
    finest = {"second": "{S", "minute": "{M"}.get(precision, "")
    template = most_frequent([each for each in templates if finest in each[0]] or templates)[0]
    for name in "mdHI":
        if not any(_has_one_digit(match, name, month_first) for match, _ in matches):
            template = template.replace(f"{{{name}}}", f"{{{name}:02}}")
    names = [match["b"] for match, _ in matches if "b" in match.re.groupindex]
    return template, month_style(names) if names else ()


def _template(match: re.Match[str], month_first: str, precision: str) -> str:
    """Return a text with placeholders for the parts of the date."""
    text = match.string
    end_of_day = match.start("clock") if _has(match, "clock") else len(text)
    if precision == "day":
        text = text[:end_of_day]
    for name in sorted(match.re.groupindex, key=match.start, reverse=True):
        start, end = match.span(name)
        if 0 <= start < end <= len(text) and name not in ("s", "gap", "clock"):
            text = text[:start] + _placeholder(match, name, month_first) + text[end:]
    return text


def _placeholder(match: re.Match[str], name: str, month_first: str) -> str:
    if name in _SILENT:
        return ""
    name = _meaning(match, name, month_first)
    return _WIDTHS.get(name, f"{{{name}}}")


def _meaning(match: re.Match[str], name: str, month_first: str) -> str:
    """Return what a part of a date means in a template."""
    if name in "xz":  # the first and the second of day and month
        return "m" if (name == "x") == (match["s"] in month_first) else "d"
    if name == "Y" and len(match["Y"]) == 2:
        return "y"
    if name == "H" and _has(match, "p"):
        return "I"
    return "q" if name == "p" and match["p"].islower() else name


def _has(match: re.Match[str], name: str) -> bool:
    return name in match.re.groupindex and match[name] is not None


def _has_one_digit(match: re.Match[str], meaning: str, month_first: str) -> bool:
    return any(
        _has(match, name)
        and len(match[name]) == 1
        and _meaning(match, name, month_first) == meaning
        for name in "mdxzH"
    )

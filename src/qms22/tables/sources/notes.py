"""Notes about how tables were read, for people who read them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qms22.tables.texts.words import list_some

# A table, and what a note says about it.
_NOTE = re.compile(r"(\S*[./#]\S*?)(: | (?=is |has ))(.+)")
# The words of the table at the end of a note.
_EXAMPLE = re.compile(r" \('.*'\)$")
_OF_SEVERAL = {"is ": "are ", "has ": "have ", " its ": " their "}


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

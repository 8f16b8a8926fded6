"""Where the names of columns stand at the start of a table, and names that are not unique."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from qms22.tables.texts.words import is_number_text

# A number or a date, perhaps with a currency before or a unit behind.
_VALUE = re.compile(r"(?:[A-Z]{3} ?|R\$ ?)?\W*\d[\d.,:/'\sT+-]*\W*[A-Za-z%°/²³µ]{0,4}\W*")
# Characters of it, at most; the pattern takes long for a long text that is none.
_LONGEST_VALUE = 64
# What some programs draw below the names.
_RULE = re.compile(r"[\s|:+]*[-=_]{2}[-=_\s|:+]*")
# Lines above the names at most, rows below that they are compared with, and the share of cells
# that must be names; round numbers.
_MOST_TITLES = 30
_ROWS_COMPARED = 50
_LEAST_NAMED = 2 / 3
_YEARS = range(1900, 2101)


def left_out(path: str, count: int, what: str, where: str, words: str = "") -> str:
    """Return a sentence about lines or rows of a file that are left out, with some of their words.

    >>> left_out("a.csv", 2, "line", "below the table", "Total")
    "a.csv: 2 lines below the table left out ('Total')"
    """
    counted = f"1 {what}" if count == 1 else f"{count} {what}s"
    return f"{path}: {counted} {where} left out" + f" ({words[:40]!r})" * bool(words)


def find_header(rows: Sequence[Sequence[str]]) -> tuple[int | None, int]:
    """Find the names of columns among the first rows of a table, none of which is empty.

    Return the row of the names, None if there is none, and the first row below them.

    The names are in the first row, unless rows above them have fewer cells, as titles do: names are
    words above columns of numbers or dates. There are no names if the first row has numbers above
    numbers, and no words above numbers.
    """
    width = typical_width(rows)
    at = _count_titles(rows, width)
    if len(set(rows[at])) < len(rows[at]) and at + 1 < len(rows):
        # Names of groups, each over several names.
        at += _names_columns(rows[at + 1], rows[at + 2 : at + 2 + _ROWS_COMPARED], width)
    body = rows[at + 1 : at + 1 + _ROWS_COMPARED]
    if at == 0 and _is_data(rows[0], body):
        return None, 0
    first = at + 1
    while first < len(rows) and _is_rule(rows[first]):
        first += 1
    return at, first


def typical_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of cells that most rows have; the larger one of a draw."""
    counts = Counter(map(len, rows))
    return max(counts, key=lambda width: (counts[width], width))


def value_columns(rows: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Return which columns have numbers or dates in at least half of their cells."""
    found = []
    for column in range(width):
        cells = [row[column] for row in rows if column < len(row) and row[column].strip()]
        found.append(bool(cells) and sum(map(is_value, cells)) >= len(cells) / 2)
    return found


def is_value(text: str) -> bool:
    """Return whether a text looks like a number or a date."""
    text = text.strip()
    return len(text) <= _LONGEST_VALUE and _VALUE.fullmatch(text) is not None


def unique_names(names: Sequence[str], path: str) -> tuple[list[str], list[str]]:
    """Return names without blanks around them, each only once, and notes about changed ones.

    Empty names stay empty.

    Examples
    --------
    >>> unique_names(["amount", " amount"], "orders.csv")[0]
    ['amount', 'amount_2']
    """
    plain = [name.strip().strip("\ufeff\u200b") for name in names]
    taken, counts = set(plain), Counter[str]()
    unique, notes = [], []
    for at, name in enumerate(plain):
        counts[name] += 1
        found = name
        while name and counts[name] > 1 and found in taken:
            found = f"{name}_{counts[name]}"
            counts[name] += found in taken
        if found != name:
            notes.append(
                f"{path}: column {at + 1} is called {found!r}, as another one is called {name!r}"
            )
        taken.add(found)
        unique.append(found)
    return unique, notes


def joined_names(names: Sequence[str], above: Sequence[str]) -> list[str] | None:
    """Return names with those of groups from the row above; None if that is no row of groups.

    >>> joined_names(["name", "age", "mean", "max"], ["subject", "", "speed", ""])
    ['subject / name', 'subject / age', 'speed / mean', 'speed / max']
    """
    if len(above) != len(names) or any(map(is_value, above)):
        return None
    over: list[str] = []
    for cell in above:  # the name of a group is above its first column
        over.append(cell.strip() or (over or [""])[-1])
    sizes = Counter(filter(None, over)).values()
    joined = [
        f"{group} / {name.strip()}" if group and name.strip() else name
        for name, group in zip(names, over, strict=True)
    ]
    # A title may be in several cells, too: a group of one name only tells where others recur.
    tells_apart = len(set(names)) < len(names) == len(set(joined))
    return joined if len(sizes) > 1 and (min(sizes) > 1 or tells_apart) else None


def _is_rule(row: Sequence[str]) -> bool:
    return any(row) and all(_RULE.fullmatch(cell) for cell in row if cell)


def _count_titles(rows: Sequence[Sequence[str]], width: int) -> int:
    """Return how many rows are above the names."""
    usual = sorted(_n_filled(row) for row in rows if len(row) == width)
    typical = usual[len(usual) // 2]
    best, most = 0, 0
    for at, row in enumerate(rows[:_MOST_TITLES]):
        n_filled = _n_filled(row)
        if _names_columns(row, rows[at + 1 : at + 1 + _ROWS_COMPARED], width):
            best, most = (at, n_filled) if n_filled > most else (best, most)
        elif n_filled >= typical:
            break
    return best


def _n_filled(row: Sequence[str]) -> int:
    return sum(map(bool, map(str.strip, row)))


def _names_columns(row: Sequence[str], body: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a row has words above numbers and nowhere numbers above numbers."""
    if _n_filled(row) < max(2, _LEAST_NAMED * width):
        return False
    above = _cells_above_values(row, body)
    return any(not is_value(cell) for cell in above) and not any(
        is_value(cell) and not _is_year(cell) for cell in above
    )


def _cells_above_values(row: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    below = [other for other in body if other != row]  # the header may occur again
    columns = zip(row, value_columns(below, len(row)), strict=True)
    return [cell.strip() for cell, is_above in columns if is_above and cell.strip()]


def _is_data(row: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row has values in place of names."""
    cells = [cell.strip() for cell in row]
    if _are_years(row, body):
        return False
    if all(map(is_number_text, cells)):
        return not _are_counted(cells, starts=[0])
    above = _cells_above_values(row, body)
    if not above or not all(map(is_value, above)) or _are_counted(above, starts=[0, 1]):
        return False
    pairs = [pair for other in body for pair in zip(cells, other, strict=False)]
    is_repeated = any(
        cell and cell == below.strip() and not is_value(cell) for cell, below in pairs
    )
    return is_repeated or len(above) > 1


def _are_counted(cells: Sequence[str], starts: Sequence[int]) -> bool:
    """Return whether cells are numbers that name columns: 0, 1, 2 and so on."""
    if not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    is_counted = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return is_counted and numbers[0] in starts and (len(numbers) > 1 or numbers[0] == 0)


def _are_years(row: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether years in order, above numbers that are no years, name columns."""
    places = [at for at, cell in enumerate(row) if _is_year(cell.strip())]
    years = [int(row[at]) for at in places]
    above = [cell for cell in _cells_above_values(row, body) if not _is_year(cell)]
    rising = sorted(set(years))
    if len(years) < 2 or any(map(is_value, above)) or years not in (rising, rising[::-1]):
        return False
    below = [other[at].strip() for other in body for at in places if at < len(other)]
    return 2 * sum(map(_is_year, below)) < len(below)


def _is_year(cell: str) -> bool:
    return cell.isdecimal() and int(cell) in _YEARS

"""Names of months in several languages."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_FULL = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_OTHERS = {"maerz": 3, "mrt": 3, "jänner": 1, "jän": 1, "feber": 2}


def _short(names: list[str]) -> list[str]:
    """Return the first letters of each name that are enough to know it, but at least three."""
    return [
        next(
            name[:n]
            for n in range(3, len(name) + 1)
            if sum(other.startswith(name[:n]) for other in names) == 1
        )
        for name in names
    ]


def _plain(name: str) -> str:
    """Return a name in lower case without accents."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _all_spellings() -> dict[str, int]:
    found = {_plain(name): month for name, month in _OTHERS.items()}
    for text in _FULL.values():
        names = text.split()
        for month, (name, short) in enumerate(zip(names, _short(names), strict=True), 1):
            found |= {_plain(name[:n]): month for n in range(len(short), len(name) + 1)}
    return found


_SPELLINGS = _all_spellings()
_STYLES = [
    tuple(names)
    for text in _FULL.values()
    for full in [text.split()]
    for names in (_short(full), full)
]


@lru_cache(maxsize=1024)
def month_number(name: str) -> int | None:
    """Return the month that a name or the first letters of it mean; None if it is no month."""
    return _SPELLINGS.get(_plain(name))


def month_style(written: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the twelve months in the language, length and case of some of them."""
    texts = set(written)
    lower = {text.casefold() for text in texts}
    style = max(_STYLES, key=lambda names: len(lower & {name.casefold() for name in names}))
    if texts and all(text.isupper() for text in texts):
        return tuple(name.upper() for name in style)
    return style

"""Names of columns that are the same, though they are not written alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable


def match_names(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the known name for each of some names, where there is one.

    Names that differ in case, blanks, underscores and the like are the same, unless several are.

    Examples
    --------
    >>> match_names(["Order ID", "x", "z"], ["order_id", "x", "y"])
    {'Order ID': 'order_id', 'x': 'x'}
    """
    names, known = list(names), list(known)
    found = {name: name for name in names if name in set(known)}
    ours = [name for name in names if name not in found]
    theirs = [name for name in known if name not in found]
    counts = [Counter(map(_plain, some)) for some in (ours, theirs)]
    by_word = {_plain(name): name for name in theirs}
    for name in ours:
        word = _plain(name)
        if word and [count[word] for count in counts] == [1, 1]:
            found[name] = by_word[word]
    return {name: found[name] for name in names if name in found}


def find_column(name: str, names: Iterable[str]) -> str | None:
    """Return the column that a user means by a name; None if there is none.

    >>> find_column("order id", ["Order_ID", "amount"])
    'Order_ID'
    """
    return match_names([name], names).get(name)


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name for a column that no other column has."""
    while name in taken:
        name += "_"
    return name


def _plain(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[\W_]+", "", name.casefold())

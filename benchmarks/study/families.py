"""Families of KEEL data sets, and the two halves of the families.

Data sets made from one source are a family. They are similar, so a family belongs to one half as a
whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd

FAMILIES = (
    "abalone",
    "car",
    "cleveland",
    "dermatology",
    "ecoli",
    "flare",
    "glass",
    "haberman",
    "iris",
    "kr-vs-k",
    "led7digit",
    "lymphography",
    "new-thyroid",
    "page-blocks",
    "pima",
    "poker",
    "segment",
    "shuttle",
    "vehicle",
    "vowel",
    "winequality",
    "wisconsin",
    "yeast",
    "zoo",
)


def family_of(name: str) -> str:
    """Return the family of a KEEL data set.

    Examples
    --------
    >>> family_of("winequality-red-4"), family_of("glass-0-1-5_vs_2")
    ('winequality', 'glass')
    """
    for family in FAMILIES:
        if name.startswith(family):
            return family
    raise ValueError(f"{name!r} belongs to none of the families {', '.join(FAMILIES)}")


def halves_of(names: Iterable[str]) -> dict[str, str]:
    """Return the half, "A" or "B", of every family of some KEEL data sets.

    Families are assigned by their number of data sets, larger ones first and equal ones by name,
    each to the half with fewer data sets so far. Rows and labels play no part.

    Examples
    --------
    >>> halves_of(["glass1", "glass2", "iris0", "zoo-3", "pima"])
    {'glass': 'A', 'iris': 'B', 'pima': 'B', 'zoo': 'A'}
    """
    sizes = Counter(map(family_of, names))
    if len(sizes) < 2:
        raise ValueError(
            "a study chooses on one half of the families and confirms on the other; "
            f"give data sets of at least two families, not of {len(sizes)}"
        )
    n_sets = {"A": 0, "B": 0}
    halves = {}
    for family in sorted(sizes, key=lambda family: (-sizes[family], family)):
        halves[family] = min(n_sets, key=n_sets.__getitem__)
        n_sets[halves[family]] += sizes[family]
    return halves


def families_of(auc: pd.DataFrame) -> pd.Series:
    """Return the family of every row."""
    return pd.Series([family_of(name) for name in auc.index], auc.index, name="family")


def halves_by_set(auc: pd.DataFrame) -> pd.Series:
    """Return the half of every row."""
    return families_of(auc).map(halves_of(auc.index)).rename("half")

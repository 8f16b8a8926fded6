"""Families of data sets, and the two halves of the families of a collection.

Data sets made from one source are a family. They are similar, so a family belongs to one half as a
whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from study.problems import ADBENCH, KEEL

KEEL_FAMILIES = (
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

# Sets of ADBench that come from the same source; each of the others is a family of its own.
ADBENCH_FAMILIES = {
    "thyroid": "annthyroid",
    "satellite": "landsat",
    "satimage-2": "landsat",
    "Cardiotocography": "cardio",
    "smtp": "http",
    "WBC": "breastw",
    "WDBC": "breastw",
    "WPBC": "breastw",
}


def family_of(collection: str, name: str) -> str:
    """Return the family of a data set.

    Examples
    --------
    >>> family_of("KEEL", "winequality-red-4"), family_of("ADBench", "38_thyroid")
    ('winequality', 'annthyroid')
    >>> family_of("mixed", "orders: spike")
    'orders'
    """
    if collection == KEEL:
        for family in KEEL_FAMILIES:
            if name.startswith(family):
                return family
        raise ValueError(f"{name!r} belongs to none of the families {', '.join(KEEL_FAMILIES)}")
    if collection == ADBENCH:
        name = name.split("_", 1)[-1]
        return ADBENCH_FAMILIES.get(name, name)
    return name.split(":")[0]


def halves_of(collection: str, names: Iterable[str]) -> pd.Series:
    """Return the half, "A" or "B", of data sets of one collection, by name.

    Families are assigned by their number of data sets, larger ones first and equal ones by name,
    each to the half with fewer data sets so far. Rows and labels play no part.

    Examples
    --------
    >>> halves_of("KEEL", ["glass1", "glass2", "iris0", "zoo-3", "pima"]).to_dict()
    {'glass1': 'A', 'glass2': 'A', 'iris0': 'B', 'zoo-3': 'A', 'pima': 'B'}
    """
    families = {name: family_of(collection, name) for name in names}
    sizes = Counter(families.values())
    if len(sizes) < 2:
        raise ValueError(
            "a study chooses on one half of the families and confirms on the other; give data "
            f"sets of at least two families of {collection}, not of {len(sizes)}"
        )
    n_sets = {"A": 0, "B": 0}
    halves = {}
    for family in sorted(sizes, key=lambda family: (-sizes[family], family)):
        halves[family] = min(n_sets, key=n_sets.__getitem__)
        n_sets[halves[family]] += sizes[family]
    return pd.Series({name: halves[family] for name, family in families.items()}, name="half")

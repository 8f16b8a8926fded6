"""Choose a variant on one half of the families and confirm it on the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from qms22_bench.statistics import LEVEL, signed_ranks
from study.families import halves_of
from study.measure import Tables
from study.variants import RIVALS, SHIPPED


def only_half(tables: Tables, half: str) -> Tables:
    """Return the data sets of one half of each collection."""
    return {name: table[halves_of(name, table.index) == half] for name, table in tables.items()}


def choose(tables: Tables, variants: Collection[str]) -> str:
    """Return the variant with the best mean over the collections, each with the same weight."""
    means = np.mean([table[list(variants)].mean() for table in tables.values()], axis=0)
    return list(variants)[int(np.argmax(means))]


def confirm(tables: Tables, lists: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Choose from each list on one half, and compare with the shipped variant on the other.

    Returns
    -------
    DataFrame
        Two rows for each list: list, halves, chosen, and for every collection the gain over the
        shipped variant ("gain on KEEL") with the p-value of Wilcoxon's test ("p on KEEL").
    """
    rows = []
    for title, variants in lists.items():
        for first, second in ("AB", "BA"):
            chosen = choose(only_half(tables, first), [SHIPPED, *variants])
            row: dict[str, object] = {
                "list": title,
                "halves": f"{first} → {second}",
                "chosen": chosen,
            }
            for collection, table in only_half(tables, second).items():
                row |= _compared(collection, table[chosen], table[SHIPPED])
            rows.append(row)
    return pd.DataFrame(rows)


def compare(tables: Tables, variants: Collection[str]) -> pd.DataFrame:
    """Compare variants with the shipped one on all data sets.

    Returns
    -------
    DataFrame
        A row per variant, first the shipped one: variant, and for every collection its mean
        ("KEEL"), its gain over the shipped one and the p-value, as in `confirm`.
    """
    rows = []
    for variant in [SHIPPED, *variants]:
        row: dict[str, object] = {"variant": variant}
        for collection, table in tables.items():
            row[collection] = table[variant].mean()
            if variant != SHIPPED:
                row |= _compared(collection, table[variant], table[SHIPPED])
        rows.append(row)
    return pd.DataFrame(rows)


def best_rivals(tables: Tables) -> pd.DataFrame:
    """Compare the shipped variant with the best rival on each half of each collection.

    Returns
    -------
    DataFrame
        Columns collection, half, n_sets, shipped, rival, of_rival (its mean), gain and p_value.
    """
    rows = []
    for half in "AB":
        for collection, table in only_half(tables, half).items():
            best = str(table[list(RIVALS)].mean().idxmax())
            rows.append(
                {
                    "collection": collection,
                    "half": half,
                    "n_sets": len(table),
                    "shipped": table[SHIPPED].mean(),
                    "rival": best,
                    "of_rival": table[best].mean(),
                    "gain": (table[SHIPPED] - table[best]).mean(),
                    "p_value": signed_ranks(table[SHIPPED], table[best]).p_value,
                }
            )
    return pd.DataFrame(rows)


def significantly_better(tables: Tables, variants: Collection[str]) -> list[str]:
    """Describe every variant that is better than the shipped one at p < 0.05, and where."""
    found = []
    for variant in variants:
        for collection, table in tables.items():
            test = signed_ranks(table[variant], table[SHIPPED])
            if test.r_plus > test.r_minus and test.p_value < LEVEL:
                found.append(f"{variant} on {collection} (p = {test.p_value:.3f})")
    return found


def _compared(collection: str, variant: pd.Series, shipped: pd.Series) -> dict[str, float]:
    return {
        f"gain on {collection}": (variant - shipped).mean(),
        f"p on {collection}": signed_ranks(variant, shipped).p_value,
    }

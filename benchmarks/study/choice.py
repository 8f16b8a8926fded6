"""Choose a variant on one half of KEEL's families and confirm it on the other.

Every variant is measured on every data set, but a choice sees one half only.
"""

from __future__ import annotations

import pandas as pd

from qms22.bench.statistics import signed_ranks
from study.families import families_of, halves_by_set
from study.variants import BRM, KNN, PAPER, all_variants

RIVALS = (BRM, PAPER, KNN)


def choose(auc: pd.DataFrame) -> str:
    """Return the variant with the best mean over the data sets."""
    return str(auc.mean().idxmax())


def summarize(auc: pd.DataFrame) -> pd.DataFrame:
    """Return the means of every variant.

    Parameters
    ----------
    auc : DataFrame
        KEEL data sets as rows, variants as columns, including those of `RIVALS`.

    Returns
    -------
    DataFrame
        A row per variant: group, variant, mean (over data sets), family_mean (over families),
        A and B (over data sets of either half), rank_A and rank_B (1 is the best), gain (over
        BRM) and p_value (two-sided, of a Wilcoxon test against BRM).
    """
    families, halves = families_of(auc), halves_by_set(auc)
    variants = all_variants()
    table = pd.DataFrame(
        {
            "group": [variants[name].group for name in auc.columns],
            "variant": auc.columns,
            "mean": auc.mean().to_numpy(),
            "family_mean": auc.groupby(families).mean().mean().to_numpy(),
        }
    )
    for half in "AB":
        table[half] = auc[halves == half].mean().to_numpy()
        table[f"rank_{half}"] = table[half].rank(ascending=False, method="min").astype(int)
    table["gain"] = table["mean"] - auc[BRM].mean()
    table["p_value"] = [signed_ranks(auc[name], auc[BRM]).p_value for name in auc.columns]
    return table


def confirm(auc: pd.DataFrame, shipped: str) -> pd.DataFrame:
    """Choose on each half and confirm on the other; the same for the shipped variant.

    Returns
    -------
    DataFrame
        Four rows: role ("chosen" or "shipped"), variant, chosen_on, confirmed_on, mean_there (on
        the half that chose), mean (on the half that confirms) and, for every rival, its gain
        there and the two-sided p-value of a Wilcoxon test, as in "gain over BRM", "p of BRM".
    """
    halves = halves_by_set(auc)
    rows = []
    for chosen_on, confirmed_on in ("AB", "BA"):
        seen, unseen = auc[halves == chosen_on], auc[halves == confirmed_on]
        for role, variant in (("chosen", choose(seen)), ("shipped", shipped)):
            row = {
                "role": role,
                "variant": variant,
                "chosen_on": chosen_on,
                "confirmed_on": confirmed_on,
                "mean_there": seen[variant].mean(),
                "mean": unseen[variant].mean(),
            }
            for rival in RIVALS:
                row[f"gain over {rival}"] = (unseen[variant] - unseen[rival]).mean()
                row[f"p of {rival}"] = signed_ranks(unseen[variant], unseen[rival]).p_value
            rows.append(row)
    return pd.DataFrame(rows)

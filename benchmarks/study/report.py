"""The report of the study: a Markdown page, and the numbers behind it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from qms22._runtime.files import atomic_path, atomic_write
from qms22_bench.render import Section, ShownColumn, TableBlock, describe, table_block
from qms22_bench.run import describe_machine, describe_versions
from qms22_bench.statistics import LEVEL
from study.choice import best_rivals, compare, confirm, significantly_better
from study.families import family_of, halves_of
from study.measure import Tables
from study.variants import (
    ALONE,
    DISTANCES,
    DISTANCES_ALONE,
    LEFT_OUT,
    LISTS,
    RIVALS,
    TRAINING,
    WEIGHTS,
)

_TITLE = "The study behind QMS22Ensemble"
_PURPOSE = (
    "How the views of QMS22Ensemble, their weights and their settings were chosen. No variant sees "
    "a label. Every variant was computed in full: it learns its own self-training from its own "
    "weights."
)
_MEASURES = (
    "KEEL: mean raw AUC over the folds of the paper's data sets. ADBench: mean raw AUC, one split "
    "of each data set. Mixed: recall among the top k in batches of 1000 rows with one kind of "
    "injected anomalies each, with 2000 known-normal rows and three batches of each kind (the "
    "evaluation has larger ones). Gains are over the shipped variant, and p is that of Wilcoxon's "
    "two-sided signed-rank test over data sets."
)
_RIVALS = (
    "QMS22Ensemble 0.1.0 had two views: QMS22 in eight splits, and the distance to 512 references "
    "in each split, numbers divided by their range. QMS22 is that of the paper."
)
_ABLATION = (
    "Without one of QMS22 and distances the other gets the weight of both. Means over {} seeds on "
    "KEEL and ADBench; p below {} counts as significant."
)
_ALONE = "What each view finds alone. “Forest” is what a plain out-of-bag forest finds."
_WEIGHTS = (
    "Shipped: QMS22 has weight w = r², with r the mean rank correlation between its splits; "
    "distances have 1 − w, the forest has a, the rank correlation of forests without a row in "
    "common. Views share a weight of 4 by their excess of suspicious rows above 3 standard "
    "deviations in the top 10 % of the batch. QMS22 makes 10 sweeps in single precision."
)
_TRAINING = (
    "Shipped: weight a, the squared rank r² of the fused score as label, leaves of 5 rows; the "
    "excess of self-training does not count. Weight 0 is “without self-training” above."
)
_DISTANCES = (
    "Shipped: numbers are divided by their range or by 3 standard deviations, whichever is less; "
    "the columns of one category count as one feature; 2048 references. Categories are known as "
    "such in mixed tables only."
)
_HALVES = (
    "Data sets from one source are a family: all glass sets of KEEL, all sets of ADBench made from "
    "the thyroid data, all kinds of anomalies of one mixed table. Families are dealt out to two "
    "halves by their number of data sets, larger ones first, each to the half that has fewer data "
    "sets so far. From each list, with the shipped variant in it, the variant with the best mean "
    "of the three collections is chosen on one half. The other half, which had no part in the "
    "choice, measures its gain over the shipped one. Recall differs more between variants than "
    "AUC, so that mixed tables weigh most in these choices. The shipped variant was settled after "
    "a look at all data sets: a gain of another variant is a strict test of it, a loss is not."
)
_NOT_CENTRED = (
    "Sparse columns of QMS22 not centred when features are standardised: no effect on AUC."
)
_BOOSTING = (
    "Gradient boosting in place of the forest: worse, 0.769 against 0.781 in mean AUC on 117 other "
    "tables. Leaves of 2 or of 20 rows in the forest: worse than 5."
)
_RESIDUALS = (
    "Each column predicted from the others, with the residuals as a view: 0.851 alone on ADBench, "
    "and a loss of 0.004 to 0.014 in the fusion."
)
_OTHER_CORRELATIONS = (
    "As the weight of QMS22, the overlap of the most suspicious rows, or a correlation of p-values "
    "or of exponential scores in place of ranks: more is found in mixed tables, and a little is "
    "lost on KEEL. Excess took their place."
)


def write_study(variants: Tables, ablation: Tables, n_seeds: int, directory: Path) -> Path:
    """Write the report of the study into a directory.

    Parameters
    ----------
    variants, ablation : dict of str to DataFrame
        By `measure`.
    n_seeds : int
        Of the ablation.
    directory : Path
        Created if it does not exist. Receives study.md, study.csv and study-ablation.csv (all
        variants, and those of the ablation, on every data set).

    Returns
    -------
    Path
        The page.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sections = [
        Section("measures", "What was measured", [_PURPOSE, _counts(variants), _MEASURES]),
        Section("rivals", "Against rivals", [_RIVALS], [_compared(variants, RIVALS)]),
        _left_out(ablation, n_seeds),
        Section("alone", "Each view alone", [_ALONE], [_compared(variants, ALONE)]),
        Section("weights", "Weights", [_WEIGHTS], [_compared(variants, WEIGHTS)]),
        Section("training", "Self-training", [_TRAINING], [_compared(variants, TRAINING)]),
        Section(
            "distances",
            "Distances",
            [_DISTANCES],
            [
                _compared(variants, DISTANCES, "in the ensemble"),
                _compared(variants, DISTANCES_ALONE, "as the only view", shipped=False),
            ],
        ),
        _halves(variants),
        Section(
            "failed",
            "What else was tried, and failed",
            [_NOT_CENTRED, _BOOSTING, _RESIDUALS, _OTHER_CORRELATIONS],
        ),
    ]
    _write_csv(variants, directory / "study.csv")
    _write_csv(ablation, directory / "study-ablation.csv")
    parts = [f"# {_TITLE}", *(section.markdown() for section in sections), _how_made()]
    page = directory / "study.md"
    # Write the page last, so that everything it refers to exists.
    atomic_write(page, ("\n\n".join(parts) + "\n").encode())
    return page


def _counts(tables: Tables) -> str:
    listed = ", ".join(f"{name} {len(table)}" for name, table in tables.items())
    n_variants = len(next(iter(tables.values())).columns)
    return f"{n_variants} variants and rivals. Data sets: {listed}."


def _compared(
    tables: Tables, variants: Collection[str], where: str = "", *, shipped: bool = True
) -> TableBlock:
    table = compare(tables, variants)
    columns = [ShownColumn("variant", "variant")]
    for name in tables:
        columns += [
            ShownColumn(name, name, "auc"),
            ShownColumn(f"gain on {name}", "gain", "signed"),
            ShownColumn(f"p on {name}", "p", "p"),
        ]
    rows = table if shipped else table.iloc[1:]
    return table_block("compared", f"Means {where}".strip(), rows, columns)


def _left_out(tables: Tables, n_seeds: int) -> Section:
    better, n_tests = significantly_better(tables, LEFT_OUT), len(tables) * len(LEFT_OUT)
    words = (
        f"Significantly better than the shipped variant: {'; '.join(better)}. Chance alone would "
        f"give about {n_tests * LEVEL / 2:.1f} such results in {n_tests} tests."
        if better
        else "There is no collection on which leaving a view out is significantly better."
    )
    text = [_ABLATION.format(n_seeds, LEVEL), words]
    return Section("ablation", "Each view left out", text, [_compared(tables, LEFT_OUT)])


def _halves(tables: Tables) -> Section:
    chosen = [
        ShownColumn("list", "list"),
        ShownColumn("halves", "halves"),
        ShownColumn("chosen", "chosen"),
    ]
    for name in tables:
        chosen += [
            ShownColumn(f"gain on {name}", f"gain on {name}", "signed"),
            ShownColumn(f"p on {name}", "p", "p"),
        ]
    against = [
        ShownColumn("collection", "collection"),
        ShownColumn("half", "half"),
        ShownColumn("n_sets", "data sets", "count"),
        ShownColumn("shipped", "shipped", "auc"),
        ShownColumn("rival", "best rival"),
        ShownColumn("of_rival", "mean", "auc"),
        ShownColumn("gain", "gain of shipped", "signed"),
        ShownColumn("p_value", "p", "p"),
    ]
    every = [name for variants in LISTS.values() for name in variants]
    confirmed = confirm(tables, {**LISTS, "All of these": every})
    blocks = [
        table_block("confirmed", "Gain of the chosen variant on the other half", confirmed, chosen),
        table_block("halves", "Shipped, and the best rival", best_rivals(tables), against),
    ]
    title = "Chosen on one half, confirmed on the other"
    return Section("confirmed", title, [_HALVES], blocks)


def _how_made() -> str:
    facts = {
        "command": shlex.join(["python", "-m", "study", *sys.argv[1:]]),
        "machine": describe(describe_machine()),
        "versions": describe(describe_versions()),
    }
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    return "\n".join(["## How these numbers were made", "", *lines])


def _write_csv(tables: Tables, path: Path) -> None:
    parts = []
    for collection, table in tables.items():
        families = [family_of(collection, name) for name in table.index]
        labels = {"family": families, "half": halves_of(collection, table.index)}
        parts.append(table.assign(collection=collection, **labels))
    together = pd.concat(parts)
    first = ["collection", "family", "half"]
    together = together[[*first, *together.columns.drop(first)]]
    with atomic_path(path) as temporary:
        together.to_csv(temporary, index_label="dataset", float_format="%.6f", lineterminator="\n")

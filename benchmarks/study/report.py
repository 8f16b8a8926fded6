"""The report of the study: a Markdown page, its figure and the numbers behind them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from qms22._runtime.files import atomic_path, atomic_write
from qms22.bench.render import (
    FigureBlock,
    Section,
    ShownColumn,
    describe,
    escape_markdown,
    p_text,
    table_block,
)
from qms22.bench.run import describe_machine, describe_versions
from qms22.bench.sections import figure_block
from qms22.bench.statistics import signed_ranks
from study.choice import RIVALS, choose, confirm, summarize
from study.elsewhere import source_of
from study.families import families_of, halves_by_set
from study.figure import two_halves
from study.variants import KNN, PLAIN, SHIPPED

_TITLE = "The study behind QMS22Ensemble"
_PROTOCOL = (
    "Data sets made from one source are alike: all glass sets are one family, all yeast sets "
    "another. Families are dealt out to two halves by their number of data sets, larger ones first "
    "and equal ones by name, each to the half that has fewer data sets so far. The variant with "
    "the best mean on one half is chosen, and the other half, which had no part in the choice, "
    "measures what the choice gains."
)
_CONFIRMED = (
    "Gains are on the second half, the one that confirms, with the two-sided p-value of a Wilcoxon "
    "test over its data sets. “Chosen” is the variant that was best on the first half. “Shipped” "
    "is what QMS22Ensemble does by default. It was settled after a look at all families, so that "
    "only the lines of the chosen variants are a confirmation in the strict sense."
)
_WHY_SHIPPED = (
    "The p-values above do not distinguish the best from the shipped. Of the variants near the top "
    "the shipped one is as simple as any: two views, and a weight without a constant to set. More "
    "references take time in proportion wherever rows are scored, and were tried only after a "
    "first look at all data sets. Whitened views were not shipped for what they do on other data "
    "(see the end)."
)
_VARIANTS = (
    "Ranks are among all variants, 1 being the best; gain and p-value are against BRM on all data "
    "sets. QMS22 alone is run with standardised features, m = 7, q = 10 and α = 0.5 where nothing "
    "else is said. Fusions are of QMS22 (20 sweeps) and of the range-scaled distance to the "
    "nearest known-normal rows. Where nothing else is said T is cut into 8 parts, each held out "
    "once, and p is the share of held-out rows that score higher. a is the mean rank correlation "
    "of QMS22's scores of the batch between two splits; weights are QMS22's, and fuse −log of mean "
    "p. Whitening is by the Ledoit-Wolf estimate of the covariance of T."
)
_ELSEWHERE = (
    "The rows of one class are the outliers among those of the others; five stratified folds, the "
    "first seed. The choices above do not see these data, but a look at some of them is why no "
    "whitened view is shipped: whitening blows up the directions in which normal rows hardly vary, "
    "and in images these are noise. “Worst” is the least difference, over the data sets, to the "
    f"better of kNN and QMS22 ({PLAIN})."
)


def write_study(
    keel: pd.DataFrame, elsewhere: pd.DataFrame, seeds: Sequence[int], directory: Path
) -> Path:
    """Write the report of the study into a directory.

    Parameters
    ----------
    keel : DataFrame
        AUC by `measure`: KEEL's data sets as rows, all variants as columns.
    elsewhere : DataFrame
        The same of other data sets and of a few variants; it may have no rows.
    seeds : sequence of int
        The seeds that `keel` is a mean over.
    directory : Path
        Created if it does not exist. Receives study.md, study.csv (the AUC of every variant on
        every data set), study.png and, with data sets elsewhere, study-elsewhere.csv.

    Returns
    -------
    Path
        The page.
    """
    directory.mkdir(parents=True, exist_ok=True)
    table = summarize(keel)
    figure = figure_block(
        "study",
        "Every variant: the mean on either half of the families",
        two_halves(table, RIVALS, SHIPPED),
    )
    sections = [_protocol(keel, seeds), _confirmed(keel, table), _all_variants(table, figure)]
    if len(elsewhere):
        sections.append(_elsewhere(elsewhere))
        _write_csv(elsewhere, directory / "study-elsewhere.csv")
    labels = pd.concat([families_of(keel), halves_by_set(keel)], axis="columns")
    _write_csv(labels.join(keel), directory / "study.csv")
    atomic_write(directory / "study.png", figure.png)
    parts = [f"# {_TITLE}", *(section.markdown() for section in sections), _how_made()]
    page = directory / "study.md"
    # Write the page last, so that everything it links to exists.
    atomic_write(page, ("\n\n".join(parts) + "\n").encode())
    return page


def _protocol(keel: pd.DataFrame, seeds: Sequence[int]) -> Section:
    families, halves = families_of(keel), halves_by_set(keel)
    counts = (
        f"{len(keel)} data sets, {len(keel.columns)} variants; AUC is raw, the mean of the five "
        f"folds and of the seeds {', '.join(map(str, seeds))}. No variant sees a label."
    )
    listed = [_half_words(families, halves, half) for half in "AB"]
    return Section("protocol", "How it was done", [_PROTOCOL, counts, *listed])


def _half_words(families: pd.Series, halves: pd.Series, half: str) -> str:
    counts = families[halves == half].value_counts()
    listed = ", ".join(f"{family} {count}" for family, count in sorted(counts.items()))
    return f"Half {half}, {counts.sum()} data sets of {len(counts)} families: {listed}."


def _confirmed(keel: pd.DataFrame, table: pd.DataFrame) -> Section:
    rows = confirm(keel, SHIPPED)
    rows["direction"] = rows["chosen_on"] + " → " + rows["confirmed_on"]
    columns = [
        ShownColumn("direction", "halves"),
        ShownColumn("role", "role"),
        ShownColumn("variant", "variant"),
        ShownColumn("mean_there", "mean on the first", "auc"),
        ShownColumn("mean", "mean on the second", "auc"),
    ]
    for rival in RIVALS:
        columns += [
            ShownColumn(f"gain over {rival}", f"gain over {rival}", "signed"),
            ShownColumn(f"p of {rival}", "p", "p"),
        ]
    title = "Chosen on one half, confirmed on the other"
    block = table_block("confirmed", title, rows, columns)
    places = [_shipped_words(keel, table, half) for half in "AB"]
    return Section("confirmed", title, [_CONFIRMED, *places, _WHY_SHIPPED], [block])


def _shipped_words(keel: pd.DataFrame, table: pd.DataFrame, half: str) -> str:
    mine = keel[halves_by_set(keel) == half]
    best = choose(mine)
    rank = table.set_index("variant").at[SHIPPED, f"rank_{half}"]
    words = f"On half {half} the shipped variant is number {rank} of {len(table)}"
    if best == SHIPPED:
        return f"{words}."
    gap = (mine[best] - mine[SHIPPED]).mean()
    p_value = signed_ranks(mine[best], mine[SHIPPED]).p_value
    return f"{words}, {gap:.4f} below the best, “{best}” (p = {p_text(p_value)})."


def _all_variants(table: pd.DataFrame, figure: FigureBlock) -> Section:
    columns = [
        ShownColumn("group", "what varies"),
        ShownColumn("variant", "variant"),
        ShownColumn("mean", "mean", "auc"),
        ShownColumn("family_mean", "mean over families", "auc"),
        ShownColumn("A", "half A", "auc"),
        ShownColumn("rank_A", "rank", "count"),
        ShownColumn("B", "half B", "auc"),
        ShownColumn("rank_B", "rank", "count"),
        ShownColumn("gain", "gain over BRM", "signed"),
        ShownColumn("p_value", "p", "p"),
    ]
    block = table_block("variants", "Every variant", table, columns)
    return Section("variants", "Every variant tried", [_VARIANTS], [figure, block])


def _elsewhere(auc: pd.DataFrame) -> Section:
    """Return the means by source, and how much worse each variant is than the better of two."""
    sources = pd.Series([source_of(name) for name in auc.index], auc.index)
    table = auc.groupby(sources, sort=False).mean().T
    columns = [
        ShownColumn("variant", "variant"),
        ShownColumn("mean", "mean", "auc"),
        *(ShownColumn(source, source, "auc") for source in table.columns),
        ShownColumn("worst", "worst", "signed"),
    ]
    table["variant"] = table.index
    table["mean"] = auc.mean()
    better = auc[[PLAIN, KNN]].max(axis="columns")
    table["worst"] = auc.sub(better, axis="index").min()
    counts = sources.value_counts(sort=False).items()
    made_of = ", ".join(f"{source} {count}" for source, count in counts)
    words = f"{len(auc)} data sets made of some that come with scikit-learn: {made_of}."
    block = table_block("elsewhere", "Mean AUC by source", table, columns)
    return Section("elsewhere", "On other data", [words, _ELSEWHERE], [block])


def _how_made() -> str:
    facts = {
        "command": shlex.join(["python", "-m", "study", *sys.argv[1:]]),
        "machine": describe(describe_machine()),
        "versions": describe(describe_versions()),
    }
    lines = [f"- {name}: {escape_markdown(value)}" for name, value in facts.items()]
    return "\n".join(["## How these numbers were made", "", *lines])


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    with atomic_path(path) as temporary:
        table.to_csv(temporary, index_label="dataset", float_format="%.6f", lineterminator="\n")

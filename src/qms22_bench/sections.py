"""The sections of the benchmark report, from results."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from qms22_bench import figures, tables
from qms22_bench.datasets import paper_table1
from qms22_bench.render import FigureBlock, Section, ShownColumn, TableBlock, p_text, table_block
from qms22_bench.statistics import LEVEL, Ranking, best_against_others, p_matrix, ranking

# Failures shown on the page; failures.csv has all of them.
_MOST_FAILURES = 200
# Data sets named in a list of missing folds.
_MOST_NAMES = 12


def compared(results: pd.DataFrame, auc: pd.DataFrame, table4: pd.DataFrame) -> Section:
    """Return Table 4 and Figure 4: the AUC of the detectors."""
    n_paper = len(set(auc.index) & set(paper_table1()))
    words = (
        "AUC is raw: the mean of the folds, then of the seeds, then of the data sets. Clipped "
        "takes 0.5 in place of a lower mean of the folds, as the paper seems to do; folded takes "
        "1 − AUC there, as its baselines seem to. The paper's numbers are of its 95 data sets; "
        f"{n_paper} of the {len(auc)} data sets here are among them."
    )
    text = [words]
    gaps = tables.missing_folds(results)
    if len(gaps):
        text.append(
            "A mean is over the data sets that a detector has finished, all folds and seeds, so "
            f"not every mean is over the same ones. Left out: {_gap_list(gaps)}."
        )
    columns = [
        ShownColumn("detector", "detector"),
        ShownColumn("n_sets", "data sets", "count"),
        ShownColumn("mean", "mean AUC", "auc", "raw"),
        ShownColumn("sd", "SD", "auc", "over data sets, of the raw AUC"),
        ShownColumn("paper_mean", "paper's mean", "auc"),
        ShownColumn("paper_sd", "paper's SD", "auc"),
        ShownColumn("clipped_mean", "mean, clipped", "auc", "as the paper seems to do"),
        ShownColumn("clipped_sd", "SD, clipped", "auc"),
        ShownColumn("folded_mean", "mean, folded", "auc", "as the paper's baselines seem to"),
        ShownColumn("folded_sd", "SD, folded", "auc"),
    ]
    blocks: list[TableBlock | FigureBlock] = [
        table_block("table4", "Table 4: mean AUC and standard deviation", table4, columns)
    ]
    if len(auc) > 1:
        caption = "Figure 4: AUC over data sets; the line is the median, the dot the mean"
        blocks.append(figure_block("boxplots", caption, figures.boxplots(auc)))
    return Section("detectors", "The detectors compared", text, blocks)


def significance(auc: pd.DataFrame, table2: pd.DataFrame) -> Section:
    """Return Table 2, the matrix of p-values and the critical-difference diagram."""
    title = "Which differences are more than chance"
    if table2.empty:
        return Section(
            "tests", title, ["Left out: there is only one detector, and nothing to compare."]
        )
    if len(auc) < 2:
        return Section("tests", title, ["Left out: one data set says nothing about others."])
    words = (
        "Wilcoxon's signed-rank test on the raw AUC per data set, two-sided, ties between the two "
        "dropped. R+ sums the ranks of the data sets where the first detector is better, R− those "
        "where the second is. The null hypothesis, that they are alike, is rejected at p < "
        f"{LEVEL}. The p-values are of single comparisons, not corrected for their number."
    )
    text = [words]
    against_first = table2[table2["first"] == auc.columns[0]]
    blocks: list[TableBlock | FigureBlock] = [_table2_block(against_first)]
    if len(auc.columns) > 2:
        if len(auc.dropna()):
            blocks.append(_best_block(best_against_others(auc)))
        blocks.append(_matrix_block(table2))
        order = ranking(auc)
        text.append(_friedman_words(order))
        if order is not None:
            caption = (
                f"Average ranks over {order.n_sets} data sets, 1 being the best; a bar joins "
                "detectors that Nemenyi's test does not tell apart"
            )
            blocks.append(figure_block("ranks", caption, figures.critical_difference(order)))
    return Section("tests", title, text, blocks)


def run_time(results: pd.DataFrame, table5: pd.DataFrame) -> Section:
    """Return Table 5: measured run time and its growth."""
    times = tables.fit_times(results)
    words = (
        "CPU seconds, the sum of the folds and the mean over seeds, on the machine named below. "
        "An exponent is the slope of log(CPU seconds of a fit) on the logarithm of the size, with "
        "its standard error: 1 is linear, 2 quadratic. A data set is a point; those whose mean "
        f"fit takes no more than {tables.LEAST_SECONDS * 1000:g} ms are not used."
    )
    text = [words]
    columns = [
        ShownColumn("detector", "detector"),
        ShownColumn("exponent_np", "exponent in n·p", "rank"),
        ShownColumn("error_np", "± (n·p)", "rank", "standard error"),
        ShownColumn("exponent_n", "exponent in n", "rank"),
        ShownColumn("error_n", "± (n)", "rank", "standard error"),
        ShownColumn("n_used", "sets used", "count"),
        ShownColumn("n_sets", "of", "count"),
        ShownColumn("fit_seconds", "fit, s", "seconds"),
        ShownColumn("score_seconds", "score, s", "seconds"),
        ShownColumn("peak_megabytes", "peak MB", "seconds", "the largest of all fits"),
        ShownColumn("paper", "claimed, in the paper's Table 5"),
    ]
    blocks: list[TableBlock | FigureBlock] = [
        table_block("table5", "Table 5: complexity, as measured", table5, columns),
        figure_block("total-time", "Total CPU time", figures.total_times(table5)),
    ]
    if times["dataset"].nunique() > 1:
        caption = "CPU time of a fit against the size of the data, with the fitted power"
        drawn = figures.run_times(times, list(table5["detector"]))
        blocks.append(figure_block("run-time", caption, drawn))
    return Section("time", "Run time", text, blocks)


def by_dataset(table1: pd.DataFrame, auc: pd.DataFrame) -> Section:
    """Return Table 1 beside the paper's, and the AUC of every detector on every data set."""
    blocks: list[TableBlock | FigureBlock] = []
    text = []
    if table1.empty:
        text.append("Table 1 is left out: it is about QMS22, which has no complete data set here.")
    else:
        text.append(_table1_words(tables.table1_means(table1)))
        blocks.append(_table1_block(table1))
        if table1["difference"].count() > 1:
            caption = "Our AUC of QMS22 against the paper's, a point per data set"
            drawn = figures.auc_against_paper(table1)
            blocks.append(figure_block("against-paper", caption, drawn))
    if len(auc.columns) > 1:
        columns = [ShownColumn("dataset", "data set")]
        columns += [ShownColumn(name, name, "auc") for name in auc.columns]
        blocks.append(
            table_block(
                "auc",
                "Raw AUC of every detector",
                auc.rename_axis("dataset").reset_index(),
                columns,
                footer=[{"dataset": "mean", **auc.mean()}],
                search="Find a data set",
            )
        )
    return Section("datasets", "Data set by data set", text, blocks)


def failed(failures: pd.DataFrame, gaps: pd.DataFrame) -> Section | None:
    """Return the failures and the missing folds, or None if there are none."""
    if failures.empty and gaps.empty:
        return None
    text, blocks = [], []
    if len(gaps):
        text.append(
            "Data sets with missing folds, left out of the means and of the paired tests of that "
            f"detector: {_gap_list(gaps)}."
        )
    if len(failures):
        if len(failures) > _MOST_FAILURES:
            text.append(
                f"The first {_MOST_FAILURES} of {len(failures)} failures; all are in failures.csv."
            )
        columns = [
            ShownColumn("dataset", "data set"),
            ShownColumn("detector", "detector"),
            ShownColumn("fold", "fold", "count"),
            ShownColumn("seeds", "seeds"),
            ShownColumn("error", "error"),
        ]
        shown = failures.head(_MOST_FAILURES)
        blocks.append(table_block("failures", "Fits that failed", shown, columns))
    return Section("failures", "What failed", text, blocks)


def settings(results: pd.DataFrame) -> TableBlock:
    """Return a table of the parameters of every detector."""
    columns = [
        ShownColumn("detector", "detector"),
        ShownColumn("parameters", "parameters"),
        ShownColumn("seeds", "seeds"),
        ShownColumn("n_sets", "data sets", "count"),
    ]
    return table_block("settings", "Settings", tables.settings(results), columns)


def folds_words(results: pd.DataFrame) -> str:
    """Describe which folds were used on how many data sets."""
    kinds = results.drop_duplicates("dataset")["folds"].value_counts(sort=False)
    return "Folds: " + "; ".join(f"{kind} ({count} data sets)" for kind, count in kinds.items())


def figure_block(name: str, caption: str, figure: Figure) -> FigureBlock:
    """Render a figure as SVG and PNG."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    return FigureBlock(name, caption, figures.to_svg(figure, name), png.getvalue())


def _table2_block(table: pd.DataFrame) -> TableBlock:
    shown = table.assign(
        verdict=["rejected" if rejected else "not rejected" for rejected in table["rejected"]],
        pair=table["first"] + " vs. " + table["second"],
    )
    columns = [
        ShownColumn("pair", "comparison"),
        ShownColumn("n_sets", "data sets", "count"),
        ShownColumn("zeros", "ties dropped", "count"),
        ShownColumn("r_plus", "R+", "ranks"),
        ShownColumn("r_minus", "R−", "ranks"),
        ShownColumn("p_value", "p-value", "p"),
        ShownColumn("verdict", "null hypothesis"),
        ShownColumn("paper_r_plus", "paper's R+", "ranks"),
        ShownColumn("paper_r_minus", "paper's R−", "ranks"),
        ShownColumn("paper_p_value", "paper's p"),
    ]
    return table_block("table2", "Table 2: Wilcoxon signed-rank tests", shown, columns)


def _best_block(table: pd.DataFrame) -> TableBlock:
    columns = [
        ShownColumn("second", "against"),
        ShownColumn("n_sets", "data sets", "count"),
        ShownColumn("gain", "gain in mean AUC", "auc"),
        ShownColumn("better", "better on", "count"),
        ShownColumn("worse", "worse on", "count"),
        ShownColumn("r_plus", "R+", "ranks"),
        ShownColumn("r_minus", "R−", "ranks"),
        ShownColumn("p_value", "p-value", "p"),
    ]
    caption = f"{table['first'].iloc[0]}, which has the highest mean, against each other detector"
    return table_block("best", caption, table, columns)


def _matrix_block(table: pd.DataFrame) -> TableBlock:
    matrix = p_matrix(table)
    columns = [ShownColumn("detector", "p-value")] + [
        ShownColumn(name, name, "p") for name in matrix.columns
    ]
    shown = matrix.rename_axis("detector").reset_index()
    return table_block("p-values", "p-values of all pairs", shown, columns)


def _table1_block(table: pd.DataFrame) -> TableBlock:
    columns = [
        ShownColumn("dataset", "data set"),
        ShownColumn("n", "n", "count", "rows"),
        ShownColumn("p", "p", "count", "features: the paper's, or else after encoding"),
        ShownColumn("paper_auc", "paper's AUC", "auc"),
        ShownColumn("auc", "AUC", "auc", "raw"),
        ShownColumn("clipped", "clipped", "auc", "as the paper seems to do"),
        ShownColumn("difference", "clipped − paper's", "signed"),
        ShownColumn(
            "paper_seconds", "paper's t, s", "seconds", "five folds, on the paper's machine"
        ),
        ShownColumn("seconds", "CPU, s", "seconds", "fit and score of all folds, mean over seeds"),
        ShownColumn("ratio", "paper's t / ours", "ratio"),
        ShownColumn("folds", "folds"),
    ]
    means = tables.table1_means(table)
    first = {"dataset": f"mean of {means['n_sets']:.0f} sets; sum of times", **means}
    footer: list[Mapping[str, Any]] = [first]
    if table["difference"].notna().any():
        footer.append(
            {"dataset": "mean |difference|", "difference": f"{means['absolute_difference']:.4f}"}
        )
    caption = "Table 1: QMS22 on every data set"
    search = "Find a data set"
    return table_block("table1", caption, table, columns, footer=footer, search=search)


def _table1_words(means: pd.Series) -> str:
    if pd.isna(means["difference"]):
        return "None of these data sets is in the paper's Table 1, so there is nothing beside them."
    return (
        f"On the {means['n_sets']:.0f} data sets that the paper's Table 1 has as well, QMS22's "
        f"mean AUC is {means['auc']:.4f} raw and {means['clipped']:.4f} clipped; the paper prints "
        f"{means['paper_auc']:.4f}. The mean |difference| per data set is "
        f"{means['absolute_difference']:.4f}. They took {means['seconds']:.1f} CPU seconds here "
        f"and {means['paper_seconds']:.1f} in the paper, on another machine."
    )


def _friedman_words(order: Ranking | None) -> str:
    if order is None:
        return (
            "Average ranks are left out: fewer than two data sets are complete for all detectors."
        )
    verdict = "are not all alike" if order.p_value < LEVEL else "are not told apart"
    return (
        f"Friedman's test over the {order.n_sets} data sets that all detectors have: χ² = "
        f"{order.statistic:.1f}, p = {p_text(order.p_value)}; the detectors {verdict}."
    )


def _gap_list(gaps: pd.DataFrame) -> str:
    by_detector: Sequence[str] = [
        f"{detector} on {_some(list(group['dataset']))}"
        for detector, group in gaps.groupby("detector", sort=False)
    ]
    return "; ".join(by_detector)


def _some(names: list[str]) -> str:
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"

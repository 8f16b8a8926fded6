"""The paper's tables, computed from benchmark results: functions from DataFrame to DataFrame.

`results` has one row per data set, fold, detector and seed. AUC is raw except in columns named
"clipped" or "folded".
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd

from qms22_bench.datasets import paper_table1
from qms22_bench.paper import PAPER_NAMES, TABLE4, TABLE5
from qms22_bench.statistics import growth

# Shorter fits are mostly overhead, and not used to measure how time grows.
LEAST_SECONDS = 0.002

_COLUMNS = (
    "dataset",
    "fold",
    "detector",
    "seed",
    "status",
    "error",
    "auc",
    "fit_seconds",
    "score_seconds",
    "peak_megabytes",
    "n_normal",
    "n_unlabeled",
    "n_outliers",
    "n_features",
    "folds",
    "n_folds",
    "parameters",
)
_MEASURED = ("auc", "fit_seconds", "score_seconds", "peak_megabytes")
_KEY = ["dataset", "detector", "seed", "fold"]


def validate_results(results: pd.DataFrame) -> pd.DataFrame:
    """Check benchmark results, and return them with measured columns as floats.

    Raises
    ------
    ValueError
        If a column is missing, there are no rows, or a row occurs twice.
    """
    missing = [name for name in _COLUMNS if name not in results.columns]
    if missing:
        raise ValueError(
            f"the results lack the columns {', '.join(missing)}; make them with 'qms22-bench run'"
        )
    if results.empty:
        raise ValueError("the results have no rows; run 'qms22-bench run' first")
    twice = results.duplicated(_KEY)
    if twice.any():
        dataset, detector, seed, fold = results.loc[twice, _KEY].iloc[0]
        raise ValueError(
            f"the results contain fold {fold} of {dataset!r} by {detector}, seed {seed}, twice; "
            "keep one of the rows"
        )
    # A column without any number, as after a run that failed entirely, has the type object.
    return results.astype(dict.fromkeys(_MEASURED, float))


def is_ok(results: pd.DataFrame) -> pd.Series:
    """Return which rows have an AUC; the others failed."""
    return (results["status"] == "ok") & results["auc"].notna()


def detector_names(results: pd.DataFrame) -> list[str]:
    """Return the detectors: those of the paper in its order, then the others."""
    names = list(dict.fromkeys(results["detector"]))
    return [name for name in PAPER_NAMES if name in names] + [
        name for name in names if name not in PAPER_NAMES
    ]


def fold_means(results: pd.DataFrame) -> pd.DataFrame:
    """Average the folds of each data set, detector and seed.

    Returns
    -------
    DataFrame
        Columns dataset, detector, seed, auc (mean of the folds), fit_seconds and
        score_seconds (their sums). A detector that lacks a fold of a data set for any seed has no
        row for that data set.
    """
    ok = results[is_ok(results)]
    by_seed = ok.groupby(["dataset", "detector", "seed"], sort=False)
    means = by_seed.agg(
        auc=("auc", "mean"),
        fit_seconds=("fit_seconds", "sum"),
        score_seconds=("score_seconds", "sum"),
    ).reset_index()
    gaps = missing_folds(results)
    left_out = pd.MultiIndex.from_frame(gaps[["dataset", "detector"]])
    keep = ~pd.MultiIndex.from_frame(means[["dataset", "detector"]]).isin(left_out)
    return means[keep].reset_index(drop=True)


def missing_folds(results: pd.DataFrame) -> pd.DataFrame:
    """Return data sets and detectors that lack good folds, with seeds and folds."""
    good: dict[tuple[str, str], dict[int, set[int]]] = {}
    for dataset, detector, seed, fold, ok in zip(
        *(results[name] for name in ("dataset", "detector", "seed", "fold")),
        is_ok(results),
        strict=True,
    ):
        folds = good.setdefault((dataset, detector), {}).setdefault(int(seed), set())
        if ok:
            folds.add(int(fold))
    n_folds = results.groupby("dataset")["n_folds"].first()
    rows = []
    for (dataset, detector), by_seed in good.items():
        wanted = set(range(1, n_folds[dataset] + 1))
        gaps = {seed: wanted - folds for seed, folds in sorted(by_seed.items()) if wanted - folds}
        if gaps:
            missing = sorted(set.union(*gaps.values()))
            rows.append((dataset, detector, _listed(gaps), _listed(missing)))
    return pd.DataFrame(rows, columns=["dataset", "detector", "seeds", "folds"])


def auc_table(results: pd.DataFrame, treatment: str = "raw") -> pd.DataFrame:
    """Return the AUC of every detector (column) on every data set (row, by name).

    Parameters
    ----------
    results : DataFrame
    treatment : {"raw", "clipped", "folded"}
        What replaces the mean AUC a of the folds, before the mean over seeds: a itself,
        max(0.5, a), or max(a, 1 - a).

    Returns
    -------
    DataFrame
        NaN if folds are missing; detectors without a complete data set have no column.
    """
    means = fold_means(results)
    if treatment == "clipped":
        means["auc"] = means["auc"].clip(lower=0.5)
    elif treatment == "folded":
        means["auc"] = np.maximum(means["auc"], 1 - means["auc"])
    elif treatment != "raw":
        raise ValueError(f"treatment must be one of 'raw', 'clipped', 'folded'; got {treatment!r}")
    return _by_dataset(results, means, "auc")


def seconds_table(results: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return CPU seconds of all folds, mean over seeds; `kind`: fit_seconds or score_seconds."""
    return _by_dataset(results, fold_means(results), kind)


def _by_dataset(results: pd.DataFrame, means: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the mean over seeds; data sets are rows, detectors columns."""
    table = means.groupby(["dataset", "detector"])[column].mean().unstack("detector")
    names = [name for name in detector_names(results) if name in table.columns]
    table = table.reindex(columns=names)
    table = table.loc[sorted(table.index, key=str.casefold)]
    table.columns.name = None
    return table.astype(float)


def sizes(results: pd.DataFrame) -> pd.DataFrame:
    """Return rows (n), encoded features (p) and the kind of folds of each data set.

    n is the sum over the test parts; NaN if one of them was not run.
    """
    by_set = results.drop_duplicates(["dataset", "fold"]).groupby("dataset")
    table = by_set.agg(n=("n_unlabeled", "sum"), p=("n_features", "max"), folds=("folds", "first"))
    table["n"] = table["n"].where(by_set.size() == by_set["n_folds"].first())
    return table


def table1(results: pd.DataFrame) -> pd.DataFrame:
    """Return the AUC and the time of QMS22 per data set, beside the paper's Table 1.

    Returns
    -------
    DataFrame
        Columns dataset, n, p, folds, paper_auc, auc, clipped, difference (clipped - paper),
        paper_seconds, seconds (CPU time to fit and score all folds), ratio (the paper's time
        over ours). n and p are the paper's, or those of `sizes` for sets that it does not have.
        Missing values are NaN.
    """
    raw, clipped = auc_table(results), auc_table(results, "clipped")
    if "QMS22" not in raw.columns:
        return pd.DataFrame(columns=["dataset"])
    seconds = seconds_table(results, "fit_seconds") + seconds_table(results, "score_seconds")
    size, paper = sizes(results), paper_table1()
    rows = []
    for dataset in sorted(set(results["dataset"]), key=str.casefold):
        printed = paper.get(dataset)
        rows.append(
            {
                "dataset": dataset,
                "n": printed.n if printed else size.at[dataset, "n"],
                "p": printed.p if printed else size.at[dataset, "p"],
                "folds": size.at[dataset, "folds"],
                "paper_auc": printed.auc if printed else np.nan,
                "auc": raw["QMS22"].get(dataset, np.nan),
                "clipped": clipped["QMS22"].get(dataset, np.nan),
                "paper_seconds": printed.seconds if printed else np.nan,
                "seconds": seconds["QMS22"].get(dataset, np.nan),
            }
        )
    table = pd.DataFrame(rows)
    table.insert(7, "difference", table["clipped"] - table["paper_auc"])
    # No ratio if the clock measured no time.
    table["ratio"] = table["paper_seconds"] / table["seconds"].where(table["seconds"] > 0)
    return table


def table1_means(table: pd.DataFrame) -> pd.Series:
    """Return the means of Table 1 over the sets of the paper, or over all if none is of the paper.

    Returns
    -------
    Series
        n_sets, paper_auc, auc, clipped, difference, absolute_difference; paper_seconds and
        seconds (sums, not means) and ratio (of the sums).
    """
    both = table[table["difference"].notna()]
    rows = both if len(both) else table[table["auc"].notna()]
    means = rows[["paper_auc", "auc", "clipped", "difference"]].mean()
    means["absolute_difference"] = rows["difference"].abs().mean()
    means["n_sets"] = len(rows)
    for column in ("paper_seconds", "seconds"):
        means[column] = rows[column].sum() if len(both) or column == "seconds" else np.nan
    means["ratio"] = means["paper_seconds"] / means["seconds"] if means["seconds"] > 0 else np.nan
    return means


def table4(results: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation of AUC over data sets, beside the paper's Table 4.

    Returns
    -------
    DataFrame
        Columns detector, n_sets, mean, sd, clipped_mean, clipped_sd, folded_mean, folded_sd,
        paper_mean, paper_sd. The deviation is the sample's, as in the paper.
    """
    kinds = {kind: auc_table(results, kind) for kind in ("raw", "clipped", "folded")}
    rows = []
    for detector in kinds["raw"].columns:
        row = {"detector": detector, "n_sets": int(kinds["raw"][detector].count())}
        for kind, table in kinds.items():
            prefix = "" if kind == "raw" else f"{kind}_"
            row[f"{prefix}mean"] = table[detector].mean()
            row[f"{prefix}sd"] = table[detector].std(ddof=1)
        printed = TABLE4.get(detector)
        row["paper_mean"] = printed.mean if printed else np.nan
        row["paper_sd"] = printed.sd if printed else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def fit_times(results: pd.DataFrame) -> pd.DataFrame:
    """Return mean CPU seconds of one fit per data set and detector, with n and p of a fold."""
    ok = results[is_ok(results)]
    ok = ok.assign(n=ok["n_normal"] + ok["n_unlabeled"], p=ok["n_features"])
    means = ok.groupby(["dataset", "detector"], sort=False).agg(
        n=("n", "mean"), p=("p", "mean"), fit_seconds=("fit_seconds", "mean")
    )
    means = means.reset_index()
    means["used"] = means["fit_seconds"] > LEAST_SECONDS
    return means


def table5(results: pd.DataFrame) -> pd.DataFrame:
    """Return the measured growth of time and memory, beside the claims in the paper's Table 5.

    Returns
    -------
    DataFrame
        Columns detector; paper (complexity in Table 5); exponent_np, error_np, exponent_n,
        error_n (slope of log fit time on log n·p and on log n, with its standard error); n_used
        of n_sets (data sets whose mean fit takes more than `LEAST_SECONDS`); fit_seconds and
        score_seconds (all folds of all complete data sets); peak_megabytes (the largest).
    """
    times = fit_times(results)
    fit, score = (seconds_table(results, kind) for kind in ("fit_seconds", "score_seconds"))
    peak = results.groupby("detector")["peak_megabytes"].max()
    rows = []
    for detector in fit.columns:
        mine = times[times["detector"] == detector]
        used = mine[mine["used"]]
        exponent_np, error_np, _ = growth(used["n"] * used["p"], used["fit_seconds"])
        exponent_n, error_n, _ = growth(used["n"], used["fit_seconds"])
        rows.append(
            {
                "detector": detector,
                "paper": TABLE5.get(detector, ""),
                "exponent_np": exponent_np,
                "error_np": error_np,
                "exponent_n": exponent_n,
                "error_n": error_n,
                "n_used": len(used),
                "n_sets": len(mine),
                "fit_seconds": fit[detector].sum(),
                "score_seconds": score[detector].sum(),
                "peak_megabytes": peak[detector],
            }
        )
    return pd.DataFrame(rows)


def failures(results: pd.DataFrame) -> pd.DataFrame:
    """Return the failed fits: data set, detector, fold, seeds, error."""
    failed = results[~is_ok(results)].copy()
    failed["error"] = failed["error"].where(failed["error"].notna(), "no AUC and no message")
    by_fold = failed.groupby(["dataset", "detector", "fold", "error"], sort=False)["seed"]
    table = by_fold.agg(lambda seeds: _listed(sorted(set(seeds)))).reset_index(name="seeds")
    return table[["dataset", "detector", "fold", "seeds", "error"]]


def settings(results: pd.DataFrame) -> pd.DataFrame:
    """Return the parameters of every detector, without the seed, and its seeds."""
    known = results.assign(parameters=results["parameters"].map(_without_seed))
    rows = []
    for detector in detector_names(results):
        mine = known[known["detector"] == detector]
        for parameters, group in mine.groupby("parameters", sort=False):
            seeds = _listed(sorted(set(group["seed"])))
            rows.append((detector, parameters, seeds, group["dataset"].nunique()))
    return pd.DataFrame(rows, columns=["detector", "parameters", "seeds", "n_sets"])


def _without_seed(parameters: object) -> str:
    """Format parameters, given as JSON, as "name=value" pairs without the seed."""
    try:
        named = json.loads(str(parameters))
    except ValueError:
        named = None
    if not isinstance(named, dict):
        return str(parameters)
    return ", ".join(f"{key}={value}" for key, value in named.items() if key != "random_state")


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))

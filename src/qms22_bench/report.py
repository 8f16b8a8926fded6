"""The report of the benchmark: a self-contained page, and the same in Markdown, CSV and PNG."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from qms22_bench import sections, tables
from qms22_bench.figures import color_of
from qms22_bench.render import FigureBlock, Section, TableBlock, describe, escape_markdown
from qms22_bench.roc import Pooled, compact_curve
from qms22_bench.statistics import table2

_TITLE = "QMS22 benchmark"
# Dashes distinguish curves of similar colors.
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
_PAGE = "index.html"
# All files that a report can have. The page lists the others of its report.
_FILES = (
    *(_PAGE, "report.md", "results.csv.gz"),
    *(f"{name}.csv" for name in ("table1", "table2", "table4", "table5", "failures")),
    *(f"{name}.png" for name in ("boxplots", "ranks", "total-time", "run-time", "against-paper")),
)
_LISTED = re.compile(r'<meta name="qms22-files" content="([^"]*)">')


@dataclass(frozen=True)
class _Report:
    """The contents of the page and of the Markdown file."""

    summary: Sequence[str]
    sections: Sequence[Section]
    runs: Sequence[Mapping[str, str]]
    settings: TableBlock
    files: Mapping[str, pd.DataFrame]


def write_report(
    results: pd.DataFrame,
    runs: Sequence[Mapping[str, Any]],
    directory: str | Path,
    scores: Pooled | None = None,
) -> Path:
    """Write the report of a benchmark into a directory.

    Parameters
    ----------
    results : DataFrame
        One row per data set, fold, detector and seed, as from `Store.results`.
    runs : sequence of mappings
        When, where and how the results were made, as from `Store.runs`.
    directory : str or Path
        Created if it does not exist. Receives index.html (the page), report.md, results.csv.gz
        and, unless they would be empty, table1.csv, table2.csv, table4.csv, table5.csv,
        failures.csv and the figures as PNG files. Files of an earlier report are replaced or
        deleted.
    scores : mapping, optional
        dataset to detector to (is_outlier, scores), from `pool_scores`, for the ROC curves.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        If the results have no rows, lack a column, or contain a fit twice.
    FileExistsError
        If the directory has a file with one of these names that no report wrote.
    """
    folder = Path(directory)
    earlier = _earlier_files(folder)
    checked = tables.validate_results(results)
    report = _assemble(checked, runs)
    curves = _curves(checked, scores or {})
    contents = _contents(report, checked)
    folder.mkdir(parents=True, exist_ok=True)
    for name in earlier - contents.keys() - {_PAGE}:
        (folder / name).unlink(missing_ok=True)
    # The page is first: a report that was interrupted can be written again, as it lists the rest.
    page = folder / _PAGE
    write_whole(page, _html(report, curves, contents).encode())
    for name, content in contents.items():
        write_whole(folder / name, content)
    return page


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _earlier_files(folder: Path) -> set[str]:
    """Return the files of an earlier report; raise FileExistsError if one is the user's own."""
    there = {name for name in _FILES if (folder / name).exists() or (folder / name).is_symlink()}
    page = (folder / _PAGE).read_text("utf-8", errors="replace") if _PAGE in there else ""
    listed = _LISTED.search(page)
    foreign = sorted(there - {_PAGE, *listed[1].split()} if listed else there)
    if foreign:
        raise FileExistsError(
            f"the folder {folder} has a file {foreign[0]!r} that no report wrote, and a report "
            "would overwrite it; move the file or name another folder"
        )
    return there


def _contents(report: _Report, results: pd.DataFrame) -> dict[str, bytes]:
    """Return the files of a report except the page, by name."""
    # Parameters repeat in every row; the page has them once.
    plain = results.drop(columns=["parameters", "run"], errors="ignore")
    text = plain.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    contents = {
        "report.md": _markdown(report).encode(),
        "results.csv.gz": gzip.compress(text.encode(), mtime=0),
    }
    for name, table in report.files.items():
        text = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
        contents[f"{name}.csv"] = text.encode()
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, FigureBlock):
                contents[f"{block.name}.png"] = block.png
    return contents


def _assemble(results: pd.DataFrame, runs: Sequence[Mapping[str, Any]]) -> _Report:
    auc = tables.auc_table(results)
    failures, gaps = tables.failures(results), tables.missing_folds(results)
    parts: list[Section] = []
    made: dict[str, pd.DataFrame] = {}
    if auc.columns.empty:
        words = "No detector has finished all folds of any data set: there is nothing to show."
        parts.append(Section("detectors", "The detectors compared", [words]))
    else:
        made = {
            "table1": tables.table1(results),
            "table2": table2(auc),
            "table4": tables.table4(results),
            "table5": tables.table5(results),
        }
        parts += [
            sections.compared(results, auc, made["table4"]),
            sections.significance(auc, made["table2"]),
            sections.run_time(results, made["table5"]),
            sections.by_dataset(made["table1"], auc),
        ]
    trouble = sections.failed(failures, gaps)
    if trouble is not None:
        parts.append(trouble)
    made["failures"] = failures
    made = {name: table for name, table in made.items() if len(table)}
    described = [{key: describe(value) for key, value in run.items()} for run in runs]
    summary = [*_summary(results), *_mean_words(auc)]
    return _Report(summary, parts, described, sections.settings(results), made)


def _summary(results: pd.DataFrame) -> list[str]:
    n_failed = int((~tables.is_ok(results)).sum())
    counts = [
        _count(results["detector"].nunique(), "detector"),
        _count(results["dataset"].nunique(), "data set"),
        _count(results["seed"].nunique(), "seed"),
        _count(len(results), "fit"),
    ]
    return [
        f"{', '.join(counts)}; {n_failed or 'none of them'} failed.",
        f"{sections.folds_words(results)}.",
    ]


def _mean_words(auc: pd.DataFrame) -> list[str]:
    if auc.columns.empty:
        return []
    means = ", ".join(f"{name} {mean:.4f}" for name, mean in auc.mean().items())
    return [f"Mean raw AUC: {means}."]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _curves(results: pd.DataFrame, scores: Pooled) -> dict[str, Any]:
    """Return the data of the ROC curves: styles of detectors, and curves by data set."""
    auc = tables.auc_table(results)
    known = [*auc.columns, *(name for name in tables.detector_names(results) if name not in auc)]
    names = [name for name in known if any(name in by_name for by_name in scores.values())]
    drawn = []
    for dataset in sorted(scores, key=str.casefold):
        lines = []
        for number, name in enumerate(names):
            if name not in scores[dataset]:
                continue
            curve = compact_curve(*scores[dataset][name])
            if curve is None:
                continue
            mean = auc[name].get(dataset) if name in auc else None
            shown = None if mean is None or pd.isna(mean) else round(float(mean), 4)
            lines.append({"detector": number, "mean": shown, **curve})
        if lines:
            drawn.append({"name": dataset, "curves": lines})
    styles = [
        {
            "name": name,
            "color": color_of(known.index(name)),
            "dash": _DASHES[known.index(name) % len(_DASHES)],
        }
        for name in names
    ]
    return {"detectors": styles, "sets": drawn}


def _html(report: _Report, curves: Mapping[str, Any], files: Iterable[str]) -> str:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    template = environment.from_string(_own_file("_template.html"))
    return template.render(
        title=_TITLE,
        report=report,
        curves=curves,
        files=" ".join(sorted(files)),
        style=Markup(_own_file("_report.css")),
        script=Markup(_own_file("_report.js")),
        safe_svg=Markup,
    )


def _markdown(report: _Report) -> str:
    parts = [f"# {_TITLE}", *map(escape_markdown, report.summary)]
    parts += [section.markdown() for section in report.sections]
    parts.append("## How these numbers were made")
    for run in report.runs:
        lines = [f"- {escape_markdown(key)}: {escape_markdown(run[key])}" for key in run]
        parts.append("\n".join(lines))
    parts.append(report.settings.markdown())
    return "\n\n".join(parts) + "\n"


def _own_file(name: str) -> str:
    return (resources.files("qms22_bench") / name).read_text("utf-8")

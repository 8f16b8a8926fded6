"""Files for the pages and checks of a job: JSON, JUnit and Markdown, of the data of one result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from qms22._runtime.visible_text import one_line, visible
from qms22.detection.results.result_data import data_in_words

# More rows and longer cells do not help a reader of a job page; the page of --report has all.
_MOST_ROWS = 20


def json_text(data: Mapping[str, Any]) -> str:
    """Return a result as JSON."""
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def junit_text(data: Mapping[str, Any]) -> str:
    """Return a result as JUnit's XML: one case per rule of the policy."""
    rules = [] if data["policy"] is None else data["policy"]["rules"]
    n_broken = sum(not rule["is_met"] for rule in rules)
    counts = {"tests": str(len(rules)), "failures": str(n_broken), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    named = {"name": f"qms22 {visible(data['batch'])}", **counts}
    suite = ElementTree.SubElement(suites, "testsuite", named)
    for rule in rules:
        case = ElementTree.SubElement(suite, "testcase", classname="qms22", name=rule["name"])
        text = visible(rule["text"])
        kind, more = ("system-out", {}) if rule["is_met"] else ("failure", {"message": text})
        ElementTree.SubElement(case, kind, more).text = text
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def markdown_text(data: Mapping[str, Any]) -> str:
    """Return a result as Markdown, for the summary of a job."""
    words = data_in_words(data)
    lines = [f"## {_cell(data['batch'])}", ""]
    if data["policy"] is not None:
        lines += [f"**{_cell(data['policy']['text'])}**", ""]
    lines += map(_cell, words["verdict"])
    kinds = ("noticed", "moved", "advice")
    if points := [f"{kind}: {text}" for kind in kinds for text in words[kind]]:
        lines += ["", *(f"- {_cell(point)}" for point in points)]
    if data["findings"]:
        lines += ["", "| rows | what they have in common |", "|---:|---|"]
        lines += [f"| {len(each['rows']):,} | {_cell(each['name'])} |" for each in data["findings"]]
    if data["rows"]:
        lines += ["", "| # | row | p | why |", "|---:|---|---:|---|"]
        for row in data["rows"][:_MOST_ROWS]:
            name = row["row"] if row["id"] is None else row["id"]
            p_value = "" if row["p_value"] is None else f"{row['p_value']:.2g}"
            lines.append(f"| {row['rank']} | {_cell(name)} | {p_value} | {_cell(row['text'])} |")
        if n_more := len(data["rows"][_MOST_ROWS:]):
            lines += ["", "and 1 more row" if n_more == 1 else f"and {n_more:,} more rows"]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    """Return a text of a table so that it cannot be markup."""
    text = one_line(value).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{sign}" if sign in "\\|`*_[]#" else sign for sign in text)

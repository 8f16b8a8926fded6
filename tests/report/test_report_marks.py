"""Marks made on the page, and what is printed and listed beside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import report_fixtures
from command_line import run as run_command
from report_browser import downloaded, downloaded_file, n_listed, ranks, set_filter, set_k, until
from report_runs import HISTORY, VERDICT, plausible
from visits import write_visits

from qms22.decisions.moved_columns import MovedColumn

# Not from a conftest.py: mypy takes two files of that name for one.
browser_page, open_report = report_fixtures.browser_page, report_fixtures.open_report

DETECT = ("detect", "normal.csv", "batch.csv", "--n-jobs", "1", "-q")


def badges(page: Any) -> dict[int, str]:
    """The marks of the rows that are in the document, by rank."""
    found = page.locator("#ranked tr[data-row]").evaluate_all(
        "all => all.map((line) => [line.dataset.row, line.querySelector('.badge').title])"
    )
    return {int(row) + 1: word for row, word in found if word}


def mark_some(page: Any) -> None:
    page.keyboard.press("a")
    page.keyboard.press("j")
    page.keyboard.press("n")
    page.keyboard.press("j")
    page.click("[data-mark=unsure]")
    page.fill("#note", "=ask, Kim")
    page.press("#note", "Tab")


def test_marks_are_kept_in_the_browser(open_report: Any) -> None:
    page = open_report(plausible())
    assert page.inner_text("#marks-words") == "No row is marked here."
    assert page.is_disabled("#marks-download")
    mark_some(page)
    expected = {1: "anomaly", 2: "normal", 3: "unsure: =ask, Kim"}
    assert badges(page) == expected
    assert page.inner_text("#marks-words") == "Marked: 1 anomaly, 1 normal, 1 unsure."
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert badges(page) == expected
    assert page.input_value("#note") == "=ask, Kim"
    set_filter(page, "mark is not missing and mark != unsure")
    assert ranks(page) == [1, 2]
    # A second press takes a mark away; the row stays listed until the filter changes.
    page.locator("#ranked tr[data-row='0'] td").first.click()
    page.keyboard.press("a")
    assert badges(page) == {2: "normal"}
    assert ranks(page) == [1, 2]
    set_filter(page, "note contains kim")
    assert ranks(page) == [3]
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#marks-forget")
    set_filter(page, "")
    assert badges(page) == {}
    assert not page.is_visible("#marks-forget")


def test_another_run_has_other_marks(open_report: Any) -> None:
    page = open_report(plausible())
    page.keyboard.press("u")
    page = open_report(plausible(n_rows=999))
    assert badges(page) == {}
    page = open_report(plausible())
    assert badges(page) == {1: "unsure"}


def test_two_windows_share_marks(open_report: Any) -> None:
    page = open_report(plausible(title="two windows"))
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("html[data-ready]", state="attached")
    page.keyboard.press("a")
    until(other, "document.querySelector('.badge.anomaly[title]') !== null")
    other.keyboard.press("j")
    other.keyboard.press("n")
    until(page, "document.querySelector('#ranked .badge.normal') !== null")
    assert badges(page) == badges(other) == {1: "anomaly", 2: "normal"}
    other.close()


def test_a_note_stays_with_its_row(open_report: Any) -> None:
    page = open_report(plausible(title="a note"))
    page.keyboard.press("u")
    page.focus("#note")
    page.keyboard.type("about the first")
    page.locator("#ranked tr[data-row='1'] td").first.click()
    assert page.input_value("#note") == ""
    page.locator("#ranked tr[data-row='0'] td").first.click()
    assert page.input_value("#note") == "about the first"


def test_a_browser_that_keeps_nothing_says_so(open_report: Any) -> None:
    page = open_report(plausible())
    other = page.context.browser.new_page()
    other.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })"
    )
    other.goto(page.url)
    other.wait_for_selector("html[data-ready]", state="attached")
    other.keyboard.press("a")
    words = "Marked: 1 anomaly. This browser does not keep marks for this page; download them"
    assert other.inner_text("#marks-words").startswith(words)
    assert badges(other) == {1: "anomaly"}
    other.close()


def test_what_others_left_in_the_browser_does_no_harm(open_report: Any) -> None:
    page = open_report(plausible(title="spoiled"))
    page.keyboard.press("a")
    spoil = "localStorage.setItem(Object.keys(localStorage)[0], '{value}')"
    key = page.evaluate("Object.keys(localStorage).at(0)")
    assert key.startswith("qms22-marks-")
    for value in ("no JSON", "[1]", '{"0": null, "7e9": 3, "1": {"mark": "<b>", "note": 1}}'):
        page.evaluate(spoil.replace("{value}", value))
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        assert badges(page) == {}


@pytest.mark.parametrize("named", [("--id", "visit"), ()])
def test_the_file_of_marks_is_one_that_detect_reads(
    browser_page: Any, tmp_path: Path, named: tuple[str, ...]
) -> None:
    page, files = browser_page, write_visits(tmp_path)
    command = (*DETECT, *named, "--label", "sick", "-k", "8")
    assert run_command(*command, "--report", "one.html", cwd=files).exit_code == 0
    page.goto((files / "one.html").as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    mark_some(page)
    names = page.locator("#ranked tbody tr td:nth-child(2)").all_inner_texts()[:3]
    (files / "marks.csv").write_bytes(downloaded_file(page, "#marks-download"))
    marks = pd.read_csv(files / "marks.csv")
    key = named[-1] if named else "row"
    assert marks.columns[:3].tolist() == [key, "mark", "note"]
    assert marks[key].astype(str).tolist() == names
    assert marks["note"].tolist()[2] == "'=ask, Kim"
    result = run_command(*command, "--marks", "marks.csv", "--report", "two.html", cwd=files)
    assert result.exit_code == 0, result.stderr
    assert "2 marks used: 1 anomaly, 1 normal" in result.stderr
    assert "marks.csv" not in result.stderr
    # The next page has the marks: the unsure row is ranked, the others are listed below.
    page.goto((files / "two.html").as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    assert n_listed(page) == 148
    assert page.inner_text("#marks-words") == "Marked: 1 unsure. 2 rows were marked before."
    page.click(".given summary")
    assert names[0] in page.inner_text(".given")
    again = downloaded(page, "#marks-download")
    assert {line[0]: line[1] for line in again[1:]} == dict(
        zip(names, ("anomaly", "normal", "unsure"), strict=True)
    )
    (files / "marks.csv").write_bytes(downloaded_file(page, "#marks-download"))
    page.evaluate("localStorage.clear()")
    result = run_command(*command, "--marks", "marks.csv", cwd=files)
    assert "2 marks used: 1 anomaly, 1 normal" in result.stderr


def test_verdict_and_history_stand_at_the_top_and_notes_below_the_rows(open_report: Any) -> None:
    moved = [MovedColumn("amount", "mean 20 → 45", 1e-6, 1.0, 0.3)]
    notes = ["a.csv: 2 lines above the header were skipped", "b", "c", "d"]
    answer = "40 of 1,000 rows are flagged."
    run = plausible(
        verdict=replace(VERDICT, moved=tuple(moved)), answer=answer, history=HISTORY, notes=notes
    )
    page = open_report(run)
    verdict, flagged = page.locator(".verdict > p").all_inner_texts()[:2]
    assert verdict.startswith("The batch contains anomalies: at least 31 of")
    assert flagged == answer
    assert "mean 20 → 45" in page.inner_text(".verdict")
    page.click(".verdict button >> text=amount")
    assert page.locator("#feature option:checked").inner_text() == "amount"
    assert page.locator("#run ~ #section-columns .notes li").all_inner_texts() == notes
    titles = page.locator("#section-history g title").all_text_contents()
    assert titles[2].replace("\xa0", " ") == (
        "2026-10-03 06:00, payments-3.csv: drift, 110 of 1,000 rows flagged (11 %); "
        "moved: amount, age"
    )
    page.click("#section-history summary")
    lines = page.locator("#section-history tbody tr").all_inner_texts()
    assert len(lines) == 4
    assert lines[0].split("\t") == [
        *("2026-10-04 06:00", "payments-4.csv", "fine", "1,000", "3", "", "")
    ]


def test_print_has_findings_and_flagged_rows(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    set_filter(page, "nowhere")
    assert page.pdf()[:4] == b"%PDF"
    page.emulate_media(media="print")
    assert page.is_visible("table.printed")
    assert not page.is_visible(".cards")
    assert not page.is_visible("#ranked")
    findings = page.locator("table.printed tbody tr").all_inner_texts()
    assert findings[1].replace("\xa0", " ").split("\t")[:2] == ["17", "amount above 60"]
    assert page.inner_text("#print-words") == "40 flagged rows"
    lines = page.locator("#print-rows tbody tr").all_inner_texts()
    assert len(lines) == 40
    reasons = "; ".join(reason.text for reason in run.reasons[0] or [])
    assert lines[0].split("\t") == ["1", run.results["id"][0], "2.80473", "", reasons]
    page.emulate_media(media="screen")
    set_k(page, 0)
    page.pdf()
    page.emulate_media(media="print")
    assert page.inner_text("#print-words").startswith("Nothing is flagged; the most suspicious")
    assert page.locator("#print-rows tbody tr").count() == 20
    page.emulate_media(media="screen")

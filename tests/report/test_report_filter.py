"""Filters of the page, the view in its address, and the keyboard."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import report_fixtures
from report_browser import column, message, n_listed, ranks, set_filter, set_k, sort, until
from report_runs import content, plausible

from qms22.detection import Finding, RowReason
from qms22.report.content import PageContent
from qms22.tables.columns.cells import Cells

# Not from a conftest.py: mypy takes two files of that name for one.
browser_page, open_report = report_fixtures.browser_page, report_fixtures.open_report


def messy() -> PageContent:
    """Texts of numbers and dates, missing cells, and names that look like parts of filters."""
    prices = ["$1,234.50", "$12.00", "$7.25", "-", "$99.00", None]
    days = ["31.12.2024", "01.02.2025", None, "15.02.2025", "01.03.2025", "31.12.2024"]
    rows = pd.DataFrame(
        {
            "price": prices,
            "day": days,
            "price net": [1.5, 2.5, -3.0, np.nan, 5.0, 6.0],
            "is it": ["yes", "no", "YES", None, "bread and butter", "a = b"],
            "finding": [7, 8, 9, 7, 8, 9],
        }
    )
    numbers = np.array([1234.5, 12, 7.25, np.nan, 99, np.nan])
    stamps = pd.to_datetime(rows["day"], format="%d.%m.%Y").to_numpy("datetime64[us]")
    cells = {
        "price": Cells("price", "number", numbers),
        "day": Cells("day", "date", np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64))),
    }
    reasons = [
        [RowReason(("price",), "price $1,234.50; 99 % of normal rows are at most $100", 2.0)],
        [RowReason(("is it", "day"), "is it no with day 01.02.2025; never seen", 1.0)],
    ]
    findings = [Finding("price above $100", np.array([0, 4]), ("price",), 0.0, None)]
    settings: dict[str, Any] = {"k": 2, "reasons": reasons, "cells": cells, "findings": findings}
    return content(np.arange(6, 0, -1), rows, **settings)


FOUND = [
    ("price > 50", [1, 5]),
    ("PRICE >= $12.00", [1, 2, 5]),
    ("price > $1,000", [1]),
    ("price = 1234.5", [1]),
    ('price = "-"', [4]),
    ("price is missing", [6]),
    ("price is not missing", [1, 2, 3, 4, 5]),
    ("price net > 2", [2, 5, 6]),
    ('"price net" = -3', [3]),
    ("price net != 1.5", [2, 3, 4, 5, 6]),
    ("day > 2025-02-01", [4, 5]),
    ("day >= 2025-02-01 and day < 2025-03", [2, 4]),
    ("day = 2025-02", [2, 4]),
    ("day = 31.12.2024", [1, 6]),
    ("day < 2025", [1, 6]),
    ("is it = yes", [1, 3]),
    ("is it is yes", [1, 3]),
    ('is it = "bread and butter"', [5]),
    ("is it contains butter", [5]),
    ("bread and butter", [5]),
    ('"a = b"', [6]),
    ("NEVER SEEN", [2]),
    ("reasons contains 99 %", [1]),
    ("reasons is missing", [3, 4, 5, 6]),
    ("flagged = no and price is not missing", [3, 4, 5]),
    ("finding = 7", [1, 4]),
    ("finding_ = 1", [1, 5]),
    ("rank <= 2", [1, 2]),
    ("1.5", [1]),
    ("-3", [3]),
    ("  ", [1, 2, 3, 4, 5, 6]),
]

NOT_READ = [
    ("prize > 50", "There is no column “prize”. Did you mean price?"),
    ("wholly unknown = 5", "There is no column “wholly unknown”. A text with such a sign goes"),
    ("price net > lots", "price net holds numbers, and “lots” is none."),
    ("day > soon", "“soon” cannot be compared with day; write a date such as 2024-03-01."),
    ("price >", "Write a value after “price >”."),
    ("price > 5 and", "Something is missing beside “and”."),
    ('is it = "yes', "A quotation mark is missing."),
    ("mark > 3", "mark has no order; write = or != instead of >."),
    ("> 5", "Write a column before the sign."),
]


def test_filters_find_the_rows(open_report: Any) -> None:
    page = open_report(messy())
    for text, expected in FOUND:
        set_filter(page, text)
        assert message(page) == ""
        assert ranks(page) == expected, text


def test_a_filter_that_cannot_be_read_says_why(open_report: Any) -> None:
    page = open_report(messy())
    for text, words in NOT_READ:
        set_filter(page, "price > 50")
        set_filter(page, text)
        assert words in message(page), text
        assert page.get_attribute("#filter", "aria-invalid") == "true"
        # The rows of the last filter stay.
        assert ranks(page) == [1, 5]
    page.click("#filter-clear")
    assert message(page) == ""
    assert ranks(page) == [1, 2, 3, 4, 5, 6]


def test_an_example_of_a_filter_can_be_read(open_report: Any) -> None:
    page = open_report(messy())
    example = page.get_attribute("#filter", "placeholder")
    assert example == "price > $1,234.50 and is it = yes and some words"
    set_filter(page, example)
    assert message(page) == ""


def test_a_filter_is_read_while_it_is_typed(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    page.locator("#filter").press_sequentially("country = kp")
    n_found = int((run.rows["country"] == "KP").sum())
    until(page, f"document.getElementById('ranked').ariaRowCount == {n_found + 1}")
    assert page.inner_text("#shown") == f"{n_found} of 1,000 rows"
    assert set(column(page, "country")) == {"KP"}
    set_filter(page, "nowhere to be found")
    assert page.inner_text("#shown") == "No row matches."


def test_findings_are_filters(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    cards = page.locator(".card")
    assert cards.count() == 2
    words = cards.nth(1).inner_text().replace("\xa0", " ").split("\n")
    assert words == ["17 rows", "amount above 60", "like 3.1 % of the known-normal rows, p < 0.001"]
    cards.nth(0).click()
    assert ranks(page) == [row + 1 for row in run.findings[0].rows]
    assert cards.nth(0).get_attribute("aria-pressed") == "true"
    assert page.input_value("#filter") == "finding = 1"
    assert page.locator("#feature option:checked").inner_text() == "country"
    first = run.findings[0].rows[0]
    assert page.inner_text("#detail h3") == f"id {run.results['id'][first]}"
    assert "Finding 1: country = KP" in page.inner_text("#detail")
    cards.nth(0).click()
    assert n_listed(page) == 1000
    assert cards.nth(0).get_attribute("aria-pressed") == "false"


def test_flagged_rows_in_no_finding_are_a_filter(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    grouped = {int(rank) for finding in run.findings for rank in finding.rows}
    others = [rank for rank in range(40) if rank not in grouped]
    words = f"{len(others)} other flagged rows are in none of these."
    assert page.inner_text("#finding-others") == words
    page.click("#finding-others button")
    assert ranks(page) == [rank + 1 for rank in others]
    assert page.input_value("#filter") == "flagged = yes and finding is missing"
    # The filter follows the flags.
    set_k(page, others[0] + 1)
    assert ranks(page) == [others[0] + 1]
    set_k(page, 0)
    assert page.inner_text("#finding-others") == ""
    assert ranks(page) == []


def test_nothing_flagged_is_said(open_report: Any) -> None:
    page = open_report(plausible(k=0, findings=[]))
    words = "Nothing is flagged. These are the most suspicious rows, not certain."
    assert page.inner_text("#nothing-flagged") == words
    set_k(page, 1)
    assert not page.is_visible("#nothing-flagged")


def test_the_address_holds_the_view(open_report: Any) -> None:
    page = open_report(plausible())
    assert "#" not in page.url
    set_filter(page, "amount > 50 and country = KP")
    sort(page, "age")
    sort(page, "age")
    set_k(page, 17)
    page.locator("#ranked tr[data-row]").nth(2).click()
    page.select_option("#feature", label="age")
    shown, name = ranks(page), page.inner_text("#detail h3")
    view = parse_qs(page.url.split("#")[1])
    assert view == {
        "filter": ["amount > 50 and country = KP"],
        "sort": ["age"],
        "order": ["down"],
        "k": ["17"],
        "column": ["age"],
        "row": [str(shown[2])],
    }
    other = page.context.new_page()
    other.set_viewport_size({"width": 1280, "height": 900})
    other.goto(page.url)
    other.wait_for_selector("html[data-ready]", state="attached")
    assert ranks(other) == shown
    assert other.inner_text("#detail h3") == name
    assert other.input_value("#k-box") == "17"
    assert other.locator("#feature option:checked").inner_text() == "age"
    # A link to another view, in the same window.
    other.evaluate("location.hash = 'filter=rank+%3C+4&flagged=only&sort=nowhere&row=99999&k=x'")
    until(other, "document.getElementById('ranked').ariaRowCount == '4'")
    assert other.is_checked("#only-flagged")
    assert ranks(other) == [1, 2, 3]
    assert other.input_value("#k-box") == "40"
    other.close()


def test_sections_are_reached_without_losing_the_view(open_report: Any) -> None:
    page = open_report(plausible())
    set_filter(page, "country = KP")
    before = page.url
    page.click("nav >> text=Scores")
    assert page.url == before
    top = page.evaluate("document.getElementById('section-flag').getBoundingClientRect().top")
    assert 0 <= top < 900


def test_the_keyboard_is_enough(open_report: Any) -> None:
    page = open_report(plausible())
    title = "#detail-score"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.inner_text(title).startswith("Rank 2,")
    assert page.evaluate("document.activeElement.textContent") == "2"
    for _ in range(40):
        page.keyboard.press("ArrowDown")
    assert page.inner_text(title).startswith("Rank 42,")
    assert page.evaluate("document.activeElement.textContent") == "42"
    line, box = (
        page.locator(each).bounding_box() for each in ("#ranked tr[data-row='41']", "#ranked-box")
    )
    assert line["y"] + line["height"] <= box["y"] + box["height"] + 1
    page.keyboard.press("End")
    assert page.inner_text(title).startswith("Rank 1,000,")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(title).startswith("Rank 1,000,")
    page.keyboard.press("Home")
    assert page.inner_text(title).startswith("Rank 1,")
    page.keyboard.press("PageDown")
    assert int(page.evaluate("document.activeElement.textContent")) > 5
    page.keyboard.press("/")
    page.keyboard.type("jank")
    assert page.input_value("#filter") == "jank"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "ranked-box"
    page.locator("#ranked thead button", has_text="age").focus()
    page.keyboard.press("Enter")
    assert page.locator("#ranked th[aria-sort=ascending]").inner_text().strip() == "age"


def test_help_tells_the_keys_and_turns_them_off(open_report: Any) -> None:
    page = open_report(plausible())
    page.keyboard.press("?")
    assert "mark the row as anomaly, normal, unsure" in page.inner_text("#help")
    page.uncheck("#keys-on")
    page.click("#help-close")
    page.keyboard.press("j")
    assert page.inner_text("#detail-score").startswith("Rank 1,")
    page.click("#help-open")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")

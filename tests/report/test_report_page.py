"""The page does what it offers, in a real browser."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import pytest
import report_fixtures
from report_browser import (
    column,
    downloaded,
    headings,
    n_listed,
    picture,
    ranks,
    set_filter,
    set_k,
    sort,
    until,
)
from report_runs import FORMULA, HOSTILE, TURNED, by_rate, content, hostile, plausible

from qms22.detection.results.csv_text import csv_cell
from qms22.metrics import roc, true_positive_rate_at
from qms22.report.content import RowContext
from qms22.tables.texts.words import FORMULA_STARTS

# Not from a conftest.py: mypy takes two files of that name for one.
browser_page, open_report = report_fixtures.browser_page, report_fixtures.open_report


def test_it_opens_with_the_rows_by_score(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    assert page.title() == "Payments of March"
    first = ranks(page)
    assert first == list(range(1, len(first) + 1))
    assert n_listed(page) == 1000
    assert page.inner_text("#shown") == "1,000 rows"
    assert column(page, "id") == run.results["id"].tolist()[: len(first)]
    assert column(page, "amount") == [f"{value:.15g}" for value in run.rows["amount"][: len(first)]]
    assert page.locator("#ranked th[aria-sort=ascending]").inner_text().startswith("rank")
    assert "recommended" in page.inner_text("#section-made")
    assert "one of them unseen" in page.inner_text("#section-columns")


def test_the_slider_moves_threshold_counts_and_rates(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    before = {name: picture(page, name) for name in ("scores", "roc", "feature")}
    page.focus("#k-slider")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    until(page, "document.getElementById('k-box').value == '45'")
    page.wait_for_timeout(50)
    scores, truth = run.scores, run.truth
    assert truth is not None
    words = page.inner_text("#counts").replace("\xa0", " ")
    rate = true_positive_rate_at(truth, run.scores, 45)
    assert f"45 of 1,000 rows flagged (4.5 %), score ≥ {scores[44]:.6g}" in words
    assert f"TPR {100 * rate:.3g} %, precision {100 * rate * truth.sum() / 45:.3g} %" in words
    assert f"AUC {roc(truth, run.scores).auc:.4f}" in page.inner_text("#roc-words")
    assert f"true positive rate {rate:.3f}" in page.inner_text("#roc-words")
    assert page.get_attribute("#k-slider", "aria-valuetext") == "45 of 1,000 rows"
    assert page.inner_text("#download") == "Download 45 flagged rows (CSV)"
    for name, pixels in before.items():
        assert picture(page, name) != pixels, name


def test_the_box_takes_any_number_and_mends_wrong_ones(open_report: Any) -> None:
    page = open_report(plausible())
    set_k(page, 7)
    assert page.locator("#ranked tr.flagged").count() == 7
    for wrong, understood in (("99999", "1000"), ("-3", "0"), ("12.7", "12")):
        page.fill("#k-box", wrong)
        page.press("#k-box", "Tab")
        assert page.input_value("#k-box") == understood
    page.fill("#k-box", "0")
    page.wait_for_selector("#download:disabled")
    assert page.inner_text("#counts").endswith("precision –")


def test_it_starts_with_the_rows_that_the_run_has_flagged(open_report: Any) -> None:
    run = by_rate()
    page = open_report(run)
    expected = list(range(1, 31))
    assert "as flagged by a false discovery rate of 0.1" in page.inner_text(".control")
    words = page.inner_text("#counts").replace("\xa0", " ")
    assert "30 of 200 rows flagged (15 %), score ≥ 4.27136" in words
    assert "20 of 20 outliers found: TPR 100 %, precision 66.7 %" in words
    assert "true positive rate 1.000, false positive rate 0.056" in page.inner_text("#roc-words")
    page.check("#only-flagged")
    assert n_listed(page) == 30
    assert ranks(page) == expected[: len(ranks(page))]
    assert page.locator("#ranked tr.flagged").count() == len(ranks(page))
    assert [int(line[0]) for line in downloaded(page)[1:]] == expected
    page.locator("#ranked tr[data-row='4']").click()
    assert "score 4.8995, p-value 0.00249" in page.inner_text("#detail")
    # The slider flags the first rows; the choice beside it leads back.
    page.uncheck("#only-flagged")
    set_k(page, 31)
    assert page.is_checked("#flags-top")
    set_filter(page, "flagged = yes")
    assert n_listed(page) == 31
    page.check("#flags-given")
    until(page, "document.querySelector('#k-box').value === '30'")


def test_the_slider_says_how_many_of_the_first_rows_are_normal_at_most(open_report: Any) -> None:
    run = by_rate()
    page = open_report(run)
    assert run.curve is not None
    for k in (1, 2, 10, 24, 25, 30, 31, 100, 199, 200):
        set_k(page, k)
        most = int(run.curve.of_first(np.array([k]))[0])
        are, rows = "is" if most == 1 else "are", "row" if k == 1 else "rows"
        words = f"Of the first {k} {rows} at most {most} {are} normal (90 % sure)"
        assert words in page.inner_text("#counts").replace("\xa0", " ")
    set_k(page, 0)
    assert "normal" not in page.inner_text("#counts")


def test_a_line_shows_where_certainty_ends(open_report: Any) -> None:
    page = open_report(by_rate())
    line = page.locator("#ranked tr.border")
    page.evaluate("location.hash = 'row=33'")
    line.wait_for()
    assert line.inner_text() == "not certain from here on"
    before, after = (
        line.evaluate(f"line => line.{which}ElementSibling.dataset.row")
        for which in ("previous", "next")
    )
    assert (before, after) == ("29", "30")
    height = "document.querySelector('#ranked tbody').getBoundingClientRect().height"
    whole = page.evaluate(height)
    # It moves neither with the slider nor with the wheel, and takes the room of one row.
    set_k(page, 32)
    assert line.count() == 1
    page.evaluate("document.querySelector('#ranked-box').scrollTop = 1e9")
    until(page, "document.querySelector('#ranked tr[data-row=\"199\"]')")
    assert line.count() == 0
    assert page.evaluate(height) == pytest.approx(whole, abs=1)
    set_filter(page, "rank > 30")
    assert line.count() == 0
    set_filter(page, "rank > 28")
    assert line.count() == 1
    sort(page, "score")
    assert line.count() == 0
    assert open_report(plausible()).locator("#ranked tr.border").count() == 0


def test_the_choice_of_the_top_takes_as_many_rows(open_report: Any) -> None:
    page = open_report(by_rate())
    page.check("#flags-top")
    until(page, "document.getElementById('counts').textContent.includes('score ≥')")
    assert page.locator("#ranked tr:not(.flagged)[data-row]").count() == 0
    assert page.input_value("#k-box") == "30"


def test_a_click_in_the_histogram_flags_the_rows_from_there(open_report: Any) -> None:
    page = open_report(plausible())
    over = page.locator("#plot-scores .u-over")
    size = over.bounding_box()
    over.click(position={"x": size["width"] * 0.75, "y": 20})
    top = 0.75 * float(np.max(np.asarray(plausible().scores)))
    expected = int((np.asarray(plausible().scores) >= top).sum())
    until(page, "document.getElementById('k-box').value != '40'")
    assert abs(int(page.input_value("#k-box")) - expected) <= 1
    assert "flagged" in page.inner_text("#readout-scores")


def test_scores_of_normal_rows_are_drawn_beside(open_report: Any) -> None:
    without = picture(open_report(plausible()), "scores")
    rng = np.random.default_rng(0)
    page = open_report(plausible(normal_scores=np.maximum(0, rng.normal(0.1, 0.3, 500))))
    assert picture(page, "scores") != without
    assert "known-normal rows, scaled to the batch" in page.inner_text("#section-flag")
    page.hover("#plot-scores .u-over")
    assert "known-normal row" in page.inner_text("#readout-scores")
    page.mouse.move(0, 0)
    until(page, "document.getElementById('readout-scores').textContent === ''")


def test_columns_that_matter_come_first_and_their_cells_are_highlighted(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    names = headings(page)
    assert names[:5] == ["rank", "id", "reasons", "country", "amount"]
    assert names[-3:] == ["score", "truth", "opened"]
    for row in range(5):
        line = page.locator(f"#ranked tr[data-row='{row}']")
        reasons = run.reasons[row] or []
        assert line.locator("td").nth(1).inner_text() == "; ".join(why.text for why in reasons)
        blamed = [why.columns[0] for why in reasons]
        places = [names.index(name) for name in blamed]
        shown = line.locator("> *").evaluate_all("cells => cells.map((cell) => cell.className)")
        assert [at for at, kind in enumerate(shown) if "blamed" in kind] == sorted(places)
    pair = next(row for row, why in enumerate(run.reasons) if why and len(why[-1].columns) == 2)
    set_filter(page, f"rank = {pair + 1}")
    assert page.locator("#ranked td.odd").inner_text() == "False"


def test_columns_sort_both_ways_with_missing_values_last(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    sort(page, "ratio")
    values = run.rows["ratio"].sort_values()
    shown = column(page, "ratio")
    assert [float(text) for text in shown] == pytest.approx(values[: len(shown)], rel=1e-5)
    sort(page, "ratio")
    assert float(column(page, "ratio")[0]) == pytest.approx(values.max(), rel=1e-5)
    page.evaluate("document.getElementById('ranked-box').scrollTop = 1e6")
    until(page, "document.querySelector('#ranked tbody tr:last-child').ariaRowIndex == '1001'")
    assert column(page, "ratio")[-1] == "–"
    sort(page, "country")
    assert set(column(page, "country")) == {"DE"}
    assert ranks(page) == sorted(ranks(page))
    assert page.locator("#ranked th[aria-sort]").count() == 1
    sort(page, "reasons")
    assert column(page, "reasons")[0].startswith("age 71")
    sort(page, "reasons")
    assert column(page, "reasons")[0].startswith("ratio is missing")


def test_only_the_rows_in_sight_are_in_the_document(open_report: Any) -> None:
    page = open_report(plausible())
    assert len(ranks(page)) < 40
    height = page.evaluate("document.getElementById('ranked-box').scrollHeight")
    for place in (0.3, 0.7, 1.0):
        page.evaluate(f"document.getElementById('ranked-box').scrollTop = {place * height}")
        until(
            page,
            f"document.querySelector('#ranked tr[data-row=\"{min(int(place * 1000) + 5, 999)}\"]')",
        )
        assert ranks(page) == sorted(ranks(page))
    assert ranks(page)[-1] == 1000
    # The height of the list does not depend on what is in the document.
    now = page.evaluate("document.getElementById('ranked-box').scrollHeight")
    assert now == pytest.approx(height, rel=0.01)
    page.check("#only-flagged")
    assert n_listed(page) == 40
    set_k(page, 3)
    assert ranks(page) == [1, 2, 3]


def test_a_click_shows_the_reasons_of_any_row(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    row = next(row for row, why in enumerate(run.reasons) if why and len(why) > 1)
    set_filter(page, f"rank = {row + 1}")
    page.locator("#ranked tbody td").first.click()
    detail = page.inner_text("#detail")
    assert detail.startswith(f"id {run.results['id'][row]}")
    assert f"Rank {row + 1}, score" in detail
    reasons = run.reasons[row]
    assert reasons is not None
    for reason in reasons:
        assert reason.text in detail
    tracks = page.locator("#detail .track").all()
    bars = page.locator("#detail .track div").all()
    shares = [
        bar.bounding_box()["width"] / track.bounding_box()["width"]
        for bar, track in zip(bars, tracks, strict=True)
    ]
    expected = [reason.strength / reasons[0].strength for reason in reasons]
    assert shares == pytest.approx(expected, abs=0.01)
    page.click("#detail summary >> text=All values")
    assert f"{run.rows['opened'].iloc[row]:%Y-%m-%d}" in page.inner_text("#detail dl")
    plain = next(row for row, why in enumerate(run.reasons) if not why)
    set_filter(page, f"rank = {plain + 1}")
    page.locator("#ranked tbody td").first.click()
    assert "Nothing about this row stands out by itself." in page.inner_text("#detail")


def test_a_row_is_drawn_beside_its_past(open_report: Any) -> None:
    past = RowContext("value of meter M07: 1 to 3; here 9", (1.0, 3.0, 2.0), 9.0)
    page = open_report(plausible(contexts={0: past, 1: RowContext("row 7 has the same cells")}))
    page.locator("#ranked tbody td").first.click()
    assert past.text in page.inner_text("#detail")
    points = page.locator("#detail svg.spark polyline").get_attribute("points").split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[0] > heights[2] > heights[1]
    assert float(page.locator("#detail svg.spark circle").get_attribute("cy")) < heights[1]
    set_filter(page, "rank = 2")
    page.locator("#ranked tbody td").first.click()
    assert "row 7 has the same cells" in page.inner_text("#detail")
    assert page.locator("#detail svg.spark").count() == 0


def test_rows_without_known_reasons_say_so(open_report: Any) -> None:
    page = open_report(plausible(n_reasons=50))
    page.locator("#ranked tbody td").first.click()
    assert page.locator("#detail .reasons").count() == 1
    set_filter(page, "rank = 60")
    page.locator("#ranked tbody td").first.click()
    assert "computed for 50 rows" in page.inner_text("#detail")


def test_features_are_chosen_from_the_list_or_from_a_reason(open_report: Any) -> None:
    page = open_report(plausible())
    assert sorted(page.locator("#feature option").all_inner_texts()) == sorted(plausible().rows)
    drawn = {picture(page, "feature")}
    for name in ("amount", "member", "opened", "age"):
        page.select_option("#feature", label=name)
        page.wait_for_timeout(50)
        drawn.add(picture(page, "feature"))
    assert len(drawn) == 5
    set_filter(page, "country = KP")
    page.locator("#ranked tbody td").first.click()
    page.locator("#detail .links button", has_text="country").click()
    assert page.locator("#feature option:checked").inner_text() == "country"
    assert "Most over-represented: KP, with 0" in page.inner_text("#feature-words")
    page.hover("#plot-feature .u-over")
    readout = page.inner_text("#readout-feature")
    assert "of the normal rows, " in readout
    assert "of the rest of the batch and " in readout
    set_k(page, 0)
    assert page.inner_text("#feature-words") == "No row is flagged."


def test_the_download_holds_the_flagged_rows(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    sort(page, "age")
    set_filter(page, "nowhere")
    set_k(page, 4)
    heading, *lines = downloaded(page)
    # Columns of the batch are in the order of its file.
    assert heading == ["rank", "id", "score", "truth", *run.rows.columns, "reasons"]
    assert [line[0] for line in lines] == ["1", "2", "3", "4"]
    for row, line in enumerate(lines):
        assert line[1] == run.results["id"][row]
        assert float(line[2]) == pytest.approx(run.scores[row], rel=5e-9)
        assert float(line[4]) == run.rows["amount"].iloc[row]
        assert float(line[9]) == pytest.approx(run.rows["ratio"].iloc[row], rel=5e-9)
        assert line[8] == f"{run.rows['opened'].iloc[row]:%Y-%m-%d}"
        assert line[10] == "; ".join(reason.text for reason in run.reasons[row] or [])


def test_hostile_texts_stay_texts(open_report: Any) -> None:
    page = open_report(hostile())
    assert page.title() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    shown = TURNED.replace("\u202e", "\\u202e")
    assert shown in column(page, "id")
    assert "\u202e" not in page.content()
    assert "\\ud800" in page.inner_text("#section-made")
    for place in range(3):
        page.select_option("#feature", str(place))
    page.locator("#ranked tr[data-row='0']").click()
    page.click(".card")
    page.locator(".verdict button").last.click()
    assert page.locator("#feature option:checked").inner_text() == shown
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    page.pdf()
    set_filter(page, f'{HOSTILE} = "x" and {HOSTILE}')
    assert page.evaluate("window.hacked") is None


def test_formulas_stay_texts_in_the_download(open_report: Any) -> None:
    heading, *lines = downloaded(open_report(hostile()))
    assert heading == [
        "rank",
        "id",
        "score",
        "truth",
        HOSTILE,
        f"'{FORMULA}",
        "plain",
        TURNED,
        "reasons",
    ]
    expected = [
        HOSTILE,
        f"'{FORMULA}",
        "'+49 30 123",
        "'-2+3",
        "'@SUM(A1)",
        "'\t=1",
        "'\r=1",
        TURNED,
    ]
    assert [line[4] for line in lines] == [*expected, 'say "hi", ok']
    assert [line[5] for line in lines] == ["-1.5", "2", "-3", "4", "5", "6", "7", "8", ""]
    assert {line[6] for line in lines} == {"-12.5"}


def test_the_download_writes_cells_as_files_do(browser_page: Any) -> None:
    starts = ["", *FORMULA_STARTS, " ", "'", "1", "x"]
    ends = [
        "",
        "5",
        ".5E-3",
        "1+1",
        "inf",
        "1_0",
        "٣",
        "x\r=1",
        "x;=1",
        "x\t=1",
        "x\n=1",
        'x"',
        "x,",
    ]
    texts = [start + end for start in starts for end in ends]
    script = files("qms22.report").joinpath("_scripts/text.js").read_text(encoding="utf-8")
    cells = browser_page.evaluate(f"texts => {{ {script}; return texts.map(csvCell); }}", texts)
    assert cells == list(map(csv_cell, texts))


def test_without_labels_reasons_and_ids(open_report: Any) -> None:
    page = open_report(
        plausible(truth=None, reasons=[], ids=None, columns=[], facts={}, findings=[])
    )
    assert page.locator("#plot-roc").count() == 0
    assert "TPR" not in page.inner_text("#counts")
    assert "This run kept no reasons." in page.inner_text("#detail")
    heading, *lines = downloaded(page)
    assert heading[:4] == ["rank", "row", "score", "amount"]
    assert lines[0][1] == str(plausible(ids=None).results["row"][0])


def test_labels_of_one_kind_have_no_curve(open_report: Any) -> None:
    page = open_report(plausible(n_rows=20, truth=np.zeros(20)))
    assert "there is no ROC curve" in page.inner_text("#roc-words")
    assert "0 of 0 outliers found: TPR –, precision 0\xa0%" in page.inner_text("#counts")


def test_one_row_and_ties(open_report: Any) -> None:
    one = pd.DataFrame({"a": [1.0], "b": ["x"]})
    page = open_report(content([0.0], one, truth=[True]))
    assert ranks(page) == [1]
    assert "1 of 1 row flagged (100\xa0%), score ≥ 0;" in page.inner_text("#counts")
    tied = pd.DataFrame({"a": [None] * 4})
    page = open_report(content([1, 0, 0, 0], tied, k=2, truth=[1, 0, 0, 1]))
    assert "score ≥ 0, which 2 more rows have too; 1.3 of 2 outliers" in page.inner_text("#counts")
    assert page.is_visible("#no-features")

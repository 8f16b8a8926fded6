"""The page does what it offers, in a real browser."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
import report_fixtures
from report_browser import until
from report_runs import FORMULA, HOSTILE, TURNED, by_rate, content, hostile, plausible

from qms22.metrics import roc, true_positive_rate_at

# Not from a conftest.py: mypy takes two files of that name for one.
browser_page, open_report = report_fixtures.browser_page, report_fixtures.open_report


def column(page: Any, place: int) -> list[str]:
    return [
        text.strip()
        for text in page.locator(f"#ranked tbody td:nth-child({place})").all_inner_texts()
    ]


def ranks(page: Any) -> list[int]:
    return [int(text) for text in page.locator("#ranked tbody button").all_inner_texts()]


def set_k(page: Any, k: int) -> None:
    page.fill("#k-box", str(k))
    until(
        page, f"document.querySelector('#counts strong').textContent.replace(/\\D/g, '') == '{k}'"
    )


def sort(page: Any, name: str) -> None:
    page.locator("#ranked thead button", has_text=name).click()


def picture(page: Any, name: str) -> str:
    """The pixels of a picture, to tell whether it has changed."""
    return str(page.eval_on_selector(f"#plot-{name} canvas", "canvas => canvas.toDataURL()"))


def downloaded(page: Any) -> list[list[str]]:
    with page.expect_download() as event:
        page.click("#download")
    text = event.value.path().read_bytes().decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_it_opens_with_the_rows_by_score(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    assert page.title() == "Payments of March"
    assert ranks(page) == list(range(1, 26))
    assert column(page, 3) == run.results["id"].tolist()[:25]
    assert column(page, 5) == [f"{value:.15g}" for value in run.rows["amount"][:25]]
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
    words = page.inner_text("#counts").replace("\u2009", "").replace("\xa0", " ")
    rate = true_positive_rate_at(truth, run.scores, 45)
    assert f"45 of 1000 rows flagged (4.5 %), score ≥ {scores[44]:.6g}" in words
    assert f"TPR {100 * rate:.3g} %, precision {100 * rate * truth.sum() / 45:.3g} %" in words
    assert f"AUC {roc(truth, run.scores).auc:.4f}" in page.inner_text("#roc-words")
    assert f"true positive rate {rate:.3f}" in page.inner_text("#roc-words")
    assert page.get_attribute("#k-slider", "aria-valuetext") == "45 of 1\u2009000 rows"
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
    expected = [rank + 1 for rank in np.flatnonzero(run.flagged)]
    assert "as flagged by a false discovery rate of 0.1" in page.inner_text(".control")
    words = page.inner_text("#counts").replace("\xa0", " ")
    assert "30 of 200 rows flagged (15 %), the last at rank 39: flags rest on" in words
    assert "30 of 30 outliers found: TPR 100 %, precision 100 %" in words
    assert "true positive rate 1.000, false positive rate 0.000" in page.inner_text("#roc-words")
    page.check("#only-flagged")
    page.select_option("#page-size", "100")
    assert ranks(page) == expected
    assert page.locator("#ranked tr.flagged").count() == 30
    assert [int(line[0]) for line in downloaded(page)[1:]] == expected
    page.locator("#ranked tbody tr").nth(3).click()
    assert "Score 4.8995, p-value 0.05" in page.inner_text("#detail")
    # The slider flags the first rows; the choice beside it leads back.
    page.uncheck("#only-flagged")
    set_k(page, 31)
    assert page.is_checked("#flags-top")
    assert ranks(page)[:31] == list(range(1, 32))
    assert page.locator("#ranked tr.flagged").count() == 31
    assert "score ≥" in page.inner_text("#counts")
    page.check("#flags-given")
    until(page, "document.querySelectorAll('#ranked tr.flagged').length == 30")
    assert page.input_value("#k-box") == "30"


def test_the_choice_of_the_top_takes_as_many_rows(open_report: Any) -> None:
    page = open_report(by_rate())
    page.check("#flags-top")
    until(page, "document.getElementById('counts').textContent.includes('score ≥')")
    assert page.locator("#ranked tr.flagged").count() == 25
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


def test_columns_sort_both_ways_with_missing_values_last(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    sort(page, "ratio")
    values = run.rows["ratio"].sort_values()
    assert [float(text) for text in column(page, 10)] == pytest.approx(values[:25], rel=1e-5)
    sort(page, "ratio")
    assert float(column(page, 10)[0]) == pytest.approx(values.max(), rel=1e-5)
    page.click("#page-last")
    assert column(page, 10)[-1] == "–"
    sort(page, "country")
    assert set(column(page, 7)) == {"DE"}
    assert ranks(page) == sorted(ranks(page))
    assert page.locator("#ranked th[aria-sort]").count() == 1


def test_search_looks_into_texts_and_numbers(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    page.fill("#search", "kp")
    n_found = int((run.rows["country"] == "KP").sum())
    until(page, f"document.getElementById('shown').textContent.endsWith('of {n_found} rows')")
    assert set(column(page, 7)) == {"KP"}
    page.fill("#search", "P-000011")
    until(page, "document.getElementById('shown').textContent.endsWith('of 1 row')")
    page.fill("#search", str(run.rows["amount"].iloc[3]))
    until(page, "document.getElementById('shown').textContent.endsWith('of 1 row')")
    page.fill("#search", "nowhere")
    until(page, "document.getElementById('shown').textContent == 'No row matches.'")
    page.fill("#search", "")
    until(page, "document.getElementById('shown').textContent.startsWith('1 to 25 of 1')")


def test_pages_turn(open_report: Any) -> None:
    page = open_report(plausible())
    assert page.is_disabled("#page-back")
    page.click("#page-next")
    assert ranks(page)[0] == 26
    page.click("#page-last")
    assert ranks(page)[-1] == 1000
    assert page.is_disabled("#page-next")
    page.fill("#page", "3")
    page.press("#page", "Enter")
    assert ranks(page)[0] == 51
    page.select_option("#page-size", "100")
    assert ranks(page) == list(range(1, 101))
    page.check("#only-flagged")
    assert ranks(page) == list(range(1, 41))
    set_k(page, 3)
    assert ranks(page) == [1, 2, 3]


def test_a_click_shows_the_reasons_of_a_row(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    page.locator("#ranked tbody tr").nth(2).locator("td").nth(4).click()
    detail = page.inner_text("#detail")
    row = 2
    assert detail.startswith(f"Rank 3: id {run.results['id'][row]}")
    assert f"{run.rows['amount'].iloc[row]:.6g}, usually 20.1" in detail
    assert page.locator("#detail .track div").count() == 4
    widths = [
        box["width"] for box in (bar.bounding_box() for bar in page.locator(".track div").all())
    ]
    assert widths[1] / widths[0] == pytest.approx(0.25 / 0.6, rel=0.05)
    assert page.locator("#detail .lowers").count() == 1
    page.click("#detail summary >> text=All values")
    assert f"{run.rows['opened'].iloc[row]:%Y-%m-%d}" in page.inner_text("#detail dl")
    page.locator("#ranked tbody tr").nth(24).locator("td").nth(4).click()
    page.fill("#page", "3")
    page.press("#page", "Enter")
    page.locator("#ranked tbody tr").nth(5).click()
    assert "computed for 50 rows" in page.inner_text("#detail")


def test_the_keyboard_is_enough(open_report: Any) -> None:
    page = open_report(plausible())
    page.locator("#ranked tbody button").first.focus()
    page.keyboard.press("ArrowUp")
    for _ in range(25):
        page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "26"
    page.keyboard.press("Enter")
    assert page.inner_text("#detail h3").startswith("Rank 26:")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Space")
    assert page.inner_text("#detail h3").startswith("Rank 25:")
    page.locator("#ranked thead button", has_text="age").focus()
    page.keyboard.press("Enter")
    assert page.locator("#ranked th[aria-sort=ascending]").inner_text() == "age"


def test_features_are_chosen_from_the_list_or_from_a_reason(open_report: Any) -> None:
    page = open_report(plausible())
    assert page.locator("#feature option").all_inner_texts() == [*plausible().rows.columns]
    drawn = {picture(page, "feature")}
    for name in ("country", "member", "opened", "age"):
        page.select_option("#feature", label=name)
        page.wait_for_timeout(50)
        drawn.add(picture(page, "feature"))
    assert len(drawn) == 5
    page.locator("#detail .reason button", has_text="country").click()
    assert page.locator("#feature option:checked").inner_text() == "country"
    assert "Most over-represented: KP, with 0" in page.inner_text("#feature-words")
    page.hover("#plot-feature .u-over")
    assert "of the normal and" in page.inner_text("#readout-feature")
    set_k(page, 0)
    assert page.inner_text("#feature-words") == "No row is flagged."


def test_the_download_holds_the_flagged_rows(open_report: Any) -> None:
    run = plausible()
    page = open_report(run)
    sort(page, "age")
    page.fill("#search", "nowhere")
    set_k(page, 4)
    heading, *lines = downloaded(page)
    assert heading == ["rank", "score", "id", "truth", *run.rows.columns, "reasons"]
    assert [line[0] for line in lines] == ["1", "2", "3", "4"]
    for row, line in enumerate(lines):
        assert line[2] == run.results["id"][row]
        assert float(line[1]) == pytest.approx(run.scores[row], rel=5e-9)
        assert float(line[4]) == run.rows["amount"].iloc[row]
        assert float(line[9]) == pytest.approx(run.rows["ratio"].iloc[row], rel=5e-9)
        assert line[8] == f"{run.rows['opened'].iloc[row]:%Y-%m-%d}"
        assert line[10].startswith(f"amount: {run.rows['amount'].iloc[row]}, usually 20.1 (score −")


def test_hostile_texts_stay_texts(open_report: Any) -> None:
    page = open_report(hostile())
    assert page.title() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    shown = TURNED.replace("\u202e", "\\u202e")
    assert shown in column(page, 3)
    assert "\u202e" not in page.content()
    assert "\\ud800" in page.inner_text("#section-made")
    for place in range(3):
        page.select_option("#feature", str(place))
    page.locator("#ranked tbody tr").first.click()
    assert page.evaluate("window.hacked") is None


def test_formulas_stay_texts_in_the_download(open_report: Any) -> None:
    heading, *lines = downloaded(open_report(hostile()))
    assert heading == [
        "rank",
        "score",
        "id",
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


def test_without_labels_reasons_and_ids(open_report: Any) -> None:
    page = open_report(plausible(truth=None, reasons=[], ids=None, columns=[], facts={}))
    assert page.locator("#plot-roc").count() == 0
    assert "TPR" not in page.inner_text("#counts")
    assert "This run kept no reasons." in page.inner_text("#detail")
    heading, *lines = downloaded(page)
    assert heading[:4] == ["rank", "score", "row", "amount"]
    assert lines[0][2] == str(plausible(ids=None).results["row"][0])


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

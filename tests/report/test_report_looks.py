"""The page is fit for phones, for both themes, for screen readers and for many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import report_fixtures
from report_browser import n_listed, set_filter, until
from report_runs import HISTORY, VERDICT, content, hostile, large, plausible

from qms22.detection import RowReason
from qms22.report.content import PageContent

# Not from a conftest.py: mypy takes two files of that name for one.
browser_page, open_report = report_fixtures.browser_page, report_fixtures.open_report


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(open_report: Any, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    run = plausible(verdict=VERDICT, history=HISTORY, notes=["a.csv: 2 lines were skipped"])
    page = open_report(run, scheme=scheme, width=width)
    page.keyboard.press("a")
    set_filter(page, "colour = red")
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_the_button_turns_the_theme(open_report: Any) -> None:
    page = open_report(plausible())
    background = "getComputedStyle(document.body).backgroundColor"
    canvas = "document.querySelector('#plot-scores canvas').toDataURL()"
    light, drawn = page.evaluate(background), page.evaluate(canvas)
    assert page.inner_text("#theme") == "Dark theme"
    page.click("#theme")
    page.wait_for_timeout(50)
    assert page.evaluate(background) != light
    assert page.evaluate(canvas) != drawn
    page.emulate_media(color_scheme="dark")
    page.click("#theme")
    assert page.evaluate(background) == light


def wide() -> PageContent:
    rows = pd.DataFrame({f"a rather long name of column {n}": [n * 1.5, 2.0] for n in range(60)})
    rows["text"] = ["word " * 200, "x" * 3000]
    return content([1.0, 0.5], rows, title="x" * 200, facts={"y" * 90: "z" * 300})


@pytest.mark.parametrize(
    "run", [plausible(), hostile(), wide()], ids=["plausible", "hostile", "wide"]
)
def test_a_phone_needs_no_sideways_scrolling(open_report: Any, run: PageContent) -> None:
    page = open_report(run, width=390)
    page.locator("#ranked tbody td").first.click()
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    # The reasons stand below the table: a click leads there, and a button back.
    top = page.evaluate("document.getElementById('detail').getBoundingClientRect().top")
    assert 0 <= top < 450
    page.click("#back")
    assert page.evaluate("document.activeElement.textContent") == "1"


def test_of_very_many_columns_the_chosen_row_shows_all(open_report: Any) -> None:
    rows = pd.DataFrame({f"c{number}": [number, 1.0] for number in range(300)})
    page = open_report(content([1.0, 0.5], rows))
    assert page.locator("#ranked thead th").count() == 100
    assert page.inner_text("#shown") == "2 rows, 203 more columns with the chosen row"
    page.click("#detail summary")
    assert page.locator("#detail dt").count() == 300


@pytest.mark.parametrize("width", [1000, 1200, 1500])
def test_no_column_is_cut_off_at_the_edge(open_report: Any, width: int) -> None:
    """What is beside the reasons is shown whole, also after the window has changed."""
    page = open_report(plausible(), width=1280)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(100)
    is_wide, gap = page.evaluate(
        """() => {
          const box = document.getElementById("ranked-box");
          const edge = box.getBoundingClientRect().left + box.clientLeft + box.clientWidth;
          const cells = [...document.querySelectorAll("#ranked thead th")];
          const gaps = cells.map((cell) => Math.abs(cell.getBoundingClientRect().right - edge));
          return [box.scrollWidth > box.clientWidth, Math.min(...gaps)];
        }"""
    )
    assert is_wide or width > 1200
    assert gap < 2


@pytest.mark.parametrize("width", [1400, 390])
def test_reasons_are_shown_whole(open_report: Any, width: int) -> None:
    """However long they are; and the row to which a person steps is in sight."""
    rng = np.random.default_rng(0)
    texts = [" ".join(["price 12.50 is odd"] * n) for n in rng.integers(1, 20, 60)]
    texts[3], texts[5] = "x" * 500, "\u6f22\u5b57" * 90
    reasons = [[RowReason(("price",), text, 9.0)] for text in texts]
    rows = pd.DataFrame({"price": np.arange(500.0)})
    page = open_report(content(-np.arange(500.0), rows, k=60, reasons=reasons), width=width)
    page.locator("#ranked tbody button").first.focus()
    for key in [*["ArrowDown"] * 12, "End", "Home", *["PageDown"] * 4, *["ArrowUp"] * 5]:
        page.keyboard.press(key)
        is_whole, is_in_sight = page.evaluate(
            """() => {
              const cells = [...document.querySelectorAll('#ranked .lines')];
              const isWhole = cells.every((each) => each.scrollWidth <= each.clientWidth
                && each.parentElement.scrollHeight <= each.parentElement.clientHeight);
              const [row, box] = ['#ranked .chosen', '#ranked-box'].map((each) =>
                document.querySelector(each).getBoundingClientRect());
              return [isWhole, row.top < box.bottom && row.bottom > box.top];
            }"""
        )
        assert is_whole
        assert is_in_sight, key


def test_pictures_follow_the_width_of_the_page(open_report: Any) -> None:
    page = open_report(plausible())
    page.set_viewport_size({"width": 390, "height": 800})
    until(page, "document.querySelector('#plot-scores .uplot').clientWidth < 390")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


# What a person does, as code, until the next frame is drawn.
_ACT = """async (action) => {
  const box = document.getElementById('filter');
  const filter = (text) => {
    box.value = text;
    box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
  };
  const press = (key) => document.getElementById('ranked-box').dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true }));
  const sort = (name) => [...document.querySelectorAll('#ranked thead button')]
    .find((button) => button.textContent === name).click();
  const scroll = (share) => {
    const list = document.getElementById('ranked-box');
    list.scrollTop = share * list.scrollHeight;
  };
  ({
    number: () => filter('count > 25'),
    level: () => filter('kind = b and count <= 15'),
    words: () => filter('remark 99'),
    all: () => filter(''),
    sortNumbers: () => sort('feature 3'),
    sortTexts: () => sort('comment'),
    sortRank: () => sort('rank'),
    scroll: () => scroll(Math.random()),
    nextRow: () => press('ArrowDown'),
    mark: () => press('a'),
  })[action]();
  await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 0)));
}"""
_ACTIONS = (
    *("number", "level", "words", "all", "sortNumbers", "sortTexts", "sortRank"),
    *("scroll", "nextRow", "mark"),
)


def milliseconds(page: Any, session: Any, action: str) -> float:
    """The time that the page works for an action. Tests that share its cores do not count."""

    def now() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    began = now()
    page.evaluate(_ACT, action)
    return 1000 * (now() - began)


@pytest.mark.slow
def test_a_hundred_thousand_rows_without_lag(open_report: Any, tmp_path: Any) -> None:
    page = open_report(large())
    assert (tmp_path / "page-0.html").stat().st_size < 24e6
    assert n_listed(page) == 100_000
    page.wait_for_timeout(1000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    times = {
        action: np.median([milliseconds(page, session, action) for _ in range(5)])
        for action in _ACTIONS
    }
    assert np.median([*times.values()]) < 100, times
    assert max(times.values()) < 300, times
    assert page.locator("#ranked tbody tr").count() < 60
    set_filter(page, "remark 99")
    found = n_listed(page)
    assert 1000 < found < 3000
    set_filter(page, "0.123")
    assert n_listed(page) != found
    set_filter(page, "")
    page.fill("#k-box", "50000")
    until(page, "document.getElementById('counts').textContent.startsWith('50,000')")


def test_many_steps_of_the_slider_are_drawn_once(open_report: Any) -> None:
    page = open_report(plausible(n_rows=200))
    page.evaluate(
        """() => {
          window.drawn = 0;
          const watch = new MutationObserver(() => { window.drawn += 1; });
          watch.observe(document.getElementById('counts'), { childList: true });
          const slider = document.getElementById('k-slider');
          for (let step = 0; step < 50; step += 1) {
            slider.value = 10 + step;
            slider.dispatchEvent(new Event('input'));
          }
        }"""
    )
    until(page, "document.getElementById('k-box').value == '59'")
    assert page.evaluate("window.drawn") == 1


def test_the_page_speaks_up_where_it_cannot_be_shown(open_report: Any, tmp_path: Any) -> None:
    page = open_report(plausible(n_rows=30))
    text = (tmp_path / "page-0.html").read_text("utf-8")
    start = text.index('id="data">') + len('id="data">')
    (tmp_path / "cut.html").write_text(
        text[:start] + "H4sI" + text[text.index("</script>", start) :], "utf-8"
    )
    other = page.context.browser.new_page()
    other.goto((tmp_path / "cut.html").as_uri())
    other.wait_for_selector("#trouble:not([hidden])")
    assert other.inner_text("#trouble").startswith("This page could not be shown:")
    other.close()

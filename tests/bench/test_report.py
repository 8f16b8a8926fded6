"""The report's files, and its page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench_results import RUNS, failed, flat, realistic, realistic_scores, table
from browser import started_browser

from qms22_bench.report import write_report, write_whole
from qms22_bench.roc import pool_scores

NASTY = "<script>alert('|*')</script>"
TABLES = {"table1.csv", "table2.csv", "table4.csv", "table5.csv"}
FILES = {"index.html", "report.md", "results.csv.gz"} | TABLES
FIGURES = {"boxplots", "ranks", "total-time", "run-time", "against-paper"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report with everything in it, and a set with an awkward name."""
    folder = tmp_path_factory.mktemp("report")
    drawn = realistic(detectors=("QMS22", "BRM", "IsolationForest"), seeds=(0, 1), n_sets=30)
    scores = realistic_scores(drawn[drawn["dataset"].isin(drawn["dataset"].unique()[:4])])
    results = pd.concat(
        [
            drawn,
            table(flat(NASTY, "QMS22", 0.7), flat(NASTY, "BRM", 0.6)),
            table([failed("iris0", 1, "BRM", 0, f"{NASTY} went wrong")]),
        ]
    )
    return write_report(results, RUNS, folder, pool_scores(scores)).parent


def text_of(folder: Path, name: str) -> str:
    return (folder / name).read_text("utf-8")


def test_all_files_are_written(report: Path) -> None:
    names = {path.name for path in report.iterdir()}
    assert names == FILES | {"failures.csv"} | {f"{name}.png" for name in FIGURES}
    assert len(pd.read_csv(report / "table1.csv")) == 32
    assert len(pd.read_csv(report / "table2.csv")) == 3
    assert pd.read_csv(report / "table1.csv")["dataset"].isin([NASTY]).sum() == 1


@pytest.mark.slow
def test_a_report_is_the_same_every_time(tmp_path: Path) -> None:
    results = realistic(seeds=(0,), n_sets=4)
    first, second = (write_report(results, RUNS, tmp_path / name).parent for name in "ab")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name


def test_names_are_escaped(report: Path) -> None:
    page = text_of(report, "index.html")
    assert NASTY not in page
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in text_of(report, "report.md")
    assert r"alert('\|\*')" in text_of(report, "report.md")


def test_ids_are_unique_and_nothing_is_fetched(report: Path) -> None:
    page = text_of(report, "index.html")
    ids = re.findall(r'\sid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert all(f'id="figure-{name}"' in page for name in FIGURES)
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page):
        assert "".join(target) in ids


def test_the_markdown_links_to_the_figures(report: Path) -> None:
    linked = set(re.findall(r"\]\(([\w-]+)\.png\)", text_of(report, "report.md")))
    assert linked == FIGURES


@pytest.mark.slow
def test_a_full_report_is_small(tmp_path: Path) -> None:
    names = ("QMS22", "BRM", "OCKRA", "IsolationForest", "OneClassSVM", "kNN", "LOF", "other")
    results = realistic(names, seeds=(0,))
    page = write_report(results, RUNS, tmp_path, pool_scores(realistic_scores(results)))
    assert page.stat().st_size < 1_500_000


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (table(flat("a", "QMS22", 0.9)), "there is only one detector"),
        (table(flat("a", "QMS22", 0.9), flat("a", "kNN", 0.8)), "one data set says nothing"),
        (table(flat("a", "kNN", 0.9), flat("b", "kNN", 0.9)), "Table 1 is left out"),
        (table([failed("a", 1, "BRM", 0, "no luck")]), "there is nothing to show"),
        (
            table(*(flat(name, "$x^2$", 0.9) for name in "abc"), flat("a", "LOF", 1.0)),
            "scores of the rows were not kept",
        ),
        (
            table(*(flat(name, det, 0.9) for name in "abc" for det in ("QMS22", "x", "y"))),
            "the detectors are not told apart",
        ),
    ],
)
def test_small_results_make_a_sensible_page(
    results: pd.DataFrame, said: str, tmp_path: Path
) -> None:
    page = write_report(results, [], tmp_path).read_text("utf-8")
    assert said in page
    assert "nan" not in re.sub(r"<[^>]*>", "", page).lower()


def test_failures_alone_leave_nothing_of_an_earlier_report(tmp_path: Path) -> None:
    write_report(realistic(seeds=(0,), n_sets=3), RUNS, tmp_path)
    results = table([failed("a", fold, "BRM", 0, "no luck") for fold in range(1, 6)])
    write_report(results, RUNS, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.html",
        "report.md",
        "results.csv.gz",
        "failures.csv",
    }
    assert text_of(tmp_path, "index.html").count("no luck") == 5


@pytest.mark.parametrize("name", ["index.html", "report.md", "failures.csv", "ranks.png"])
def test_files_of_the_user_are_neither_replaced_nor_deleted(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("<!doctype html>mine")
    with pytest.raises(FileExistsError, match=rf"{re.escape(name)}.*no report wrote"):
        write_report(realistic(seeds=(0,), n_sets=3), RUNS, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: "<!doctype html>mine"
    }


def test_a_file_of_the_user_beside_a_report_stays(tmp_path: Path) -> None:
    results = realistic(seeds=(0,), n_sets=3)
    write_report(results, RUNS, tmp_path)
    (tmp_path / "notes.csv").write_text("mine")
    write_report(results, RUNS, tmp_path)
    (tmp_path / "failures.csv").symlink_to("notes.csv")
    with pytest.raises(FileExistsError, match=r"failures\.csv"):
        write_report(results, RUNS, tmp_path)
    assert (tmp_path / "failures.csv").read_text() == "mine"


def test_an_interrupted_report_can_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = realistic(seeds=(0,), n_sets=3)
    n_written = 0

    def fail_at_third(path: Path, content: bytes) -> None:
        nonlocal n_written
        n_written += 1
        if n_written == 3:
            raise OSError("disk full")
        write_whole(path, content)

    monkeypatch.setattr("qms22_bench.report.write_whole", fail_at_third)
    with pytest.raises(OSError, match="disk full"):
        write_report(results, RUNS, tmp_path)
    write_report(results, RUNS, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= FILES


# The page in Chromium.


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as started:
        yield started


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """Open the report; at the end, check that it logged no error and fetched nothing."""
    complaints: list[str] = []
    requests: list[str] = []
    opened = browser.new_page(viewport={"width": 1100, "height": 800})
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    address = (report / "index.html").as_uri()
    opened.goto(address)
    yield opened
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [address]
    opened.close()


def column(page: Any, name: str, place: int) -> list[str]:
    cells = page.locator(f"#{name} tbody tr > :nth-child({place})")
    return [str(text) for text in cells.all_text_contents()]


def test_headings_sort_by_click(page: Any) -> None:
    heading = page.locator("#table1 thead th").nth(1)
    for order in ("ascending", "descending"):
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == order
        sizes = [int(re.sub(r"\D", "", text)) for text in column(page, "table1", 2)]
        assert sizes == sorted(sizes, reverse=order == "descending")
    page.locator("#table1 thead button").nth(0).click()
    assert heading.get_attribute("aria-sort") is None


def test_headings_sort_by_keyboard(page: Any) -> None:
    button = page.locator("#table4 thead button").nth(2)
    for key, order in (("Enter", False), ("Space", True)):
        button.focus()
        page.keyboard.press(key)
        means = [float(text) for text in column(page, "table4", 3)]
        assert means == sorted(means, reverse=order)


def test_missing_values_sort_last(page: Any) -> None:
    for _ in range(2):
        page.locator("#table1 thead button").nth(3).click()
        assert column(page, "table1", 4)[-1] == "–"


def test_search_filters_rows(page: Any) -> None:
    box = page.locator('input[data-table="table1"]')
    box.fill("ABALONE")
    shown = page.locator("#table1 tbody tr:visible th").all_text_contents()
    assert shown
    assert all("abalone" in name for name in shown)
    assert page.locator("#table1 output").text_content() == f"{len(shown)} of 32"
    box.fill("")
    assert page.locator("#table1 tbody tr:visible").count() == 32


def test_roc_curves_follow_the_choice(page: Any) -> None:
    curves = page.locator("#roc-plot path.curve")
    assert curves.count() == 3
    before = curves.nth(0).get_attribute("d")
    page.select_option("#roc-set", index=2)
    assert curves.count() == 3
    assert curves.nth(0).get_attribute("d") != before
    legend = page.locator("#roc-legend tbody tr")
    assert legend.count() == 3
    assert "QMS22" in legend.nth(0).text_content()
    areas = [
        float(text) for text in page.locator("#roc-legend td:nth-child(2)").all_text_contents()
    ]
    assert np.all((np.array(areas) > 0.5) & (np.array(areas) <= 1))


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out(page: Any, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink = page.evaluate("getComputedStyle(document.body).color")
    drawn = page.evaluate("getComputedStyle(document.querySelector('.drawing text')).fill")
    assert ink == drawn
    assert ink == ("rgb(27, 31, 36)" if scheme == "light" else "rgb(228, 231, 235)")

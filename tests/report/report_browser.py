"""What tests do with a page: wait, read the table, filter, sort, download."""

from __future__ import annotations

import csv
import io
import time
from typing import Any


def until(page: Any, condition: str, seconds: float = 30.0) -> None:
    """Wait until a JavaScript expression holds.

    Playwright's own `wait_for_function` needs `eval` in the page, which the page forbids.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {condition}")
        page.wait_for_timeout(20)


def headings(page: Any) -> list[str]:
    return [text.strip() for text in page.locator("#ranked thead th").all_inner_texts()]


def column(page: Any, name: str) -> list[str]:
    """The cells of a column, of the rows that are in the document."""
    place = headings(page).index(name) + 1
    cells = page.locator(f"#ranked tbody tr[data-row] > :nth-child({place})")
    return [text.strip() for text in cells.all_inner_texts()]


def ranks(page: Any) -> list[int]:
    """The ranks of the rows that are in the document."""
    return [int(text) for text in page.locator("#ranked tbody button").all_inner_texts()]


def n_listed(page: Any) -> int:
    """The number of rows in the list, in the document or not."""
    return int(page.get_attribute("#ranked", "aria-rowcount")) - 1


def set_k(page: Any, k: int) -> None:
    page.fill("#k-box", str(k))
    until(
        page, f"document.querySelector('#counts strong').textContent.replace(/\\D/g, '') == '{k}'"
    )


def sort(page: Any, name: str) -> None:
    page.locator("#ranked thead button").get_by_text(name, exact=True).click()


def set_filter(page: Any, text: str) -> None:
    page.fill("#filter", text)
    page.press("#filter", "Enter")


def message(page: Any) -> str:
    """What the page says about the filter."""
    return str(page.inner_text("#filter-message")) if page.is_visible("#filter-message") else ""


def picture(page: Any, name: str) -> str:
    """The pixels of a picture, to tell whether it has changed."""
    return str(page.eval_on_selector(f"#plot-{name} canvas", "canvas => canvas.toDataURL()"))


def downloaded_file(page: Any, button: str) -> bytes:
    with page.expect_download() as event:
        page.click(button)
    return bytes(event.value.path().read_bytes())


def downloaded(page: Any, button: str = "#download") -> list[list[str]]:
    text = downloaded_file(page, button).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))

"""A real browser for the pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qms22.report import DetectionRun, write_detection_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Nothing of the browser's own may reach for the network either.
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

Opener = Callable[..., Any]


# Not for the whole session: while Playwright runs, no other test could start an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Write and open reports; at the end none of them may have complained or asked for anything."""
    trouble: list[str] = []
    requests: list[str] = []
    allowed: set[str] = set()
    pages: list[Page] = []

    def opener(run: DetectionRun, *, width: int = 1280, scheme: Any = "light") -> Page:
        path = write_detection_report(tmp_path / f"page-{len(pages)}.html", run)
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        pages.append(page)
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("request", lambda request: requests.append(request.url))
        allowed.add(path.as_uri())
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready], #trouble:not([hidden])", state="attached")
        assert page.text_content("#trouble") == ""
        return page

    yield opener
    for page in pages:
        page.close()
    assert trouble == []
    assert set(requests) == allowed

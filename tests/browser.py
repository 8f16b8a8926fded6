"""The browser in which pages are tested: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The reason of all skipped tests of pages, by which they are counted.
NO_CHROMIUM = "chromium is not installed"

# Nothing of the browser's own may reach for the network.
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start Chromium; skip the test if it is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip(NO_CHROMIUM)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield browser
        browser.close()


def skipped_pages(reasons: list[str]) -> str:
    """Return a line on the tests that were skipped without a browser; empty if there are none."""
    n_skipped = sum(NO_CHROMIUM in reason for reason in reasons)
    if not n_skipped:
        return ""
    return f"{n_skipped} tests of pages were skipped: run apt-get install chromium, then make test"

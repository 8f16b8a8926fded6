"""Reports in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import started_browser

from qms22.report.content import PageContent
from qms22.report.page import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

Opener = Callable[..., Any]


# Not for the whole session: while Playwright runs, no other test could start an event loop.
@pytest.fixture(scope="module")
def browser_page() -> Iterator[Page]:
    """One page of one browser, in which reports are opened one after the other."""
    with started_browser() as browser:
        yield browser.new_context().new_page()


@pytest.fixture
def open_report(browser_page: Page, tmp_path: Path) -> Iterator[Opener]:
    """Write and open reports; none of them may log anything or ask for another file."""
    page = browser_page
    events: list[str] = []
    allowed: list[str] = []
    listeners: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: events.append(f"console: {message.text}"),
        "pageerror": lambda error: events.append(f"error: {error}"),
        "request": lambda request: events.append(request.url),
    }
    for name, listener in listeners.items():
        page.on(name, listener)

    def opener(run: PageContent, *, width: int = 1280, scheme: Any = "light") -> Page:
        path = write_page(tmp_path / f"page-{len(allowed)}.html", run)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.mouse.move(0, 0)
        allowed.append(path.as_uri())
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready], #trouble:not([hidden])", state="attached")
        assert page.text_content("#trouble") == ""
        return page

    yield opener
    for name, listener in listeners.items():
        page.remove_listener(name, listener)
    # Marks that are kept must not meet the next test.
    page.evaluate("location.protocol === 'file:' && localStorage.clear()")
    assert {*events} == {*allowed}

"""Waiting for a page."""

from __future__ import annotations

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

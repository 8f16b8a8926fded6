"""Warnings that point at the line of the user."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.partition(".")[0]


def warn_user(text: str) -> None:
    """Warn with the place of the first caller outside this package.

    From Python 3.12 on, `warnings.warn` can do so itself by its `skip_file_prefixes`.
    """
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        frame = frame.f_back
        level += 1
    warnings.warn(text, stacklevel=level)

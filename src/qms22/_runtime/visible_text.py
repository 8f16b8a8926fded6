"""Text of users and their tables with hidden characters made visible."""

from __future__ import annotations

import re

# Characters that control a terminal or reverse the direction of writing, invisible characters, lone
# surrogates. They are shown as their codes; `_scripts/text.js` of the page does the same.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ud800-\udfff\ufeff]"
)
_LINE_ENDS = re.compile(r"[\t\r\n]+")


def visible(text: object) -> str:
    """Return a text with codes for characters that cannot be seen or reverse the direction."""
    return _HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", str(text))


def one_line(text: object) -> str:
    r"""Return a text of one line that cannot control a terminal.

    >>> one_line("a\r\nb\x1b[2J")
    'a b\\u001b[2J'
    """
    return _LINE_ENDS.sub(" ", visible(text))

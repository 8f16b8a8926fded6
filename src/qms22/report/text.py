"""Text of tables with hidden characters made visible."""

from __future__ import annotations

import re

# Characters that reverse the direction of writing, invisible characters, lone surrogates. They are
# shown as their codes; `_scripts/text.js` does the same with the rows.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ud800-\udfff\ufeff]"
)


def visible(text: object) -> str:
    """Return a text with codes for characters that cannot be seen or reverse the direction."""
    return _HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", str(text))

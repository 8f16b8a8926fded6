"""Text of tables with hidden characters made visible."""

from __future__ import annotations

import re

from qms22.report.content import PageFinding

# Characters that reverse the direction of writing, invisible characters, lone surrogates. They are
# shown as their codes; `_scripts/text.js` does the same with the rows.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ud800-\udfff\ufeff]"
)


def visible(text: object) -> str:
    """Return a text with codes for characters that cannot be seen or reverse the direction."""
    return _HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", str(text))


def share_text(share: float) -> str:
    """Return a share in percent, with two or three digits."""
    return f"{100 * share:.{3 if share >= 0.1 else 2}g}\N{NO-BREAK SPACE}%"


def rarity(finding: PageFinding) -> str:
    """Return how usual a finding is among known-normal rows; empty if it is not known."""
    if finding.normal_share is None:
        return ""
    if finding.normal_share > 0:
        words = f"like {share_text(finding.normal_share)} of the known-normal rows"
    else:
        words = "like no known-normal row"
    if finding.p_value is None:
        return words
    is_tiny = finding.p_value < 0.001
    return f"{words}, {'p < 0.001' if is_tiny else f'p = {finding.p_value:.2g}'}"

"""Numbers in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qms22.detection import Finding


def share_text(share: float) -> str:
    """Return a share in percent, with two or three digits."""
    return f"{100 * share:.{3 if share >= 0.1 else 2}g}\N{NO-BREAK SPACE}%"


def certainty(finding: Finding) -> str:
    """Return how many rows of a finding are outliers at least; empty if perhaps none is."""
    n_outliers = finding.fewest_outliers
    if not n_outliers:
        return ""
    are = "is an anomaly" if n_outliers == 1 else "are anomalies"
    return f"of these at least {n_outliers:,} {are} (90\N{NO-BREAK SPACE}% sure)"


def rarity(finding: Finding) -> str:
    """Return how usual a finding is among known-normal rows; empty if it is not known."""
    if finding.normal_share is None:
        return ""
    words = "like no known-normal row"
    if finding.normal_share > 0:
        words = f"like {share_text(finding.normal_share)} of the known-normal rows"
    if finding.p_value is None or not finding.is_beyond_chance:
        return words
    return f"{words}, {'p < 0.001' if finding.p_value < 0.001 else f'p = {finding.p_value:.2g}'}"

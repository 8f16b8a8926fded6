"""Numbers in words."""

from __future__ import annotations

from qms22.report.content import PageFinding


def share_text(share: float) -> str:
    """Return a share in percent, with two or three digits."""
    return f"{100 * share:.{3 if share >= 0.1 else 2}g}\N{NO-BREAK SPACE}%"


def certainty(finding: PageFinding) -> str:
    """Return how many rows of a finding are outliers at least; empty if it is not known."""
    if finding.fewest_outliers is None:
        return ""
    words = f"of these at least {finding.fewest_outliers:,} are anomalies"
    return f"{words} (90\N{NO-BREAK SPACE}% sure)"


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

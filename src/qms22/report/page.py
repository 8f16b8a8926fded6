"""The page of a detection: template, style, scripts and data in one file."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from qms22._runtime.files import atomic_write
from qms22._runtime.visible_text import visible
from qms22.report.content import PageContent
from qms22.report.history_strip import history_picture, share_text
from qms22.report.prepare import pack_content

if TYPE_CHECKING:
    from qms22.detection import Finding

# Parts of one script, in this order.
_SCRIPTS = (
    *("text", "columns", "reasons", "data", "filter", "marks", "charts", "pictures", "feature"),
    *("table", "detail", "findings", "address", "print", "keys", "main"),
)

# Of rows that were marked before, the first are listed with their first columns: a reminder only.
_GIVEN = slice(200), slice(8)


def write_page(path: Path, content: PageContent) -> Path:
    """Write a page into one HTML file that loads nothing.

    An existing file is replaced, and left as it was if anything fails.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"visible": visible, "count": "{:,}".format}
    environment.filters |= {"certainty": certainty, "rarity": rarity}
    # uPlot has 50 kB, Chart.js 200 kB and Plotly 4 MB. It is fast enough to redraw at every step of
    # a slider, and needs neither eval nor style attributes, which the policy of the page forbids.
    library = f"/*\n{_own('_vendor/uPlot.LICENSE')}\n*/\n{_own('_vendor/uPlot.iife.min.js')}"
    script = "\n".join(_own(f"_scripts/{name}.js") for name in _SCRIPTS)
    style = _own("_vendor/uPlot.min.css") + "\n" + _own("_report.css")
    data = pack_content(content)
    page = environment.from_string(_own("_template.html")).render(
        content=content,
        n_rows=len(content.scores),
        # Only the scripts and the style of this package run, and nothing is loaded: should text of
        # a table find a way into the markup, it stays text.
        policy=(
            f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; "
            f"style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
        ),
        library=Markup(library),
        script=Markup(script),
        style=Markup(style),
        data=Markup(data),
        # Marks are kept in the browser for these data and no others.
        hash=hashlib.sha256(data.encode("ascii")).hexdigest()[:32],
        given=None if content.marked is None else content.marked.iloc[_GIVEN],
        picture=history_picture(content.history),
    )
    atomic_write(path, page.encode())
    return path


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _own(name: str) -> str:
    return files("qms22.report").joinpath(*name.split("/")).read_text("utf-8").strip()


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

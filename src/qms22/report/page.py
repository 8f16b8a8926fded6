"""The page of a detection run: template, style, scripts and data in one file."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from qms22._runtime.files import written_whole
from qms22.report.data import DetectionRun
from qms22.report.prepare import kept_rows, prepare

# One script in parts, in this order.
_SCRIPTS = ("text", "data", "charts", "pictures", "table", "detail", "main")

# Signs that turn the direction of writing, signs without a shape, halves of surrogate pairs: shown
# as their codes, as `_scripts/text.js` does with the rows.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ud800-\udfff\ufeff]"
)


def write_detection_report(path: str | Path, run: DetectionRun) -> Path:
    """Write the report of a detection run: one HTML file that needs nothing else.

    The page shows the ranked rows, the reasons, the scores and the distributions of the features,
    and lets its reader choose how many rows to flag. It loads nothing from anywhere. Of more than
    100,000 rows it holds the most suspicious ones (and all flagged ones).

    Parameters
    ----------
    path : str or Path
        The file; replaced where it exists, and left as it was if anything fails.
    run : DetectionRun

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from qms22.report import DetectionRun, write_detection_report
    >>> normal = pd.DataFrame({"age": [31, 42, 35], "country": ["FR", "FR", "DE"]})
    >>> rows = pd.DataFrame({"age": [33, 117], "country": ["DE", "FR"]})
    >>> run = DetectionRun("Two visitors", [0.0, 2.5], rows, normal, k=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_detection_report(Path(folder) / "visitors.html", run).name
    'visitors.html'
    """
    page = Path(path)
    text = _html(run)
    with written_whole(page) as temporary:
        temporary.write_text(text, "utf-8", newline="\n")
    return page


def _html(run: DetectionRun) -> str:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["visible"] = visible
    environment.filters["count"] = lambda number: f"{number:,}".replace(",", "\N{THIN SPACE}")
    # uPlot: 50 kB against 200 kB of Chart.js or 4 MB of Plotly, redraws at every step of a slider,
    # and needs neither eval nor styles in attributes, which the policy of the page forbids.
    library = f"/*\n{_own('_vendor/uPlot.LICENSE')}\n*/\n{_own('_vendor/uPlot.iife.min.js')}"
    script = "\n".join(_own(f"_scripts/{name}.js") for name in _SCRIPTS)
    style = _own("_vendor/uPlot.min.css") + "\n" + _own("_report.css")
    return environment.from_string(_own("_template.html")).render(
        run=run,
        n_rows=len(run.rows),
        n_kept=kept_rows(run),
        n_normal=len(run.normal),
        # Only our own scripts and style run, and nothing is ever loaded: should text of a table
        # find a way into the markup, it stays text.
        policy=(
            f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; "
            f"style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
        ),
        library=Markup(library),
        script=Markup(script),
        style=Markup(style),
        data=Markup(prepare(run)),
    )


def visible(text: object) -> str:
    """Write a text so that all of its signs are seen and none turns the direction of writing."""
    return _HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", str(text))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _own(name: str) -> str:
    return files("qms22.report").joinpath(*name.split("/")).read_text("utf-8").strip()

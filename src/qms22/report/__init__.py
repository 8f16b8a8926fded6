"""The page of a detection: one self-contained HTML file that opens offline.

- `content`: what the page shows. `prepare`, `payload`: collect and pack it. `page`: the file.
- `bins`, `packed_columns`, `packed_reasons`, `history_strip`, `text`, `truth`: parts of it.
- `_scripts`: draw, filter, mark; `_report.css`, `_template.html`: how it looks.
"""

# Names are imported on first use: the page needs jinja2, which is optional.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from qms22.report.content import PageContent, PageFinding, PageReason
    from qms22.report.page import write_page

__all__ = ["PageContent", "PageFinding", "PageReason", "write_page"]

_HOMES = {
    **dict.fromkeys(("PageContent", "PageFinding", "PageReason"), "qms22.report.content"),
    "write_page": "qms22.report.page",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

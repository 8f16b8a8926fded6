"""The page of a detection: one self-contained HTML file that opens offline."""

from qms22.report.content import PageContent
from qms22.report.page import write_page

__all__ = ["PageContent", "write_page"]

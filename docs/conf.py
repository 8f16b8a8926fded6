"""Configuration of the documentation, built by ``make docs``."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

from sphinx.application import Sphinx

import qms22

project = "qms22"
author = "the qms22 developers"
copyright = f"2026, {author}"  # noqa: A001
release = version = qms22.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_click",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples", "sg_execution_times.rst", "benchmark"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "qms22"

autodoc_typehints = "none"  # the numpydoc docstrings have them
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "reset_modules": ("matplotlib",),
}

# The examples run under Matplotlib's Agg backend, which warns that it cannot show windows.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def setup(app: Sphinx) -> None:
    """Copy the report of the benchmark, a page of its own, beside the other pages."""

    def copy_report(app: Sphinx, error: Exception | None) -> None:
        if error is None:
            report = Path(app.srcdir) / "benchmark"
            shutil.copytree(report, Path(app.outdir) / "benchmark", dirs_exist_ok=True)

    app.connect("build-finished", copy_report)

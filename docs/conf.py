"""Configuration of the documentation, built by ``make docs``."""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path

from sphinx.application import Sphinx

import qms22

sys.path.insert(0, str(Path(__file__).parent / "_tools"))
from publish import folder_of

project = "qms22"
author = "the qms22 developers"
copyright = f"2026, {author}"  # noqa: A001
release = version = qms22.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "run_blocks",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_click",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "benchmark", "examples", "**sg_execution_times.rst"]
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
# "$5 to $7" is money.
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
myst_heading_anchors = 3
smartquotes_action = "qe"  # two hyphens start an option, and are no dash

html_theme = "pydata_sphinx_theme"
html_title = f"qms22 {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_sidebars = {"index": [], "demo": []}
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": html_title,
    },
    "navbar_end": ["version-switcher", "theme-switcher"],
    # Beside the folders of all versions; `docs/_tools/publish.py` writes it.
    "switcher": {"json_url": "../switcher.json", "version_match": folder_of(release)},
    "check_switcher": False,
    "show_version_warning_banner": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}

# Attributes of fitted objects are described in docstrings, not as objects of their own.
nitpick_ignore_regex = [("py:obj", r"\w+_")]

# Links inside of the site are checked by `docs/_tools/check_site.py`, and publishers, to which
# doi.org leads, answer programs with an error.
linkcheck_ignore = [r"(?!https?:)", r"https://doi\.org/"]
linkcheck_timeout = 20

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


def show_example(app: Sphinx, ctx: object, lines: list[str]) -> None:
    """Show the example of a command's help text as code."""
    if "| Example:" in lines:
        at = lines.index("| Example:")
        example = [line.removeprefix("| ") for line in lines[at + 1 :]]
        lines[at:] = [".. code-block:: bash", "", *example]


def copy_report(app: Sphinx, error: Exception | None) -> None:
    """Copy the report of the benchmark, a page of its own, beside the other pages."""
    if error is None and app.builder.format == "html":
        report = Path(app.srcdir) / "benchmark"
        shutil.copytree(report, Path(app.outdir) / "benchmark", dirs_exist_ok=True)


def setup(app: Sphinx) -> None:
    """Connect what this site does beside Sphinx."""
    app.connect("sphinx-click-process-description", show_example)
    app.connect("build-finished", copy_report)

"""Directives that run code when the site is built, so that no page can show what is not so.

``{run-python}`` and ``{run-shell}`` show a block and what it prints. The blocks of a page run in
their order, in one empty folder and one Python process; ``:files:`` names files, by their place
beside the page, that are copied into the folder before. ``{live-page}`` embeds an HTML file that
the blocks have written. A block that fails, or whose output lacks the text of ``:contains:``, is an
error of the build.
"""

from __future__ import annotations

import json
import posixpath
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from terminal import run_on_terminal

_SESSION = "run_blocks"
_PAGES = "live"
# Columns that a page shows beside the lists at its left and right.
_WIDTH = 88


class Session:
    """The folder and the Python process of one page."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        self._python: subprocess.Popen[str] | None = None

    def run_shell(self, script: str) -> str:
        """Run lines of a shell and return what they print."""
        return run_on_terminal(script, self.folder, _WIDTH)

    def run_python(self, code: str) -> str:
        """Run Python code and return what it prints."""
        if self._python is None:
            self._python = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("page_worker.py")],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        print(json.dumps(code), file=self._python.stdin, flush=True)
        answer = json.loads(self._python.stdout.readline())
        if answer["error"]:
            raise RuntimeError(answer["output"] + answer["error"])
        return str(answer["output"])

    def close(self) -> None:
        """End the process and delete the folder."""
        if self._python is not None:
            self._python.communicate()
        self._temporary.cleanup()


class _PageDirective(SphinxDirective):
    """A directive that uses the session of its page."""

    @property
    def session(self) -> Session:
        session: Session | None = self.env.temp_data.get(_SESSION)
        if session is None:
            session = self.env.temp_data[_SESSION] = Session()
        return session


class RunBlock(_PageDirective):
    """Run a block, then show it and what it prints."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "contains": directives.unchanged_required,
        "files": directives.unchanged_required,
        "hide": lambda argument: directives.choice(argument, ("all", "output")),
    }
    language: ClassVar[str]

    def run_code(self, code: str) -> str:
        """Return what the code prints."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the code and of its output."""
        code = "\n".join(self.content)
        for name in self.options.get("files", "").split():
            _, path = self.env.relfn2path(name)
            self.env.note_dependency(path)
            shutil.copy(path, self.session.folder)
        try:
            output = self.run_code(code)
        except RuntimeError as error:
            raise self.error(f"a block of this page fails:\n{error}") from None
        expected = self.options.get("contains", "")
        if expected not in output:
            raise self.error(f"the output of a block lacks {expected!r}:\n{output}")
        hidden = self.options.get("hide")
        if hidden == "all":
            return []
        shown = [self._literal(code, self.language)]
        if output.strip() and hidden != "output":
            shown.append(self._literal(output.rstrip(), "text", "output", f"of-{self.language}"))
        return shown

    def _literal(self, text: str, language: str, *classes: str) -> nodes.literal_block:
        block = nodes.literal_block(text, text, language=language, classes=list(classes))
        self.set_source_info(block)
        return block


class RunPython(RunBlock):
    """Run Python code."""

    language = "python"

    def run_code(self, code: str) -> str:
        """Return what the code prints."""
        return self.session.run_python(code)


class RunShell(RunBlock):
    """Run commands as on a terminal."""

    language = "bash"

    def run_code(self, code: str) -> str:
        """Return what the commands print."""
        return self.session.run_shell(code)


class LivePage(_PageDirective):
    """Embed an HTML file of the page's folder, with a link to it."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"title": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Keep the file for the end of the build, and return the frame."""
        name = self.arguments[0]
        kept = _folder_of(self.env, self.env.docname)
        kept.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy(self.session.folder / name, kept)
        except FileNotFoundError:
            raise self.error(f"no block of this page has written {name}") from None
        start = posixpath.dirname(self.env.docname) or "."
        place = posixpath.relpath(f"{_PAGES}/{kept.name}/{name}", start)
        title = escape(self.options.get("title", name))
        html = (
            f'<p><a class="live-page-link" href="{place}">Open {title} alone</a></p>\n'
            f'<iframe class="live-page" src="{place}" title="{title}" loading="lazy"></iframe>'
        )
        return [nodes.raw("", html, format="html")]


def _folder_of(env: BuildEnvironment, docname: str) -> Path:
    """Return where the embedded files of a page are kept between builds."""
    return Path(env.doctreedir) / _PAGES / docname.replace("/", "-")


def _forget_pages(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Delete the embedded files of a page that is read again, or no longer exists."""
    shutil.rmtree(_folder_of(env, docname), ignore_errors=True)


def _close_session(app: Sphinx, doctree: nodes.document) -> None:
    """End what the blocks of a page have started."""
    session = app.env.temp_data.pop(_SESSION, None)
    if session is not None:
        session.close()


def _copy_pages(app: Sphinx, error: Exception | None) -> None:
    """Put the embedded pages into the site."""
    kept = Path(app.doctreedir) / _PAGES
    if error is None and app.builder.format == "html" and kept.is_dir():
        shutil.rmtree(Path(app.outdir) / _PAGES, ignore_errors=True)
        shutil.copytree(kept, Path(app.outdir) / _PAGES)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("run-python", RunPython)
    app.add_directive("run-shell", RunShell)
    app.add_directive("live-page", LivePage)
    app.connect("env-purge-doc", _forget_pages)
    app.connect("doctree-read", _close_session)
    app.connect("build-finished", _copy_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

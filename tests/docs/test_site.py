"""The tools of the documentation: code that runs in pages, the check of links, the versions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from check_site import check_site
from page_worker import run
from publish import publish
from terminal import run_on_terminal

TOOLS = Path(__file__).parents[2] / "docs" / "_tools"


def build(folder: Path, text: str) -> tuple[Path, str]:
    """Build a site of one page; return where it is, and what Sphinx complains about."""
    pytest.importorskip("myst_parser", reason="needs what builds the documentation")
    source, site = folder / "source", folder / "site"
    source.mkdir(exist_ok=True)
    path = f"import sys\nsys.path.insert(0, {str(TOOLS)!r})\n"
    source.joinpath("conf.py").write_text(f"{path}extensions = ['myst_parser', 'run_blocks']")
    source.joinpath("index.md").write_text(f"# A page\n\n{text}")
    source.joinpath("names.txt").write_text("Ada\n")
    options = ["-q", "--fail-on-warning", "--keep-going", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(site)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert bool(built.returncode) == bool(built.stderr)
    return site, built.stderr


GOOD = """\
```{run-python}
:contains: "42"
answer = 42
answer
```

```{run-shell}
:files: names.txt
echo "<p>Hello, $(cat names.txt)</p>" > hello.html
```

```{run-python}
print(open("hello.html").read() * 2, answer + 1)
```

```{run-shell}
:hide: all
echo not shown
```

```{live-page} hello.html
:title: a greeting
```
"""


def test_blocks_run_in_one_folder_and_one_process(tmp_path: Path) -> None:
    site, complaints = build(tmp_path, GOOD)
    page = site.joinpath("index.html").read_text()
    assert complaints == ""
    assert page.count("Hello, Ada") == 2
    assert "43" in page
    assert "not shown" not in page
    assert '<iframe class="live-page" src="live/index/hello.html" title="a greeting"' in page
    assert site.joinpath("live", "index", "hello.html").read_text() == "<p>Hello, Ada</p>\n"
    assert check_site(site) == []


def test_pages_of_an_earlier_build_are_forgotten(tmp_path: Path) -> None:
    build(tmp_path, GOOD)
    site, complaints = build(tmp_path, GOOD.replace("hello.html", "bye.html"))
    assert complaints == ""
    assert [path.name for path in site.rglob("live/*/*")] == ["bye.html"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```{run-python}\n1 / 0\n```", "ZeroDivisionError"),
        ("```{run-python}\n:contains: five\n4\n```", "lacks 'five'"),
        ("```{run-shell}\necho out; false; echo on\n```", "a block of this page fails:\nout"),
        ("```{live-page} nothing.html\n```", "has written nothing.html"),
    ],
)
def test_what_fails_is_an_error_of_the_build(tmp_path: Path, text: str, complaint: str) -> None:
    _, complaints = build(tmp_path, text)
    assert complaint in complaints


def test_only_the_last_expression_is_shown() -> None:
    assert run("1\n2\nx = 3", {})["output"] == ""
    assert run("1\n2", {})["output"] == "2\n"
    assert "SyntaxError" in run("1 +", {})["error"]


def test_terminal_leaves_out_colours_and_progress(tmp_path: Path) -> None:
    script = r"test -t 1; printf 'half\r\033[Kall \033[1mdone\033[0m\n'; echo $COLUMNS"
    assert run_on_terminal(script, tmp_path, 70) == "all done\n70\n"


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    pages = {
        "index.html": '<h1 id="top">A</h1> <a href="folder/b.html#part">b</a> <img src="no.png">',
        "folder/b.html": '<p id="other"><a href="../index.html#top">a</a> <a href="#nowhere">x</a>',
        "lost.html": '<a href="https://example.org/none">elsewhere</a>',
    }
    for name, text in pages.items():
        tmp_path.joinpath(name).parent.mkdir(exist_ok=True)
        tmp_path.joinpath(name).write_text(text)
    assert check_site(tmp_path) == [
        "folder/b.html links to #nowhere, which has no such anchor",
        "index.html links to folder/b.html#part, which has no such anchor",
        "index.html links to no.png, which does not exist",
        "no link leads to lost.html",
    ]


def test_versions_are_listed_and_the_latest_release_is_stable(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()

    def add(version: str) -> list[dict[str, object]]:
        built = tmp_path / version
        built.mkdir()
        built.joinpath("index.html").write_text(version)
        publish(built, site, "https://example.org/docs/", version)
        entries: list[dict[str, object]] = json.loads(site.joinpath("switcher.json").read_text())
        return entries

    assert add("0.2.0.dev0") == [{"version": "dev", "url": "https://example.org/docs/dev/"}]
    assert "url=dev/" in site.joinpath("index.html").read_text()
    for version in ("0.9.0", "0.10.0", "0.9.1", "0.11.0.dev0"):
        entries = add(version)
    stable = "https://example.org/docs/stable/"
    assert entries == [
        {"version": "dev", "url": "https://example.org/docs/dev/"},
        {"name": "0.10 (stable)", "version": "0.10", "url": stable, "preferred": True},
        {"version": "0.9", "url": "https://example.org/docs/0.9/"},
    ]
    shown = {
        place: site.joinpath(place, "index.html").read_text()
        for place in ("dev", "stable", "0.9", "0.10")
    }
    assert shown == {"dev": "0.11.0.dev0", "stable": "0.10.0", "0.9": "0.9.1", "0.10": "0.10.0"}
    assert "url=stable/" in site.joinpath("index.html").read_text()

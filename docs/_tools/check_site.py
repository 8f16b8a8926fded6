"""Check a built site: ``python docs/_tools/check_site.py build/docs``.

Sphinx checks the links that it makes. This checks what is in the pages at the end, raw HTML and
embedded files included: every link inside of the site leads to a file, and to an anchor in it, and
every page can be reached from the first one.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Sphinx makes them, and nothing links to some of them.
_MACHINERY = {"genindex.html", "py-modindex.html", "search.html"}


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag refers to, and what it is called."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.add(value)


def check_site(root: Path) -> list[str]:
    """Return what is wrong, one sentence for each."""
    files = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path) for path in files}
    troubles: list[str] = []
    neighbours: dict[Path, list[Path]] = {path: [] for path in pages}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            name = path.relative_to(root)
            if not target.is_file():
                troubles.append(f"{name} links to {link}, which does not exist")
            elif target in pages:
                neighbours[path].append(target)
                if unquote(parts.fragment) not in pages[target].anchors:
                    troubles.append(f"{name} links to {link}, which has no such anchor")
    reached, waiting = set(_MACHINERY), [root / "index.html"]
    while waiting:
        path = waiting.pop()
        if path.relative_to(root).as_posix() not in reached:
            reached.add(path.relative_to(root).as_posix())
            waiting.extend(neighbours[path])
    names = [path.relative_to(root).as_posix() for path in pages]
    return troubles + [f"no link leads to {name}" for name in names if name not in reached]


if __name__ == "__main__":
    found = check_site(Path(sys.argv[1]).resolve())
    for trouble in found:
        print(trouble, file=sys.stderr)
    sys.exit(bool(found))

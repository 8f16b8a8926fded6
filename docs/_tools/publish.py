"""Add a built site to a folder with the sites of all versions: ``make publish``.

``python docs/_tools/publish.py BUILT SITE BASE`` copies the site into ``SITE/dev`` or, for a
release, into ``SITE/0.2`` and, if no later one is there, into ``SITE/stable``. It then lists all
versions in ``switcher.json``, which the menu of versions reads, and lets ``SITE/index.html`` lead
to the stable one, or to ``dev`` before the first release. BASE is the address that SITE will have.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import qms22

_RELEASE = re.compile(r"\d+\.\d+")
_REDIRECT = """<!doctype html>
<html lang="en">
<title>qms22</title>
<meta http-equiv="refresh" content="0; url={place}/">
<a href="{place}/">The documentation of qms22</a>
</html>
"""


def folder_of(version: str) -> str:
    """Return where the site of a version belongs: "dev", or "0.2" for all releases 0.2.x."""
    return "dev" if "dev" in version else ".".join(version.split(".")[:2])


def publish(built: Path, site: Path, base: str, version: str) -> None:
    """Add the site of a version, and renew the list of versions."""
    _replace(built, site / folder_of(version))
    releases = [path.name for path in site.iterdir() if _RELEASE.fullmatch(path.name)]
    releases.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    if releases and releases[0] == folder_of(version):
        _replace(built, site / "stable")
    base = base.rstrip("/")
    entries = [
        {"name": f"{name} (stable)", "version": name, "url": f"{base}/stable/", "preferred": True}
        for name in releases[:1]
    ]
    entries += [{"version": name, "url": f"{base}/{name}/"} for name in releases[1:]]
    if (site / "dev").is_dir():
        entries.insert(0, {"version": "dev", "url": f"{base}/dev/"})
    (site / "switcher.json").write_text(json.dumps(entries, indent=2) + "\n")
    (site / "index.html").write_text(_REDIRECT.format(place="stable" if releases else "dev"))
    (site / ".nojekyll").touch()  # GitHub's pages would leave out the folders with an underscore


def _replace(built: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(built, place, ignore=shutil.ignore_patterns(".buildinfo*"))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("name the folder and its address: make publish SITE=folder BASE=https://…/")
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], qms22.__version__)

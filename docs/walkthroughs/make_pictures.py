"""Renew the pictures of the walkthroughs: ``python docs/walkthroughs/make_pictures.py``.

Makes the data, runs the command of each walkthrough and takes a picture of its page with Debian's
Chromium. What the commands print goes to the terminal, to be compared with what the pages quote.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1200, 1500

COMMANDS = {
    "orders": "orders-checked.csv orders-tuesday.csv --id order --top 10",
    "flights": "flights-may.csv flights-may-25.csv --top 10",
    "sensors": "weather-january.csv weather-february.csv --top 20",
    "patients": "patients-checked.csv patients-new.csv --id patient --fdr 0.1",
}


def write_pages(folder: Path) -> None:
    """Run the command of each walkthrough in a folder."""
    subprocess.run([sys.executable, HERE / "make_data.py", folder], check=True)
    for name, options in COMMANDS.items():
        print(f"\n$ qms22 detect {options} --report {name}.html", flush=True)
        command = [Path(sys.executable).parent / "qms22", "detect", *shlex.split(options)]
        subprocess.run([*command, "--report", f"{name}.html"], cwd=folder, check=True)


def take_pictures(folder: Path) -> None:
    """Take a picture of the upper part of each page, in light colours."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        for name in COMMANDS:
            page.goto((folder / f"{name}.html").as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            page.screenshot(path=HERE / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write_pages(Path(place))
        take_pictures(Path(place))

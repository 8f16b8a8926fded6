"""Renew the pictures and outputs in the documentation: ``make walkthroughs``.

Makes the data, runs the commands of each walkthrough as on a terminal, writes what they print
beside this file, and takes a picture of each page with Debian's Chromium; then one for the landing
page. The walkthroughs quote these files: if they change, read the words around them.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
DOCS = HERE.parent
WIDTH, HEIGHT = 1200, 1150

sys.path.insert(0, str(DOCS / "_tools"))
from terminal import run_on_terminal  # noqa: E402

COMMANDS = {
    "orders": "detect orders-checked.csv orders-tuesday.csv --id order --report orders.html",
    "orders-marked": "detect orders-checked.csv orders-tuesday.csv --id order "
    "--marks orders-marks.csv --history orders.sqlite --accept",
    "orders-history": "history orders.sqlite",
    "flights": "detect flights-may.csv flights-may-25.csv --ignore day --report flights.html",
    "sensors": "detect weather-january.csv weather-february.csv --top-k 20 --report sensors.html",
    "sensors-marked": "detect weather-january.csv weather-february.csv --top-k 20 "
    "--marks weather-marks.csv",
    "patients": "detect patients-checked.csv patients-new.csv --id patient "
    "--report patients.html --output patients.xlsx",
}
# The commands of docs/demo.md.
LANDING = """\
qms22 demo --output .
qms22 detect expenses-checked.csv expenses-new.csv --id claim --report expenses.html
"""


def take_picture(page: Path, height: int = HEIGHT) -> bytes:
    """Return a picture of the upper part of a page, in light colours, as PNG."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", state="attached")
        picture = tab.screenshot()
        browser.close()
    return picture


def renew_walkthroughs(folder: Path) -> None:
    """Write the outputs and pictures of the walkthroughs."""
    subprocess.run([sys.executable, HERE / "make_data.py", folder], check=True)
    for name, command in COMMANDS.items():
        print(f"qms22 {command}", flush=True)
        (HERE / f"{name}.txt").write_text(run_on_terminal(f"qms22 {command}", folder))
        if (folder / f"{name}.html").exists():
            (HERE / f"{name}.png").write_bytes(take_picture(folder / f"{name}.html"))


def renew_landing(folder: Path) -> None:
    """Write the picture of the landing page, as WebP, which is smaller."""
    run_on_terminal(LANDING, folder)
    picture = Image.open(io.BytesIO(take_picture(folder / "expenses.html", height=900)))
    picture.save(DOCS / "_static" / "report.webp", quality=80, method=6)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        renew_walkthroughs(Path(place))
        renew_landing(Path(place))

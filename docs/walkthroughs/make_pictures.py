"""Renew the pictures and outputs in the walkthroughs: ``make walkthroughs``.

Makes the data, runs the commands of each walkthrough as on a terminal, writes what they print
beside this file, and takes a picture of each page with Debian's Chromium. The walkthroughs quote
these files: if they change, read the words around them.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1200, 1150

COMMANDS = {
    "orders": "detect orders-checked.csv orders-tuesday.csv --id order --top 10 "
    "--report orders.html",
    "orders-marked": "detect orders-checked.csv orders-tuesday.csv --id order --fdr 0.1 "
    "--marks orders-marks.csv --history orders.sqlite --accept",
    "orders-history": "history orders.sqlite",
    "flights": "detect flights-may.csv flights-may-25.csv --ignore day --top 10 "
    "--report flights.html",
    "sensors": "detect weather-january.csv weather-february.csv --top 20 --report sensors.html",
    "sensors-marked": "detect weather-january.csv weather-february.csv --top 20 "
    "--marks weather-marks.csv",
    "patients": "detect patients-checked.csv patients-new.csv --id patient --fdr 0.1 "
    "--report patients.html --output patients.xlsx",
}


def run(command: str, folder: Path) -> str:
    """Run a command of qms22 on a terminal of 100 columns; return what it prints."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [Path(sys.executable).parent / "qms22", *command.split()],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    parts = []
    while True:
        try:
            parts.append(os.read(master, 65536))
        except OSError:  # Linux ends the output of a closed terminal like this
            break
    os.close(master)
    text = b"".join(parts).decode().replace("\r\n", "\n")
    if process.wait():
        raise SystemExit(f"qms22 {command}\n{text}")
    # Progress is written over itself; what counts is the rest of the line after it.
    text = re.sub(r"(?m)^.*\r(\x1b\[K)?", "", text)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def take_picture(page: Path, picture: Path) -> None:
    """Take a picture of the upper part of a page, in light colours."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", state="attached")
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([sys.executable, HERE / "make_data.py", folder], check=True)
        for name, command in COMMANDS.items():
            print(f"qms22 {command}", flush=True)
            (HERE / f"{name}.txt").write_text(run(command, folder))
            if (folder / f"{name}.html").exists():
                take_picture(folder / f"{name}.html", HERE / f"{name}.png")

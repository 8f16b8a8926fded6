"""The program `qms22`: a signal or a closed stream ends it in one line, also while it imports."""

from __future__ import annotations

import _thread
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

# What a shell expects of a program that Ctrl-C has ended.
_INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> NoReturn:
    """Run the command line, and end the process."""
    _open_closed_streams()
    sys.unraisablehook = _raise_later
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays in force
            signal.signal(number, _interrupt)
    try:
        from qms22.cli import main as run

        run()
    finally:
        # What is left is to clean up.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    sys.exit(0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """End the program; files that are not complete are removed on the way."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    start = b"\r\x1b[K" if os.isatty(2) else b""
    with suppress(OSError):
        os.write(2, start + b"Interrupted\n")
    sys.exit(_INTERRUPTED)


def _raise_later(unraisable: Any) -> None:
    """End the program also if the signal came where no exception can be raised."""
    if not isinstance(unraisable.exc_value, SystemExit):
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGINT, _exit_now)
    _thread.interrupt_main()


def _exit_now(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(_INTERRUPTED)


def _open_closed_streams() -> None:
    """Give standard streams that the caller has closed to nobody, lest a file take their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            setattr(sys, name, open(number, mode))  # noqa: SIM115


if __name__ == "__main__":
    main()

"""The program `qms22`: a signal or a closed stream ends it in one line, also while it imports."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

# What a shell expects of a program that Ctrl-C has ended.
_INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 0.1  # seconds


def main() -> NoReturn:
    """Run the command line, and end the process."""
    _open_closed_streams()
    for name in ("stdout", "stderr"):
        _let_reader_leave(name)
    sys.unraisablehook = _hide_interrupts
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays in force
            signal.signal(number, _interrupt)
    try:
        from qms22._runtime.packages import import_late
        from qms22.cli import main as run

        # scikit-learn imports it, which takes 0.3 s, and a search seldom uses it.
        import_late("scipy.stats")
        run()
    finally:
        # What is left is to clean up.
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    sys.exit(0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """End the program; files that are not complete are removed on the way."""
    for each in _SIGNALS:
        signal.signal(each, _interrupt_again)
    start = b"\r\x1b[K" if os.isatty(2) else b""
    with suppress(OSError):
        os.write(2, start + b"Interrupted\n")
    # Compiled code loses an exception here and there.
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _interrupt_again)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE, _PATIENCE)
    sys.exit(_INTERRUPTED)


def _interrupt_again(number: int, frame: FrameType | None) -> None:
    """End the program unless it is just about to."""
    handled = sys.exc_info()[1]
    while handled is not None:
        if isinstance(handled, SystemExit):
            return
        handled = handled.__context__
    sys.exit(_INTERRUPTED)


def _hide_interrupts(unraisable: Any) -> None:
    """Show what could not be raised, except an interrupt: that comes again."""
    if not isinstance(unraisable.exc_value, SystemExit):
        sys.__unraisablehook__(unraisable)


def _open_closed_streams() -> None:
    """Open standard streams that the caller has closed on nothing, lest a file take their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


class _Output(io.FileIO):
    """A standard stream; if nobody reads it any more, what is written to it is lost."""

    def write(self, data: Any) -> int:
        with suppress(BrokenPipeError):
            return super().write(data)
        return len(data)


def _let_reader_leave(name: str) -> None:
    """Let a pipe end early: that changes neither the exit code nor what is written to files."""
    old = getattr(sys, name)
    buffer = io.BufferedWriter(_Output(old.fileno(), "w", closefd=False))
    new = io.TextIOWrapper(buffer, old.encoding, old.errors, line_buffering=old.line_buffering)
    setattr(sys, name, new)


if __name__ == "__main__":
    main()

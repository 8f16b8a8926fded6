"""Pieces of a text as a file for pyarrow, which reads ahead in a thread of its own."""

from __future__ import annotations

import atexit
import io
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event
from typing import Any

_BUFFER = 1 << 18
# A thread that has not asked for more after so many seconds waits for something else.
_SECONDS = 0.05


class Blocks(io.RawIOBase):
    """Pieces of a file as a file.

    Parameters
    ----------
    blocks : iterable of bytes
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._held = b""
        self._n_reads = 0
        self._is_reading = False
        self._ended = Event()

    def as_file(self) -> io.BufferedReader:
        """Return a file that reads the pieces."""
        return io.BufferedReader(self, _BUFFER)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        self._n_reads += 1
        self._is_reading = True
        size = 0
        try:
            while not self._held and (block := next(self._blocks, None)) is not None:
                self._held = block
            size = min(len(buffer), len(self._held))
            buffer[:size] = self._held[:size]
            self._held = self._held[size:]
            return size
        finally:
            self._is_reading = False
            if not size:
                self._ended.set()

    @contextmanager
    def read_ahead(self) -> Iterator[list[Any]]:
        """Let no thread read after the block, nor while Python ends, which aborts the process.

        An error may keep a reader of the table alive until then, so it is also ended at exit.

        Yields
        ------
        list
            For the reader of pyarrow, once there is one.
        """
        readers: list[Any] = []
        end = partial(self._end, readers)
        atexit.register(end)
        try:
            yield readers
        except (OSError, ValueError):  # of pyarrow, which can read no more
            readers.clear()
            raise
        finally:
            end()
            atexit.unregister(end)

    def _end(self, readers: list[Any]) -> None:
        """Let the file end here, and wait until the thread that reads it has ended."""
        self._blocks = iter(())
        # The last row may be cut now, and the rows before it were not looked at.
        with suppress(OSError, ValueError):
            for reader in readers:
                for _ in reader:
                    pass
                reader.close()
                return
        n_reads = -1
        while not self._ended.wait(_SECONDS) and (self._is_reading or n_reads != self._n_reads):
            n_reads = self._n_reads
        time.sleep(_SECONDS)  # the thread returns what it has read

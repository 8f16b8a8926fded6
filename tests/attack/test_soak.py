"""Many searches in one process."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from soak import soak, write_tables


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("threads_at_once", [1, 8])
def test_soak(tmp_path: Path, threads_at_once: int) -> None:
    """Searches one by one and in eight threads: no more open files, threads or memory"""
    write_tables(tmp_path)
    first, *_, last = islice(soak(tmp_path, 600, threads_at_once, every=8), 3)
    # What an hour shows to the kilobyte: here, allocators still fill.
    assert last.bytes < first.bytes + 1e8
    assert last.files <= first.files
    assert last.threads <= first.threads + 2

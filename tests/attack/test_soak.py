"""Many searches in one process."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from soak import soak, write_tables


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_soak(tmp_path: Path) -> None:
    """Searches in eight threads: no more open files, threads or memory"""
    write_tables(tmp_path)
    # Three samples have all formats in them; what is imported later stays.
    _, _, first, _, last = islice(soak(tmp_path, 600, threads_at_once=8, every=8), 5)
    assert last.used < first.used + 500_000
    assert last.blocks < first.blocks + 2000
    # What is free between what is in use is not a leak, but it has bounds.
    assert last.bytes < first.bytes + 1e8
    assert last.files <= first.files
    assert last.threads <= first.threads + 2

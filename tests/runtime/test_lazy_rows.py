from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qms22._runtime.arrays import as_host, is_on_gpu
from qms22._runtime.lazy_rows import LazyRows

ROWS = np.arange(60, dtype=np.float32).reshape(20, 3)
POSITIONS = np.random.RandomState(0).permutation(20)[:7]

PARTS = [
    *(slice(*ends) for ends in ((None,), (0,), (3, 6), (5, 99))),
    np.array([6, 0, 3, 3]),
    np.array([2, 1]),
    np.array([], dtype=int),
]


@pytest.mark.parametrize("which", PARTS, ids=str)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_selected_rows(which: Any, device: str, fake_cupy: Any) -> None:
    table = LazyRows(ROWS).select(POSITIONS)
    assert table.shape == (7, 3)
    assert not table.is_on_gpu
    found = table.read(which, device)
    assert is_on_gpu(found) == (device == "cuda")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(as_host(found), ROWS[POSITIONS][which])


def test_rows_in_a_foreign_byte_order(fake_cupy: Any) -> None:
    found = LazyRows(ROWS.astype(ROWS.dtype.newbyteorder())).read(slice(2, 5), "cuda")
    np.testing.assert_array_equal(as_host(found), ROWS[2:5])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_missing_values_are_named(device: str, fake_cupy: Any) -> None:
    rows = ROWS.copy()
    rows[7, 1] = np.nan
    table = LazyRows(rows, "unlabeled")
    assert len(table.read(slice(7), device)) == 7
    with pytest.raises(ValueError, match=r"column 1 of unlabeled has 1 NaN .* \(first at row 7\)"):
        table.read(slice(5, 9), device)

"""The choice of blocks and threads, and the memory that a fit takes on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from tasks import random_task

from qms22._cpm.cuda.fit_memory import bytes_of_fits, columns_of, rows_per_pack
from qms22._cpm.cuda.kernel import MOST_THREADS, choose_shape, kernel_source
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._runtime.devices import Gpu
from qms22._runtime.kernels import source_text

H200 = Gpu(n_multiprocessors=132, shared_bytes=232_448, has_clusters=True)


def test_memory_is_counted() -> None:
    task = random_task("weighted classes", 3, n_features=4, seed=0, n_rows=1_002)
    columns = columns_of(task.X, "float32", np)
    arrays = 1_004 * ((4 + 1) + 2 + 3 + 4 + 1) * 4 + 1_004 * 4
    assert columns.shape == (5, 1_004)
    fit = Fit.of(task, SolverOptions(n_components=2))
    assert bytes_of_fits([fit], "float32") == arrays
    # Fits of the same rows share them.
    both = bytes_of_fits([fit, fit], "float32")
    assert both == 2 * arrays - columns.nbytes


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n_rows", [1, 7, 300, 2_000, 5_000, 50_000, 10**6, 10**7, 10**9])
def test_shapes_hold_all_rows(n_rows: int, precision: str) -> None:
    for gpu in (H200, Gpu(20, 48 * 1024, has_clusters=False)):
        for n_fits in (1, 100):
            shape = choose_shape(n_rows, precision, gpu, n_fits)
            assert shape.n_threads % 32 == 0
            assert shape.n_threads <= MOST_THREADS[precision]
            assert shape.rows_per_load <= rows_per_pack(precision)
            assert shape.shared_bytes < gpu.shared_bytes
            itemsize = np.dtype(precision).itemsize
            rows_of_block = shape.shared_bytes / (5 * itemsize)
            assert not shape.shared_bytes or rows_of_block * shape.n_blocks >= n_rows
            assert gpu.has_clusters or not shape.team.startswith("Cluster")
            source = kernel_source(shape.team, precision, shape.rows_per_load, True, 256)
            assert shape.team in source
            assert "#include" not in source


def test_shapes_grow_with_the_rows() -> None:
    teams = [choose_shape(n, "float32", H200).team for n in (200, 4_000, 10**6)]
    assert teams == ["Alone", "Cluster<8>", "Grid"]
    assert choose_shape(10**6, "float32", H200).shared_bytes > 0
    assert choose_shape(10**7, "float32", H200).shared_bytes == 0
    # Where there are more fits than clusters each has a block.
    assert choose_shape(4_000, "float32", H200, n_fits=100).team == "Alone"
    # Without clusters as well: a grid has one fit only.
    older = Gpu(n_multiprocessors=108, shared_bytes=166_912, has_clusters=False)
    assert choose_shape(4_000, "float32", older).team == "Grid"
    assert choose_shape(4_000, "float32", older, n_fits=3).team == "Alone"


def test_sources_are_read_once() -> None:
    names = ("qms22._cpm.cuda", "rows.hpp", "scores.cu")
    assert source_text(*names) is source_text(*names)

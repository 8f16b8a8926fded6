"""The choice of a team of blocks, and the kernel compiled for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qms22._cpm.cuda.fit_memory import rows_per_pack
from qms22._runtime.devices import Gpu, need_cupy
from qms22._runtime.kernels import compile_kernel, source_text

# Entries that one pass over the rows tries; see rows.hpp.
DEPTH = 2

# Sums that blocks exchange after a pass: kChanges<DEPTH> of rows.hpp.
SLOTS = 8

# Blocks of a cluster: the most that every GPU with clusters allows.
CLUSTER = 8

# Rows up to which a smaller team is faster, since it synchronizes faster. Measured on an H200.
ROWS_ALONE = {"float64": 256, "float32": 512}
ROWS_OF_CLUSTER = {"float64": 3_000, "float32": 6_000}

# Threads of a block: few enough for each to have all its registers, and the most.
FEW_THREADS = 256
MOST_THREADS = {"float64": 384, "float32": 512}

# Columns of a row's state that are kept in shared memory: residual, f, S1, S2 and slack.
_STATE_COLUMNS = 5

# Shared memory that the kernel needs besides, at most.
_OTHER_SHARED_BYTES = 4 * 1024


@dataclass(frozen=True)
class Shape:
    """A team of blocks for one fit."""

    team: str  # a class of teams.hpp: ``Alone``, ``Cluster<8>`` or ``Grid``
    n_blocks: int  # of the team
    n_threads: int  # of a block
    rows_per_load: int  # that a thread loads at once
    shared_bytes: int  # of a block for the state of its rows; 0 if that is in device memory

    @property
    def needs_permission(self) -> bool:
        """Whether a block needs more than 48 KB in all, which CUDA allows on request only."""
        return self.shared_bytes + _OTHER_SHARED_BYTES > 48 * 1024


def choose_shape(n_rows: int, precision: str, gpu: Gpu, n_fits: int = 1) -> Shape:
    """Choose the team of each of `n_fits` fits side by side, with at most `n_rows` rows."""
    is_small = n_rows <= ROWS_OF_CLUSTER[precision]
    has_clusters_for_all = gpu.has_clusters and n_fits * CLUSTER <= gpu.n_multiprocessors
    if is_small and n_rows > ROWS_ALONE[precision] and has_clusters_for_all:
        return shape_of(f"Cluster<{CLUSTER}>", CLUSTER, n_rows, precision, gpu)
    # A grid has one fit only; clusters and blocks have one each.
    if n_rows <= ROWS_ALONE[precision] or (is_small and n_fits > 1):
        return shape_of("Alone", 1, n_rows, precision, gpu)
    return shape_of("Grid", gpu.n_multiprocessors, n_rows, precision, gpu)


def shape_of(team: str, n_blocks: int, n_rows: int, precision: str, gpu: Gpu) -> Shape:
    """Distribute rows over the threads of a team."""
    pack = rows_per_pack(precision)
    rows_of_block = -(-n_rows // n_blocks)
    # Few rows per thread as long as there are threads for them. A row that needs O(m) time delays
    # the others of its thread, so that a single block, for small fits, loads them one by one.
    rows_per_load = 1
    while team != "Alone" and rows_per_load < pack and rows_per_load * FEW_THREADS < rows_of_block:
        rows_per_load *= 2
    n_threads = -(-rows_of_block // (rows_per_load * 32)) * 32
    n_threads = min(n_threads, MOST_THREADS[precision] if rows_per_load == pack else FEW_THREADS)
    if team == "Grid":  # every block reads the sums of all others, which many threads do faster
        n_threads = max(n_threads, FEW_THREADS)
    itemsize = np.dtype(precision).itemsize
    shared_bytes = _STATE_COLUMNS * itemsize * (-(-rows_of_block // pack) * pack + pack)
    if shared_bytes > gpu.shared_bytes - _OTHER_SHARED_BYTES:
        shared_bytes = 0
    return Shape(team, n_blocks, n_threads, rows_per_load, shared_bytes)


_PACKAGE = "qms22._cpm.cuda"
_SOURCES = ("rows.hpp", "packs.hpp", "teams.hpp", "passes.hpp", "cpm.cu")

_ENTRY_POINT = """
extern "C" __global__ {cluster} __launch_bounds__({most_threads}, 1)
void fit(const qms22::Fit<{real}>* fits, int n_sweeps, bool fresh,
         unsigned long long* tagged_sums) {{
    using namespace qms22;
    sweep<{team}, {resident}, {rows}, {real}, {depth}>(fits, n_sweeps, fresh, tagged_sums);
}}
"""


def kernel_source(
    team: str, precision: str, rows_per_load: int, is_resident: bool, most_threads: int
) -> str:
    """Return the source of the kernel for one kind of team."""
    return source_text(_PACKAGE, *_SOURCES) + _ENTRY_POINT.format(
        cluster=f"__cluster_dims__({CLUSTER}, 1, 1)" if team.startswith("Cluster") else "",
        most_threads=most_threads,
        team=team,
        resident=str(is_resident).lower(),
        rows=rows_per_load,
        real={"float64": "double", "float32": "float"}[precision],
        depth=DEPTH,
    )


def kernel_of(shape: Shape, precision: str) -> Any:
    """Return the kernel for a shape on the current GPU; compile it on first use."""
    most_threads = FEW_THREADS if shape.n_threads <= FEW_THREADS else MOST_THREADS[precision]
    source = kernel_source(
        shape.team, precision, shape.rows_per_load, shape.shared_bytes > 0, most_threads
    )
    # In float64 results are rounded as on the CPU: no fused multiply-add.
    options = ("--fmad=false",) if precision == "float64" else ()
    device = need_cupy().cuda.Device().id
    return compile_kernel(source, "fit", options, shape.team == "Grid", device)

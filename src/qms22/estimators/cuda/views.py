"""Distances to references and scores of forests, of CuPy rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import address, array_module, to_device_of
from qms22._runtime.devices import need_cupy
from qms22._runtime.kernels import compile_kernel, source_text

_THREADS = 128

# Shared memory for references: more would leave room for fewer blocks.
_TILE_BYTES = 32 * 1024

# kGroup of views.hpp.
_GROUP = 8


def nearest_products(rows: Any, references: Any, *, skip: Any = None, floor: float) -> Any:
    """Compute what ``_core.nearest_products`` does, to the same bits, of CuPy rows.

    Parameters
    ----------
    rows : CuPy array of shape (n, p)
        In float64 or float32.
    references : array of shape (n_references, p)
        Of NumPy or CuPy, in the precision of the rows.
    skip : array of shape (n,) or None
        For every row a reference that does not count, or -1.
    floor : float
        Added to distances.

    Returns
    -------
    CuPy array of shape (n,)
    """
    cupy = need_cupy()
    # Threads read neighboring rows at the same time: column by column they are side by side.
    rows = cupy.asfortranarray(rows)
    packed = cupy.asarray(pack_references(references))
    skip = None if skip is None else cupy.asarray(skip, dtype=np.int64)
    record = comparison_record(rows, packed, len(references), skip, floor)
    products = cupy.empty(len(rows))
    n_bytes = int(record["groups_per_tile"]) * packed[0].nbytes
    _launch(f"nearest_{rows.dtype.name}", len(rows), (record, products), n_bytes)
    return products


def forest_scores(
    bins: Any, first_node: Any, feature: Any, threshold: Any, child: Any, value: Any
) -> Any:
    """Compute what ``_core.forest_scores`` does, to the same bits, of CuPy bins (p, n).

    Nodes are copied to the GPU if they are not there; see `qms22.estimators.forest.Forest`.
    """
    cupy = need_cupy()
    nodes = pack_nodes(*(to_device_of(array, bins) for array in (feature, threshold, child)))
    value, first_node = to_device_of(value, bins), to_device_of(first_node, bins)
    n_rows = bins.shape[1]
    scores = cupy.empty(n_rows)
    record = trees_record(nodes, value, first_node)
    _launch("forest_scores", n_rows, (record, bins, np.int64(n_rows), scores))
    return scores


def pack_references(references: Any) -> Any:
    """Return references in groups (n_groups, p, 8); the last one is filled up with infinity."""
    xp = array_module(references)
    n_references, n_features = references.shape
    n_groups = -(-n_references // _GROUP)
    padded = xp.full((n_groups * _GROUP, n_features), np.inf, dtype=references.dtype)
    padded[:n_references] = references
    return xp.ascontiguousarray(padded.reshape(n_groups, _GROUP, n_features).transpose(0, 2, 1))


def comparison_record(
    rows: Any, packed: Any, n_references: int, skip: Any, floor: float
) -> NDArray[np.void]:
    """Return the ``struct Comparison`` of views.hpp for packed references."""
    integers = ("n_rows", "row_stride", "column_stride")
    counts = ("n_features", "n_references", "n_groups", "groups_per_tile")
    layout = np.dtype(
        [
            ("rows", np.uint64),
            *((name, np.int64) for name in integers),
            ("references", np.uint64),
            ("skip", np.uint64),
            *((name, np.int32) for name in counts),
            ("floor", rows.dtype),
        ],
        align=True,
    )
    row_stride, column_stride = (n // rows.itemsize for n in rows.strides)
    groups_per_tile = min(len(packed), _TILE_BYTES // packed[0].nbytes)
    return np.array(
        (
            address(rows),
            *(len(rows), row_stride, column_stride),
            address(packed),
            address(skip),
            *(rows.shape[1], n_references, len(packed), groups_per_tile),
            floor,
        ),
        dtype=layout,
    )


def pack_nodes(feature: Any, threshold: Any, child: Any) -> Any:
    """Return nodes as pairs of int32: what one load of 8 bytes brings."""
    nodes = array_module(child).empty((len(child), 2), dtype=np.int32)
    nodes[:, 0] = child
    nodes[:, 1] = feature * 256 + threshold
    return nodes


def trees_record(nodes: Any, value: Any, first_node: Any) -> NDArray[np.void]:
    """Return the ``struct Trees`` of views.hpp for packed nodes."""
    pointers = ("nodes", "values", "first_node")
    layout = np.dtype(
        [*((name, np.uint64) for name in pointers), ("n_trees", np.int32)], align=True
    )
    addresses = (address(array) for array in (nodes, value, first_node))
    return np.array((*addresses, len(first_node) - 1), dtype=layout)


def _launch(name: str, n_rows: int, arguments: tuple[Any, ...], shared_bytes: int = 0) -> None:
    source = source_text("qms22.estimators.cuda", "views.hpp", "views.cu")
    # Results are rounded as on the CPU: no fused multiply-add.
    kernel = compile_kernel(source, name, ("--fmad=false",), False, need_cupy().cuda.Device().id)
    kernel((-(-n_rows // _THREADS),), (_THREADS,), arguments, shared_mem=shared_bytes)

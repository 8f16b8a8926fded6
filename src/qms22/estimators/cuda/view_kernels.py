"""What views compute of CuPy rows: distances to references, scores of forests, shares, hashes.

Each is one kernel of one source: on a new machine, a compiler has little to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import address, array_module
from qms22._runtime.devices import need_cupy
from qms22._runtime.kernels import compile_kernel, source_text, struct

# Threads of a block, a multiple of 32: few, as each holds many neighbors in registers.
_THREADS = 128

# Shared memory for references: more would leave room for fewer blocks.
_TILE_BYTES = 32 * 1024

# kGroup of views.hpp.
_GROUP = 8


def nearest_products(rows: Any, references: Any, *, skip: Any = None, floor: float) -> Any:
    """Compute what ``_core.nearest_products`` does, to the same bits, of CuPy rows.

    References are NumPy's or CuPy's, in the precision of the rows, float64 or float32.
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

    See `qms22.estimators.forest.Forest`.
    """
    cupy = need_cupy()
    nodes = cupy.asarray(pack_nodes(feature, threshold, child))
    value, first_node = cupy.asarray(value), cupy.asarray(first_node)
    n_rows = bins.shape[1]
    scores = cupy.empty(n_rows)
    record = trees_record(nodes, value, first_node)
    _launch("forest_scores", n_rows, (record, bins, np.int64(n_rows), scores))
    return scores


def find_bins(rows: Any, edges: Any) -> Any:
    """Return the bins (p, n) of CuPy rows: how many edges (p, n_edges) of its column are below."""
    cupy = need_cupy()
    rows, edges = rows.astype(np.float64, copy=False), cupy.asarray(edges)
    bins = cupy.empty(rows.T.shape, dtype=np.uint8)
    arguments = (rows_record(rows), edges, np.int32(edges.shape[1]), bins)
    _launch("find_bins", len(rows), arguments)
    return bins


def log_p_values(scores: Any, ascending: NDArray[np.float64], deviation: float) -> Any:
    """Compute what ``HeldOutScores.log_p_values`` does, of CuPy scores."""
    cupy = need_cupy()
    scores, ascending = cupy.ascontiguousarray(scores), cupy.asarray(ascending)
    logarithms, n = cupy.empty(len(scores)), len(scores)
    known = (ascending, np.int64(len(ascending)), np.float64(deviation))
    _launch("log_p_values", n, (scores, np.int64(n), *known, logarithms))
    return logarithms


def hash_rows(rows: Any) -> Any:
    """Compute what ``qms22.estimators.held_out.hash_rows`` does, of CuPy rows."""
    rows = rows.astype(np.float64, copy=False)
    keys = need_cupy().empty(len(rows), dtype=np.uint64)
    _launch("hash_rows", len(rows), (rows_record(rows), keys))
    return keys


def replace_known(scores: Any, keys: Any, known: Any, kept: Any) -> Any:
    """Return CuPy scores, with kept ones where a key is among the known ones, which ascend."""
    cupy = need_cupy()
    replaced, n = cupy.empty(len(scores)), np.int64(len(scores))
    learned = (cupy.asarray(known), cupy.asarray(kept), np.int64(len(known)))
    _launch("replace_known", len(scores), (keys, n, *learned, scores, replaced))
    return replaced


def add_logarithms(totals: Any, terms: Any) -> Any:
    """Set CuPy totals to log(exp(totals) + exp(terms)), and return them."""
    _launch("add_logarithms", len(terms), (terms, np.int64(len(terms)), totals))
    return totals


def add_weighted(totals: Any, weight: float, terms: Any) -> None:
    """Add CuPy terms with a weight to totals."""
    _launch("add_weighted", len(terms), (terms, np.float64(weight), np.int64(len(terms)), totals))


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
    return struct(
        (np.uint64, {"rows": address(rows)}),
        (np.int64, _extent(rows)),
        (np.uint64, {"references": address(packed), "skip": address(skip)}),
        (
            np.int32,
            {
                "n_features": rows.shape[1],
                "n_references": n_references,
                "n_groups": len(packed),
                "groups_per_tile": min(len(packed), _TILE_BYTES // packed[0].nbytes),
            },
        ),
        (rows.dtype, {"floor": floor}),
    )


def rows_record(rows: Any) -> NDArray[np.void]:
    """Return the ``struct Rows`` of views.hpp."""
    return struct(
        (np.uint64, {"values": address(rows)}),
        (np.int64, _extent(rows)),
        (np.int32, {"n_features": rows.shape[1]}),
    )


def _extent(rows: Any) -> dict[str, int]:
    row_stride, column_stride = (n // rows.itemsize for n in rows.strides)
    return {"n_rows": len(rows), "row_stride": row_stride, "column_stride": column_stride}


def pack_nodes(feature: Any, threshold: Any, child: Any) -> Any:
    """Return nodes as pairs of int32: what one load of 8 bytes brings."""
    nodes = array_module(child).empty((len(child), 2), dtype=np.int32)
    nodes[:, 0] = child
    nodes[:, 1] = feature * 256 + threshold
    return nodes


def trees_record(nodes: Any, value: Any, first_node: Any) -> NDArray[np.void]:
    """Return the ``struct Trees`` of views.hpp for packed nodes."""
    arrays = {"nodes": nodes, "values": value, "first_node": first_node}
    return struct(
        (np.uint64, {name: address(array) for name, array in arrays.items()}),
        (np.int32, {"n_trees": len(first_node) - 1}),
    )


def _launch(name: str, n_rows: int, arguments: tuple[Any, ...], shared_bytes: int = 0) -> None:
    # Results are rounded as on the CPU: no fused multiply-add.
    file, options = "views.cu", ["--fmad=false"]
    if name.startswith("nearest_float"):
        file, options = "nearest.cu", [*options, f"-DQMS22_BITS={name[-2:]}"]
    source = source_text("qms22.estimators.cuda", "views.hpp", file)
    kernel = compile_kernel(source, name, tuple(options), False, need_cupy().cuda.Device().id)
    kernel((-(-n_rows // _THREADS),), (_THREADS,), arguments, shared_mem=shared_bytes)

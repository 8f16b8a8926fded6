"""The layout of a task's rows over shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22._core import BLOCK_ROWS


@dataclass(frozen=True)
class Layout:
    """The shard of each block.

    A row's *place* is its position among all rows sorted by group.

    Parameters
    ----------
    starts : ndarray of shape (n_groups,)
        The place of the first row of each group.
    shard_of_block : ndarray of shape (n_blocks,)
    """

    starts: NDArray[np.int64]
    shard_of_block: NDArray[np.int64]

    @classmethod
    def deal(cls, group: NDArray[np.int32], n_unlabeled: int, shares: Sequence[float]) -> Layout:
        """Assign blocks to shards so that neighbouring rows of S or T mostly stay together.

        Parameters
        ----------
        group : ndarray of shape (n,)
            The group of each row, S before T.
        n_unlabeled : int
            Rows of S.
        shares : sequence of float
            The proportion of rows for each shard; the first one gets the first rows of S and of T.
        """
        sizes = np.bincount(group)
        starts = np.cumsum(sizes) - sizes
        first_row = np.empty(-(-len(group) // BLOCK_ROWS), dtype=np.int64)  # of each block
        for number, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            blocks = np.arange(-(-start // BLOCK_ROWS), -(-(start + size) // BLOCK_ROWS))
            first_row[blocks] = np.flatnonzero(group == number)[blocks * BLOCK_ROWS - start]
        n_normal = len(group) - n_unlabeled
        depth = np.where(
            first_row < n_unlabeled,
            first_row / n_unlabeled,
            (first_row - n_unlabeled) / n_normal,
        )
        ends = np.cumsum(shares) / np.sum(shares)
        return cls(starts, np.searchsorted(ends[:-1], depth, side="right"))

    def blocks_of(self, shard: int) -> NDArray[np.int64]:
        """Return the blocks of a shard, in order."""
        return np.flatnonzero(self.shard_of_block == shard)

    def routes(self, group: NDArray[np.int32], chunk_sizes: Sequence[int]) -> list[Route]:
        """Return the route of each chunk; chunks are consecutive rows of S, then T."""
        small = np.min_scalar_type(len(self.starts))
        next_place, routes, first = self.starts, [], 0
        for size in chunk_sizes:
            of_chunk = group[first : first + size]
            routes.append(Route(of_chunk.astype(small), next_place))
            next_place = next_place + np.bincount(of_chunk, minlength=len(self.starts))
            first += size
        return routes


@dataclass(frozen=True)
class Route:
    """The places of one chunk's rows.

    Parameters
    ----------
    group : ndarray of shape (n_rows,)
        The group of each row.
    next_place : ndarray of shape (n_groups,)
        The place of the chunk's first row of each group; its next rows follow there.
    """

    group: NDArray[np.integer]
    next_place: NDArray[np.int64]

    def shards(self, layout: Layout) -> list[int]:
        """Return the shards that hold rows of the chunk."""
        counts = np.bincount(self.group, minlength=len(self.next_place))
        touched = [
            layout.shard_of_block[first // BLOCK_ROWS : (first + count - 1) // BLOCK_ROWS + 1]
            for first, count in zip(self.next_place, counts, strict=True)
            if count
        ]
        return [int(shard) for shard in np.unique(np.concatenate(touched))] if touched else []

    def pieces(self, rows: NDArray[np.float64], layout: Layout) -> dict[int, ShardPiece]:
        """Cut the chunk's rows into the pieces of the shards."""
        order = np.argsort(self.group, kind="stable")
        counts = np.bincount(self.group, minlength=len(self.next_place))
        of_first = np.repeat(self.next_place - (np.cumsum(counts) - counts), counts)
        places = of_first + np.arange(len(rows))
        shard = layout.shard_of_block[places // BLOCK_ROWS]
        return {
            number: ShardPiece(places[shard == number], rows[order[shard == number]])
            for number in self.shards(layout)
        }


@dataclass(frozen=True)
class ShardPiece:
    """Scaled rows of one chunk for one shard, and their places."""

    places: NDArray[np.int64]
    rows: NDArray[np.float64]

"""Slow and obvious trees of a forest, with the random draws of cpp/forest.cpp."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

MASK = 2**64 - 1


class Random:
    """The generator splitmix64."""

    def __init__(self, seed: int, tree: int) -> None:
        self.state = seed
        self.state = (self.next() + tree) & MASK
        self.state = self.next()

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        return (self.next() >> 32) * n >> 32


class NaiveTree:
    """One tree on bins (n, p) and labels (n), both weights the same in all."""

    def __init__(
        self,
        bins: NDArray[np.uint8],
        labels: NDArray[np.float64],
        min_leaf: int,
        random: Random,
    ) -> None:
        self.bins = bins.astype(int)
        self.labels = labels
        self.min_leaf = min_leaf
        self.random = random
        self.drawn = self.draw()
        self.features = list(range(bins.shape[1]))
        self.nodes: list[tuple[int, int, int, float]] = []  # feature, threshold, child, value
        self.add_leaf()
        self.grow(0, np.flatnonzero(self.drawn), 0)

    def draw(self) -> NDArray[np.int64]:
        """Return how often each row is drawn."""
        n = len(self.bins)
        drawn = np.zeros(n, dtype=np.int64)
        for _ in range(n):
            drawn[self.random.below(n)] += 1
        return drawn

    def add_leaf(self) -> int:
        self.nodes.append((0, 255, len(self.nodes), 0.0))
        return len(self.nodes) - 1

    def classes(self, rows: NDArray[np.int64]) -> tuple[float, float]:
        """Return the weight of both classes among rows."""
        normal = float((self.drawn * (1 - self.labels))[rows].sum())
        batch = float((self.drawn * self.labels)[rows].sum())
        normal *= 1 / (1 - self.labels).sum() if (self.labels < 1).any() else 0.0
        batch *= 1 / self.labels.sum() if (self.labels > 0).any() else 0.0
        return normal, batch

    def purity(self, rows: NDArray[np.int64]) -> float:
        """Return the weight of rows times 1 minus their Gini impurity."""
        normal, batch = self.classes(rows)
        return (normal * normal + batch * batch) / (normal + batch)

    def grow(self, node: int, rows: NDArray[np.int64], n_constant: int) -> None:
        normal, batch = self.classes(rows)
        best = None
        if len(rows) >= 2 * self.min_leaf and normal > 0 and batch > 0:
            best, n_constant = self.best_split(rows, n_constant)
        if best is None:
            self.nodes[node] = (*self.nodes[node][:3], batch / (normal + batch))
            return
        feature, threshold = best
        left, right = self.add_leaf(), self.add_leaf()
        self.nodes[node] = (feature, threshold, left, 0.0)
        is_left = self.bins[rows, feature] <= threshold
        self.grow(left, rows[is_left], n_constant)
        self.grow(right, rows[~is_left], n_constant)

    def best_split(
        self, rows: NDArray[np.int64], n_known: int
    ) -> tuple[tuple[int, int] | None, int]:
        """Return the best split or None, and the number of columns known to be constant."""
        features, p = self.features, len(self.features)
        constant, undrawn_known, end = n_known, n_known, p
        n_drawn, tried_one = 0, False
        best, best_purity = None, -math.inf
        while constant < end and (n_drawn < max(1, math.isqrt(p)) or not tried_one):
            n_drawn += 1
            place = self.random.below(undrawn_known + end - constant)
            if place < undrawn_known:
                undrawn_known -= 1
                continue
            place += constant - undrawn_known
            feature = features[place]
            column = self.bins[rows, feature]
            low, high = int(column.min()), int(column.max())
            if low == high:
                features[place], features[constant] = features[constant], features[place]
                constant += 1
                continue
            tried_one = True
            end -= 1
            features[place], features[end] = features[end], features[place]
            threshold = low + self.random.below(high - low)
            left, right = rows[column <= threshold], rows[column > threshold]
            if min(len(left), len(right)) < self.min_leaf:
                continue
            purity = self.purity(left) + self.purity(right)
            if purity > best_purity:
                best, best_purity = (feature, threshold), purity
        return best, constant

    def value(self, row: NDArray[np.uint8]) -> float:
        """Return the value of a row's leaf."""
        node = 0
        while True:
            feature, threshold, child, value = self.nodes[node]
            if child == node:
                return value
            node = child + int(row[feature] > threshold)

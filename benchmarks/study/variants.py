"""The variants of the study: other weights, other distances, other self-training, and rivals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.stats import rankdata

from qms22_bench import registry
from study.pieces import Array, Distances, Pieces, Scored

Variant: TypeAlias = Callable[[Pieces], Array]

SELF_TRAINING = "self_training"


@dataclass(frozen=True)
class Fusion:
    """The weighted sum of −log p over the views; the defaults are what is shipped.

    Parameters
    ----------
    without : str or None
        A view that is left out. Without one of QMS22 and distances, the other gets its weight.
    trust : {"agreement", "equal", "none"}
        Weights before excess is added. "none" is equal weights if no view has any excess.
    power : float
        QMS22 gets the rank correlation of its splits to this power.
    fixed : mapping of str to float
        Views with a fixed trust.
    excess_weight, chance, most_suspicious : float
        The weight of all excess together, the excess that does not count, and the share of the
        batch in which it is looked for.
    self_weight : callable
        The weight of self-training, from the agreement of forests.
    label_power : float
        Labels of self-training are ranks to this power.
    min_leaf : int
        The fewest rows in a leaf of self-training.
    self_excess : bool
        Whether the excess of self-training counts, too.
    distances : Distances
    earlier_members : bool
        Whether QMS22 has 20 sweeps in double precision.
    """

    without: str | None = None
    trust: str = "agreement"
    power: float = 2.0
    fixed: Mapping[str, float] = field(default_factory=dict)
    excess_weight: float = 4.0
    chance: float = 5.0
    most_suspicious: float = 0.1
    self_weight: Callable[[float], float] = float
    label_power: float = 2.0
    min_leaf: int = 5
    self_excess: bool = False
    distances: Distances = field(default_factory=Distances)
    earlier_members: bool = False

    def __call__(self, pieces: Pieces) -> Array:
        """Compute the scores of the batch."""
        views = {**pieces.views, "distances": pieces.distances(self.distances)}
        correlation = pieces.correlation
        if self.earlier_members:
            views["members"], correlation = pieces.earlier_members
        views.pop(self.without or "", None)
        trust = self._trust(correlation, pieces.agreement)
        fused = self._fuse(views, trust)
        weight = self.self_weight(pieces.agreement)
        if self.without == SELF_TRAINING or weight == 0.0:
            return fused
        trained = self.train(pieces, fused)
        if not self.self_excess:
            return fused + weight * trained.scores
        return self._fuse({**views, SELF_TRAINING: trained}, {**trust, SELF_TRAINING: weight})

    def train(self, pieces: Pieces, fused: Array) -> Scored:
        """Learn self-training from fused scores."""
        ranks = rankdata(np.round(fused, 6)) / len(fused)
        return pieces.self_training(ranks**self.label_power, self.min_leaf)

    def _fuse(self, views: Mapping[str, Scored], trust: Mapping[str, float]) -> Array:
        counted = {
            name: max(0.0, excess(view, self.most_suspicious) - self.chance)
            for name, view in views.items()
        }
        total = 1.0 + sum(counted.values())
        if self.trust == "none" and total == 1.0:
            trust = dict.fromkeys(views, 1.0)
        weighted = [
            (trust[name] + self.excess_weight * counted[name] / total) * view.scores
            for name, view in views.items()
        ]
        fused: Array = np.sum(weighted, axis=0)
        return fused

    def _trust(self, correlation: float, agreement: float) -> dict[str, float]:
        weight = {"members": 0.0, "distances": 1.0}.get(self.without or "", correlation**self.power)
        trust = {
            "members": weight,
            "distances": 1.0 - weight,
            "covariance": 0.0,
            "forest": agreement,
        }
        if self.trust != "agreement":
            return dict.fromkeys(trust, 1.0 if self.trust == "equal" else 0.0)
        return {**trust, **self.fixed}


def excess(view: Scored, most_suspicious: float = 0.1) -> float:
    """Compute the excess of suspicious rows, as the package does, in another share of the batch."""
    n = len(view.scores)
    beyond = np.arange(1, max(1, int(most_suspicious * n)) + 1)
    p_values = np.exp(np.sort(-view.scores)[: len(beyond)])
    variance = n * p_values * (1.0 - p_values) * (1.0 + n / view.n_compared)
    return max(0.0, float(np.max((beyond - n * p_values) / np.sqrt(variance + 1.0))))


def alone(name: str, pieces: Pieces) -> Array:
    """Return the scores of one view."""
    if name == SELF_TRAINING:
        fused = Fusion(without=SELF_TRAINING)
        return fused.train(pieces, fused(pieces)).scores
    return pieces.views[name].scores


def distances_alone(settings: Distances, pieces: Pieces) -> Array:
    """Return the scores of the distance view with other settings."""
    return pieces.distances(settings).scores


def earlier_ensemble(pieces: Pieces) -> Array:
    """Compute the scores of the ensemble of version 0.1.0: QMS22 and distances."""
    members, correlation = pieces.earlier_members
    weight = correlation**2
    near = pieces.earlier_distances().scores
    scores: Array = weight * members.scores + (1.0 - weight) * near
    return scores


def rival(name: str, pieces: Pieces) -> Array:
    """Compute the scores of a detector of the registry."""
    detector = registry.get_detector(name).build(pieces.seed)
    return registry.outlier_scores(detector, pieces.problem.normal, pieces.problem.batch)


SHIPPED = "shipped"

VIEW_NAMES = {
    "members": "QMS22 in splits",
    "distances": "distances",
    "covariance": "covariance",
    "forest": "forest",
    SELF_TRAINING: "self-training",
}

_SCALINGS = {
    "range (0.1.0)": Distances("range", grouped=False),
    "standard deviation": Distances("deviation"),
    **{f"range or {c:g} deviations": Distances(times=c) for c in (2.5, 4.0, 6.0)},
    "quantiles 0.5 to 99.5 %": Distances("quantiles", 0.005),
    "quantiles 5 to 95 %": Distances("quantiles", 0.05),
    "512 references": Distances(n_references=512),
    "categories not as one feature": Distances(grouped=False),
}

LEFT_OUT: dict[str, Variant] = {
    f"without {words}": Fusion(without=name) for name, words in VIEW_NAMES.items()
}

ALONE: dict[str, Variant] = {
    f"{words} alone": partial(alone, name) for name, words in VIEW_NAMES.items()
}

WEIGHTS: dict[str, Variant] = {
    "agreement only": Fusion(excess_weight=0.0),
    "excess only": Fusion(trust="none"),
    "all weights 1": Fusion(trust="equal", excess_weight=0.0, self_weight=lambda a: 1.0),
    "w = r, not r²": Fusion(power=1.0),
    **{f"excess weight {x:g}": Fusion(excess_weight=x) for x in (1.0, 2.0, 3.0, 6.0)},
    **{f"excess above {x:g}": Fusion(chance=x) for x in (2.0, 4.0)},
    **{f"excess in the top {x:.0%}": Fusion(most_suspicious=x) for x in (0.05, 0.5)},
    **{f"covariance {x:g} fixed": Fusion(fixed={"covariance": x}) for x in (0.25, 0.5)},
    "forest 0.5 fixed": Fusion(fixed={"forest": 0.5}),
    "QMS22 with 20 sweeps, float64": Fusion(earlier_members=True),
}

TRAINING: dict[str, Variant] = {
    "weight √a": Fusion(self_weight=math.sqrt),
    "weight 2a": Fusion(self_weight=lambda a: 2.0 * a),
    "weight 0.5": Fusion(self_weight=lambda a: 0.5),
    "labels r": Fusion(label_power=1.0),
    "labels r⁴": Fusion(label_power=4.0),
    "leaves of 3": Fusion(min_leaf=3),
    "its excess counted": Fusion(self_excess=True),
}

DISTANCES: dict[str, Variant] = {
    name: Fusion(distances=settings) for name, settings in _SCALINGS.items()
}

DISTANCES_ALONE: dict[str, Variant] = {
    f"{name}, alone": partial(distances_alone, settings) for name, settings in _SCALINGS.items()
}

RIVALS: dict[str, Variant] = {
    "QMS22Ensemble 0.1.0": earlier_ensemble,
    **{name: partial(rival, name) for name in ("QMS22", "BRM", "kNN")},
}

# The lists from which a variant could have been chosen.
LISTS: dict[str, dict[str, Variant]] = {
    "One view left out": LEFT_OUT,
    "One view alone": ALONE,
    "Weights": WEIGHTS,
    "Self-training": TRAINING,
    "Distances": DISTANCES,
}

ABLATION: dict[str, Variant] = {SHIPPED: Fusion(), **LEFT_OUT}

ALL: dict[str, Variant] = {
    **ABLATION,
    **ALONE,
    **WEIGHTS,
    **TRAINING,
    **DISTANCES,
    **DISTANCES_ALONE,
    **RIVALS,
}

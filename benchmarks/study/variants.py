"""The variants of the study: named functions from the pieces of a fold to scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtri_exp
from scipy.stats import rankdata

from qms22._cpm.options import SolverOptions
from qms22.detectors.registry import get_detector, outlier_scores
from study.pieces import Array, HoldOut, Pieces, Search, View, agreement

# A function that scores the batch, and one from the agreement of QMS22's splits to its weight.
Scores = Callable[[Pieces], Array]
Weight = Callable[[float], float]
ViewOf = Callable[[Pieces], View]

PAPER, BRM, KNN = "QMS22 as published", "BRM", "kNN"
SHIPPED = "QMS22Ensemble: weight a²"
WHITENED = "both views whitened"
PLAIN = "20 sweeps, 3 shuffles"
DISTANCES, WHITENED_DISTANCES = "range-scaled, 512 references", "whitened, 512 references"
FOUR_VIEWS = "four views: the shipped two and both whitened"
# The variants that are measured on other data as well.
FEW = (
    PAPER,
    BRM,
    KNN,
    PLAIN,
    DISTANCES,
    WHITENED_DISTANCES,
    SHIPPED,
    "−log of mean p",
    "distances whitened, weight a²",
    "QMS22 whitened, weight a²",
    WHITENED,
    FOUR_VIEWS,
)

_PAPER = Search("maxabs", 7, SolverOptions())
_STANDARD, _WHITENED = Search.standard(), Search("whitened")
_HOLD_OUT = HoldOut()


@dataclass(frozen=True)
class Variant:
    """A way to score the batch.

    Parameters
    ----------
    group : str
        What it varies.
    name : str
    scores : callable
        Takes the pieces of a fold and returns the scores of the batch; higher is more suspicious.
    """

    group: str
    name: str
    scores: Scores


def all_variants() -> dict[str, Variant]:
    """Return all variants by name, in the order of the report."""
    groups = {
        "Detectors": _detectors(),
        "QMS22 alone": _members_alone(),
        "Distances alone": _distances_alone(),
        "Fusion, equal weights": _fusions(),
        "Weight of QMS22": _weights(),
        "Held-out rows": _hold_outs(),
        "Settings in the fusion": _settings(),
        "Other views": _other_views(),
    }
    variants = [
        Variant(group, name, scores) for group, pairs in groups.items() for name, scores in pairs
    ]
    return {variant.name: variant for variant in variants}


def _detectors() -> Iterator[tuple[str, Scores]]:
    yield PAPER, partial(_members, search=_PAPER, n_shuffles=1)
    for name in (BRM, KNN):
        yield name, partial(_detector, name=name)


def _members_alone() -> Iterator[tuple[str, Scores]]:
    """QMS22 with standardized features by default."""
    for n_sweeps in (5, 10, 20, 40):
        search = Search.standard(max_iter=n_sweeps)
        for n_shuffles, noun in ((1, "shuffle"), (3, "shuffles")):
            name = f"{n_sweeps} sweeps, {n_shuffles} {noun}"
            yield name, partial(_members, search=search, n_shuffles=n_shuffles)
    changed = {
        **{f"m = {m}": Search.standard(n_members=m) for m in (3, 5, 10, 15)},
        **{f"q = {q}": Search.standard(n_components=q) for q in (3, 5, 20)},
        **{f"α = {alpha:g}": Search.standard(alpha=alpha) for alpha in (0.0, 0.25, 0.75, 0.9)},
        **{f"step_a = {step:g}": Search.standard(step_a=step) for step in (0.5, 2.0)},
        "step_a = 4, step_b = 510": Search.standard(step_a=4.0, step_b=510.0),
        **{f"step_b = {step:g}": Search.standard(step_b=step) for step in (100.0, 600.0)},
    }
    for name, search in changed.items():
        yield f"20 sweeps, 1 shuffle, {name}", partial(_members, search=search, n_shuffles=1)
    slow = Search.standard(step_a=0.5, max_iter=40)
    yield "40 sweeps, 1 shuffle, step_a = 0.5", partial(_members, search=slow, n_shuffles=1)
    yield "whitened, 20 sweeps, 3 shuffles", partial(_members, search=_WHITENED, n_shuffles=3)
    ratios: dict[str, Callable[[Array], Array]] = {
        "mean of log(f_i / f_1)": lambda ratio: np.log(ratio).mean(axis=1),
        "largest f_i / f_1": lambda ratio: ratio.max(axis=1),
        "smallest f_i / f_1": lambda ratio: ratio.min(axis=1),
    }
    for name, combine in ratios.items():
        yield f"{name} in place of η", partial(_ratios, combine=combine)


def _distances_alone() -> Iterator[tuple[str, Scores]]:
    for n in (64, 128, 256, 512, 1024, 2048):
        name = f"range-scaled, {n} references"
        yield name, partial(Pieces.distances, space="range", n_references=n)
    yield "standardised, 512 references", partial(Pieces.distances, space="standard")
    yield WHITENED_DISTANCES, partial(Pieces.distances, space="whitened")


def _fusions() -> Iterator[tuple[str, Scores]]:
    yield "mean rank, none held out", partial(_without_hold_out, unit=_rank)
    yield "mean of −log(1 − rank), none held out", partial(_without_hold_out, unit=_log_rank)
    yield "mean of −log p", _fusion(_half, _mean_log_p)
    yield "−log of mean p", _fusion(_half)
    yield "−log of mean p, p not below 1 / (2n + 2)", _fusion(_half, _bounded)
    yield "Stouffer's sum", _fusion(_half, _stouffer)
    yield "standard scores", _fusion(_half, _standard_scores)
    yield "largest −log of mean p", partial(_extreme, pick=np.maximum)
    yield "smallest −log of mean p", partial(_extreme, pick=np.minimum)


def _weights() -> Iterator[tuple[str, Scores]]:
    """Weights by a, the mean rank correlation of QMS22's scores between two splits."""
    for share in (0.0, 0.4, 0.6, 1.0):
        yield f"weight {share:g}", _fusion(partial(_fixed, share=share))
    yield SHIPPED, _fusion(_square)
    curves: dict[str, Weight] = {
        "√a": np.sqrt,
        "a": _same,
        "a^1.5": lambda a: a**1.5,
        "a³": lambda a: a**3,
        "a / (1 + a)": lambda a: a / (1 + a),
        "(a + ½) / 2": lambda a: (a + 0.5) / 2,
        "(a² + ½) / 2": lambda a: (a**2 + 0.5) / 2,
    }
    for name, weight in curves.items():
        yield f"weight {name}", _fusion(weight)
    yield "weight by separation from held-out rows", _by_separation
    yield "weight a², p not below 1 / (2n + 2)", _fusion(_square, _bounded)
    yield "weight a², mean of −log p", _fusion(_square, _mean_log_p)
    unit = _log_rank
    yield "weight a, none held out", partial(_without_hold_out, unit=unit, weight=_same)
    yield "weight a², none held out", partial(_without_hold_out, unit=unit, weight=_square)


def _hold_outs() -> Iterator[tuple[str, Scores]]:
    hold_outs = {
        "3 splits": HoldOut(3),
        "5 splits": HoldOut(5),
        "5 splits, 1/5 drawn for each": HoldOut(5, 1 / 5),
        "5 splits, 1/3 drawn for each": HoldOut(5, 1 / 3),
        "5 splits, 1/2 drawn for each": HoldOut(5, 1 / 2),
    }
    for name, hold_out in hold_outs.items():
        members = partial(Pieces.members_view, search=_STANDARD, hold_out=hold_out)
        distances = partial(Pieces.distance_view, space="range", hold_out=hold_out)
        yield f"weight a², {name}", _fusion(_square, first=members, second=distances)


def _settings() -> Iterator[tuple[str, Scores]]:
    """Change the settings of either view in the shipped fusion."""
    for n_sweeps in (10, 40):
        search = Search.standard(max_iter=n_sweeps)
        members = partial(Pieces.members_view, search=search, hold_out=_HOLD_OUT)
        yield f"weight a², {n_sweeps} sweeps", _fusion(_square, first=members)
    for n in (128, 2048):
        distances = partial(Pieces.distance_view, space="range", hold_out=_HOLD_OUT, n_references=n)
        yield f"weight a², {n} references", _fusion(_square, second=distances)


def _other_views() -> Iterator[tuple[str, Scores]]:
    brm = partial(_detector, name=BRM)
    for name, weight in {"½": _half, "a": _same}.items():
        yield (
            f"BRM for distances, weight {name}, none held out",
            partial(_without_hold_out, unit=_log_rank, weight=weight, other=brm),
        )
    views: dict[str, ViewOf] = {
        "BRM for distances": partial(Pieces.brm_view, hold_out=_HOLD_OUT),
        "distances standardised": partial(
            Pieces.distance_view, space="standard", hold_out=_HOLD_OUT
        ),
        "distances whitened": _whitened_distances,
    }
    for name, view in views.items():
        yield f"{name}, weight a²", _fusion(_square, second=view)
    yield "QMS22 whitened, weight a²", _fusion(_square, first=_whitened_members)
    whitened = _fusion(_square, first=_whitened_members, second=_whitened_distances)
    yield WHITENED, whitened
    shipped = _fusion(_square)
    yield (
        "four views: the shipped two and both whitened",
        lambda pieces: shipped(pieces) + whitened(pieces),
    )


def _detector(pieces: Pieces, name: str) -> Array:
    fold = pieces.fold
    detector = get_detector(name).build(pieces.seed)
    return pieces.once(
        ("detector", name), lambda: outlier_scores(detector, fold.normal, fold.unlabeled)
    )


def _members(pieces: Pieces, search: Search, n_shuffles: int) -> Array:
    mean: Array = pieces.member_scores(search, n_shuffles).mean(axis=0)
    return mean


def _ratios(pieces: Pieces, combine: Callable[[Array], Array]) -> Array:
    batch = pieces.rows(_STANDARD.space).batch
    values = [members.values(batch) for members in pieces.shuffles(_STANDARD, 3)]
    mean: Array = np.mean([combine(value[:, 1:] / value[:, :1]) for value in values], axis=0)
    return mean


def _standard_members(pieces: Pieces) -> View:
    return pieces.members_view(_STANDARD, _HOLD_OUT)


def _whitened_members(pieces: Pieces) -> View:
    return pieces.members_view(_WHITENED, _HOLD_OUT)


def _range_distances(pieces: Pieces) -> View:
    return pieces.distance_view("range", _HOLD_OUT)


def _plain_distances(pieces: Pieces) -> Array:
    return pieces.distances("range")


def _whitened_distances(pieces: Pieces) -> View:
    return pieces.distance_view("whitened", _HOLD_OUT)


def _log_of_mean_p(view: View) -> Array:
    return -view.log_mean_p


def _mean_log_p(view: View) -> Array:
    mean: Array = -view.log_p.mean(axis=0)
    return mean


def _bounded(view: View) -> Array:
    """−log of mean p, equal for all rows beyond the held-out ones."""
    least = [-np.log(2 * len(held_out) + 2) for held_out in view.held_out]
    bounded = np.maximum(view.log_p, np.array(least)[:, None])
    scores: Array = -np.log(np.exp(bounded).mean(axis=0))
    return scores


def _stouffer(view: View) -> Array:
    scores: Array = -ndtri_exp(view.log_mean_p)
    return scores


def _standard_scores(view: View) -> Array:
    pairs = zip(view.scores, view.held_out, strict=True)
    scores = [(row - held_out.mean()) / (held_out.std() or 1.0) for row, held_out in pairs]
    mean: Array = np.mean(scores, axis=0)
    return mean


def _fusion(
    weight: Weight,
    evidence: Callable[[View], Array] = _log_of_mean_p,
    first: ViewOf = _standard_members,
    second: ViewOf = _range_distances,
) -> Scores:
    """Combine QMS22 and another view by their p-values among held-out rows."""

    def scores(pieces: Pieces) -> Array:
        members, other = first(pieces), second(pieces)
        w = weight(members.agreement)
        return w * evidence(members) + (1 - w) * evidence(other)

    return scores


def _extreme(pieces: Pieces, pick: Callable[[Array, Array], Array]) -> Array:
    return pick(*map(_log_of_mean_p, (_standard_members(pieces), _range_distances(pieces))))


def _by_separation(pieces: Pieces) -> Array:
    members, other = _standard_members(pieces), _range_distances(pieces)
    both = members.separation + other.separation
    w = members.separation / both if both > 0 else 0.5
    return w * _log_of_mean_p(members) + (1 - w) * _log_of_mean_p(other)


def _half(a: float) -> float:
    return 0.5


def _same(a: float) -> float:
    return a


def _square(a: float) -> float:
    return a**2


def _fixed(a: float, share: float) -> float:
    return share


def _rank(scores: Array) -> Array:
    ranks: Array = rankdata(scores) / (len(scores) + 1)
    return ranks


def _log_rank(scores: Array) -> Array:
    return -np.log1p(-_rank(scores))


def _without_hold_out(
    pieces: Pieces,
    unit: Callable[[Array], Array],
    weight: Weight = _half,
    other: Scores = _plain_distances,
) -> Array:
    """Combine QMS22 and another view by their ranks in the batch."""
    shuffles = pieces.member_scores(_STANDARD, 3)
    w = weight(agreement(shuffles))
    return w * unit(shuffles.mean(axis=0)) + (1 - w) * unit(other(pieces))

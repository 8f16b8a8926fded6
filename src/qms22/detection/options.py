"""The options of a search, as far as they do not depend on the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qms22._runtime.validation import (
    check_choice,
    check_count,
    check_path,
    check_seed,
    check_share,
    is_count,
)
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.ensemble import QMS22Ensemble
from qms22.estimators.qms22 import QMS22
from qms22.tables.columns.asked_kinds import check_kind_words
from qms22.tables.columns.encoder_options import check_ignore, check_way_of_missing

PRESETS: dict[str, type[BatchDetector]] = {"recommended": QMS22Ensemble, "paper": QMS22}


def preset_of(detector: BatchDetector) -> str:
    """Return the name of the preset that a detector is of."""
    return next(name for name, kind in PRESETS.items() if type(detector) is kind)


def check_options(
    *,
    k: int | None,
    fdr: float | None,
    ignore: Sequence[str | int],
    missing: str,
    kinds: Mapping[str, str] | None,
    preset: str,
    max_samples: int | None,
    seed: int | None,
    n_jobs: int | None,
    history: str | Path | None,
    accept: bool,
) -> None:
    """Raise ValueError if a parameter of `detect` is not valid."""
    check_choice("preset", preset, tuple(PRESETS))
    if k is not None and fdr is not None:
        raise ValueError("k and fdr both set how many rows to flag; give one of them")
    if k is not None:
        check_count("k", k)
    if fdr is not None:
        check_share("fdr", fdr)
        if preset == "paper":
            raise ValueError(
                "the preset 'paper' ranks rows and has no p-values; leave fdr out, or use the "
                "preset 'recommended'"
            )
    check_ignore(ignore)
    check_way_of_missing(missing)
    check_kind_words(kinds)
    if max_samples is not None:
        check_count("max_samples", max_samples)
    check_seed("seed", seed)
    if n_jobs is not None and (not is_count(n_jobs) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of threads, or -1 for all cores; got {n_jobs!r}")
    check_path("history", history)
    if accept and (history is None or fdr is None):
        raise ValueError(
            "accept needs a history and a false discovery rate; give both history and fdr"
        )

"""The options of a search, as far as they do not depend on the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qms22._runtime.devices import resolve_device
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
from qms22.tables import TabularEncoder
from qms22.tables.columns.refusals import check_parameters

PRESETS: dict[str, type[BatchDetector]] = {"recommended": QMS22Ensemble, "paper": QMS22}


def preset_of(detector: BatchDetector) -> str:
    """Return the name of the preset that a detector is of."""
    return next(name for name, kind in PRESETS.items() if type(detector) is kind)


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of `detect`, which describes them; raises ValueError if one is not valid.

    Once the tables are known, `id` is the name of a column of the batch, and `ignore` has the
    columns of the batch that are not learned from: also `id`, and those of one table only.
    """

    fdr: float | None
    k: int | None
    id: str | None = None
    by: str | None = None
    time: str | None = None
    ignore: Sequence[str | int]
    missing: str
    kinds: Mapping[str, str] | None
    preset: str
    max_samples: int | None
    seed: int | None
    n_jobs: int | None
    device: str
    verbose: int
    history: str | Path | None
    accept: bool

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, tuple(PRESETS))
        if self.k is not None and self.fdr is not None:
            raise ValueError("k and fdr both set how many rows to flag; give one of them")
        if self.k is not None:
            check_count("k", self.k)
        if self.fdr is not None:
            check_share("fdr", self.fdr)
            if self.preset == "paper":
                raise ValueError(
                    "the preset 'paper' ranks rows and has no p-values; leave fdr out, or use the "
                    "preset 'recommended'"
                )
        check_parameters(self.ignore, self.missing, self.kinds)
        if self.max_samples is not None:
            check_count("max_samples", self.max_samples)
        check_seed("seed", self.seed)
        if self.n_jobs is not None and (not is_count(self.n_jobs) or self.n_jobs == 0):
            raise ValueError(
                f"n_jobs must be a number of threads, or -1 for all cores; got {self.n_jobs!r}"
            )
        check_path("history", self.history)
        if self.accept and (self.history is None or self.fdr is None):
            raise ValueError(
                "accept needs a history and a false discovery rate; give both history and fdr"
            )
        resolve_device(self.device)  # raises an error if there is no such device

    @property
    def ignored(self) -> tuple[str, ...]:
        """The columns that are not learned from."""
        return tuple(map(str, self.ignore))

    def new_encoder(self) -> TabularEncoder:
        """Return an encoder that has learned nothing yet."""
        asked = {self.by: "category", self.time: "date"}
        kinds = {name: kind for name, kind in asked.items() if name is not None}
        kinds |= self.kinds or {}
        return TabularEncoder(ignore=self.ignored, missing=self.missing, kinds=kinds or None)

    def new_detector(self) -> BatchDetector:
        """Return a detector that has learned nothing yet."""
        # The threshold for new rows is that of the checks.
        return PRESETS[self.preset](
            contamination=1,
            random_state=self.seed,
            n_jobs=self.n_jobs,
            device=self.device,
            verbose=self.verbose,
        )

    def facts(self) -> dict[str, object]:
        """Return the options that a history remembers."""
        names = ("k", "fdr", "id", "by", "time", "missing", "preset", "max_samples", "seed")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "ignore": list(self.ignored), "kinds": dict(self.kinds or {})}

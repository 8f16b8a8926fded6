"""Reasons of all rows of a page, packed: texts recur, and so do sets of columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qms22.report.content import PageContent
from qms22.report.packed_columns import alphabetical
from qms22.report.payload import Payload

if TYPE_CHECKING:
    from qms22.detection import RowReason

# The number of reasons that stands for "not known", and the most that a row keeps.
UNKNOWN = 255
_MOST_REASONS = UNKNOWN - 1

# If nothing is flagged, the first screen of rows decides which columns matter. Strengths, about
# −log p, count from one row in 150 on, since many normal rows have weak reasons, and up to a limit,
# since an absurd cell must not outweigh many odd ones.
_FIRST_ROWS = 20
_WEAK = 5.0
_STRONG = 30.0


def pack_reasons(reasons: Sequence[Sequence[RowReason] | None], payload: Payload) -> dict[str, Any]:
    """Pack the reasons of each row, None if not known; `_scripts/reasons.js` reads them."""
    kept = [row and row[:_MOST_REASONS] for row in reasons]
    counts = [UNKNOWN if row is None else len(row) for row in kept]
    listed = list(chain.from_iterable(row for row in kept if row))
    texts = alphabetical({reason.text for reason in listed})
    text_codes = {text: code for code, text in enumerate(texts)}
    groups: dict[tuple[str, ...], int] = {}
    group_codes = [groups.setdefault(reason.columns, len(groups)) for reason in listed]
    return {
        "texts": texts,
        "groups": [list(group) for group in groups],
        "counts": payload.add(np.array(counts, dtype=np.uint8)),
        "text": payload.add(_codes((text_codes[reason.text] for reason in listed), len(texts))),
        "group": payload.add(_codes(group_codes, len(groups))),
        "strength": payload.add(_percentages(listed, np.array([len(row) for row in kept if row]))),
    }


def order_columns(content: PageContent) -> list[tuple[int, bool]]:
    """Return places of columns, those that flagged rows blame first, and whether they do."""
    rows = np.flatnonzero(content.flagged)
    if not len(rows):
        rows = np.arange(min(_FIRST_ROWS, len(content.reasons)))
    weights: defaultdict[str, float] = defaultdict(float)
    for row in rows.tolist():
        for reason in content.reasons[row] or ():
            strength = min(max(float(np.nan_to_num(reason.strength)) - _WEAK, 0.1), _STRONG)
            for place, name in enumerate(reason.columns):
                weights[name] += strength / 2 if place else strength
    names = [str(name) for name in content.rows.columns]
    order = sorted(range(len(names)), key=lambda at: -weights[names[at]])
    return [(at, weights[names[at]] > 0) for at in order]


def _codes(codes: Iterable[int], n_levels: int) -> NDArray[Any]:
    return np.fromiter(codes, dtype=np.min_scalar_type(max(n_levels, 1)))


def _percentages(listed: Sequence[RowReason], sizes: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Return the strength of each reason in percent of the strongest one of its row."""
    if not listed:
        return np.empty(0, dtype=np.uint8)
    strengths = np.clip(np.nan_to_num([reason.strength for reason in listed]), 0.0, 1e300)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    most = np.repeat(np.maximum.reduceat(strengths, starts), sizes)
    percentages: NDArray[np.uint8] = (strengths / np.where(most > 0, most, 1.0) * 100).round()
    return percentages.astype(np.uint8)

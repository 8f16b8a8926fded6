"""Rules that a result has to meet, for jobs that stop on a bad batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from qms22.detection.result import Detection

# What a job may fail on; those of a saved model, which gives no verdict.
FAIL_ON = ("anomalies", "drift", "flagged", "volume", "schema")
MODEL_FAIL_ON = ("flagged", "schema")

NOT_CHECKED = (
    "not checked: there are no three earlier batches in a history, nor known-normal days before "
    "those of the batch, nor a known-normal file of the same name but for digits, to tell which "
    "number of rows is usual"
)


class Rule(NamedTuple):
    """One rule of a policy, and whether a result meets it.

    Parameters
    ----------
    name : str
        One of "anomalies", "drift", "flagged", "volume", "schema", "max-flagged", "max-share".
    is_met : bool
    text : str
        What decided, in a sentence.
    limit : float or None
        Of "max-flagged" and "max-share".
    """

    name: str
    is_met: bool
    text: str
    limit: float | None = None


def check_rules(
    found: Detection, fail_on: Sequence[str], max_flagged: int | None, max_share: float | None
) -> Iterator[Rule]:
    """Compare a result with each rule of a policy; see `Detection.check`."""
    # Imported here: the names above are part of the help, which needs no NumPy.
    from qms22._runtime.validation import check_choice, check_count, check_share
    from qms22.detection.noticing import compare_size, dates_of

    allowed = MODEL_FAIL_ON if found.verdict is None else FAIL_ON
    for name in fail_on:
        check_choice("fail_on", name, allowed)
        if name == "flagged":
            yield Rule(name, not found.n_flagged, found.answer)
        elif name in ("volume", "schema"):
            texts = [each.text for each in found.noticed if each.kind == name]
            usual = "The columns are as usual."
            if name == "volume":
                is_compared, _ = compare_size(found, dates_of(found))
                usual = "The number of rows is as usual." if is_compared else NOT_CHECKED
            yield Rule(name, not texts, " ".join(texts) or usual)
        else:
            decision = "" if found.verdict is None else found.verdict.decision
            yield Rule(name, decision != name, str(found.verdict))
    n_flagged, n_rows = found.n_flagged, found.n_scored
    are = f"{n_flagged:,} of {n_rows:,} rows {'is' if n_flagged == 1 else 'are'} flagged"
    if max_flagged is not None:
        check_count("max_flagged", max_flagged, least=0)
        text = f"{are}; the limit is {max_flagged:,}."
        yield Rule("max-flagged", n_flagged <= max_flagged, text, max_flagged)
    if max_share is not None:
        check_share("max_share", max_share)
        text = f"{are}; the limit is {100 * max_share:g} %."
        yield Rule("max-share", n_flagged <= max_share * n_rows, text, max_share)


def verdict_of_rules(rules: Sequence[Rule]) -> str:
    """Return in one line which rules decided."""
    if broken := [rule for rule in rules if not rule.is_met]:
        names, texts = zip(*[(rule.name, rule.text) for rule in broken], strict=True)
        return f"policy violated by {', '.join(names)}: {' '.join(texts)}"
    met = [rule.name + " (not checked)" * (rule.text == NOT_CHECKED) for rule in rules]
    return f"policy met: {', '.join(met)}"

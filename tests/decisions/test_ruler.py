"""P-values and flags: by their definitions, and by counting all cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qms22.decisions import ruler
from qms22.decisions.comparison import Comparison
from qms22.decisions.ruler import (
    Ruler,
    enough_known,
    highest_flagged_rank,
    least_to_flag,
    share_of_normal,
)

LEVELS = [0.05, 0.1, 0.2, 0.5, 0.9]

known_scores = st.lists(st.integers(0, 9), min_size=1, max_size=25)
batch_scores = st.lists(st.integers(-2, 12), max_size=25)


def as_scores(values: list[int]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def naive_ranks(known: list[int], batch: list[int]) -> list[int]:
    return [sum(other >= score for other in known) for score in batch]


def naive_flags(ranks: list[int], n_known: int, level: float) -> list[bool]:
    """Benjamini and Hochberg with Storey's estimate, on p-values.

    Those of the middle rank on count for the estimate, and are not flagged.
    """
    n_rows, middle = len(ranks), (n_known + 1) // 2
    p_values = [(1 + rank) / (n_known + 1) for rank in ranks]
    if n_known >= 3:
        line = middle / (n_known + 1)
        n_high = sum(p >= line - 1e-12 for p in p_values)
        share = (1 + n_high) / (n_rows * (1 - line))
        low = [p for p in p_values if p < line - 1e-12]
    else:
        share, low = 1.0, p_values
    for size in range(len(low), 0, -1):
        highest = sorted(low)[size - 1]
        if highest <= level / share * size / n_rows + 1e-12:
            return [p <= highest for p in p_values]
    return [False] * n_rows


def flags(
    known: NDArray[np.float64], batch: NDArray[np.float64], level: float
) -> NDArray[np.bool_]:
    compared = Ruler.of(known)
    return Comparison.of(compared, batch).flag(level)


@given(known_scores, batch_scores)
def test_ranks_and_p_values_are_their_definitions(known: list[int], batch: list[int]) -> None:
    compared = Comparison.of(Ruler.of(as_scores(known)), as_scores(batch))
    ranks = naive_ranks(known, batch)
    assert compared.ruler.n_known == len(known)
    assert compared.ranks.tolist() == ranks
    assert compared.p_values.tolist() == [(1 + rank) / (len(known) + 1) for rank in ranks]
    expected = [ranks.count(rank) for rank in range(len(known) + 1)]
    assert compared.counts.tolist() == expected


@given(known_scores, batch_scores, st.integers(0, 25))
def test_counts_of_parts_add_up(known: list[int], batch: list[int], cut: int) -> None:
    ruler, scores = Ruler.of(as_scores(known)), as_scores(batch)
    parts = (Comparison.of(ruler, part).counts for part in (scores[:cut], scores[cut:]))
    np.testing.assert_array_equal(sum(parts), Comparison.of(ruler, scores).counts)


def test_many_rows_are_looked_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    known, batch = np.rint(9 * np.random.RandomState(0).normal(size=(2, 500)))
    expected = [np.count_nonzero(known >= score) for score in batch]
    for n_at_once in (1, 7, 500, 1_000):
        monkeypatch.setattr(ruler, "_SEARCHED_AT_ONCE", n_at_once)
        assert Ruler.of(known).ranks(batch).tolist() == expected


@given(known_scores, batch_scores)
def test_only_the_order_of_scores_matters(known: list[int], batch: list[int]) -> None:
    plain = Ruler.of(as_scores(known)).ranks(as_scores(batch))
    curved = Ruler.of(np.exp(as_scores(known))).ranks(np.exp(as_scores(batch)))
    np.testing.assert_array_equal(curved, plain)


@given(
    known_scores, st.lists(st.integers(-2, 12), min_size=1, max_size=25), st.sampled_from(LEVELS)
)
@example([1] * 20, [9] * 8 + [1], 0.9)  # level / share is more than 2
@example([0] * 4, [0, 1], 0.5)  # with the share above the line itself, a row would be flagged
def test_flags_are_their_definition(known: list[int], batch: list[int], level: float) -> None:
    found = flags(as_scores(known), as_scores(batch), level).tolist()
    assert found == naive_flags(naive_ranks(known, batch), len(known), level)


@given(known_scores, batch_scores, st.tuples(st.sampled_from(LEVELS), st.sampled_from(LEVELS)))
def test_flags_are_the_first_rows_and_grow_with_the_level(
    known: list[int], batch: list[int], levels: tuple[float, float]
) -> None:
    scores = as_scores(batch)
    few, many = (flags(as_scores(known), scores, level) for level in sorted(levels))
    assert (few <= many).all()
    for flagged in (few, many):
        if flagged.any() and not flagged.all():
            assert scores[flagged].min() > scores[~flagged].max()


def test_an_empty_batch_has_no_flags() -> None:
    assert not Comparison.of(Ruler.of(np.arange(9.0)), np.empty(0)).flag(0.5).size


@pytest.mark.parametrize("fdr", [0, 1, -0.1, 1.5, np.nan, "some", None, True])
def test_fdr_is_a_share(fdr: float) -> None:
    with pytest.raises(ValueError, match=r"fdr must be a share in \(0, 1\)"):
        highest_flagged_rank(np.array([1, 0, 0]), fdr)


def test_the_estimated_share_of_normal_rows_is_what_lets_more_rows_be_flagged() -> None:
    ranks = np.concatenate([np.full(60, 1), np.rint(np.arange(1, 41) * 2.5).astype(int) - 1])
    counts = np.bincount(ranks, minlength=100)
    # 21 of 100 rows have at least the middle rank, so that 44 are taken for normal ones. Without
    # the estimate 62 rows would be flagged.
    assert share_of_normal(counts) == pytest.approx(0.44)
    assert counts[: highest_flagged_rank(counts, 0.1) + 1].sum() == 66


def test_rounding_does_not_keep_a_row_from_its_line() -> None:
    # 0.1 · 3 > 0.3 in floating point, and so on: at the line means flagged. Two known-normal rows
    # are too few for an estimate.
    for n_rows in range(1, 300):
        for n_top in {(n_rows + 2) // 3, (2 * n_rows + 2) // 3, n_rows}:
            counts, level = np.array([n_top, 0, n_rows - n_top]), n_rows / (3 * n_top)
            if level < 1.0:
                assert highest_flagged_rank(counts, level) == 0


@given(st.integers(1, 200), st.integers(1, 60), st.sampled_from(LEVELS))
def test_fewest_rows_that_can_be_flagged(n_rows: int, n_known: int, level: float) -> None:
    least = least_to_flag(n_rows, n_known, level)
    assert 1 / (n_known + 1) <= level * least / n_rows * (1 + 1e-9)
    assert least == 1 or 1 / (n_known + 1) > level * (least - 1) / n_rows * (1 - 1e-9)
    enough = enough_known(n_rows, level)
    assert least_to_flag(n_rows, enough, level) == 1
    assert enough == 0 or least_to_flag(n_rows, enough - 1, level) > 1


pools = st.lists(st.integers(0, 9), min_size=5, max_size=9)
outlier_scores = st.lists(st.integers(3, 12), max_size=4)


def choices(
    pool: list[int], n_normal: int, outliers: list[int]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return known-normal scores and a batch for each choice of the normal rows of the batch.

    All choices are equally likely if rows are exchangeable. Normal rows of the batch come first.
    """
    scores = as_scores(pool)
    return [
        (np.delete(scores, chosen), np.append(scores[list(chosen)], outliers))
        for chosen in combinations(range(len(pool)), n_normal)
    ]


@given(st.lists(st.integers(0, 5), min_size=2, max_size=12))
def test_p_values_of_normal_rows_are_valid(pool: list[int]) -> None:
    p_values = np.sort(
        [Comparison.of(Ruler.of(known), row).p_values[0] for known, row in choices(pool, 1, [])]
    )
    # Of n equally likely cases at most j have a p-value of at most j / n; with no ties, exactly j.
    ranks = np.arange(1, len(pool) + 1) / len(pool)
    assert (p_values >= ranks - 1e-12).all()
    if len(set(pool)) == len(pool):
        np.testing.assert_allclose(p_values, ranks)


@settings(max_examples=examples(80))
@given(pools, st.integers(1, 4), outlier_scores, st.sampled_from(LEVELS))
def test_false_discovery_rate(
    pool: list[int], n_normal: int, outliers: list[int], level: float
) -> None:
    shares = []
    for known, batch in choices(pool, n_normal, outliers):
        flagged = flags(known, batch, level)
        shares.append(flagged[:n_normal].sum() / max(1, flagged.sum()))
    assert np.mean(shares) <= level + 1e-9

"""The study: its halves, its variants, what the choice sees, and the command."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from keel_files import fake_files, write_files
from study.__main__ import main
from study.choice import RIVALS, confirm, summarize
from study.elsewhere import sets_elsewhere, source_of
from study.families import FAMILIES, families_of, family_of, halves_by_set, halves_of
from study.measure import auc_of_rows, measure
from study.pieces import HoldOut, Pieces, Search, View, agreement
from study.report import write_study
from study.variants import FEW, PAPER, PLAIN, SHIPPED, all_variants

from qms22 import QMS22, QMS22Ensemble
from qms22.datasets import Fold, list_keel
from qms22.detectors.registry import get_detector, outlier_scores
from qms22.metrics import roc

FAKE_SETS = ("iris0", "zoo-3")


def fold(n_normal: int = 90, n_unlabeled: int = 40, n_features: int = 3) -> Fold:
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(n_normal, n_features))
    unlabeled = rng.normal(size=(n_unlabeled, n_features))
    is_outlier = np.arange(n_unlabeled) < n_unlabeled // 8
    unlabeled[is_outlier] += 2.5
    names = tuple(f"x{number}" for number in range(n_features))
    return Fold(1, names, normal, unlabeled, is_outlier)


def made_up(seed: int = 0) -> pd.DataFrame:
    """AUC of every variant on every KEEL data set."""
    rng = np.random.default_rng(seed)
    shape = len(list_keel()), len(all_variants())
    return pd.DataFrame(rng.uniform(size=shape), list_keel(), list(all_variants()))


def test_every_keel_set_has_one_family() -> None:
    for name in list_keel():
        assert [name.startswith(family) for family in FAMILIES].count(True) == 1, name
    assert {family_of(name) for name in list_keel()} == set(FAMILIES)
    assert family_of("winequality-red-4") == family_of("winequality-white-3_vs_7")
    with pytest.raises(ValueError, match="'digits' belongs to none of the families"):
        family_of("digits")


def test_halves_are_balanced_and_hold_whole_families() -> None:
    halves = halves_of(list_keel())
    assert set(halves) == set(FAMILIES)
    sizes = Counter(halves[family_of(name)] for name in list_keel())
    assert set(sizes) == {"A", "B"}
    assert abs(sizes["A"] - sizes["B"]) <= 1
    # The order of the names does not matter.
    assert halves_of(reversed(list_keel())) == halves


def test_one_family_is_not_enough() -> None:
    with pytest.raises(ValueError, match="at least two families, not of 1"):
        halves_of(["glass1", "glass2"])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from("AB"))
def test_a_choice_sees_its_own_half_only(seed: int, confirming: str) -> None:
    auc = made_up()
    is_confirming = (halves_by_set(auc) == confirming).to_numpy()
    changed = auc.copy()
    rng = np.random.default_rng(seed)
    changed.loc[is_confirming] = rng.permuted(changed.loc[is_confirming].to_numpy(), axis=1)

    def chosen(table: pd.DataFrame) -> pd.Series:
        rows = confirm(table, SHIPPED)
        rows = rows[rows["confirmed_on"] == confirming]
        return rows.loc[rows["role"] == "chosen", ["variant", "mean_there"]].iloc[0]

    assert chosen(auc).equals(chosen(changed))


def test_a_variant_that_is_better_everywhere_is_chosen_and_confirmed() -> None:
    auc = made_up() * 0.5
    auc[PLAIN] = 0.6 + auc[PLAIN] / 10
    rows = confirm(auc, SHIPPED)
    chosen = rows[rows["role"] == "chosen"]
    assert chosen["variant"].tolist() == [PLAIN, PLAIN]
    assert (chosen["mean"] > 0.6).all()
    for rival in RIVALS:
        assert (chosen[f"gain over {rival}"] > 0.2).all()
        assert (chosen[f"p of {rival}"] < 1e-6).all()
    row = summarize(auc).set_index("variant").loc[PLAIN]
    assert (row["rank_A"], row["rank_B"]) == (1, 1)
    families = families_of(auc)
    by_family = [auc.loc[families == family, PLAIN].mean() for family in FAMILIES]
    assert row["family_mean"] == pytest.approx(np.mean(by_family))


@pytest.mark.parametrize("seed", [0, 7])
def test_the_shipped_variant_is_what_the_package_ships(seed: int) -> None:
    pieces, variants = Pieces(fold(), seed), all_variants()
    for name, detector in {
        SHIPPED: QMS22Ensemble(random_state=seed),
        "weight a², 3 splits": QMS22Ensemble(n_splits=3, random_state=seed),
        PAPER: QMS22(random_state=seed),
        PLAIN: QMS22(scaling="standard", max_iter=20, n_restarts=3, random_state=seed),
    }.items():
        shipped = detector.fit(
            pieces.fold.normal, unlabeled=pieces.fold.unlabeled
        ).unlabeled_scores_
        np.testing.assert_allclose(variants[name].scores(pieces), shipped, rtol=1e-9)
    for name in ("BRM", "kNN"):
        rival = get_detector(name).build(seed)
        scores = outlier_scores(rival, pieces.fold.normal, pieces.fold.unlabeled)
        np.testing.assert_array_equal(variants[name].scores(pieces), scores)


def test_every_variant_scores_every_row() -> None:
    pieces = Pieces(fold(), seed=0)
    for name, variant in all_variants().items():
        scores = variant.scores(pieces)
        assert scores.shape == (len(pieces.fold.unlabeled),), name
        assert np.isfinite(scores).all(), name
        assert roc(pieces.fold.is_outlier, scores).auc > 0.6, name


def test_variants_have_names_of_their_own() -> None:
    assert set(FEW) <= set(all_variants())
    assert {SHIPPED, *RIVALS} <= set(FEW)


def test_whitening_bears_constant_and_equal_columns() -> None:
    plain = fold()
    normal = np.column_stack([plain.normal, plain.normal[:, 0], np.ones(len(plain.normal))])
    batch = np.column_stack([plain.unlabeled, plain.unlabeled[:, 0], np.ones(len(plain.unlabeled))])
    awkward = Fold(1, tuple("abcde"), normal, batch, plain.is_outlier)
    rows = Pieces(awkward, seed=0).rows("whitened")
    assert np.isfinite(rows.normal).all()
    assert np.isfinite(rows.batch).all()
    whitened = Pieces(plain, seed=0).rows("whitened").normal
    correlations = np.corrcoef(whitened.T) - np.eye(whitened.shape[1])
    assert np.abs(correlations).max() < 0.1


@pytest.mark.parametrize("hold_out", [HoldOut(4), HoldOut(3, 1 / 2), HoldOut(200)])
def test_held_out_rows_and_the_others_make_up_the_normal_ones(hold_out: HoldOut) -> None:
    pieces = Pieces(fold(), seed=3)
    splits = pieces.splits(hold_out)
    for split in splits:
        assert sorted([*split.held_out, *split.others]) == list(range(90))
    if hold_out.share is None:
        assert sorted(np.concatenate([split.held_out for split in splits])) == list(range(90))


def test_pieces_are_made_once() -> None:
    pieces, search = Pieces(fold(), seed=0), Search.standard(max_iter=2)
    assert pieces.members_view(search, HoldOut(2)) is pieces.members_view(search, HoldOut(2))
    one, three = pieces.shuffles(search, 1), pieces.shuffles(search, 3)
    assert one[0] is three[0]
    assert three[0] is not three[1]


def test_agreement() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 30))
    assert agreement(np.array([scores[0], np.exp(scores[0])])) == pytest.approx(1)
    assert agreement(np.array([scores[0], -scores[0]])) == 0
    assert agreement(np.zeros((3, 30))) == 0


def test_separation_is_that_of_the_batch_from_held_out_rows() -> None:
    held_out = np.arange(100.0)
    apart = View(np.full((2, 10), 1e6), (held_out, held_out))
    alike = View(np.linspace(-0.5, 99.5, 10)[None].repeat(2, axis=0), (held_out, held_out))
    assert apart.separation > 0.95
    assert alike.separation < 0.05


def test_auc_is_that_of_the_metrics() -> None:
    rng = np.random.default_rng(0)
    is_outlier = rng.uniform(size=50) < 0.3
    scores = rng.integers(0, 6, size=(4, 50)).astype(float)
    expected = [roc(is_outlier, row).auc for row in scores]
    np.testing.assert_allclose(auc_of_rows(is_outlier, scores), expected)


def test_sets_elsewhere() -> None:
    datasets = sets_elsewhere()
    counts = Counter(source_of(dataset.name) for dataset in datasets)
    assert counts == {"digits": 10, "wine": 3, "breast-cancer": 1, "iris": 3}
    assert not {dataset.name for dataset in datasets} & set(list_keel())
    assert all(0 < dataset.n_outliers < dataset.n_rows / 2 for dataset in datasets)


def test_processes_measure_the_same() -> None:
    iris = [dataset for dataset in sets_elsewhere() if dataset.name.startswith("iris")]
    told: list[tuple[int, str]] = []
    few = ["kNN", "mean of −log(1 − rank), none held out"]
    one = measure(iris, few, [0, 1], show=lambda done, name: told.append((done, name)))
    assert [done for done, _ in told] == list(range(1, 31))
    assert list(one.index) == [dataset.name for dataset in iris]
    pd.testing.assert_frame_equal(one, measure(iris, few, [0, 1], n_jobs=2))


def test_report_of_made_up_numbers(tmp_path: Path) -> None:
    auc = made_up()
    elsewhere = pd.DataFrame(0.75, ["digits-0", "wine-class_0", "iris-setosa"], list(FEW))
    elsewhere.loc["iris-setosa", SHIPPED] = 0.5
    page = write_study(auc, elsewhere, [0, 1], tmp_path / "study").read_text("utf-8")
    for name in all_variants():
        assert page.count(name) >= 1, name
    best = auc[halves_by_set(auc) == "A"].mean().idxmax()
    assert f"below the best, “{best}”" in page
    assert "| −0.2500 |" in page
    assert "](study.png)" in page
    assert "nan" not in page.lower()
    names = {path.name for path in (tmp_path / "study").iterdir()}
    assert names == {"study.md", "study.csv", "study.png", "study-elsewhere.csv"}
    kept = pd.read_csv(tmp_path / "study" / "study.csv", index_col="dataset")
    assert kept.columns.tolist() == ["family", "half", *all_variants()]
    np.testing.assert_allclose(kept[SHIPPED], auc[SHIPPED], atol=1e-6)


@pytest.mark.slow
def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FAKE_SETS:
        write_files(tmp_path / "keel" / name, fake_files(name))
    chosen = [option for name in (*FAKE_SETS, "iris-setosa") for option in ("-d", name)]
    arguments = [*chosen, "--keel", "keel", "--seed", "3"]
    monkeypatch.setattr("sys.argv", ["study", *arguments])
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "study written to study/study.md" in result.stdout
    assert "data sets: 2 from" in result.stderr
    assert "folds: official" in result.stderr
    page = (tmp_path / "study" / "study.md").read_text("utf-8")
    assert "2 data sets, " in page
    assert "seeds 3." in page
    assert "python -m study -d iris0" in page
    kept = pd.read_csv(tmp_path / "study" / "study.csv", index_col="dataset")
    assert sorted(kept.index) == sorted(FAKE_SETS)
    assert kept["half"].nunique() == 2
    elsewhere = pd.read_csv(tmp_path / "study" / "study-elsewhere.csv", index_col="dataset")
    assert elsewhere.columns.tolist() == list(FEW)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-d", "nonsense*"], "no data set is called 'nonsense*'"),
        (["-d", "glass*"], "at least two families, not of 1"),
        (["-d", "digits-*"], "at least two families, not of 0"),
        (["--keel", "nowhere"], "'nowhere' does not exist"),
    ],
)
def test_refusals(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())

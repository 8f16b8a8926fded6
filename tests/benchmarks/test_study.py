"""The study: its halves, its variants, what the choice sees, and the command."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from keel_files import fake_files, write_files
from mixed.measure import draw_batches
from mixed.tables import ORDERS
from study.__main__ import main
from study.choice import best_rivals, choose, compare, confirm, only_half, significantly_better
from study.families import ADBENCH_FAMILIES, KEEL_FAMILIES, family_of, halves_of
from study.measure import Tables, measure, plan
from study.pieces import Distances, Pieces, Scored
from study.problems import ADBENCH, KEEL, MIXED, Problem, mixed_names
from study.report import write_study
from study.variants import ABLATION, ALL, LEFT_OUT, LISTS, RIVALS, SHIPPED, Fusion, excess

from qms22 import QMS22, QMS22Ensemble
from qms22.estimators import weights
from qms22.estimators.learning import distance_scaler
from qms22.metrics import roc
from qms22_bench.datasets import list_keel
from qms22_bench.rivals.knn import KNNDetector

FAKE_SETS = ("iris0", "zoo-3")

ADBENCH_SETS = ["2_annthyroid", "38_thyroid", "45_wine", "47_yeast", "29_Pima"]


def problem(
    name: str = "iris0", n_normal: int = 90, n_batch: int = 60, shift: float = 2.5
) -> Problem:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(n_normal, 3)), rng.normal(size=(n_batch, 3))
    is_outlier = np.arange(n_batch) < n_batch // 4
    batch[is_outlier] += shift
    return Problem(KEEL, name, normal, batch, is_outlier)


@cache
def mixed_problem() -> Problem:
    batch = next(draw_batches(ORDERS, 1, 300, 150))
    return Problem(
        MIXED, "orders: spike", batch.known, batch.searched, batch.is_anomaly, batch.groups
    )


@cache
def pieces(is_mixed: bool, seed: int) -> Pieces:
    return Pieces(mixed_problem() if is_mixed else problem(), seed)


def made_up(seed: int = 0) -> Tables:
    """Results of every variant on many data sets."""
    rng = np.random.default_rng(seed)
    names = {KEEL: list_keel(), ADBENCH: ADBENCH_SETS, MIXED: mixed_names()}
    return {
        collection: pd.DataFrame(rng.uniform(size=(len(sets), len(ALL))), sets, list(ALL))
        for collection, sets in names.items()
    }


def test_every_keel_set_has_one_family() -> None:
    for name in list_keel():
        assert [name.startswith(family) for family in KEEL_FAMILIES].count(True) == 1, name
    assert {family_of(KEEL, name) for name in list_keel()} == set(KEEL_FAMILIES)
    with pytest.raises(ValueError, match="'digits' belongs to none of the families"):
        family_of(KEEL, "digits")


def test_families_of_other_collections() -> None:
    assert family_of(ADBENCH, "2_annthyroid") == family_of(ADBENCH, "38_thyroid")
    assert family_of(ADBENCH, "31_satimage-2") == "landsat"
    assert family_of(ADBENCH, "45_wine") == "wine"
    # No name of a family is that of a member of another one.
    assert not set(ADBENCH_FAMILIES.values()) & set(ADBENCH_FAMILIES)
    assert {family_of(MIXED, name) for name in mixed_names()} >= {"orders", "sensors", "patients"}


@pytest.mark.parametrize(
    ("collection", "names"), [(KEEL, list_keel()), (MIXED, mixed_names()), (ADBENCH, ADBENCH_SETS)]
)
def test_halves_are_balanced_and_hold_whole_families(collection: str, names: list[str]) -> None:
    halves = halves_of(collection, names)
    assert halves.index.tolist() == names
    assert set(halves) == {"A", "B"}
    families = [family_of(collection, name) for name in names]
    assert (halves.groupby(families).nunique() == 1).all()
    sizes = Counter(halves)
    assert abs(sizes["A"] - sizes["B"]) <= max(1, len(names) // 4)
    # The order of the names does not matter.
    assert halves_of(collection, names[::-1]).to_dict() == halves.to_dict()


def test_one_family_is_not_enough() -> None:
    with pytest.raises(ValueError, match="at least two families of KEEL, not of 1"):
        halves_of(KEEL, ["glass1", "glass2"])


@settings(max_examples=examples(5), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from("AB"))
def test_a_choice_sees_its_own_half_only(seed: int, confirming: str) -> None:
    tables, other = made_up(), made_up(seed)
    changed = {
        name: table.where(halves_of(name, table.index) != confirming, other[name])
        for name, table in tables.items()
    }

    def chosen(tables: Tables) -> list[str]:
        rows = confirm(tables, LISTS)
        return list(rows.loc[rows["halves"].str.endswith(confirming), "chosen"])

    assert chosen(tables) == chosen(changed)


def test_a_variant_that_is_better_everywhere_is_chosen_and_confirmed() -> None:
    best = "excess weight 3"
    tables = {name: table * 0.5 for name, table in made_up().items()}
    for table in tables.values():
        table[best] = 0.6 + table[best] / 10
    rows = confirm(tables, {"Weights": LISTS["Weights"]})
    assert rows["chosen"].tolist() == [best, best]
    assert (rows["gain on KEEL"] > 0.1).all()
    assert (rows["p on KEEL"] < 1e-6).all()
    row = compare(tables, [best]).iloc[1]
    assert row["KEEL"] == pytest.approx(tables[KEEL][best].mean())
    assert row["gain on mixed"] == pytest.approx(
        (tables[MIXED][best] - tables[MIXED][SHIPPED]).mean()
    )
    assert np.isnan(compare(tables, [best]).iloc[0]["gain on KEEL"])


def test_collections_have_the_same_weight_in_a_choice() -> None:
    tables = {
        KEEL: pd.DataFrame({"a": [0.5, 0.5, 0.5], "b": [0.6, 0.6, 0.6]}),
        ADBENCH: pd.DataFrame({"a": [0.8], "b": [0.6]}),
    }
    assert choose(tables, ["a", "b"]) == "a"


def test_best_rival_of_each_half() -> None:
    tables = made_up()
    rows = best_rivals(tables)
    assert len(rows) == 2 * len(tables)
    for row in rows.to_dict("records"):
        table = only_half(tables, row["half"])[row["collection"]]
        means = table[list(RIVALS)].mean()
        assert row["of_rival"] == pytest.approx(means.max())
        assert means[row["rival"]] == means.max()
        assert row["n_sets"] == len(table)


def test_views_that_had_better_be_left_out_are_named() -> None:
    tables = {name: table.copy() for name, table in made_up().items()}
    for table in tables.values():
        for name in LEFT_OUT:
            table[name] = table[SHIPPED] - 0.01
    assert not significantly_better(tables, LEFT_OUT)
    tables[KEEL]["without forest"] = tables[KEEL][SHIPPED] + 0.01
    (found,) = significantly_better(tables, LEFT_OUT)
    assert found.startswith("without forest on KEEL (p = ")


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_the_shipped_variant_is_what_the_package_ships(is_mixed: bool, seed: int) -> None:
    made = pieces(is_mixed, seed)
    detector = QMS22Ensemble(random_state=seed)
    detector.fit(
        made.problem.normal, unlabeled=made.problem.batch, groups=made.problem.groups or None
    )
    scores = Fusion()(made)
    np.testing.assert_allclose(scores, detector.unlabeled_scores_, rtol=1e-9, atol=1e-9)
    for name, view in made.views.items():
        np.testing.assert_allclose(
            excess(view), weights.excess(view.scores, view.n_compared), err_msg=name
        )
    factors = Distances().scaler(made.problem, made._standard).factor
    expected = distance_scaler(made._standard, made.problem.normal, made.problem.groups).factor
    np.testing.assert_allclose(factors, expected, rtol=1e-12)


def test_self_training_takes_part_in_the_comparison() -> None:
    """Otherwise the test above would not cover it."""
    assert pieces(False, 0).agreement > 0.0


def test_rivals_are_those_of_the_package() -> None:
    made = pieces(False, 0)
    normal, batch = made.problem.normal, made.problem.batch
    scores = QMS22(random_state=0).fit(normal, unlabeled=batch).unlabeled_scores_
    np.testing.assert_array_equal(RIVALS["QMS22"](made), scores)
    np.testing.assert_array_equal(
        RIVALS["kNN"](made), -KNNDetector().fit(normal).score_samples(batch)
    )


def test_every_variant_scores_every_row() -> None:
    made = pieces(False, 0)
    for name, variant in ALL.items():
        scores = variant(made)
        assert scores.shape == (len(made.problem.batch),), name
        assert np.isfinite(scores).all(), name
        assert made.problem.quality(scores) > 0.6, name


def test_a_view_that_is_left_out_plays_no_part() -> None:
    made = Pieces(problem(), seed=0)
    before = {name: Fusion(without=name)(made) for name in made.views}
    for name, scores in before.items():
        changed = Pieces(problem(), seed=0)
        # Large, so that the view has an excess of suspicious rows.
        changed.views[name] = Scored(10.0 * changed.views[name].scores[::-1], 90)
        if name == "distances":
            changed._distances[Distances()] = changed.views[name]
        np.testing.assert_array_equal(Fusion(without=name)(changed), scores, err_msg=name)
        fusion = Fusion(chance=3.0)  # of so few rows no excess is large
        assert not np.array_equal(fusion(changed), fusion(made)), name


def test_weights_of_a_fusion_by_hand() -> None:
    made = pieces(False, 0)
    views = made.views
    weight = made.correlation**2
    expected = (
        weight * views["members"].scores
        + (1 - weight) * views["distances"].scores
        + 0.25 * views["covariance"].scores
        + made.agreement * views["forest"].scores
    )
    fusion = Fusion(without="self_training", excess_weight=0.0, fixed={"covariance": 0.25})
    np.testing.assert_allclose(fusion(made), expected)
    equal = Fusion(without="self_training", trust="equal", excess_weight=0.0)
    np.testing.assert_allclose(equal(made), sum(view.scores for view in views.values()))
    # Without excess above a threshold that nothing reaches, "none" is the same.
    none = Fusion(without="self_training", trust="none", chance=1e9)
    np.testing.assert_allclose(none(made), equal(made))


@pytest.mark.parametrize(
    "chosen",
    [Distances("range"), Distances("deviation"), Distances(times=2.5), Distances("quantiles", 0.1)],
)
def test_units_of_distances(chosen: Distances) -> None:
    made = pieces(False, 0)
    normal = made.problem.normal
    scaler = chosen.scaler(made.problem, made._standard)
    quantiles = np.quantile(normal, [0.1, 0.9], axis=0)
    unit = {
        "range": np.ptp(normal, axis=0),
        "deviation": normal.std(axis=0),
        "capped": np.minimum(np.ptp(normal, axis=0), 2.5 * normal.std(axis=0)),
        "quantiles": quantiles[1] - quantiles[0],
    }[chosen.unit]
    np.testing.assert_allclose(
        np.diff(scaler.transform(normal), axis=0), np.diff(normal, axis=0) / unit
    )


def test_categories_count_as_one_feature_or_not() -> None:
    made = pieces(True, 0)
    together, apart = made.distances(Distances()), made.distances(Distances(grouped=False))
    assert not np.array_equal(together.scores, apart.scores)


def test_quality_is_auc_or_recall() -> None:
    rng = np.random.default_rng(0)
    one, many = problem(), mixed_problem()
    scores = rng.normal(size=len(one.batch))
    assert one.quality(scores) == pytest.approx(roc(one.is_outlier, scores).auc)
    assert many.quality(many.is_outlier.astype(float)) == 1.0
    assert many.quality(-many.is_outlier.astype(float)) == 0.0


def test_processes_measure_the_same() -> None:
    jobs = plan([problem("iris0"), problem("zoo-3", 50, 30), problem("zoo-3", 40)], 1, 2)
    assert [len(job.problem.normal) for job in jobs] == [90, 90, 50, 50, 40, 40]
    assert [job.seed for job in plan([mixed_problem()], 1, 3)] == [0]
    told: list[tuple[int, str]] = []
    one = measure(jobs, show=lambda done, name: told.append((done, name)))
    assert [done for done, _ in told] == list(range(1, 7))
    variants, ablation = one
    assert list(variants) == [KEEL]
    assert variants[KEEL].index.tolist() == ["iris0", "zoo-3"]
    assert variants[KEEL].columns.tolist() == list(ALL)
    assert ablation[KEEL].columns.tolist() == list(ABLATION)
    for first, second in zip(one, measure(jobs, n_jobs=2), strict=True):
        pd.testing.assert_frame_equal(first[KEEL], second[KEEL])


def test_report_of_made_up_numbers(tmp_path: Path) -> None:
    tables = made_up()
    ablation = {name: table[list(ABLATION)] * 0.5 for name, table in tables.items()}
    for table in ablation.values():
        table[SHIPPED] = 0.75
    page = write_study(tables, ablation, 3, tmp_path / "study").read_text("utf-8")
    for name in ALL:
        assert name.replace("*", "\\*") in page, name
    assert "no collection on which leaving a view out is significantly better" in page
    assert "| shipped | 0.7500 | – |" in page
    assert "nan" not in page.lower()
    assert {path.name for path in (tmp_path / "study").iterdir()} == {
        "study.md",
        "study.csv",
        "study-ablation.csv",
    }
    kept = pd.read_csv(tmp_path / "study" / "study.csv", index_col="dataset")
    assert kept.columns.tolist() == ["collection", "family", "half", *ALL]
    np.testing.assert_allclose(
        kept.loc["glass1", SHIPPED], tables[KEEL].loc["glass1", SHIPPED], atol=1e-6
    )


@pytest.mark.slow
def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FAKE_SETS:
        write_files(tmp_path / "keel" / name, fake_files(name))
    (tmp_path / "adbench").mkdir()
    for name in ("1_first", "2_second"):
        made = problem(n_normal=60)
        np.savez(
            tmp_path / "adbench" / f"{name}.npz",
            X=np.concatenate([made.normal, made.batch]),
            y=np.concatenate([np.zeros(60), made.is_outlier]).astype(int),
        )
    chosen = [part for name in (*FAKE_SETS, "[12]_*") for part in ("-d", name)]
    arguments = [*chosen, "--keel", "keel", "--adbench", "adbench", "--folds", "1"]
    arguments += ["--ablation-seeds", "2", "-q"]
    monkeypatch.setattr("sys.argv", ["study", *arguments])
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "study written to study/study.md" in result.stdout
    page = (tmp_path / "study" / "study.md").read_text("utf-8")
    assert "Data sets: KEEL 2, ADBench 2." in page
    assert "Means over 2 seeds" in page
    assert "python -m study -d iris0" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-d", "nonsense*"], "no data set is called 'nonsense*'"),
        (["-d", "glass*"], "at least two families of KEEL, not of 1"),
        (["-d", "orders: *"], "at least two families of mixed, not of 1"),
        (["--keel", "nowhere"], "'nowhere' does not exist"),
    ],
)
def test_refusals(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())

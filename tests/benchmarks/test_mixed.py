"""The benchmark on mixed tables: the tables, the anomalies, and the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mixed.__main__ import main
from mixed.anomalies import KINDS, Injected, inject
from mixed.command import Ranked, named_columns, run_command, share_named
from mixed.measure import SHARES, measure_table, recall_by_kind
from mixed.payments import PAYMENTS
from mixed.rivals import RangeCheck
from mixed.tables import ORDERS, PATIENTS, SENSORS, MixedTable, all_tables

from qms22 import TabularEncoder

TABLES = {table.name: table for table in [*all_tables(), PAYMENTS]}
MADE = [ORDERS, PATIENTS, PAYMENTS, SENSORS]


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> MixedTable:
    return TABLES[request.param]


def test_tables_are_mixed_and_repeatable(table: MixedTable) -> None:
    rows = table.draw(500, np.random.default_rng(0))
    assert len(rows) == 500
    kinds = {info.kind for info in TabularEncoder(missing="impute").fit(rows).columns_}
    assert kinds >= {"number", "category", "date"}
    assert not kinds & {"identifier", "text", "constant"}
    assert rows.isna().any(axis=None)
    pd.testing.assert_frame_equal(rows, table.draw(500, np.random.default_rng(0)))


def test_every_table_has_every_kind(table: MixedTable) -> None:
    assert tuple(table.changes) == KINDS
    assert len(KINDS) == 12
    assert all(0.005 <= share <= 0.02 for share in SHARES)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_marked_rows_are_changed(table: MixedTable, kind: str) -> None:
    rng = np.random.default_rng(1)
    rows = table.draw(300, rng)
    before = rows.copy()
    batch, is_anomaly, is_changed = inject(rows, table.changes[kind], 20, rng)
    assert not is_changed[~is_anomaly].any()
    # The row that is repeated is as it was.
    assert is_changed[is_anomaly].any(axis=1).sum() == 20 - (kind == "repeated rows")
    pd.testing.assert_frame_equal(rows, before)
    assert batch.dtypes.equals(rows.dtypes)
    assert (len(batch), int(is_anomaly.sum())) == (300, 20)

    def keys(part: pd.DataFrame) -> set[str]:
        return {str(row) for row in part.itertuples(index=False)}

    assert keys(batch[~is_anomaly]) == keys(rows.iloc[:280])
    if kind == "repeated rows":
        assert len(keys(batch[is_anomaly])) == 1
    else:
        assert not keys(batch[is_anomaly]) & keys(rows)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (
            ORDERS,
            lambda rows: (
                rows["quantity"] * rows["unit_price"] * (1 - rows["discount"] / 100)
                * (1 + rows["tax_rate"] / 100) / rows["total"]
            ),
        ),
        (SENSORS, lambda rows: rows["voltage"] * rows["current"] / rows["power"]),
        (PATIENTS, lambda rows: rows["dose_per_kilo"] * rows["weight"] / rows["dose"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_products_hold_in_normal_rows_only(table: MixedTable, error: object) -> None:
    assert callable(error)
    rng = np.random.default_rng(2)
    batch, is_anomaly, _ = inject(table.draw(400, rng), table.changes["broken product"], 40, rng)
    distance = np.abs(np.log(error(batch)))
    assert distance[~is_anomaly].max() < 0.1 < distance[is_anomaly].min()


@pytest.mark.parametrize("table", MADE, ids=lambda table: table.name)
def test_odd_hours_are_not_those_of_normal_rows(table: MixedTable) -> None:
    rng = np.random.default_rng(3)
    batch, is_anomaly, _ = inject(table.draw(400, rng), table.changes["odd hours"], 40, rng)
    hours = batch.select_dtypes("datetime").iloc[:, 0].dt.hour
    assert hours[is_anomaly].max() < 5 < hours[~is_anomaly].min()


def test_recall_is_that_of_the_top_rows() -> None:
    found = list(measure_table(ORDERS, 1, 200, 150, ["kNN", "Mahalanobis"]))
    assert [result.kind for result in found[::2]] == list(KINDS)
    assert {result.n_anomalies for result in found} == {3}  # 2 % with seed 1
    assert {round(3 * result.recall, 6) for result in found} <= {0, 1, 2, 3}
    by_kind = recall_by_kind(pd.DataFrame(found))
    assert by_kind.loc["new level", "Mahalanobis"] == 1
    assert by_kind.loc["mean"].to_list() == pytest.approx(by_kind.iloc[:-1].mean().to_list())
    again = [result.recall for result in measure_table(ORDERS, 1, 200, 150, ["kNN"])]
    assert again == [result.recall for result in found[::2]]


def test_detectors_of_the_batch_learn_from_it() -> None:
    found = measure_table(SENSORS, 0, 150, 100, ["QMS22", "DOUST"])
    first = [next(found) for _ in range(2)]
    assert [result.detector for result in first] == ["QMS22", "DOUST"]
    assert all(0 <= result.auc <= 1 for result in first)


def test_the_command_writes_every_result(tmp_path: Path) -> None:
    few = ["--normal", "120", "--batch", "100", "--seeds", "1", "-m", "kNN", "-m", "LOF"]
    result = CliRunner().invoke(main, [*few, "--output", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    lines = (tmp_path / "mixed.csv").read_text().splitlines()
    rows = [line for line in lines if not line.startswith("machine")]
    assert rows[0] == "table,kind,seed,n_anomalies,detector,recall,auc,seconds,named_first,named"
    assert len(rows) == 1 + len(TABLES) * len(KINDS) * 2


def test_the_range_check_counts_cells_outside() -> None:
    normal = pd.DataFrame({"x": [0.0, 10.0, None], "y": [1.0, 2.0, 2.0], "z": ["a", "b", "a"]})
    batch = pd.DataFrame(
        {
            "x": [5.0, 15.0, 20.0, None, 11.0],
            "y": [1, 1, 1, None, 1],
            "z": ["a", "b", "a", "a", "c"],
        }
    )
    scores = -RangeCheck().fit(normal).score_samples(batch)
    assert scores == pytest.approx([0, 1 + 0.5 / 1.5, 1.5, 1.5, 2 + 1.1 / 2.1])


def test_the_first_reason_is_compared_with_the_changed_cells() -> None:
    columns = ["a", "a_b", "c"]
    assert named_columns("a_b 3 where c and a suggest 4; a 1", columns) == ["a_b", "c", "a"]
    assert named_columns("a 3; none is below 4; c 1", columns) == ["a"]
    batch = pd.DataFrame(0.0, index=range(4), columns=columns)
    is_changed = np.zeros((4, 3), dtype=bool)
    is_changed[:2, 2] = True
    injected = Injected(batch, is_changed[:, 2], is_changed)
    ranked = Ranked(-np.arange(4.0), ["c 3; none is above 1", "a 3 where c suggests 4", "", ""])
    assert share_named(injected, ranked, "spike") == (0.5, 1.0)
    assert share_named(injected, ranked, "repeated rows") == (0.0, 0.0)


def test_the_installed_script_and_the_command_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = ORDERS.draw(1500, rng)
    injected = inject(rows.iloc[1200:].reset_index(drop=True), ORDERS.changes["new level"], 4, rng)
    first, second = (
        run_command(rows.iloc[:1200], injected.batch, tmp_path, in_process=in_process)
        for in_process in (True, False)
    )
    assert first.reasons == second.reasons
    assert first.scores.tolist() == second.scores.tolist()
    anomalies = np.flatnonzero(injected.is_anomaly)
    assert all("payment voucher; never seen" in first.reasons[row] for row in anomalies)

"""Data frames behind the interface of tables in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from table_files import N, everything, people

from qms22.tables import TabularEncoder, open_table, read_mixed

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")


def test_a_pandas_frame_is_returned_itself() -> None:
    table = everything()
    source = open_table(table)
    assert source.read() is table
    assert source.label is None
    assert source.name == "the frame"
    assert source.place(3) == "the frame, row 3"
    assert source.names == table.columns.tolist()
    assert source.n_rows == N
    assert source.n_bytes >= 8 * N


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_other_frames_have_the_same_values(make: Any) -> None:
    source = open_table(make(everything()))
    encoder = TabularEncoder().fit(everything())
    assert source.names == everything().columns.tolist()
    expected = encoder.transform(everything())
    assert encoder.transform(source.read()).tobytes() == expected.tobytes()
    assert encoder.transform(source.take([5, 2])).tobytes() == expected[[5, 2]].tobytes()


def test_chunks_count_the_rows() -> None:
    table = people().set_index(pd.Index([f"r{at}" for at in range(N)]))
    chunks = list(open_table(table).chunks(["city", "age"], n_rows=7, exact=True))
    assert [len(chunk) for chunk in chunks] == [7] * (N // 7) + [N % 7]
    found = pd.concat(chunks)
    assert found.index.tolist() == list(range(N))
    pd.testing.assert_frame_equal(found, people()[["city", "age"]], check_index_type=False)
    assert table.index[0] == "r0"  # the frame itself has not changed


def test_taken_rows_keep_the_index() -> None:
    table = people().set_index(np.arange(N) * 10)
    taken = open_table(table).take([4, 0], ["age"])
    assert taken.index.tolist() == [40, 0]
    assert taken["age"].tolist() == people()["age"][[4, 0]].tolist()
    assert open_table(table).take([]).shape == (0, 4)


def test_names_may_be_numbers() -> None:
    table = pd.DataFrame(np.arange(6.0).reshape(3, 2))
    source = open_table(table)
    assert source.names == ["0", "1"]
    assert source.take([2], ["1"]).columns.tolist() == [1]
    assert source.take([2], ["1"]).to_numpy().tolist() == [[5]]
    assert TabularEncoder().fit(source.read()).transform(source.read()).shape[0] == 3


@pytest.mark.parametrize("names", [["a", "a"], [1, 1], [1, "1"]])
def test_names_occur_once(names: list[Any]) -> None:
    table = pd.DataFrame([[1, 2]], columns=names)
    message = rf"the frame has 2 columns named '{names[0]}'; give each"
    with pytest.raises(ValueError, match=message):
        open_table(table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pl.LazyFrame({"a": [1]}), "the frame is a lazy frame.* collect"),
        ([[1, 2]], "must be a path or a data frame; got list"),
        (np.ones((2, 2)), "must be a path or a data frame; got ndarray"),
        (None, "must be a path or a data frame; got NoneType"),
    ],
)
def test_what_is_no_frame(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_table(table)


def test_no_rows() -> None:
    source = open_table(people()[:0])
    with pytest.raises(ValueError, match="the frame has 0 rows of 4 columns"):
        source.check()
    with pytest.raises(ValueError, match="the frame has 0 rows of 4 columns"):
        source.read()


def test_a_frame_with_a_marker() -> None:
    table = pl.DataFrame({"size": [1, 2, 9], "checked": ["ok", "ok", None]})
    normal, unlabeled = read_mixed(open_table(table), "checked")
    assert normal["size"].tolist() == [1, 2]
    assert unlabeled["size"].tolist() == [9]

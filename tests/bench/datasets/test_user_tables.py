from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qms22_bench.datasets import Dataset, load_folder, load_table

pandas = pytest.importorskip("pandas")

N = 30
AGES = [20.0 + at for at in range(N)]
CITIES = [("Rome", "Oslo", "Bern")[at % 3] for at in range(N)]
IS_OUTLIER = [at % 5 == 0 for at in range(N)]


def frame(labels: tuple[Any, Any] = (0, 1)) -> Any:
    return pandas.DataFrame(
        {"age": AGES, "city": CITIES, "target": [labels[bad] for bad in IS_OUTLIER]}
    )


def write_csv(path: Path, table: Any, **options: Any) -> Path:
    table.to_csv(path, index=False, **options)
    return path


def check(dataset: Dataset) -> None:
    assert dataset.features == ("age", "city")
    assert dataset.columns[0].tolist() == AGES
    assert dataset.columns[1].tolist() == CITIES
    assert dataset.is_outlier.tolist() == IS_OUTLIER
    assert dataset.n_dropped == 0
    assert dataset.folds_source == "stratified, seed 0"
    folds = list(dataset.folds())
    assert len(folds) == 5
    assert folds[0].features == ("age", "city=Bern", "city=Oslo", "city=Rome")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv.xz", ".CSV"])
def test_csv(tmp_path: Path, separator: str, ending: str) -> None:
    dataset = load_table(write_csv(tmp_path / f"my.people{ending}", frame(), sep=separator))
    assert dataset.name == "my.people"
    check(dataset)


@pytest.mark.parametrize("ending", [".parquet", ".parquet.gz"])
def test_parquet(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "people.parquet"
    frame().to_parquet(path)
    if ending.endswith(".gz"):
        packed = tmp_path / "packed.parquet.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    check(load_table(path))


@pytest.mark.parametrize("write", ["to_feather", "to_parquet"])
def test_dates_and_lists(tmp_path: Path, write: str) -> None:
    table = frame()
    days = ["2024-01-01", "2024-01-02 05:00", None] * (N // 3)
    table.insert(0, "day", pandas.to_datetime(days, format="ISO8601"))
    getattr(table, write)(tmp_path / "a.data")
    dataset = load_table(tmp_path / "a.data", n_folds=2)
    assert dataset.n_dropped == N // 3
    assert dataset.columns[0][:3].tolist() == ["2024-01-01", "2024-01-02 05:00", "2024-01-01"]
    table["day"] = [[1]] * N
    getattr(table, write)(tmp_path / "a.data")
    with pytest.raises(ValueError, match=r"column 'day' of .* neither numbers, texts nor dates"):
        load_table(tmp_path / "a.data")


@pytest.mark.parametrize("ending", [".arff", ".arff.gz", ".dat"])
def test_arff(tmp_path: Path, ending: str) -> None:
    lines = ["@RELATION people", "@ATTRIBUTE age NUMERIC", "@ATTRIBUTE 'city' {Rome,Oslo,Bern}"]
    lines += ["@ATTRIBUTE outlier {'yes','no'}", "@DATA"]
    for age, city, bad in zip(AGES, CITIES, IS_OUTLIER, strict=True):
        lines.append(f"{age},{city},'{'yes' if bad else 'no'}'")
    content = "\n".join(lines).encode()
    path = tmp_path / f"people{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    check(load_table(path))


def test_label_by_name(tmp_path: Path) -> None:
    table = frame()[["target", "age", "city"]]
    check(load_table(write_csv(tmp_path / "a.csv", table), label="target"))
    with pytest.raises(ValueError, match=r"a\.csv has no column 'y' .* are target, age, city"):
        load_table(tmp_path / "a.csv", label="y")


@pytest.mark.parametrize(
    "labels",
    [
        (0, 1),
        (0.0, 1.0),
        (1, -1),
        (False, True),
        ("no", "yes"),
        ("No", "Yes"),
        ("negative", "positive"),
        ("inlier", "outlier"),
        ("normal", "anomaly"),
        ("normal", "attack"),
        ("ok", "abnormal"),
    ],
)
def test_outliers_are_guessed(tmp_path: Path, labels: tuple[Any, Any]) -> None:
    check(load_table(write_csv(tmp_path / "a.csv", frame(labels))))


@pytest.mark.parametrize(
    ("labels", "outlier"),
    [
        ((1, 2), 2),
        ((1, 2), "2"),
        ((1, 0), 0),
        (("a", "b"), "b"),
        ((True, False), False),
        ((0.5, 1.5), 1.5),
    ],
)
def test_outliers_may_be_named(tmp_path: Path, labels: tuple[Any, Any], outlier: Any) -> None:
    check(load_table(write_csv(tmp_path / "a.csv", frame(labels)), outlier=outlier))


def test_one_of_many_labels_may_be_named(tmp_path: Path) -> None:
    table = frame(("a", "b"))
    table.loc[1, "target"] = "c"
    check(load_table(write_csv(tmp_path / "a.csv", table), outlier="b"))


@pytest.mark.parametrize("labels", [(1, 2), ("a", "b"), ("yes", "positive"), (0, 0), (1, 1)])
def test_outliers_that_cannot_be_guessed(tmp_path: Path, labels: tuple[Any, Any]) -> None:
    path = write_csv(tmp_path / "a.csv", frame(labels))
    message = r"label column 'target' of .*a\.csv has the values .* none is surely .* outlier="
    with pytest.raises(ValueError, match=message):
        load_table(path)


def test_a_last_column_that_is_no_label(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", frame()[["target", "city", "age"]])
    with pytest.raises(ValueError, match=r"'age' of .* has the values 20, 21, .* and 25 more, of"):
        load_table(path)
    with pytest.raises(ValueError, match=r"not 'bad'; name the label column by label="):
        load_table(path, label="target", outlier="bad")


def test_missing_values_are_dropped_and_counted(tmp_path: Path) -> None:
    table = frame().astype({"city": object, "age": object})
    table.loc[1, "age"] = None
    table.loc[2, "age"] = "?"
    table.loc[4, "city"] = None
    dataset = load_table(write_csv(tmp_path / "a.csv", table))
    assert dataset.n_dropped == 3
    kept = [at for at in range(N) if at not in (1, 2, 4)]
    assert dataset.columns[0].tolist() == [AGES[at] for at in kept]
    assert dataset.is_outlier.tolist() == [IS_OUTLIER[at] for at in kept]


def test_missing_labels_are_a_fault(tmp_path: Path) -> None:
    table = frame()
    table.loc[[3, 7], "target"] = np.nan
    with pytest.raises(ValueError, match=r"a\.csv, row 3: the label column 'target' has no value"):
        load_table(write_csv(tmp_path / "a.csv", table))


def test_columns_in_the_types_of_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = frame()
    table["count"] = pandas.array([None, *range(1, N)], dtype="Int64")
    table["flag"] = pandas.array([True, False] * (N // 2), dtype="boolean")
    table["grade"] = pandas.Categorical(["1", "2"] * (N // 2))
    table["target"] = table.pop("target").astype("int8")
    table.to_parquet(tmp_path / "a.parquet")
    dataset = load_table(tmp_path / "a.parquet")
    assert dataset.features == ("age", "city", "count", "flag", "grade")
    assert dataset.n_dropped == 1
    assert dataset.columns[2].tolist() == list(range(1, N))
    assert dataset.columns[3].tolist() == [float(at % 2 == 0) for at in range(1, N)]
    assert dataset.columns[4].tolist() == [float(at % 2 + 1) for at in range(1, N)]


def test_row_numbers_without_a_name_are_no_feature(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "a.csv")
    with pytest.warns(UserWarning, match="column 1 has no name .* row numbers"):
        check(load_table(tmp_path / "a.csv"))


def test_names_that_pandas_gives_are_names(tmp_path: Path) -> None:
    table = frame().drop(columns="city")
    table.columns = range(2)
    assert load_table(write_csv(tmp_path / "a.csv", table)).features == ("0",)


def test_latin_1(tmp_path: Path) -> None:
    table = frame().rename(columns={"age": "größe"})
    write_csv(tmp_path / "a.csv", table, encoding="latin-1")
    assert load_table(tmp_path / "a.csv").features == ("größe", "city")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", r"a\.csv is empty; give a file with a header and rows"),
        ("a.csv", b"a,b\n1,2\n1\n2\n", r"a\.csv, line 3: the row has fewer cells .* correct"),
        ("a.csv", b"a\n1\n", r"a\.csv has 1 columns; it needs .* commas, semicolons"),
        ("a.csv", b"a,b\n", r"a\.csv has a header but no rows"),
        ("a.csv", b"a,b\n1,0\ninf,1\n", r"column 'a' of .*a\.csv has 1 infinite .* at row 1\)"),
        ("a.csv", b"a,b\n,0\n,1\n", r"all 2 rows of .*a\.csv have missing .*'a'\); impute"),
        ("a.csv.gz", b"\x1f\x8bnothing", r"a\.csv\.gz cannot be decompressed .* get it again"),
        ("a.parquet", b"PAR1 and no more", r"a\.parquet cannot be read as Parquet .* again"),
        ("a.xlsx", b"PK\x03\x04", r"a\.xlsx starts as a zip archive or an Excel .* get it"),
    ],
)
def test_faults_of_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_free_text_is_not_encoded(tmp_path: Path) -> None:
    table = pandas.DataFrame({"id": [f"n{at}" for at in range(1001)], "y": [0, 1] * 500 + [0]})
    with pytest.raises(ValueError, match=r"column 'id' of .*a\.csv holds 1001 different texts"):
        load_table(write_csv(tmp_path / "a.csv", table))


def test_folder(tmp_path: Path) -> None:
    write_csv(tmp_path / "b.csv", frame(("a", "b")))
    write_csv(tmp_path / "a.csv.gz", frame(("a", "b")))
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "notes.txt").write_text("about")
    (tmp_path / "c").mkdir()
    datasets = load_folder(tmp_path, label="target", outlier="b", n_folds=3, seed=4)
    assert [dataset.name for dataset in datasets] == ["a", "b"]
    for dataset in datasets:
        assert dataset.folds_source == "stratified, seed 4"
        assert len(list(dataset.folds())) == 3


def test_folders_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"folder .* has no \.csv, .*\.parquet, .*\.arff, \.dat"):
        load_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere'; correct"):
        load_folder(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*nowhere\.csv'; correct"):
        load_table(tmp_path / "nowhere.csv")


def test_too_few_outliers_for_the_folds(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", frame().iloc[1:12])
    with pytest.raises(ValueError, match=r"'a' has 2 outlier rows .* smaller n_folds"):
        load_table(path)
    assert len(list(load_table(path, n_folds=2).folds())) == 2

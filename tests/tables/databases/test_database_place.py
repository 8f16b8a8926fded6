"""Names of tables in databases: what is one, and that passwords never show."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qms22.tables.databases.database_place import DatabasePlace, find_database


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (a)")
    connection.close()
    return path


def test_files_of_databases_are_found_by_their_content(shop: Path) -> None:
    other = shop.rename(shop.with_name("no#suffix"))
    assert find_database(f"{other}") == DatabasePlace("sqlite", str(other))
    plain = shop.with_name("shop")
    other.rename(plain)
    assert find_database(f"{plain}#orders") == DatabasePlace("sqlite", str(plain), "orders")
    assert find_database(Path(f"{plain}#orders")) == DatabasePlace("sqlite", str(plain), "orders")


def test_other_files_are_not_databases(tmp_path: Path) -> None:
    text = tmp_path / "a.db"
    text.write_text("x,y\n1,2\n")
    assert find_database(str(text)) is None
    for name in ("a.csv", "book.xlsx#Update list", "-", "data/*.csv", "https://host/a.csv"):
        assert find_database(name) is None
    assert find_database([1, 2]) is None


def test_slashes_of_urls(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.parent)
    assert find_database("sqlite:///shop.db#orders") == DatabasePlace("sqlite", "shop.db", "orders")
    absolute = find_database(f"sqlite:///{shop}")
    assert absolute == DatabasePlace("sqlite", str(shop))
    assert find_database("sqlite:////x/y.db", new=True) == DatabasePlace("sqlite", "/x/y.db")
    assert find_database("a.duckdb#t", new=True) == DatabasePlace("duckdb", "a.duckdb", "t")


def test_postgresql_has_several_names() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg2"):
        found = find_database(f"{scheme}://me@host:5432/shop#orders")
        assert found == DatabasePlace("postgresql", "postgresql://me@host:5432/shop", "orders")


@pytest.mark.parametrize(
    ("what", "is_query"),
    [
        ("SELECT * FROM a", True),
        ("select(1)", True),
        ("-- why\nSELECT 1", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("(SELECT 1)", True),
        ("orders", False),
        ("sales.orders", False),
        ("Order Details", False),
        ("selected", False),
        ("", False),
    ],
)
def test_tables_and_queries(what: str, is_query: bool) -> None:
    assert DatabasePlace("sqlite", "a.db", what).is_query == is_query


@pytest.mark.parametrize("what", ["DROP TABLE a", "delete from a", "COPY a TO 'x'", "PRAGMA x"])
def test_other_statements_are_refused(what: str) -> None:
    with pytest.raises(ValueError, match="is not a query; only statements that read are run"):
        find_database(f"postgresql://me:hush@host/shop#{what}")


def test_no_such_file() -> None:
    with pytest.raises(ValueError, match=r"there is no file 'nope\.db'; correct the path"):
        find_database("nope.db#orders")


def test_passwords_are_left_out() -> None:
    place = find_database("postgresql://me:hu%40sh@host/shop?sslpassword=psst&a=b#orders")
    assert place is not None
    shown = "postgresql://me@host/shop?sslpassword=***&a=b#orders"
    assert (place.name, str(place)) == (shown, shown)
    assert place.hide("hu%40sh hu@sh psst host") == "*** *** *** host"


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=3, max_size=12).filter(
        lambda text: not set("@:/?#%") >= set(text)
    )
)
def test_no_password_shows_in_any_message(password: str) -> None:
    secret = f"zq{password}qz"
    try:
        place = find_database(f"postgresql://me:{secret}@host/shop#orders")
    except ValueError as error:
        shown = str(error)
        assert "write them as %3A" in shown
    else:
        assert place is not None
        shown = place.name + place.database + place.hide(f"driver: {secret}")
    assert "zq" not in shown
    assert "qz" not in shown

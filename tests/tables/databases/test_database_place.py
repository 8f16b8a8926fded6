"""Names of tables in databases: what is one, and that passwords never show."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import example, given
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
    for name in ("a.csv", "book.xlsx#Update list", "-", "data/*.csv"):
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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hu%40sh@host/shop?port=1&sslpassword=psst", "***@host/shop?port=1&***"),
        ("postgresql://me@corp.com:hush@host/shop", "***@host/shop"),
        ("mysql+pymysql://me@corp:hush@host:3306/shop?charset=utf8", "***@host:3306/shop?***"),
        ("mssql+pyodbc:///?odbc_connect=DRIVER%3DX%3BPWD%3Dhush", "/?odbc_connect=***"),
        ("bigquery://project/shop?credentials_base64=aHVzaA==", "project/shop?***"),
        ("mysql://host/shop?ssl_key=hush;a=b", "host/shop?ssl_key=***"),
        ("snowflake://hush@account/shop?authenticator=hush", "***@account/shop?***"),
    ],
)
def test_passwords_are_left_out(url: str, shown: str) -> None:
    place = find_database(f"{url}#orders")
    assert place is not None
    scheme = url.partition("://")[0]
    pattern = re.escape(f"{scheme}://{shown}#orders").replace(r"\?\*\*\*", r"\?[\w=*&]*")
    assert re.fullmatch(pattern.replace(r"&\*\*\*", r"&\w+=\*\*\*"), place.name)
    assert str(place) == place.name
    for text in (place.name, place.database, repr(place), f"{[place]}"):
        assert not re.search("hush|hu%40sh|psst|aHVzaA|PWD", text)


def test_passwords_in_errors_of_drivers_are_left_out() -> None:
    place = DatabasePlace("x", "x://me:hu%40sh@host/shop?sslpassword=psst&a=pw&sslmode=require")
    assert place.hide("hu%40sh hu@sh psst host require") == "*** *** *** host require"
    assert place.hide("pw@host, spwn") == "***@host, spwn"
    odbc = DatabasePlace("mssql", "mssql:///?odbc_connect=UID%3Dme%3BPWD%3Dp+w%21x")
    assert "w!x" not in odbc.hide("Login failed: UID=me;PWD=p w!x; p+w!x; p+w%21x")


@pytest.mark.parametrize("scheme", ["https", "ftp", "s3", "file"])
def test_addresses_of_files_are_not_read(scheme: str) -> None:
    with pytest.raises(ValueError, match="is an address, which is not read; save the") as caught:
        find_database(f"{scheme}://me:hush@host/orders.csv?sig=hush")
    assert "hush" not in str(caught.value)


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=3, max_size=12).filter(
        lambda text: not set("@:/?#%") >= set(text)
    )
)
@example("0&=")
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

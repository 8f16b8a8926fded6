"""Troubles of files: encodings, layouts, headers, formats."""

from __future__ import annotations

from collections.abc import Callable

from case import Case, text_file
from orders import Orders, levels

TITLE = {False: "normal", True: "batch"}


def _add(name: str, text: str) -> Callable[[Orders, bool], Orders]:
    """Return a change: one more column in the batch."""

    def change(table: Orders, is_batch: bool) -> Orders:
        if not is_batch:
            return table
        return Orders({**table.columns, name: [text] * len(table.cells)}, table.writers)

    return change


def _short(text: str) -> str:
    """Cut off the last two cells of a row."""
    lines = text.splitlines()
    lines[5] = ",".join(lines[5].split(",")[:-2])
    return "\n".join(lines) + "\n"


def _insert_header(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:20], lines[0], *lines[20:]])


def _padded_title(text: str) -> str:
    commas = "," * text.splitlines()[0].count(",")
    return f"Orders of the shop{commas}\n{commas}\n{text}"


def _renamed(table: Orders, is_batch: bool) -> Orders:
    if is_batch:
        return table
    return table.renamed({"order": "Order", "amount": "AMOUNT ", "quantity": "Quan_tity"})


def _columns_turned(table: Orders, is_batch: bool) -> Orders:
    columns = list(table.columns.items())
    return Orders(dict(columns[::-1] if is_batch else columns), table.writers)


TOWNS = levels("Köln", "Zürich", "Málaga", "Łódź")
WESTERN = levels("Köln", "Zürich", "Málaga")
SMART = levels("Köln “Mitte”", "Zürich – West", "5 € shop")
TOWN = {"town": "category"}

ENCODINGS = [
    Case(
        "utf-8-mark",
        "UTF-8 with a mark at the start.",
        makers={"town": TOWNS},
        layout=text_file(codec="utf-8-sig"),
        kinds=TOWN,
    ),
    Case(
        "utf-16",
        "UTF-16 with its mark, as Excel saves Unicode text.",
        makers={"town": TOWNS},
        layout=text_file(separator="\t", codec="utf-16"),
        kinds=TOWN,
    ),
    Case(
        "utf-16-unmarked",
        "UTF-16 without its mark.",
        makers={"town": TOWNS},
        layout=text_file(codec="utf-16-le"),
        kinds=TOWN,
        notes=("normal.csv is read as UTF-16", "batch.csv is read as UTF-16"),
    ),
    Case(
        "latin-1",
        "Latin-1.",
        "town",
        "Århus",
        makers={"town": WESTERN},
        layout=text_file(codec="latin-1"),
        within=3,
        kinds=TOWN,
    ),
    Case(
        "windows-1252",
        "The encoding of Windows.",
        makers={"town": SMART},
        layout=text_file(codec="cp1252"),
        kinds=TOWN,
    ),
    Case(
        "two-encodings",
        "One file is UTF-8, the other one Latin-1.",
        makers={"town": WESTERN},
        kinds=TOWN,
        layout=lambda table, is_batch: text_file(codec="latin-1" if is_batch else "utf-8")(
            table, is_batch
        ),
    ),
    Case(
        "mac",
        "Lines that end as on old Macs.",
        layout=text_file(lambda text: text.replace("\n", "\r")),
    ),
    Case(
        "windows",
        "Lines that end as on Windows, and the mark of DOS at the end.",
        layout=text_file(lambda text: text.replace("\n", "\r\n") + "\x1a"),
    ),
]

SEPARATORS = [
    Case(
        "tabs",
        "Tabs.",
        layout=text_file(separator="\t", suffix="tsv"),
        inputs=("normal.tsv", "batch.tsv"),
    ),
    Case("semicolons", "Semicolons.", layout=text_file(separator=";")),
    Case(
        "bars",
        "Bars.",
        layout=text_file(separator="|", suffix="txt"),
        inputs=("normal.txt", "batch.txt"),
    ),
    Case("blanks", "Blanks.", layout=text_file(separator=" ")),
    Case(
        "blanks-after-commas",
        "Blanks after commas.",
        layout=text_file(lambda text: text.replace(",", ", ")),
    ),
    Case("all-quoted", "Every cell in quotes.", layout=text_file(quotes_all=True)),
    Case(
        "sep-line",
        "A first line that tells Excel the separator.",
        layout=text_file(lambda text: "sep=;\n" + text, separator=";"),
    ),
    Case(
        "separators-behind",
        "A separator at the end of each line.",
        layout=text_file(lambda text: text.replace("\n", ",\n")),
    ),
]

HEADERS = [
    Case(
        "title",
        "A title above the header.",
        layout=text_file(lambda text: "Orders of the shop\n\n" + text),
        notes=("normal.csv: 1 line above", "batch.csv: 1 line above"),
    ),
    Case(
        "padded-title",
        "A title above the header, as a spreadsheet exports it.",
        layout=text_file(_padded_title),
        notes=("normal.csv: 2 lines above", "batch.csv: 2 lines above"),
    ),
    Case(
        "sum",
        "A sum below the table.",
        layout=text_file(lambda text: text + "Total,4711.00,,,,\n", only_batch=True),
        notes=("batch.csv: 1 line below",),
    ),
    Case(
        "footer",
        "Remarks below the table.",
        layout=text_file(lambda text: text + "\n\nExported on 1 May 2024\nby Ann\n"),
        notes=("normal.csv: 2 lines below", "batch.csv: 2 lines below"),
    ),
    Case(
        "empty-rows",
        "Rows without any text at the end.",
        layout=text_file(lambda text: text + ",,,,,\n" * 5),
        notes=("normal.csv: 5 lines without", "batch.csv: 5 lines without"),
    ),
    Case(
        "rule",
        "A line of dashes below the header.",
        layout=text_file(
            lambda text: text.replace("\n", "\n-----,------,--------,-------,-------,-------\n", 1)
        ),
    ),
    Case(
        "two-headers",
        "Two exports in one file.",
        layout=text_file(_insert_header),
        notes=("normal.csv has its header once more", "batch.csv has its header once more"),
    ),
    Case(
        "no-header",
        "No header.",
        id="x1",
        layout=text_file(lambda text: text.split("\n", 1)[1]),
        kinds={},
        notes=("normal.csv has no column names", "batch.csv has no column names"),
        change=lambda table, is_batch: table.renamed(
            {name: f"x{at}" for at, name in enumerate(table.columns, 1)}
        ),
    ),
    Case(
        "no-header-once",
        "No header in the file of normal rows.",
        layout=lambda table, is_batch: text_file(
            lambda text: text if is_batch else text.split("\n", 1)[1]
        )(table, is_batch),
        notes=("normal.csv has no column names", "matched by their order"),
    ),
    Case(
        "same-names",
        "Two columns of one name.",
        "amount2",
        980.0,
        {"amount2": lambda rng, n, is_batch: [round(float(v), 2) for v in rng.uniform(5, 9, n)]},
        change=lambda table, is_batch: table.renamed({"amount2": "amount"}),
        kinds={"amount2": "number"},
        called={"amount2": "amount_2"},
        notes=(
            "normal.csv: column 7 is called 'amount_2'",
            "batch.csv: column 7 is called 'amount_2'",
        ),
    ),
    Case(
        "no-name",
        "A column without a name.",
        change=lambda table, is_batch: table.renamed({"quantity": ""}),
        column="quantity",
        anomaly=88,
        called={"quantity": "column 3"},
        notes=("normal.csv: column 3 has no name", "batch.csv: column 3 has no name"),
    ),
    Case(
        "row-numbers",
        "A first column with row numbers, as pandas writes it.",
        layout=text_file(
            lambda text: "".join(
                ("" if at == 0 else str(at - 1)) + "," + line
                for at, line in enumerate(text.splitlines(keepends=True))
            )
        ),
        notes=("normal.csv: column 1 has no name", "batch.csv: column 1 has no name"),
    ),
    Case(
        "r-rows",
        "Row names without a header, as R writes them.",
        layout=text_file(
            lambda text: "".join(
                ("" if at == 0 else f'"{at}",') + line
                for at, line in enumerate(text.splitlines(keepends=True))
            )
        ),
        notes=("normal.csv: column 1 has no name", "batch.csv: column 1 has no name"),
    ),
    Case(
        "short-row",
        "A row that is cut off.",
        layout=text_file(_short),
        unread=("shipped",),
        notes=(
            "missing: ",
            "normal.csv: line 6 has fewer cells",
            "batch.csv: line 6 has fewer cells",
        ),
    ),
    Case(
        "long-row",
        "A comma in a cell, without quotes.",
        makers={"street": levels("Hill Road", "Main Street")},
        layout=text_file(lambda text: text.replace("Hill Road", "Hill Road, flat B", 1)),
        kinds={"street": "category"},
        notes=("normal.csv: line", "batch.csv: line"),
    ),
    Case(
        "other-case",
        "Headers with other case, blanks and underscores.",
        change=_renamed,
        notes=("'Order' for 'order'",),
    ),
    Case("other-order", "Columns in another order.", change=_columns_turned),
    Case(
        "extra",
        "A column that only the batch has.",
        change=_add("comment", "none"),
        notes=("'comment' of batch.csv is left out",),
    ),
    Case(
        "lacking",
        "A column that the batch lacks.",
        change=lambda table, is_batch: table.without("country") if is_batch else table,
        notes=("'country' of normal.csv is left out",),
    ),
]

"""KEEL .dat files, and ARFF files, from which that format descends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from qms22.tables.columns.cells import check_names
from qms22.tables.sources.compressed import DAMAGED, TableFile
from qms22.tables.sources.stored_rows import Content, MemoryRows
from qms22.tables.sources.text_encoding import read_whole_text
from qms22.tables.texts.words import KEEL_MISSING, parse_number

_KEYWORD = re.compile(r"@(\w+)\s*(.*)")
# A name, quoted or not, and its type, with or without a blank before a set: "Class{a, b}".
_ATTRIBUTE = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.*)""")
_NUMBER_TYPE = re.compile(r"(real|integer|numeric)\b", re.IGNORECASE)
_TEXT_TYPE = re.compile(r"\{|(string|date)\b", re.IGNORECASE)
# What is not quoted goes up to the comma, with the blanks before it: a pattern that leaves these
# out would try each of them.
_VALUE = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]*)\s*(?:,|$)""")


@dataclass
class _Header:
    """The declarations before the rows."""

    path: str
    names: list[str] = field(default_factory=list)
    are_numbers: list[bool] = field(default_factory=list)
    # The lines of @inputs and @outputs, and the columns that they name.
    declared: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    def add(self, line: int, text: str) -> None:
        """Add a line that starts with "@"."""
        match = _KEYWORD.match(text)
        keyword, rest = (match[1].lower(), match[2].strip()) if match else ("", "")
        if keyword.startswith(("input", "output")):
            names = [_unquote(name.strip()) for name in rest.split(",") if name.strip()]
            self.declared["@inputs" if keyword.startswith("in") else "@outputs"] = line, names
        if keyword != "attribute":
            return
        match = _ATTRIBUTE.match(rest)
        name, kind = (_unquote(match[1]), match[2]) if match else ("", "")
        is_number = _NUMBER_TYPE.match(kind) is not None
        if not is_number and not _TEXT_TYPE.match(kind):
            raise ValueError(
                f"{self.path}, line {line}: attribute {name!r} has the type {kind!r}; declare it "
                "as real, integer or a set such as {a, b}"
            )
        self.names.append(name)
        self.are_numbers.append(is_number)

    def check(self) -> None:
        """Raise ValueError if there is not one class column, or a declared column is missing."""
        if len(self.names) < 2:
            raise ValueError(
                f"{self.path} declares {len(self.names)} attributes where there should be at least "
                f"an input and the class; {DAMAGED}"
            )
        for keyword, (line, names) in self.declared.items():
            if keyword == "@outputs" and len(names) > 1:
                raise ValueError(
                    f"{self.path}, line {line}: {len(names)} outputs are declared "
                    f"({', '.join(names)}); leave the class as the only one"
                )
            unknown = [name for name in names if name not in self.names]
            if unknown:
                what = "class" if keyword == "@outputs" else "input"
                raise ValueError(
                    f"{self.path}, line {line}: the {what} column {unknown[0]!r} is missing among "
                    f"the attributes ({', '.join(self.names)}); correct {keyword} or add the "
                    "attribute"
                )

    @property
    def label(self) -> str:
        """The class column: the only output, or the last column if none is declared."""
        _, outputs = self.declared.get("@outputs", (0, []))
        return outputs[0] if outputs else self.names[-1]

    @property
    def used(self) -> list[int]:
        """The positions of the inputs and of the class."""
        _, inputs = self.declared.get("@inputs", (0, []))
        wanted = {*inputs, self.label} if inputs else {*self.names}
        return [at for at, name in enumerate(self.names) if name in wanted]


def read_keel(file: TableFile) -> Content:
    """Read a KEEL .dat or a (dense) ARFF file.

    Columns declared real, integer or numeric are numbers, others are texts. The label is the
    declared output, or the last column. Empty values, ``?`` and ``<null>`` are missing.
    """
    path = str(file.path)
    lines = enumerate(read_whole_text(file).open(newline=None), start=1)
    header = _read_header(lines, path)
    header.check()
    rows, places = _read_rows(lines, header)
    check_names([header.names[at] for at in header.used], path)
    texts = list(zip(*rows, strict=True))
    columns = {header.names[at]: _column(header, at, texts[at], places) for at in header.used}
    return Content(
        MemoryRows(pa.table(columns)),
        label=header.label,
        place=lambda row: f"{path}, line {places[row]}",
    )


def _read_header(lines: Iterator[tuple[int, str]], path: str) -> _Header:
    header = _Header(path)
    line = 0
    for line, raw in lines:
        text = raw.strip()
        if text.lower() == "@data":
            return header
        if text.startswith("@"):
            header.add(line, text)
        elif text and not text.startswith("%"):
            raise ValueError(
                f"{path}, line {line}: expected a line that starts with '@', got {text[:40]!r}; "
                "give a KEEL or ARFF file, with its header up to @data"
            )
    raise ValueError(f"{path} has no @data line up to its end at line {line}; {DAMAGED}")


def _read_rows(
    lines: Iterator[tuple[int, str]], header: _Header
) -> tuple[list[list[str]], list[int]]:
    rows, places, n_columns = list[list[str]](), list[int](), len(header.names)
    for line, text in lines:
        if not text or text.isspace() or text.startswith("%"):
            continue
        values = text.split(",") if "'" not in text and '"' not in text else _split_quoted(text)
        if len(values) != n_columns:
            if text.lstrip().startswith("{"):
                raise ValueError(
                    f"{header.path}, line {line}: this is a sparse ARFF row; save the file in the "
                    "dense form, with a value for every attribute"
                )
            raise ValueError(
                f"{header.path}, line {line}: the row has {len(values)} values for {n_columns} "
                "attributes; the file looks truncated or damaged there, get it again or correct it"
            )
        rows.append(values)
        places.append(line)
    if not rows:
        raise ValueError(f"{header.path} has no rows after @data; {DAMAGED}")
    return rows, places


def _column(header: _Header, at: int, texts: Sequence[str], places: Sequence[int]) -> pa.Array:
    """Return a column with the declared type."""
    stripped = [text.strip() for text in texts]
    cells = [None if text.lower() in KEEL_MISSING else text for text in stripped]
    if not header.are_numbers[at]:
        return pa.array(cells, pa.string())
    numbers: list[float | None] = []
    for cell, line in zip(cells, places, strict=True):
        try:
            numbers.append(None if cell is None or cell.lower() == "nan" else parse_number(cell))
        except ValueError as error:
            raise ValueError(
                f"{header.path}, line {line}: column {header.names[at]!r} is declared as numbers "
                f"but holds {cell!r}; correct the value or declare the column as a set of its "
                "values"
            ) from error
    return pa.array(numbers, pa.float64())


def _split_quoted(text: str) -> list[str]:
    """Split a row in which a value may be quoted and hold a comma."""
    values, position = list[str](), 0
    while match := _VALUE.match(text, position):
        values.append(_unquote(match[1].strip()))
        if not match[0].endswith(","):
            break
        position = match.end()
    return values


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text

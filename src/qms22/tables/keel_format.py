"""Reader of KEEL's .dat format, and of ARFF, from which it descends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from qms22.tables.columns import MISSING, Column, Table, text_column

_KEYWORD = re.compile(r"@(\w+)\s*(.*)")
# A name, quoted or not, and its type, with or without a blank before a set: "Class{a, b}".
_ATTRIBUTE = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.*)""")
_NUMBER_TYPE = re.compile(r"(real|integer|numeric)\b", re.IGNORECASE)
_TEXT_TYPE = re.compile(r"\{|(string|date)\b", re.IGNORECASE)
_VALUE = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]*?)\s*(?:,|$)""")


@dataclass
class _Header:
    """What the lines before the rows declare."""

    path: str
    names: list[str] = field(default_factory=list)
    are_numbers: list[bool] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def add(self, line: int, text: str) -> None:
        """Take in a line that starts with "@"."""
        match = _KEYWORD.match(text)
        keyword, rest = (match[1].lower(), match[2].strip()) if match else ("", "")
        if keyword == "attribute":
            self._add_attribute(line, rest)
        elif keyword in ("input", "inputs"):
            self.inputs = _names(rest)
            self.places["@inputs"] = line
        elif keyword in ("output", "outputs"):
            self.outputs = _names(rest)
            self.places["@outputs"] = line

    def _add_attribute(self, line: int, text: str) -> None:
        match = _ATTRIBUTE.match(text)
        name, kind = (_unquote(match[1]), match[2]) if match else ("", "")
        is_number = _NUMBER_TYPE.match(kind) is not None
        if not is_number and not _TEXT_TYPE.match(kind):
            raise ValueError(
                f"{self.path}, line {line}: attribute {name!r} has the type {kind!r}; declare it "
                "as real, integer or a set such as {a, b}"
            )
        self.names.append(name)
        self.are_numbers.append(is_number)

    def label(self) -> str:
        """Name the class column: the one output, or the last column where none is declared."""
        if len(self.names) < 2:
            raise ValueError(
                f"{self.path} declares {len(self.names)} attributes where there should be at least "
                "an input and the class; the file looks truncated, get it anew"
            )
        if len(self.outputs) > 1:
            raise ValueError(
                f"{self.path}, line {self.places['@outputs']}: {len(self.outputs)} outputs are "
                f"declared ({', '.join(self.outputs)}); leave the class as the only one"
            )
        self._check_known("class column", self.outputs, "@outputs")
        return self.outputs[0] if self.outputs else self.names[-1]

    def used(self) -> list[int]:
        """Give the positions of the inputs and of the class."""
        self._check_known("input column", self.inputs, "@inputs")
        wanted = {*self.inputs, self.label()} if self.inputs else set(self.names)
        return [at for at, name in enumerate(self.names) if name in wanted]

    def _check_known(self, what: str, names: list[str], keyword: str) -> None:
        for name in names:
            if name not in self.names:
                raise ValueError(
                    f"{self.path}, line {self.places[keyword]}: the {what} {name!r} is missing "
                    f"among the attributes ({', '.join(self.names)}); correct {keyword} or add the "
                    "attribute"
                )


def read_dat(content: bytes, path: str) -> Table:
    """Read a KEEL .dat or a (dense) ARFF file.

    Parameters
    ----------
    content : bytes
        UTF-8 or Latin-1, with any line ends.
    path : str
        The name to use in messages.

    Returns
    -------
    Table
        Columns declared real, integer or numeric as numbers, others as text; its label is the
        declared output, or the last column. Empty values, ``?`` and ``<null>`` are missing.
    """
    lines = enumerate(decode_text(content).split("\n"), start=1)
    header = _read_header(lines, path)
    label = header.label()
    rows, places = _read_rows(lines, header)
    texts = list(zip(*rows, strict=True))
    used = header.used()
    return Table(
        path,
        tuple(header.names[at] for at in used),
        tuple(_convert(header, at, texts[at], places) for at in used),
        label,
        places,
    )


def decode_text(content: bytes) -> str:
    """Decode UTF-8 or, failing that, Latin-1, and make every line end a newline."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    # Not str.splitlines, which also splits at characters that are letters in Latin-1.
    return text.replace("\r\n", "\n").replace("\r", "\n")


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
    raise ValueError(
        f"{path} has no @data line up to its end at line {line}; the file looks truncated, "
        "get it anew"
    )


def _read_rows(
    lines: Iterator[tuple[int, str]], header: _Header
) -> tuple[list[list[str]], list[int]]:
    rows: list[list[str]] = []
    places: list[int] = []
    n_columns = len(header.names)
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
                "attributes; the file looks truncated or damaged there, get it anew or correct it"
            )
        rows.append(values)
        places.append(line)
    if not rows:
        raise ValueError(
            f"{header.path} has no rows after @data; the file looks truncated, get it anew"
        )
    return rows, places


def _convert(header: _Header, at: int, texts: Sequence[str], places: Sequence[int]) -> Column:
    """Make a column of its texts, as declared."""
    if not header.are_numbers[at]:
        return text_column(texts)
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        numbers = np.array([_number_or_nan(text) for text in texts])
    bad = np.flatnonzero(np.isinf(numbers))
    if bad.size:
        raise ValueError(
            f"{header.path}, line {places[bad[0]]}: column {header.names[at]!r} is declared as "
            f"numbers but holds {texts[bad[0]].strip()!r}; correct the value or declare the column "
            "as a set of its values"
        )
    return numbers


def _number_or_nan(text: str) -> float:
    """Read a number; NaN where it is missing, infinity where there is none to be read."""
    if text.strip().lower() in MISSING:
        return np.nan
    try:
        return float(text)
    except ValueError:
        return np.inf


def _split_quoted(text: str) -> list[str]:
    """Split a row in which a value may be quoted and hold a comma."""
    values: list[str] = []
    position = 0
    while match := _VALUE.match(text, position):
        values.append(_unquote(match[1]))
        if not match[0].endswith(","):
            break
        position = match.end()
    return values


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _names(text: str) -> list[str]:
    return [_unquote(name.strip()) for name in text.split(",") if name.strip()]

"""JSON documents and JSON Lines."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.packages import need
from qms22.tables.sources.compressed import shorten_error
from qms22.tables.sources.source import EmptyTableError, FileSource, WholeSource
from qms22.tables.sources.text_encoding import SAMPLE, decode_text
from qms22.tables.sources.values import arrow_column, arrow_type, value_kinds
from qms22.tables.texts.words import list_some

# Records to convert at once.
_RECORDS = 8192
# Records of files up to this size are parsed once and kept.
_MOST_KEPT = 1 << 24

Record = dict[str, Any]


class JsonLinesSource(FileSource):
    """One object per line, which is one row.

    Objects inside of an object become columns such as ``a.b``. As the type of a column depends on
    all of its values, the file is read once for the types before the first row is returned.
    """

    @property
    def names(self) -> list[str]:
        """The keys of all records, in the order in which they occur."""
        return list(self._contents.types)

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return self._contents.n_rows

    @contextmanager
    def _parsed_once(self) -> Iterator[None]:
        is_first = "_contents" not in self.__dict__
        if is_first:
            self._contents = self._scan(keep=True)
        yield
        if is_first and self.n_bytes > _MOST_KEPT:
            self._contents = self._contents._replace(kept=None)

    @cached_property
    def _contents(self) -> _Contents:
        return self._scan(keep=self.n_bytes <= _MOST_KEPT)

    def _scan(self, *, keep: bool) -> _Contents:
        """Read all records, to count them and find the types of columns."""
        kinds: dict[str, frozenset[str]] = {}
        kept: list[Record] = []
        n_rows = 0
        for records in _in_batches(self._records()):
            n_rows += len(records)
            for name, values in _columns(records).items():
                kinds[name] = kinds.get(name, frozenset()) | value_kinds(values)
            if keep:
                kept += records
        if not n_rows:
            raise EmptyTableError(f"{self.name} has no records; give a file with at least one")
        types = {name: arrow_type(found) for name, found in kinds.items()}
        return _Contents(n_rows, types, kept if keep else None)

    def _parts(
        self, columns: list[str], positions: NDArray[np.intp] | None
    ) -> Iterator[tuple[int, Any]]:
        pa = need("pyarrow", self.name)
        types, kept = self._contents.types, self._contents.kept
        first = 0
        for records in _in_batches(kept if kept is not None else self._records()):
            arrays = [
                arrow_column([record.get(name) for record in records], types[name])
                for name in columns
            ]
            yield first, pa.record_batch(arrays, names=columns)
            first += len(records)

    def _records(self) -> Iterator[Record]:
        for number, line in enumerate(self._lines(), start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{self.name}, line {number}: this is not JSON ({shorten_error(error)}); "
                    "correct that line"
                ) from error
            if not isinstance(record, dict):
                raise ValueError(
                    f'{self.name}, line {number}: expected an object such as {{"a": 1}}, got '
                    f"{line.strip()[:40]!r}; write one object per line"
                )
            yield flatten(record)

    def _lines(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        rest = ""
        try:
            with self.file.open() as stream:
                while block := stream.read(SAMPLE):
                    # Not str.splitlines, which also splits at characters that texts may have.
                    *lines, rest = (rest + decoder.decode(block)).split("\n")
                    yield from lines
            yield rest + decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.name} is not UTF-8 text ({error.reason}); save it as UTF-8"
            ) from error


class _Contents(NamedTuple):
    """What is known once all records have been read.

    Parameters
    ----------
    n_rows : int
    types : dict of str to Arrow type
    kept : list of dict or None
        The records.
    """

    n_rows: int
    types: dict[str, Any]
    kept: list[Record] | None


class JsonSource(WholeSource):
    """A JSON document.

    A list of objects, an object with one such list, ``{"columns": […], "data": [[…], …]}``, or an
    object with a list of values for each column.
    """

    @property
    def n_bytes(self) -> int:
        """Approximate size of the values."""
        return self.file.n_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Which part of the document was read, if it is not the whole."""
        return self._parsed[1]

    @property
    def _table(self) -> Any:
        return self._parsed[0]

    @cached_property
    def _parsed(self) -> tuple[Any, tuple[str, ...]]:
        """The table, and notes."""
        with self.file.open() as stream:
            text = decode_text(stream.read(), self.name)
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.name} is not valid JSON ({shorten_error(error)}); correct the file, or get "
                "it again if it is cut off"
            ) from error
        columns, notes = self._find_columns(document)
        if not any(columns.values()):
            raise EmptyTableError(f"{self.name} has no records; give a file with at least one")
        arrays = {
            name: arrow_column(values, arrow_type(value_kinds(values)))
            for name, values in columns.items()
        }
        return need("pyarrow", self.name).table(arrays), notes

    def _find_columns(self, document: Any) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
        """Return the values of each column, and notes."""
        if isinstance(document, list):
            return _columns(self._check_records(document, "")), ()
        lists = {}
        if isinstance(document, dict):
            if {"columns", "data"} <= document.keys():
                return self._from_split(document["columns"], document["data"]), ()
            lists = {key: each for key, each in document.items() if isinstance(each, list)}
        records = [key for key, each in lists.items() if each and isinstance(each[0], dict)]
        if len(records) == 1:
            key = records[0]
            rows = self._check_records(lists[key], f" in {key!r}")
            notes = (f"{self.name}: the rows are the list {key!r}",) if len(document) > 1 else ()
            return _columns(rows), notes
        if (
            lists
            and not records
            and len(lists) == len(document)
            and len({len(each) for each in lists.values()}) == 1
        ):
            return lists, ()
        several = f" (it has the lists {list_some(sorted(records))})" if records else ""
        raise ValueError(
            f"{self.name} is JSON but not a table{several}; give a list of objects, one per row"
        )

    def _check_records(self, records: list[Any], where: str) -> list[Record]:
        for at, record in enumerate(records):
            if not isinstance(record, dict):
                raise ValueError(
                    f"{self.name}: item {at}{where} is {json.dumps(record)[:40]}, not an object; "
                    "give a list of objects, one per row"
                )
        return [flatten(record) for record in records]

    def _from_split(self, names: Any, rows: Any) -> dict[str, list[Any]]:
        is_table = isinstance(names, list) and isinstance(rows, list)
        wrong = [at for at, row in enumerate(rows) if not isinstance(row, list)] if is_table else []
        wrong = wrong or [at for at, row in enumerate(rows) if is_table and len(row) != len(names)]
        if not is_table or wrong:
            where = f"row {wrong[0]} of 'data' is not" if wrong else "'columns' and 'data' are not"
            raise ValueError(f"{self.name}: {where} a list as long as 'columns'; correct the file")
        unique = [name if isinstance(name, str) else json.dumps(name) for name in names]
        return {name: [row[at] for row in rows] for at, name in enumerate(unique)}


def flatten(record: Record, before: str = "") -> Record:
    """Return a record whose inner objects are columns of their own, such as ``a.b``."""
    if not any(type(value) is dict for value in record.values()) and not before:
        return record
    flat: Record = {}
    for key, value in record.items():
        if type(value) is dict:
            flat |= flatten(value, f"{before}{key}.")
        else:
            flat[before + key] = value
    return flat


def _columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the values of each column; None where a record has no such key."""
    names = dict.fromkeys(key for record in records for key in record)
    return {name: [record.get(name) for record in records] for name in names}


def _in_batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    remaining = iter(records)
    while batch := list(islice(remaining, _RECORDS)):
        yield batch

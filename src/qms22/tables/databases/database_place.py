"""Names of tables in databases: ``URL#table``, ``URL#SELECT ...`` or ``file.db#table``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, unquote_plus

from qms22.tables.sources.found_files import FORMATS

# Suffixes of database files that do not exist yet; of others the first bytes decide.
_SUFFIXES = {
    **dict.fromkeys((".db", ".db3", ".sqlite", ".sqlite3"), "sqlite"),
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
}
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
# Addresses of files, not of databases.
_FILE_SCHEMES = ("file", "ftp", "http", "https", "s3", "gs", "gcs", "abfs", "hdfs")
_QUERY = re.compile(r"\s*(--.*\n\s*)*\(*\s*(select|with|values|from)\b[\s(*]", re.IGNORECASE)
_OTHER_STATEMENT = re.compile(
    r"\s*(alter|attach|call|copy|create|delete|drop|exec|execute|export|grant|import|insert|"
    r"install|load|merge|pragma|replace|set|truncate|update|vacuum)\s+\S",
    re.IGNORECASE,
)
# Everything up to the last @, so that a password with a stray @, / or ? never shows.
_USER = re.compile(r":/+(.*)@", re.DOTALL)
# An address in a message: up to a blank or a quotation mark behind user and password. As a path it
# has one slash.
_ADDRESS = re.compile(r"""\w[\w+.-]+:/+([^/\s:@]*:.*@)?[^\s'"]*""", re.DOTALL)
_PARAMETER = re.compile(r"(?<=[?&;])([^=?&;]*)=([^&]*)")
# Parameters that may be shown; any other one may hold a password.
_HARMLESS = re.compile(
    "(application_name|charset|client_encoding|connect_timeout|database|dbname|driver|encoding|host|"
    "port|region|schema|service|sslmode|timeout|unix_socket|warehouse)",
    re.IGNORECASE,
)
# The most characters of a query in a name, so that a message stays on a line or two.
_SHOWN = 60


@dataclass(frozen=True, repr=False)
class DatabasePlace:
    """A table or query in a database."""

    scheme: str  # "sqlite", "duckdb", "postgresql", or that of another URL of SQLAlchemy
    url: str  # of a server as it was given, or the path of a database file
    what: str = ""  # the table or the query; empty if none was named

    @property
    def path(self) -> Path | None:
        """The file of the database, or None if a server has it."""
        return Path(self.url).expanduser() if self.scheme in ("sqlite", "duckdb") else None

    @property
    def is_query(self) -> bool:
        """Whether `what` is a query, not a table."""
        return _QUERY.match(self.what) is not None

    @property
    def database(self) -> str:
        """The database without users and passwords, for messages."""
        return self.url if self.path is not None else _without_secrets(self.url)

    @property
    def name(self) -> str:
        """The table or query without passwords, for messages."""
        return f"{self.database}#{self.short_name}" if self.what else self.database

    @property
    def short_name(self) -> str:
        """The table or the beginning of the query."""
        words = " ".join(self.what.split())
        return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 3]}..."

    def hide(self, text: str) -> str:
        """Return a text, such as an error of a driver, with passwords replaced by asterisks."""
        if self.path is not None:
            return text
        found = [match[1].partition(":")[2] for match in _USER.finditer(self.url)]
        found += [each[2] for each in _PARAMETER.finditer(self.url) if not _is_harmless(each)]
        found += [unquote_plus(secret) for secret in found] + [unquote(each) for each in found]
        # A driver that misreads a URL quotes parts of the password.
        parts = [part for secret in found for part in re.split("[@:/?;={}]", secret)]
        secrets = {*found, *(part for part in parts if len(part) > 2)}
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            # A short one only as a word: it may be part of another.
            end = r"\b" if len(secret) < 4 and secret.isalnum() else ""
            text = re.sub(f"{end}{re.escape(secret)}{end}", "***", text)
        return text

    def __repr__(self) -> str:
        return f"DatabasePlace({self.name!r})"

    def __str__(self) -> str:
        return self.name


def _without_secrets(url: str) -> str:
    # Users first: a password with & and = would be taken for a parameter, and its @ with it.
    url = _USER.sub("://***@", url)
    return _PARAMETER.sub(lambda each: each[0] if _is_harmless(each) else f"{each[1]}=***", url)


def masked(text: object) -> str:
    """Return a message without the users and passwords of addresses in it."""
    return _ADDRESS.sub(lambda found: _without_secrets(found[0]), str(text))


def _is_harmless(parameter: re.Match[str]) -> bool:
    return _HARMLESS.fullmatch(parameter[1]) is not None and ";" not in parameter[2]


def find_database(table: object, *, new: bool = False) -> DatabasePlace | None:
    """Return the place in a database that is given, or None if something else is.

    Text is a URL or the path of a database file, then ``#`` and a table or a query. If there is no
    such file, and no `new` table to write, if the statement is not a query, or of an address of a
    file, raise ValueError.
    """
    if isinstance(table, DatabasePlace):
        return table
    if not isinstance(table, str | os.PathLike):
        return None
    text = str(table)
    base, _, what = text.partition("#")
    if match := _URL.match(base):
        scheme = match[1].lower()
        if scheme in _FILE_SCHEMES:
            raise ValueError(
                f"{_without_secrets(base)} is an address, which is not read; save the file here "
                "and give its path"
            )
        # One driver reads a database, whichever SQLAlchemy would use.
        if (own := scheme.partition("+")[0]) in ("sqlite", "duckdb"):
            # Three slashes and a relative path, or four and an absolute one, as in SQLAlchemy.
            path = unquote(base[match.end() :].split("?")[0]).removeprefix("/")
            return _checked(DatabasePlace(own, path, what), new, _without_secrets(base))
        _check_password(base[match.end() :], what)
        if re.fullmatch(r"postgres(ql)?(\+\w+)?", scheme):
            scheme, base = "postgresql", f"postgresql{base[match.end(1) :]}"
        return _checked(DatabasePlace(scheme, base, what), new, base)
    if os.path.isfile(os.path.expanduser(text)):
        base, what = text, ""
    kind = _kind(os.path.expanduser(base))
    return None if kind is None else _checked(DatabasePlace(kind, base, what), new, base)


def _checked(place: DatabasePlace, new: bool, shown: str) -> DatabasePlace:
    """Return a place; raise ValueError if it has no query, or if there is no such file."""
    if place.path is not None and not new and not os.path.exists(os.path.expanduser(place.url)):
        raise ValueError(f"there is no file {shown!r}; correct the path")
    if _OTHER_STATEMENT.match(place.what):
        raise ValueError(
            f"{place.database}: {place.what.split()[0].upper()} is not a query; only statements "
            "that read are run, give a table or a SELECT after #"
        )
    return place


def _check_password(address: str, what: str) -> None:
    """Raise ValueError, without the address, if a password has characters that end a part of it."""
    before, is_user, _ = address.rpartition("@")
    stray = ":" in before and re.search("[@:/?]", before.partition(":")[2])
    host = re.split("[/?]", address)[0]
    # A password with a # is cut off there.
    port = host.rpartition(":")[2] if ":" in host and not host.endswith("]") else "0"
    is_cut = not is_user and not port.isdigit()
    is_cut = is_cut or (":" in host and "@" in what and not _QUERY.match(what))
    if stray or is_cut:
        raise ValueError(
            "the password in the address of the database has one of the characters : / ? # @; "
            "write them as %3A %2F %3F %23 %40"
        )


def _kind(path: str) -> str | None:
    """Return the kind of database that a file's first bytes or a new file's suffix show."""
    suffix = Path(path).suffix.lower()
    if not os.path.exists(path):
        return _SUFFIXES.get(suffix)
    # A text file is not opened once more for this.
    if FORMATS.get(suffix) == "text" or not os.path.isfile(path):
        return None
    try:
        with Path(path).open("rb") as file:
            head = file.read(16)
    except OSError:
        return None
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if head[8:12] == b"DUCK" else None

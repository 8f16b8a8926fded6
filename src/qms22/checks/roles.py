"""What the columns of a table are to its checks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Columns


@dataclass(frozen=True)
class Roles:
    """What columns of a table are to its checks."""

    names: tuple[str, ...]  # those that are checked: those that the encoder uses, and constant ones
    texts: tuple[str, ...]  # texts that the encoder cannot use; they are read nevertheless
    keys: tuple[str, ...]  # those of them that are identifiers
    compared: tuple[str, ...]  # those in which copies of a row agree
    days: tuple[str, ...]  # dates whose day can be odd
    moments: tuple[str, ...]  # dates whose time of day and weekday can be odd

    @classmethod
    def of(cls, encoder: TabularEncoder) -> Roles:
        """Return what columns are by what the encoder has learned of them."""
        kinds = {column.name: column.kind for column in encoder.columns_}
        used = {column.name for column in encoder.columns_ if column.outputs}
        kept = {name: kind for name, kind in kinds.items() if name not in encoder.ignored_}
        names = tuple(
            name
            for name, kind in kinds.items()
            if name in used
            or kept.get(name) == "constant"
            # A date that only says when a row was made may still be of another age.
            or (kind == "date" and name not in encoder.ignore)
        )
        texts = tuple(name for name, kind in kept.items() if kind in ("identifier", "text"))
        keys = tuple(name for name in texts if kinds[name] == "identifier")
        whole = {*names, *texts} - ({*keys} - {*names})
        compared = tuple(name for name in kinds if name in whole)
        outputs = set(encoder.get_feature_names_out())
        days = tuple(name for name in names if f"{name} (days)" in outputs)
        return cls(
            names, texts, keys, compared, days, tuple(name for name in names if name in used)
        )

    def among(self, rows: Columns) -> Roles:
        """Return the roles of the columns that are among some as they are read."""
        texts = tuple(name for name in self.texts if name in rows and rows[name].is_text)
        names = tuple(name for name in self.names if name in rows)
        keys = tuple(name for name in self.keys if name in rows)
        compared = tuple(name for name in self.compared if name in {*names, *texts})
        return replace(self, names=names, texts=texts, keys=keys, compared=compared)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read: those that are checked, and texts."""
        return (*self.names, *self.texts)

"""Checks of how a text is written: its form, its signs and words, its check digit, misspellings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import compress, islice
from typing import Any

import numpy as np

from qms22.checks.arrays import Bools, Floats, Ints
from qms22.checks.check import (
    MOST_LISTED,
    Check,
    RuleCheck,
    Said,
    Shower,
    Usual,
    listed,
    never_seen,
    share_of_rows,
)
from qms22.checks.check_digits import find_check_digit, has_check_digit
from qms22.checks.counting import are_more, least_common
from qms22.checks.surprise import RarityReference
from qms22.tables.columns.cells import Cells, Columns, Levels
from qms22.tables.columns.kinds import level_counts
from qms22.tables.columns.typed import to_levels
from qms22.tables.texts.date_text import month_number

# Texts that a check learns from; more would take long and teach little.
_MOST_LEARNED = 20_000
# If more normal rows than this have something that no other has, a new thing is not odd.
_MOST_NEW = 0.1
# Texts recur in columns with so many rows for each on average.
_LEAST_RECURRING = 3
# Texts of a column that is a category.
_MOST_LEVELS = 20
# Shorter texts differ in one letter without being misspelt.
_LEAST_LETTERS = 4
# Shorter codes differ in one digit without a slip.
_LEAST_DIGITS = 6
# Whole numbers from here on may be codes with a check digit.
_LEAST_CODE = 1e7
# Short texts, such as "yes", are compared with short ones that are unlike each other.
_LEAST_SIGNS = 3
# Texts of so many long words on average are looked at word by word.
_LEAST_WORDS = 1.0
# The most characters of a text that are looked at, and that are shown.
_MOST_CHARACTERS = 200
_MOST_SHOWN = 40

_RUNS = re.compile(r"(.)\1+")
_WORDS = re.compile(r"[^\W\d_]+")
# Neighbours of two alphabets, some of whose letters look alike.
_MIXED = re.compile("[A-Za-zÀ-ɏ][Ѐ-ԯ]|[Ѐ-ԯ][A-Za-zÀ-ɏ]")
# What people type where they have to write something.
_PLACEHOLDER = re.compile(
    r"(?i)\W*(?:(?:test|dummy|asdf\w*|qwert\w*|x{3,}|n/a|n\.a|tbd|todo)\b\W*)+(?:@.*)?"
    r"|0{4,}|9{5,}|1234567(?:8(?:90?)?)?"
)
_CASES = {"A": "upper case", "a": "lower case", "Aa": "title case"}
# No trait depends on which digit a digit is.
_ONE_DIGIT = str.maketrans("012345678", "9" * 9)


class _Classes(dict[int, str]):
    """The class of each character: A, a and 9 for letters and digits, else itself."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        found = "A" if sign.isupper() else "a" if sign.isalpha() else "9" if sign.isdigit() else ""
        self[code] = found or (" " if sign.isspace() else sign)
        return self[code]


_CLASSES = _Classes()


def form_of(text: str) -> str:
    """Return how a text is written, with a sign for each letter and digit.

    >>> form_of("AB-1234 x"), form_of("Ärzte")
    ('AA-9999 a', 'Aaaaa')
    """
    return text[:_MOST_CHARACTERS].translate(_CLASSES)


def _cases(text: str) -> Iterable[str]:
    words = {_RUNS.sub(r"\1", form_of(word)) for word in _WORDS.findall(text) if len(word) > 1}
    return {_CASES.get(form, "mixed case") for form in words}


def _mended(word: str) -> str:
    """Return a word of UTF-8 that was read in another encoding as it was meant, others as is."""
    for encoding in ("cp1252", "latin-1"):
        with suppress(UnicodeError):
            return word.encode(encoding).decode()
    return word


def _faults(text: str) -> Iterable[str]:
    words = [] if text.isascii() else text.split(" ")
    if meant := [mended for word in words if (mended := _mended(word)) != word]:
        return [f"looks like a damaged encoding ({' '.join(meant)}?)"]
    if "\ufffd" in text:
        return ["looks like a damaged encoding"]
    return ["mixes Latin and Cyrillic letters" if _MIXED.search(text) else "has no fault"]


# What texts have in common, from what a reader sees at once to what takes a look.
_TRAITS: dict[str, Callable[[str], Iterable[str]]] = {
    "faults": _faults,
    "rough form": lambda text: [_RUNS.sub(r"\1", form_of(text))],
    "exact form": lambda text: [form_of(text)],
    "length": lambda text: [f"has {len(text)} characters"],
    "signs": lambda text: {"9" if sign.isdigit() else sign for sign in text[:_MOST_CHARACTERS]},
    "words": lambda text: {
        word
        for word in _WORDS.findall(text[:_MOST_CHARACTERS].casefold())
        if month_number(word) is None  # months say when a text was written
    },
    "case": _cases,
}
# Those by which a text is wrong, whatever it says.
FAULTS = ("faults", "placeholder")
# What is alike in all normal texts in other traits than these, new customers have, too.
_VARYING = ("rough form", "signs", "words", "case")


@dataclass(frozen=True, eq=False)
class TextCheck(Check):
    """A text with a form, a sign or a word that hardly any normal row has."""

    trait: str  # what is compared: a key of `_TRAITS`, or the name of a check digit
    counts: dict[str, int]  # in how many normal rows, or texts, each form, sign or word is
    example: str  # a normal text of the most frequent form
    n: int  # how many rows or texts there were
    by_text: bool  # whether texts were counted, not rows: the rows of one customer are one case
    reference: RarityReference
    # All normal texts if there are few: what is new about another one is that it is new.
    levels: tuple[str, ...]
    # Normal rows with each text, of a column whose texts recur: how rare a known one is says the
    # check of levels.
    known: dict[str, int]

    @classmethod
    def learn(cls, cells: Cells, *, by_text: bool = False) -> list[TextCheck]:
        """Learn all that normal texts have in common.

        With `by_text` new ones come in the course of time, and the rows of each are one case.
        """
        rows = level_counts(cells)
        there = np.flatnonzero(rows)
        if len(there) > _MOST_LEARNED:
            there = there[:: -(-len(there) // _MOST_LEARNED)]
        texts = Levels(cells.levels[at] for at in there.tolist())
        recurs = len(texts) * _LEAST_RECURRING <= rows[there].sum()
        # Others are known from two rows besides their own.
        n_more = rows[there] if recurs else rows[there] - 1
        known = {text: n for text, n in zip(texts, n_more.tolist(), strict=True) if n > 0}
        levels = tuple(texts) if len(texts) <= _MOST_LEVELS and not by_text else ()
        found: list[TextCheck] = []
        common = set(*texts[:1]).intersection(*texts) if not levels else set[str]()
        signs = sorted(sign for sign in common if not (sign.isalnum() or sign.isspace()))
        digits = filter(None, [find_check_digit(texts)])
        for trait in [*_TRAITS, "placeholder", *signs, *digits]:
            forms, places = _forms(trait, texts)
            parts = [_parts(trait, form) for form in forms]
            is_same = trait not in _VARYING and len(set().union(*parts)) == 1
            of_texts = by_text and not is_same
            sizes = np.ones(len(there), dtype=np.intp) if of_texts else rows[there]
            n, counts = int(sizes.sum()), Counter[str]()
            n_rows = np.bincount(places[:-1], sizes, len(forms)).astype(np.intp)
            for of_form, size in zip(parts, n_rows.tolist(), strict=True):
                counts.update(dict.fromkeys(of_form, size))
            rarest = [min(map(counts.__getitem__, each), default=n) for each in parts]
            shared = np.array(rarest) - 1
            is_usual = is_same or trait != "length"
            if not counts or n_rows[shared <= 0].sum() > _MOST_NEW * n or not is_usual:
                continue
            _, usual = max((count, part) for part, count in counts.items())
            has_usual = np.array([usual in each for each in parts])
            example = min(compress(texts, has_usual[places[:-1]]))
            rest = n, of_texts, RarityReference.of(shared, n_rows), levels, known
            found.append(cls((cells.name,), trait, dict(counts), example, *rest))
        return found

    @classmethod
    def of_numbers(cls, cells: Cells) -> list[TextCheck]:
        """Learn from codes that were read as numbers: whole ones of one width with check digits."""
        if cells.form != "number" or np.nanmin(cells.values, initial=np.inf) < _LEAST_CODE:
            return []
        return cls.learn(to_levels(cells)) if find_check_digit(to_levels(cells).levels) else []

    @property
    def is_form(self) -> bool:
        """Whether it compares the form or the words of a text as a whole."""
        return self.trait in ("rough form", "exact form", "length", "words", "case")

    def surprise(self, rows: Columns, *, own: bool = False) -> Floats:
        """Compute how rare the rarest form, sign or word of texts is."""
        cells = to_levels(rows[self.columns[0]])
        # Of texts that recur, one is known without the row itself.
        own = own and not self.by_text
        key, compute = self.reference if own else self, partial(self._surprises, own=own)
        found: Floats = Levels.of(cells.levels).computed(key, compute)[cells.values]
        return found

    def aligned(self, batch: Columns) -> TextCheck:
        """Return the check for a batch many texts of which have a word or a form that is new.

        So it is where new texts come in the course of time, such as those of a bonus.
        """
        if not self.by_text or self.trait not in _VARYING:
            return self
        cells = to_levels(batch[self.columns[0]])
        forms, places = _forms(self.trait, Levels.of(cells.levels))
        sizes = np.bincount(places[cells.values] + 1, minlength=len(forms) + 1)[1:]
        found = Counter[str]()
        for form, size in zip(forms, sizes.tolist(), strict=True):
            found.update(dict.fromkeys(_parts(self.trait, form), size) if size else {})
        n_rows = len(cells.values)
        pairs = [(count, self.counts.get(part, 0)) for part, count in found.items()]
        counts, known = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        is_usual = (counts >= least_common(n_rows)) & are_more(counts, n_rows, known, self.n)
        # As if all normal texts had it: a share of them may be less than any other part has.
        usual = dict.fromkeys(compress(found, is_usual.tolist()), self.n)
        return replace(self, counts=self.counts | usual)

    def _surprises(self, levels: Levels, *, own: bool) -> Floats:
        """Compute how rare the rarest part of each text is; at the end, 0 for a missing cell."""
        forms, places = _forms(self.trait, levels)
        rarest = [_rarest(self.trait, form, self.counts, self.n)[0] for form in forms]
        counts = np.maximum(np.array(rarest, dtype=np.intp) - own, 0)
        found = np.append(self.reference.surprise(counts, own=own), 0.0)[places]
        if self.known:
            is_known = [self.known.get(text, 0) > own for text in levels]
            found[[*is_known, False]] = 0.0
        return found

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return the form, sign or word, and how many normal rows have it."""
        for text in to_levels(rows[self.columns[0]]).to_array():
            yield self._clause(text) if isinstance(text, str) else Said("")

    def _clause(self, text: str) -> Said:
        count, part = _rarest(self.trait, text, self.counts, self.n)
        if count == 0 and self.levels and self.trait not in FAULTS:
            usual = Usual("levels", listed(self.levels, MOST_LISTED), self.levels)
            return Said(f"; {never_seen(self.n, self.levels)}", usual)
        how_many = share_of_rows(count, self.n)
        if self.by_text:
            how_many = how_many.replace("normal rows", "texts of normal rows")
        if len(self.trait) == 1 or self.trait in (*FAULTS, "length"):
            return Said(f" {part}, as {how_many} do", Usual("form", self._most))
        if self.trait in ("rough form", "exact form"):
            shown = self.example[:_MOST_SHOWN] + "…" * (len(self.example) > _MOST_SHOWN)
            usual = Usual("form", f"as in “{shown}”", (self.example,))
            return Said(f", written like this in {how_many}; usual is “{shown}”", usual)
        if self.trait not in _TRAITS:
            usual = Usual("rule", f"a right check digit ({self.trait})")
            return Said(f" has a wrong check digit ({self.trait}), as {how_many} have", usual)
        if self.trait == "case":
            return Said(f" has a word in {part}, as {how_many} do", Usual("form", self._most))
        if part == text.casefold():
            return Said(f", as in {how_many}")
        is_hidden = self.trait == "signs" and not " " < part <= "~"
        sign = f" (U+{ord(part):04X})" if is_hidden else ""
        return Said(f" contains “{part}”{sign}, as {how_many} do")

    @property
    def _most(self) -> str:
        return max(self.counts, key=lambda part: (self.counts[part], part))


def _parts(trait: str, text: str) -> Iterable[str]:
    if trait in _TRAITS:
        return _TRAITS[trait](text)
    if trait == "placeholder":
        return ("looks like a placeholder" if _PLACEHOLDER.fullmatch(text) else "has no fault",)
    if len(trait) == 1:
        return (f"{'has' if trait in text else 'lacks'} “{trait}”",)
    return ("right" if has_check_digit(trait, text) else "wrong",)


def _forms(trait: str, levels: Levels) -> tuple[Sequence[str], Ints]:
    """Return the texts that differ in a trait, and which of them each level is; -1 for no text."""
    if trait not in _TRAITS:
        return levels, np.append(np.arange(len(levels)), -1)
    forms, places = levels.computed(_with_one_digit, _with_one_digit)
    return forms, places


def _with_one_digit(levels: Levels) -> tuple[Sequence[str], Ints]:
    """Return the different texts that are left with a 9 for each digit; see `_forms`."""
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(text.translate(_ONE_DIGIT), len(numbers)) for text in levels]
    return list(numbers), np.array([*places, -1])


def _rarest(trait: str, text: str, counts: dict[str, int], n: int) -> tuple[int, str]:
    """Return in how many normal rows the rarest part of a text is, and that part."""
    return min(((counts.get(part, 0), part) for part in _parts(trait, text)), default=(n, ""))


@dataclass(frozen=True, eq=False)
class MisspellingCheck(RuleCheck):
    """A text, or a word of it, that is new and one slip away from a usual one of normal rows.

    Normal rows, or texts, are counted that are so, too.
    """

    levels: tuple[str, ...]  # the texts, or words, of normal rows that several of them have
    by_word: bool = False

    @classmethod
    def learn(cls, cells: Cells, *, by_text: bool = False) -> MisspellingCheck | None:
        """Learn from the known-normal rows; None if no text recurs, or similar ones are usual.

        With `by_text` the rows of each text are one case.
        """
        rows = level_counts(cells)
        levels = tuple(compress(cells.levels, rows > 1))
        if not 0 < len(levels) <= _MOST_LEARNED:
            return None
        check = cls((cells.name,), 0, 0, levels)
        codes = [level for level in levels if not _has_letters(level)]
        if _count_few(map(check._near, codes), len(codes)) is None:
            check = replace(check, levels=tuple(filter(_has_letters, levels)))
        texts = list(compress(cells.levels, rows > 0 if by_text else rows == 1))
        n = len(texts) if by_text else int(rows.sum())
        n_similar = _count_few((check.similar(text) is not None for text in texts), n)
        return None if n_similar is None else replace(check, n_broken=n_similar, n=n)

    @classmethod
    def of_words(cls, cells: Cells) -> MisspellingCheck | None:
        """Learn from the words of known-normal texts; None if these have one each, or recur."""
        rows = level_counts(cells)
        texts = list(compress(cells.levels, rows))[:_MOST_LEARNED]
        counts = Counter(word for text in texts for word in _long_words(text))
        n = len(texts)
        if n * _LEAST_RECURRING <= rows.sum() or counts.total() < _LEAST_WORDS * n:
            return None
        levels = tuple(word for word, count in counts.items() if count > 1)
        check = cls((cells.name,), 0, n, levels, by_word=True)
        n_similar = _count_few((check.meant(text) is not None for text in texts), n)
        return None if n_similar is None else replace(check, n_broken=n_similar)

    def meant(self, text: str) -> str | None:
        """Return a known text, or word, that is one slip away from a new one."""
        new = (each for each in (_long_words(text) if self.by_word else [text]))
        found = (self.similar(each) for each in new if each not in self._known)
        return next((each for each in found if each is not None), None)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is saved: not what is computed from it when it is needed."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _by_slip(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for level in self.levels:
            for slip in _slips(level):
                found.setdefault(slip, []).append(level)
        return found

    def similar(self, text: str) -> str | None:
        """Return a known text that is one slip away: a letter more, less, other, or two swapped.

        A code has another digit, or two swapped, and only one known code is so near.
        """
        similar = self._near(text)
        if not _has_letters(text) and [len(each) for each in similar] != [len(text)]:
            return None
        return min(similar, default=None)

    def _near(self, text: str) -> list[str]:
        if not _LEAST_SIGNS <= len(text) <= _MOST_CHARACTERS or _MIXED.search(text):
            return []
        candidates = {level for slip in _slips(text) for level in self._by_slip.get(slip, ())}
        return [each for each in candidates - {text} if _is_one_slip(text, each)]

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.levels)

    def breaks(self, rows: Columns) -> Bools:
        """Return which texts are similar to known ones."""
        cells = rows[self.columns[0]]
        if not cells.is_text:
            return np.zeros(len(cells.values), dtype=bool)
        found = Levels.of(cells.levels).computed(self, self._are_similar)
        are_similar: Bools = found[cells.values]
        return are_similar

    def _are_similar(self, levels: Levels) -> Bools:
        return np.array([*(self.meant(text) is not None for text in levels), False])

    def clauses(self, rows: Columns, show: Shower) -> Iterable[Said]:
        """Return the text that may be meant."""
        for text in rows[self.columns[0]].to_array():
            meant = self.meant(text) if isinstance(text, str) else None
            usual = None if meant is None else Usual("value", meant, (meant,))
            yield Said("" if meant is None else f"; did you mean “{meant}”?", usual)


def _count_few(are_similar: Iterable[object], n: int) -> int | None:
    """Return how many of n rows, or texts, are similar; None as soon as they are too many."""
    most = int(_MOST_NEW * n)
    count = len(list(islice(filter(None, are_similar), most + 1)))
    return None if count > most else count


def _has_letters(text: str) -> bool:
    """Whether a text has letters enough to be a word, and no code."""
    return sum(map(str.isalpha, text)) >= _LEAST_LETTERS


def _is_short(text: str) -> bool:
    """Whether a text is too short for a slip to be told from another text, most often."""
    return not _has_letters(text) and sum(map(str.isdigit, text)) < _LEAST_DIGITS


def _long_words(text: str) -> list[str]:
    """Return the different words of a text in which a slip can be told."""
    words = _WORDS.findall(text[:_MOST_CHARACTERS])
    return list(dict.fromkeys(word for word in words if len(word) > _LEAST_LETTERS))


def _slips(text: str) -> set[str]:
    """Return a text, and all that are left of it without one of its characters."""
    return {text, *(text[:at] + text[at + 1 :] for at in range(len(text)))}


def _is_one_slip(one: str, other: str) -> bool:
    """Whether texts differ by one character, or by two neighbours that are swapped."""
    if abs(len(one) - len(other)) > 1 or _is_short(one) != _is_short(other):
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return True
    tails = one[start:], other[start:]
    return (
        tails[0][1:] == tails[1][1:]
        or tails[0] == tails[1][1:]
        or tails[0][1:] == tails[1]
        or (tails[0][:2] == tails[1][1::-1] and tails[0][2:] == tails[1][2:])
    )

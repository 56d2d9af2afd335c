"""What one types to find spans: `kind:all_reduce dur:>5ms rank:0-3 mb:2 step:10-20 name:dp F3`, all of which must hold.

A page asks the same of the spans that it holds (`static/js/timeline/query.js`); a test runs the same queries through both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.trace import segments
from trainer.trace.kinds import MODEL_WORK, Kind
from trainer.trace.manifest import Segment

LONGEST = 200  # letters
FIELDS = ("kind:", "dur:", "rank:", "mb:", "step:", "stage:", "peer:", "lane:", "size:", "name:")
WORDS = {kind: kind.name.lower().replace("_", "-") for kind in Kind} | {
    Kind.BACKWARD_INPUT: "backward, inputs", Kind.BACKWARD_WEIGHT: "backward, weights", Kind.DATA: "loading data",
}
LETTERS = {Kind.FORWARD: "F", Kind.BACKWARD: "B", Kind.BACKWARD_INPUT: "B", Kind.BACKWARD_WEIGHT: "W", Kind.OPTIMIZER: "opt"}
_LANES = ("compute", "collective", "p2p", "host")
_NUMBERS = {"rank": "rank", "step": "step", "mb": "micro_batch", "stage": "stage", "peer": "peer", "seq": "sequence"}
_UNITS_NS = {"": 1.0, "ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
_UNITS_BYTES = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_MEASURES = {
    "dur": ("duration_ns", _UNITS_NS, "a length such as >5ms or 2ms-4ms"),
    "size": ("bytes", _UNITS_BYTES, "a size such as >1MB"),
}
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?\Z")
_MEASURE = re.compile(r"(>=?|<=?)?([^<>-]+)(?:-(.+))?\Z")
_LABEL = re.compile(r"([a-z]+)(0|[1-9][0-9]{0,4})?\Z")
_AMOUNT = re.compile(r"([0-9.]+)([A-Za-zµ]*)\Z")

Mask = np.ndarray[Any, Any]  # bool, a row a span
Ranges = list[tuple[int, int]]  # both ends are in


class BadQuery(ValueError):
    """The message says which field, what was given, and what would do."""


@dataclass(frozen=True)
class _Term:
    columns: tuple[str, ...]
    holds: Callable[[pa.Table], Mask]


@dataclass
class SpanQuery:
    """`columns` are those that `holds` looks at."""

    terms: list[_Term] = field(default_factory=list)
    steps: list[Ranges] = field(default_factory=list)

    @property
    def columns(self) -> set[str]:
        return {name for term in self.terms for name in term.columns}

    def may_be_in(self, segment: Segment) -> bool:
        """False only where what is known of a segment rules out that a span of it matches."""
        reaches = (any(low <= segment.last_step and high >= segment.first_step for low, high in each) for each in self.steps)
        return segment.spans > 0 and all(reaches)

    def holds(self, table: pa.Table) -> Mask:
        """Which rows of a segment's table (trainer/trace/segments.py) match."""
        found = np.ones(len(table), bool)
        for term in self.terms:
            if not found.any():
                break
            found &= term.holds(table)
        return found


def parse(text: str) -> SpanQuery:
    """BadQuery where it cannot be understood, or asks for nothing."""
    parts = text.split()
    if not parts or len(text) > LONGEST:
        raise BadQuery(f"{len(text)} letters; something to look for, of at most {LONGEST} letters, would do")
    query = SpanQuery()
    for part in parts:
        _add(query, part)
    return query


def _add(query: SpanQuery, part: str) -> None:
    name, colon, value = part.partition(":")
    name = name.lower()
    if not colon or not name:
        query.terms.append(_word(part.lower()))
    elif not value:
        raise BadQuery(f"{name}: needs something after it")
    elif name == "kind":
        query.terms.append(_kinds(value))
    elif name == "lane":
        query.terms.append(_lanes(value))
    elif name == "name":
        query.terms.append(_Term(segments.TEXTS, lambda table: _in_texts(table, value.lower())))
    elif name in _NUMBERS:
        ranges = _ranges(value, name)
        query.terms.append(_within(_NUMBERS[name], ranges))
        if name == "step":
            query.steps.append(ranges)
    elif name in _MEASURES:
        query.terms.append(_measure(name, value))
    else:
        raise BadQuery(f"{name}: is no field; there are {' '.join(FIELDS)}")


def _plain(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", words.lower())


def _kinds(value: str) -> _Term:
    wanted = tuple(filter(None, map(_plain, value.split(","))))
    kinds = [kind for kind in Kind if _plain(kind.name).startswith(wanted) or _plain(WORDS[kind]).startswith(wanted)]
    if not kinds:
        raise BadQuery(f'kind: "{value}" is none of {", ".join(kind.name.lower() for kind in Kind)}')
    return _Term(("kind",), lambda table: np.isin(table["kind"].to_numpy(), kinds))


def _lanes(value: str) -> _Term:
    lanes = [lane for lane, name in enumerate(_LANES) if name.startswith(value.lower())]
    if not lanes:
        raise BadQuery(f'lane: "{value}" is none of {", ".join(_LANES)}')
    return _Term(("lane",), lambda table: np.isin(table["lane"].to_numpy(), lanes))


def _ranges(value: str, name: str) -> Ranges:
    """ "3", "0-3" and "1,5,7-9"."""
    found = [_RANGE.match(each) for each in value.split(",")]
    if not all(found):
        raise BadQuery(f'{name}: takes numbers such as 3, 0-3 or 1,4; "{value}" is none')
    return [(int(each[1]), int(each[2] or each[1])) for each in found if each]


def _within(column: str, ranges: Ranges) -> _Term:
    def holds(table: pa.Table) -> Mask:
        values = table[column].to_numpy()
        return np.logical_or.reduce([(values >= low) & (values <= high) for low, high in ranges])

    return _Term((column,), holds)


def _measure(name: str, value: str) -> _Term:
    column, units, example = _MEASURES[name]
    refused = BadQuery(f'{name}: takes {example}; "{value}" is none')

    def amount(text: str) -> float:
        found = _AMOUNT.match(text)
        if not found or found[2].lower() not in units or found[1].count(".") > 1 or found[1] == ".":
            raise refused
        return float(found[1]) * units[found[2].lower()]

    found = _MEASURE.match(value)
    if not found or (found[1] and found[3]):
        raise refused
    sign, first, second = found[1] or "", amount(found[2]), found[3]
    low = 0.0 if sign.startswith("<") else first  # a size below 0 says that there is none
    high = amount(second) if second else math.inf if sign.startswith(">") else first

    def holds(table: pa.Table) -> Mask:
        values = table[column].to_numpy()
        above = values > low if sign == ">" else values >= low
        return above & (values < high if sign == "<" else values <= high)

    return _Term((column,), holds)


def _in_texts(table: pa.Table, word: str) -> Mask:
    """Each text is looked at once, however many spans have it."""
    found = np.zeros(len(table), bool)
    for name in segments.TEXTS:
        places, texts = segments.texts(table, name)
        found |= np.array([word in text.lower() for text in texts], bool)[places] if texts else False
    return found


def _word(word: str) -> _Term:
    """A label such as F3, a part of a kind's words, of a name or of a group."""
    kinds = [kind for kind in Kind if word in WORDS[kind]]
    label = _LABEL.match(word)

    def holds(table: pa.Table) -> Mask:
        kind, micro_batch = table["kind"].to_numpy(), table["micro_batch"].to_numpy()
        found = np.isin(kind, kinds) | _in_texts(table, word)
        if label:
            lettered = [one for one, letter in LETTERS.items() if letter.lower() == label[1]]
            if label[2]:
                found |= np.isin(kind, [one for one in lettered if one in MODEL_WORK]) & (micro_batch == int(label[2]))
            else:
                found |= np.isin(kind, lettered) & ((micro_batch < 0) | ~np.isin(kind, MODEL_WORK))
        return found

    return _Term(("kind", "micro_batch", *segments.TEXTS), holds)

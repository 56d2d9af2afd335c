"""A span as ranks record it, and what becomes of many in a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from trainer.trace.frame import NONE, Columns, span_columns

# kind, start_ns, end_ns, step, micro_batch, stage, peer, bytes, sequence, name, group
Row = tuple[int, int, int, int, int, int, int, int, int, str, str]

MOST_ROWS = 4096  # that a frame takes


class Add(Protocol):
    """How a span is recorded. Hot path: see `trainer.trace.packer`."""

    def __call__(self, kind: int, start_ns: int, end_ns: int, step: int, micro_batch: int, stage: int, peer: int,
                 size_bytes: int, sequence: int, name: str, group: str, /) -> None: ...


class Tracepoint(Protocol):
    """A span that one thread records again and again. Hot path."""

    def start(self) -> None:
        """It begins now."""

    def end(self, step: int, /) -> None:
        """It ends now."""

    def between(self, start_ns: int, end_ns: int, step: int, /) -> None:
        """It was from then to then, by `time.monotonic_ns()`."""


class NewTracepoint(Protocol):
    def __call__(self, kind: int, name: str, group: str = "", *, micro_batch: int = NONE, stage: int = NONE, peer: int = NONE,
                 size_bytes: int = NONE) -> Tracepoint: ...


class Recorder(Protocol):
    """Whatever spans are recorded with."""

    @property
    def add(self) -> Add:
        """For a span that is like none before. Never fails: what no frame can hold is counted when frames are made."""

    @property
    def tracepoint(self) -> NewTracepoint:
        """For a span that is recorded again and again, in less than half the time that `add` takes."""


class Rows(list[Row]):
    """As they were added, by any thread."""

    def add(self, *row: Any) -> None:
        self.append(row)


@dataclass(frozen=True)
class Taken:
    """A frame's worth of rows on the run's clock; and those that no frame can hold."""

    count: int
    laid_out: bytes  # the spans as they lie in a frame
    checksum: int
    texts: list[str]  # that `name` and `group` of the spans index
    refused: list[Row]

    @property
    def spans(self) -> Columns:
        return span_columns(self.laid_out, self.count)

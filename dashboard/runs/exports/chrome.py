"""The Chrome trace event format, which Perfetto opens: ranks are processes, lanes threads, messages flows.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU describes it. Times are
microseconds with three decimals, so whole nanoseconds survive. Numbers of processes and threads begin
above 0, which Perfetto keeps for the idle thread.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any, BinaryIO

from dashboard.runs.exports.source import Progress, Source
from trainer.trace.frame import Frame
from trainer.trace.kinds import Kind, Lane

LANE_WORDS = {Lane.COMPUTE: "compute", Lane.COLLECTIVE: "collectives", Lane.POINT_TO_POINT: "messages", Lane.HOST: "host"}
KIND_WORDS = {kind.value: kind.name.lower().replace("_", "-") for kind in Kind}
ARGS = ("step", "micro_batch", "stage", "sequence", "bytes", "peer")  # left out where they are -1


def pid_of(rank: int) -> int:
    return rank + 1


def tid_of(rank: int, lane: int) -> int:
    return 10 * (rank + 1) + lane


def trace_json_gz(source: Source, file: BinaryIO, progress: Progress) -> None:
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=3, mtime=0) as packed:
        about = json.dumps({"run": source.run.pk, "name": source.run.name, "job": source.spec.model_dump()})
        packed.write(f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n'.encode())
        packed.write(",\n".join(_names(source)).encode())
        messages = _Messages()
        for frames in source.segments(progress):
            for frame in frames:
                lines = [*_spans(frame, messages), *_counters(frame), *_marks(frame)]
                if lines:
                    packed.write((",\n" + ",\n".join(lines)).encode())
        packed.write(b"\n]}\n")


def _names(source: Source) -> Iterator[str]:
    for rank in source.ranks or [0]:
        pid = pid_of(rank)
        yield event(ph="M", pid=pid, name="process_name", args={"name": f"rank {rank}"})
        yield event(ph="M", pid=pid, name="process_sort_index", args={"sort_index": rank})
        for lane, words in LANE_WORDS.items():
            tid = tid_of(rank, lane)
            yield event(ph="M", pid=pid, tid=tid, name="thread_name", args={"name": words})
            yield event(ph="M", pid=pid, tid=tid, name="thread_sort_index", args={"sort_index": int(lane)})


class _Messages:
    """Numbers that a send and its receive have in common, whichever rank comes first.

    They name the same step, micro-batch, stage and group; of several such messages the n-th sent is the n-th
    received. What is remembered is each rank's step alone.
    """

    def __init__(self) -> None:
        self._step: dict[int, int] = {}
        self._seen: dict[int, dict[tuple[Any, ...], int]] = {}

    def flow(self, is_send: bool, rank: int, peer: int, step: int, *more: Any) -> int:
        if self._step.get(rank) != step:
            self._step[rank], self._seen[rank] = step, {}
        ends = (rank, peer) if is_send else (peer, rank)
        key = (is_send, *ends, *more)
        nth = self._seen[rank][key] = self._seen[rank].get(key, 0) + 1
        name = repr((ends, step, more, nth)).encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=7).digest()) >> 3  # 53 bits: exact in any JSON reader


def _spans(frame: Frame, messages: _Messages) -> Iterator[str]:
    columns, rank = frame.spans, frame.rank
    texts = [json.dumps(text) for text in frame.strings]
    names = ("kind", "lane", "start_ns", "duration_ns", "name", "group", *ARGS)
    for row in zip(*(columns[name].tolist() for name in names), strict=True):
        kind, lane, start, duration, name, group, *values = row
        kind_word = KIND_WORDS.get(kind, f"kind {kind}")
        where = f'"pid":{pid_of(rank)},"tid":{tid_of(rank, lane)},"ts":{start / 1000:.3f}'
        args = [f'"{key}":{value:.0f}' for key, value in zip(ARGS, values, strict=True) if value >= 0]
        if texts[group] != '""':
            args.append(f'"group":{texts[group]}')
        title = texts[name] if texts[name] != '""' else f'"{kind_word}"'
        yield (f'{{"ph":"X",{where},"dur":{duration / 1000:.3f},"name":{title},"cat":"{kind_word}",'
               f'"args":{{{",".join(args)}}}}}')
        step, micro_batch, stage, sequence, _, peer = values
        if kind in (Kind.SEND, Kind.RECEIVE) and peer >= 0:
            is_send = kind == Kind.SEND
            number = messages.flow(is_send, rank, peer, step, micro_batch, stage, frame.strings[group], sequence)
            end = '"ph":"s"' if is_send else '"ph":"f","bp":"e"'
            yield f'{{{end},{where},"id":{number},"name":"message","cat":"message"}}'


def _counters(frame: Frame) -> Iterator[str]:
    table = frame.counters
    for time_ns, value, place in zip(*(table[name].tolist() for name in ("time_ns", "value", "name")), strict=True):
        if math.isfinite(value):  # JSON has no NaN
            name = frame.strings[place]
            yield event(ph="C", pid=pid_of(frame.rank), ts=round(time_ns / 1000, 3), name=name, args={name: value})


def _marks(frame: Frame) -> Iterator[str]:
    table = frame.marks
    for time_ns, kind, text in zip(*(table[name].tolist() for name in ("time_ns", "kind", "text")), strict=True):
        yield event(ph="i", s="p", pid=pid_of(frame.rank), tid=tid_of(frame.rank, Lane.HOST), ts=round(time_ns / 1000, 3),
                     name=frame.strings[kind], cat="mark", args={"text": frame.strings[text]})


def event(**fields: Any) -> str:
    return json.dumps(fields, separators=(",", ":"))

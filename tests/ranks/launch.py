"""Starts the ranks of a job as real processes, without a host or Redis, and reads back what they recorded."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import trainer.rank
from dashboard.bench.machine import machine_time, stolen_share
from trainer.folder import log_file
from trainer.job import Control, RankJob
from trainer.spec import JobSpec
from trainer.trace.frame import Frame, decode
from trainer.trace.kinds import LANE_OF, Kind, Lane
from trainer.trace.sinks import read_frames

DEADLINE_SECONDS = 90
MOST_STOLEN = 0.02  # of the machine's time; a virtual machine whose host takes more wakes up late whatever its class


@dataclass(frozen=True)
class Span:
    """A span with its texts in place of their numbers."""

    rank: int
    kind: Kind
    start_ns: float
    end_ns: float
    step: int
    micro_batch: int
    stage: int
    peer: int
    bytes: int
    sequence: int
    name: str
    group: str

    @property
    def lane(self) -> Lane:
        return LANE_OF[self.kind]


@dataclass
class Ran:
    """What came of a job. `codes[rank]` is an exit code, or a signal's number below zero."""

    spec: JobSpec
    codes: list[int]
    logs: list[str]
    steps_begun: list[int]
    stolen: float  # the share of this machine's time that the host of a virtual machine gave to others meanwhile
    spans: list[Span] = field(default_factory=list)
    counters: dict[str, dict[int, float]] = field(default_factory=dict)
    memory: dict[tuple[int, str], list[tuple[int, float]]] = field(default_factory=dict)  # by rank and kind: step, bytes
    marks: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def losses(self) -> list[float]:
        return [value for _, value in sorted(self.counters["loss"].items())]

    @property
    def realtime(self) -> set[str]:
        return {text for _, kind, text in self.marks if kind == "realtime"}

    def of(self, *kinds: Kind) -> list[Span]:
        return [span for span in self.spans if span.kind in kinds]

    def assert_lanes_are_in_order(self) -> None:
        """Spans of one lane of one rank never overlap."""
        lanes: dict[tuple[int, Lane], list[Span]] = {}
        for span in self.spans:
            lanes.setdefault((span.rank, span.lane), []).append(span)
        for spans in lanes.values():
            spans.sort(key=lambda span: (span.start_ns, span.end_ns))
            for before, after in pairwise(spans):
                assert before.end_ns <= after.start_ns, f"{before} and {after}"

    def check(self) -> Ran:
        assert self.codes == [0] * self.spec.ranks, "\n".join(self.logs)
        return self


# A child of the fork server has torch loaded but has never run it, so it can fork ranks in no time;
# the tests' own process may have run torch, after which a fork of it cannot.
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["trainer.rank"])
_fork = multiprocessing.get_context("fork")  # Control's memory is shared by inheritance alone

Meanwhile = Callable[[Control, list[int]], None]


def apart(function: Callable[..., Any], *given: Any) -> Any:
    """What `function`, of some module, returns in a process of its own."""
    mine, theirs = _server.Pipe()
    process = _server.Process(target=_answer, args=(theirs, function, given))
    process.start()
    theirs.close()
    try:
        return mine.recv()
    finally:
        process.join()


def _answer(asker: Connection, function: Callable[..., Any], given: tuple[Any, ...]) -> None:
    asker.send(function(*given))


def run(spec: JobSpec, folder: Path, meanwhile: Meanwhile | None = None, main: Callable[..., int] = trainer.rank.main) -> Ran:
    """Run the job to its end. `meanwhile`, a function of a module, gets its control and its ranks' process ids."""
    before = machine_time()
    codes, steps = apart(_lead, spec, folder, meanwhile, main)
    after = machine_time()
    logs = [log_file(folder, rank).read_text() for rank in range(spec.ranks)]
    ran = Ran(spec, codes, logs, steps, stolen=stolen_share(before, after))
    for rank in range(spec.ranks):
        read(ran, folder / "frames" / f"rank-{rank}.frames")
    return ran


def _lead(spec: JobSpec, folder: Path, meanwhile: Meanwhile | None, main: Callable[..., int]) -> tuple[list[int], list[int]]:
    """Exit codes and steps begun, of each rank."""
    listener = socket.create_server(("127.0.0.1", 0))
    control = Control(spec.ranks)
    processes = []
    for rank in range(spec.ranks):
        fd = listener.fileno() if rank == 0 else -1
        job = RankJob("test", rank, spec.to_json(), folder, listener.getsockname()[1], fd)
        processes.append(_fork.Process(target=_rank, args=(job, control, listener, main)))
        processes[-1].start()
    listener.close()
    end = time.monotonic() + DEADLINE_SECONDS
    try:
        if meanwhile is not None:
            meanwhile(control, [process.pid or 0 for process in processes])
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()
    return [process.exitcode or 0 for process in processes], control.steps()


def _rank(job: RankJob, control: Control, listener: socket.socket, main: Callable[..., int]) -> None:
    path = log_file(job.folder, job.rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout = sys.stderr = path.open("w", buffering=1)
    if job.rank:
        listener.close()
    else:
        listener.detach()
    code = 1
    try:
        code = main(job, control)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def read(ran: Ran, path: Path, again: bool = False) -> list[int]:
    """Add what a rank recorded; the numbers of its frames. With `again` steps may be done again, and count as they came last."""
    numbers = []
    for data, _ in read_frames(path):
        frame = decode(data)
        numbers.append(frame.sequence)
        ran.spans += _spans(frame)
        columns = (frame.counters[column].tolist() for column in ("name", "step", "value"))
        for name, step, value in zip(*columns, strict=True):
            if (text := frame.strings[name]).startswith("memory/"):
                ran.memory.setdefault((frame.rank, text.removeprefix("memory/")), []).append((step, value))
                continue
            values = ran.counters.setdefault(text, {})
            assert again or step not in values, f"{text} of step {step} was counted twice"
            values[step] = value
        for kind, text in zip(frame.marks["kind"], frame.marks["text"], strict=True):
            ran.marks.append((frame.rank, frame.strings[kind], frame.strings[text]))
    return numbers


def _spans(frame: Frame) -> list[Span]:
    columns: dict[str, Any] = {name: column.tolist() for name, column in frame.spans.items()}
    return [
        Span(frame.rank, Kind(columns["kind"][i]), columns["start_ns"][i], columns["start_ns"][i] + columns["duration_ns"][i],
             columns["step"][i], columns["micro_batch"][i], columns["stage"][i], columns["peer"][i],
             int(columns["bytes"][i]), columns["sequence"][i],
             frame.strings[columns["name"][i]], frame.strings[columns["group"][i]])
        for i in range(len(columns["kind"]))
    ]

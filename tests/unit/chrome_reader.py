"""Reads the Chrome trace event format as its description says, and knows nothing of who wrote it."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Slice:
    process: str
    thread: str
    name: str
    category: str
    start_ns: int
    duration_ns: int
    args: dict[str, Any]


@dataclass
class ChromeTrace:
    slices: list[Slice] = field(default_factory=list)
    flows: list[tuple[Slice, Slice]] = field(default_factory=list)  # from, to
    loose_ends: int = 0  # ends of flows without another end, or on no slice
    counters: list[tuple[str, str, int, float]] = field(default_factory=list)  # process, name, time_ns, value
    instants: list[tuple[str, str, int, dict[str, Any]]] = field(default_factory=list)


def read(packed: bytes) -> ChromeTrace:
    events = json.loads(gzip.decompress(packed), parse_constant=_refuse)["traceEvents"]
    named = [(one["name"], one["pid"], one.get("tid"), one["args"].get("name")) for one in events if one["ph"] == "M"]
    processes = {pid: name for what, pid, _, name in named if what == "process_name"}
    threads = {(pid, tid): name for what, pid, tid, name in named if what == "thread_name"}
    assert 0 not in processes and len({tid for _, tid in threads}) == len(threads), "numbers that Perfetto would mix up"
    trace, on, ends = ChromeTrace(), {}, {"s": {}, "f": {}}
    for one in events:
        match one["ph"]:
            case "X":
                made = Slice(processes[one["pid"]], threads[one["pid"], one["tid"]], one["name"], one["cat"],
                             _ns(one["ts"]), _ns(one["dur"]), one["args"])
                trace.slices.append(made)
                on[one["pid"], one["tid"], one["ts"]] = made
            case "s" | "f" as end:
                key = (one["cat"], one["name"], one["id"])
                assert key not in ends[end], "two flows with one number"
                ends[end][key] = (one["pid"], one["tid"], one["ts"])
            case "C":
                [(name, value)] = one["args"].items()
                trace.counters.append((processes[one["pid"]], name, _ns(one["ts"]), value))
            case "i":
                trace.instants.append((processes[one["pid"]], one["name"], _ns(one["ts"]), one["args"]))
            case "M":
                pass
            case other:
                raise AssertionError(f"no such phase: {other}")
    for key in ends["s"].keys() | ends["f"].keys():
        both = [on.get(ends[end].get(key)) for end in "sf"]
        if None in both:
            trace.loose_ends += 1
        else:
            trace.flows.append((both[0], both[1]))
    return trace


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")

"""What HolisticTraceAnalysis reads: a file a rank, in the form that torch's profiler gives them, all in one zip.

It knows devices by streams, and so the lanes of a rank stand as streams: compute, collectives, messages. What is no work
of a device (waiting, loading data, the step as a whole) stands on the host, so its idle time is what this rank's lanes left
idle. Kernels are named by their kind. It takes for communication what is named `nccl…Kernel`, whatever did it, and so
ours is named that way. Its source (github.com/facebookresearch/HolisticTraceAnalysis, 0.5.0) is all the format is defined by.

Times are microseconds with three decimals. It rounds them to whole ones unless HTA_DISABLE_NS_ROUNDING=1 is set.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from dashboard.runs.exports.chrome import ARGS, KIND_WORDS, LANE_WORDS, event, pid_of, tid_of
from dashboard.runs.exports.source import Progress, Source
from trainer.trace.frame import Frame
from trainer.trace.kinds import LANE_OF, Kind, Lane

STREAMS = {Lane.COMPUTE: 7, Lane.COLLECTIVE: 8, Lane.POINT_TO_POINT: 9}  # above 0, where it counts a device's work
_ON_HOST = (Kind.WAIT, Kind.DATA, Kind.STEP)
KERNELS = {
    kind: f"nccl-like Kernel, {KIND_WORDS[kind]}" if lane in (Lane.COLLECTIVE, Lane.POINT_TO_POINT) else KIND_WORDS[kind]
    for kind, lane in LANE_OF.items()
}


def hta_zip(source: Source, file: BinaryIO, progress: Progress) -> None:
    with TemporaryDirectory(prefix=".hta-", dir=_beside(file)) as folder, ZipFile(file, "w", ZIP_STORED) as packed:
        files = rank_files(source.segments(progress), len(source.ranks), Path(folder))
        for path in sorted(files):
            about = ZipInfo(path.name)  # of no date: the same run gives the same bytes
            with path.open("rb") as part, packed.open(about, "w", force_zip64=True) as into:
                shutil.copyfileobj(part, into)


def _beside(file: BinaryIO) -> Path | None:
    """Where there is room for the file there is room for its parts."""
    name = getattr(file, "name", None)
    return Path(name).parent if isinstance(name, str) else None


def rank_files(segments: Iterable[list[Frame]], ranks: int, folder: Path) -> list[Path]:
    """Write `rank-N.json.gz` for every rank that recorded anything; a segment's share is a member of the gzip file."""
    kernels: Counter[int] = Counter()  # written so far, by rank
    paths: dict[int, Path] = {}
    for frames in segments:
        for frame in frames:
            lines = [*_events(frame, kernels)]
            if frame.rank not in paths:
                paths[frame.rank] = folder / f"rank-{frame.rank:05}.json.gz"
                lines = [*_names(frame.rank), *lines]
                _append(paths[frame.rank], _head(frame.rank, ranks) + ",\n".join(lines))
            elif lines:
                _append(paths[frame.rank], ",\n" + ",\n".join(lines))
    for path in paths.values():
        _append(path, "\n]}\n")
    return list(paths.values())


def _append(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(gzip.compress(text.encode(), 3, mtime=0))


def _head(rank: int, ranks: int) -> str:
    """The rank has to be in a line of its own, and with a blank before it."""
    about = json.dumps({"rank": rank, "world_size": ranks})
    return f'{{"schemaVersion": 1, "displayTimeUnit": "ns",\n"distributedInfo": {about},\n"traceEvents": [\n'


def _names(rank: int) -> Iterator[str]:
    yield event(ph="M", pid=pid_of(rank), name="process_name", args={"name": f"rank {rank}"})
    for lane, words in LANE_WORDS.items():
        yield event(ph="M", pid=pid_of(rank), tid=tid_of(rank, lane), name="thread_name", args={"name": words})


def _events(frame: Frame, kernels: Counter[int]) -> Iterator[str]:
    columns, rank = frame.spans, frame.rank
    names = ("kind", "lane", "start_ns", "duration_ns", "name", "group", *ARGS)
    for kind, lane, start, duration, name, group, *values in zip(*(columns[one].tolist() for one in names), strict=True):
        args: dict[str, Any] = {key: int(value) for key, value in zip(ARGS, values, strict=True) if value >= 0}
        args |= {key: frame.strings[place] for key, place in (("label", name), ("group", group)) if frame.strings[place]}
        category = "cpu_op"
        if kind not in _ON_HOST:
            kernels[rank] += 1
            category = "kernel"
            args |= {"stream": STREAMS[lane], "correlation": kernels[rank]}
        yield event(ph="X", cat=category, name=KERNELS[kind], pid=pid_of(rank), tid=tid_of(rank, lane),
                    ts=start / 1000, dur=duration / 1000, args=args)

"""A run's small picture: what its first ranks computed in a stretch from its middle.

Bytes: version, lanes, columns; then for each lane, for each column, the kind that took most of the
column's time (0: none) and the share of it that any kind took, 0 to 255.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainer.trace.kinds import Kind, Lane
from trainer.trace.store import StoreReader
from trainer.trace.windows import Cells, cells, window_of

VERSION = 1
COLUMNS, MOST_LANES = 96, 8
LONGEST_WITHOUT_STEPS_NS = 2_000_000_000
_LANE_HEIGHT, _BAR_HEIGHT = 4, 3
_CELLS_A_COLUMN = 4  # at least, so that a column's share is fine enough
_SHADES = 4  # of coverage, so that neighbours join in one bar


def make(reader: StoreReader) -> bytes:
    """The picture, or b"" for a run that recorded nothing."""
    if not reader.manifest.spans:
        return b""
    from_ns, to_ns = _stretch(reader)
    ranks = sorted(reader.manifest.ranks)
    if len(ranks) > MOST_LANES:
        ranks = [ranks[len(ranks) * lane // MOST_LANES] for lane in range(MOST_LANES)]
    found = cells(reader, window_of(reader, from_ns, to_ns, _CELLS_A_COLUMN * COLUMNS))
    columns = min(COLUMNS, found.window.end - found.window.first)
    pixels = np.stack([_pixels(found, rank, columns) for rank in ranks])
    return bytes([VERSION, len(ranks), columns]) + pixels.tobytes()


def _pixels(found: Cells, rank: int, columns: int) -> np.ndarray:
    """A lane's columns: the kind with most of each, and the share of it that is busy."""
    row = np.flatnonzero(found.lanes == rank * len(Lane) + Lane.COMPUTE)
    pixels = np.zeros((columns, 2), np.uint8)
    if not len(row):
        return pixels
    kind, of_kind, coverage = (plane[row[0]] for plane in (found.kind, found.of_kind, found.coverage))
    cells_of = np.arange(len(kind)) * columns // len(kind)
    by_kind = np.zeros((columns, 256))
    np.add.at(by_kind, (cells_of, kind), of_kind)
    share = np.bincount(cells_of, coverage, columns) / np.bincount(cells_of, minlength=columns)
    pixels[:, 0] = by_kind.argmax(axis=1)
    pixels[:, 1] = np.ceil(share)
    return pixels


def _stretch(reader: StoreReader) -> tuple[int, int]:
    """Two steps from the middle of the run: enough to know a schedule by its shape."""
    start, end = reader.manifest.start_ns, reader.manifest.end_ns
    steps = [row for row in reader.steps() if row["complete"]]
    if not steps:
        return start, max(start + 1, min(end, start + LONGEST_WITHOUT_STEPS_NS))
    middle = steps[(len(steps) - 1) // 2]
    length = 2 * middle["duration_ns"]
    from_ns = max(start, min(middle["start_ns"], end - length))
    return from_ns, max(from_ns + 1, min(end, from_ns + length))


def looks(picture: bytes) -> np.ndarray | None:
    """Kind and coverage, of shape (lanes, columns, 2); None when it is no picture that this version made."""
    if len(picture) < 3 or picture[0] != VERSION:
        return None
    return np.frombuffer(picture, np.uint8, offset=3).reshape(picture[1], picture[2], 2)


def svg(picture: bytes) -> str:
    """The picture as inline SVG; colours come from the page, by the classes `kind-<name>`."""
    pixels = looks(picture)
    if pixels is None:
        return ""
    lanes, columns, _ = pixels.shape
    outlines: dict[tuple[int, int], list[str]] = {}  # by kind and shade: one path for all its bars
    for lane in range(lanes):
        for column, width, kind, shade in _bars(pixels[lane]):
            outline = f"M{column} {lane * _LANE_HEIGHT}h{width}v{_BAR_HEIGHT}h-{width}z"
            outlines.setdefault((kind, shade), []).append(outline)
    bars = "".join(_path(kind, shade, "".join(parts)) for (kind, shade), parts in sorted(outlines.items()))
    size = f'viewBox="0 0 {columns} {lanes * _LANE_HEIGHT}" preserveAspectRatio="none"'
    return f'<svg class="run-picture" {size} aria-hidden="true" focusable="false">{bars}</svg>'


def _bars(pixels: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """Column, width, kind and shade of each stretch of equal columns that shows something."""
    shades = -(-pixels[:, 1].astype(int) * _SHADES // 255)
    looks = pixels[:, 0].astype(int) * (_SHADES + 1) + shades
    starts = np.flatnonzero(np.append(True, looks[1:] != looks[:-1])).tolist()
    for start, end in zip(starts, [*starts[1:], len(looks)], strict=True):
        if shades[start]:
            yield start, end - start, int(pixels[start, 0]), int(shades[start])


def _path(kind: int, shade: int, outline: str) -> str:
    name = Kind(kind).name.lower().replace("_", "-") if kind in set(Kind) else "other"
    faint = "" if shade == _SHADES else f' opacity=".{100 * shade // _SHADES:02}"'
    return f'<path class="kind-{name}"{faint} d="{outline}"/>'

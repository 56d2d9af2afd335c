"""The picture that a chat shows for a link: the run's stored picture, large, in the colours of the dark theme."""

from __future__ import annotations

import numpy as np

from dashboard.runs import pictures, png, theme
from trainer.trace.kinds import Kind

WIDTH, HEIGHT = 1200, 630  # what chats crop to
_MARGIN, _GAP = 48, 10
_EMPTY_LANES = 4
_LOGO = ((0, "--kind-forward"), (1, "--kind-backward"), (2, "--kind-backward-weight"))


def draw(picture: bytes | None) -> bytes:
    """A PNG; of a run that has no picture yet, its empty lanes."""
    colours = _dark_theme()
    canvas = np.full((HEIGHT, WIDTH, 3), colours["--bg"], np.uint8)
    _draw_logo(canvas, colours)
    pixels = pictures.looks(picture or b"")
    lanes = len(pixels) if pixels is not None else _EMPTY_LANES
    top, room = 150, HEIGHT - 150 - _MARGIN
    for lane in range(lanes):
        upper, lower = top + lane * room // lanes, top + (lane + 1) * room // lanes - _GAP
        canvas[upper:lower, _MARGIN : WIDTH - _MARGIN] = (
            colours["--lane"] if pixels is None else _row(pixels[lane], WIDTH - 2 * _MARGIN, colours)
        )
    return png.encode(canvas)


def _row(columns: np.ndarray, width: int, colours: dict[str, np.ndarray]) -> np.ndarray:
    """A lane's colours by pixel: of each column its kind over the lane's ground, as opaque as it is busy."""
    of_kind = np.array([colours.get(_variable(kind), colours["--muted"]) for kind in range(256)], float)
    share = columns[:, 1:2] / 255
    mixed = of_kind[columns[:, 0]] * share + colours["--lane"] * (1 - share)
    return mixed.round().astype(np.uint8)[np.arange(width) * len(columns) // width]


def _variable(kind: int) -> str:
    return f"--kind-{Kind(kind).name.lower().replace('_', '-')}" if kind in set(Kind) else ""


def _draw_logo(canvas: np.ndarray, colours: dict[str, np.ndarray]) -> None:
    """Three bars out of step, as in the pages' bar."""
    for at, name in _LOGO:
        left, upper = _MARGIN + at * 24, 40 + at * 26
        canvas[upper : upper + 18, left : left + 52] = colours[name]


def _dark_theme() -> dict[str, np.ndarray]:
    """Red, green and blue by name."""
    return {name: np.frombuffer(bytes.fromhex(hex[1:]), np.uint8) for name, hex in theme.colours("dark").items()}

"""A run's small picture for places without our styles: a notebook, a chat."""

from __future__ import annotations

import re

from dashboard.runs import pictures
from dashboard.runs.theme import colours

_CLASS = re.compile(r'class="kind-([a-z-]+)"')
_OTHER = "#8794a5"


def drawing(picture: bytes) -> str:
    """An SVG of its own, in the light theme's colours; of nothing where the run has no picture yet."""
    svg = pictures.svg(picture) or '<svg viewBox="0 0 1 1"></svg>'
    coloured = _CLASS.sub(lambda found: f'fill="{colours("light").get(f"--kind-{found[1]}", _OTHER)}"', svg)
    return coloured.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" width="336" height="80"', 1)

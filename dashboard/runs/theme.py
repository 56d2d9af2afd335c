"""The themes' plain colours outside of our pages, read from the file that defines them."""

from __future__ import annotations

import re
from functools import cache

from dashboard.conf import ROOT

_COLOUR = re.compile(r"(--[\w-]+): (#[0-9a-f]{6});")


@cache
def colours(theme: str) -> dict[str, str]:
    """Of "light" or "dark": names such as --kind-forward, and their colours as #rrggbb."""
    light, dark = (ROOT / "static" / "css" / "tokens.css").read_text().split('[data-theme="dark"]')
    text = light if theme == "light" else dark[: dark.index("}")]
    return dict(_COLOUR.findall(text))

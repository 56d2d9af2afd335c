"""A page of ours in one file: its styles inline, its modules as data: addresses in an import map.

Modules name each other by relative paths, which mean nothing inside a data: address; so each gets a name, and the
import map says what that name is.
"""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders

from dashboard.conf import ROOT

JS = ROOT / "static" / "js"
# Nothing is fetched but what the file itself holds.
POLICY = ("default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
          "font-src data:; connect-src data:; base-uri 'none'; form-action 'none'")
_IMPORT = re.compile(r"""(\bfrom\s+|\bimport\(\s*|^\s*import\s+)(["'])(\.{1,2}/[^"']+)\2""", re.MULTILINE)
_LINK = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
_ICON = re.compile(r'(<link rel="icon"[^>]* href=")([^"]+)(">)')
_PRELOAD = re.compile(r'\s*<link rel="preload"[^>]*>')
_SCRIPT = re.compile(r'<script src="([^"]+)"></script>')
_ENTRY = re.compile(r'<script type="module" src="([^"]+)"></script>')


def inlined(page: str, instead: dict[str, str]) -> str:
    """`page` without an address of this server: styles, icon, scripts and modules are in it.

    `instead`: modules, by their paths under static/js, that others of the same exports stand in for.
    """
    page = _PRELOAD.sub("", page)
    page = _LINK.sub(lambda found: f"<style>\n{_text(found[1])}</style>", page)
    page = _ICON.sub(lambda found: found[1] + data_address(_text(found[2]).encode(), "image/svg+xml") + found[3], page)
    page = _SCRIPT.sub(lambda found: f"<script>\n{_text(found[1])}</script>", page)
    page = _ENTRY.sub(lambda found: _modules(_file(found[1]).relative_to(JS), instead), page)
    first = '<meta charset="utf-8">'
    return page.replace(first, f'{first}\n    <meta http-equiv="Content-Security-Policy" content="{POLICY}">', 1)


def data_address(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


@cache
def plotly() -> str:
    """Plotly as a script of the page."""
    source = _text(settings.STATIC_URL + "vendor/plotly/plotly-basic.min.js")
    return "<script>" + source.replace("</script", r"<\/script") + "</script>\n"


def _modules(entry: Path, instead: dict[str, str]) -> str:
    """The import map of all that `entry` needs, and the script that imports it."""
    found: dict[str, str] = {}
    waiting = [entry.as_posix()]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        source = (JS / instead.get(path, path)).read_text()
        needed: list[str] = []
        text = _IMPORT.sub(lambda match: _named(match, path, instead, needed), source)  # noqa: B023 (used at once)
        found[path] = data_address(text.encode(), "text/javascript")
        waiting += needed
    imports = json.dumps({"imports": {f"lockstep/{path}": address for path, address in found.items()}})
    return f'<script type="importmap">{imports}</script>\n<script type="module">import "lockstep/{entry.as_posix()}";</script>'


def _named(match: re.Match[str], path: str, instead: dict[str, str], needed: list[str]) -> str:
    target = (JS / instead.get(path, path)).parent / match[3]
    name = target.resolve().relative_to(JS).as_posix()
    needed.append(name)
    return f"{match[1]}{match[2]}lockstep/{name}{match[2]}"


def _text(address: str) -> str:
    return _file(address).read_text()


def _file(address: str) -> Path:
    found = finders.find(address.removeprefix(settings.STATIC_URL))
    if not isinstance(found, str):
        raise FileNotFoundError(f"{address} is no static file")
    return Path(found)

"""A run's page as one file: what it recorded lies in it, and it works from disk without a server or a network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape

from dashboard.charts import bubble, loss, memory
from dashboard.charts.memory_rows import recent
from dashboard.charts.panels import Panel, panels_of
from dashboard.live.cursor import AfterSealed
from dashboard.live.messages import Batch
from dashboard.roles import Role
from dashboard.runs.access import Access
from dashboard.runs.exports.bundle import inlined, plotly
from dashboard.runs.exports.source import Progress, Source
from dashboard.runs.ideal import NoIdeal, ideal
from dashboard.runs.views.logs import shown
from trainer.folder import log_file, run_folder
from trainer.spec import JobSpec
from trainer.trace.figures import DEFINITIONS, PAGE_DEFINITIONS
from trainer.trace.frame import encode

_CHARTS = {"loss": loss.chart, "bubble": bubble.chart}
_STAND_INS = {"core/live.js": "core/frozen.js", "core/reading.js": "core/frozen_reading.js"}
_MOST_RANKS = 64  # whose memory is kept
_STEPS_AT_ONCE = 2000
_DATA = "<!-- what was recorded -->"
_PLOTLY_IS_HERE = "data:text/javascript,"  # where the page loads it from: an empty script, since it is in the page already
_PLOTLY = re.compile(r'data-plotly="[^"]*"')


def page_html(source: Source, file: BinaryIO, progress: Progress) -> None:
    before, after = _rendered(source).split(_DATA)
    file.write(before.encode())
    for number, batch in enumerate(_batches(source, progress)):
        packed = base64.b64encode(gzip.compress(batch.encode(), 5, mtime=0))
        file.write(b'<script type="application/octet-stream" data-batch="%d">%s</script>\n' % (number, packed))
    file.write(after.encode())


def _batches(source: Source, progress: Progress) -> Iterator[Batch]:
    """As a viewer of the run's history gets them (dashboard.live.history)."""
    at = AfterSealed(0, 0)
    for frames in source.segments(progress):
        yield Batch(at, [encode(frame) for frame in frames], merged=True)
    rows = source.steps()
    while some := list(islice(rows, _STEPS_AT_ONCE)):
        yield Batch(at, events=[{"type": "steps", "rows": some}])
    yield Batch(at, complete=True)


def _rendered(source: Source) -> str:
    run, panels = source.run, _panels(source.spec)
    page: str = render_to_string("runs/run.html", {
        "access": Access(run, Role.VIEWER), "run": source.state, "about": run, "tags": [tag.name for tag in run.tags.all()],
        "read_base": "", "socket_path": "", "definitions": DEFINITIONS | PAGE_DEFINITIONS, "frozen_at": timezone.now(),
        "panels": panels, "panel_shown": panels[0].key,
        "spec_json": json.dumps(run.spec.model_dump(mode="json"), indent=2, ensure_ascii=False),
    })
    page = _PLOTLY.sub(f'data-plotly="{_PLOTLY_IS_HERE}"', page)
    entry = '<script type="module"'
    kept = "".join(f'<template data-kept="{escape(address)}">{escape(text)}</template>\n' for address, text in _kept(source))
    return inlined(page.replace(entry, f"{kept}{plotly()}{_DATA}\n{entry}"), _STAND_INS)


def _panels(spec: JobSpec) -> list[Panel]:
    return [panel for panel in panels_of(spec) if panel.key != "comments"]  # what people say goes on, and is theirs


def _kept(source: Source) -> Iterator[tuple[str, str]]:
    """What the page's views would read from the server: addresses as they ask for them, and the answers."""
    rows: list[dict[str, Any]] = [{key: row[key] for key in ("step", "loss", "bubble_share")} for row in source.steps()]
    for name, chart in _CHARTS.items():
        yield f"charts/{name}.json", json.dumps(chart(source.spec, rows).as_dict())
    for panel in _panels(source.spec):
        if panel.make is not None:
            yield f"panels/{panel.key}.json", json.dumps(panel.make(source.run, {}))
    if source.spec.pace.is_emulated:  # else the page would ask for one by what it measured
        with suppress(NoIdeal):
            yield "ideal.json", json.dumps(ideal(source.spec, {}))
    folder = run_folder(settings.CONF.home, source.run.pk)
    for rank in range(source.spec.ranks):
        yield f"logs/{rank}/", shown(log_file(folder, rank))
    for rank in range(min(source.spec.ranks, _MOST_RANKS)):
        yield f"charts/memory.json?rank={rank}", json.dumps(memory.chart(source.spec, rank, recent(source.run, rank)).as_dict())

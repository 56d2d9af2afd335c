"""A run's page as one file: what it recorded lies in it, and it works from disk without a server or a network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape

from dashboard.charts import bubble, loss
from dashboard.live.cursor import AfterSealed
from dashboard.live.messages import Batch
from dashboard.runs.access import Access
from dashboard.runs.exports.bundle import data_address, inlined, plotly
from dashboard.runs.exports.source import Progress, Source
from dashboard.runs.views.logs import tail
from trainer.folder import log_file, run_folder
from trainer.trace.figures import DEFINITIONS
from trainer.trace.frame import encode

_CHARTS = {"loss": loss.chart, "bubble": bubble.chart}
_STAND_INS = {"core/live.js": "core/frozen.js", "views/logs.js": "views/frozen_logs.js"}
_STEPS_AT_ONCE = 2000
_DATA = "<!-- what was recorded -->"
_PLOTLY_IS_HERE = "data:text/javascript,"  # where the page loads it from: an empty script, since it is in the page already
_CHART = re.compile(r'data-chart="[^"]*/(\w+)\.json" data-plotly="[^"]*"')


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
    run = source.run
    page: str = render_to_string("runs/run.html", {
        "access": Access(run, can_change=False), "run": source.state, "about": run, "tags": [tag.name for tag in run.tags.all()],
        "read_base": "", "socket_path": "", "definitions": DEFINITIONS, "frozen_at": timezone.now(),
        "spec_json": json.dumps(run.spec_json, indent=2, ensure_ascii=False),
    })
    charts = _charts(source)
    page = _CHART.sub(lambda found: f'data-chart="{charts[found[1]]}" data-plotly="{_PLOTLY_IS_HERE}"', page)
    entry = '<script type="module"'
    return inlined(page.replace(entry, f"{_logs(source)}{plotly()}{_DATA}\n{entry}"), _STAND_INS)


def _charts(source: Source) -> dict[str, str]:
    rows: list[dict[str, Any]] = [{key: row[key] for key in ("step", "loss", "bubble_share")} for row in source.steps()]
    figures = {name: chart(source.spec, rows).as_dict() for name, chart in _CHARTS.items()}
    return {name: data_address(json.dumps(figure).encode(), "application/json") for name, figure in figures.items()}


def _logs(source: Source) -> str:
    folder = run_folder(settings.CONF.home, source.run.pk)
    logs = ((rank, tail(log_file(folder, rank))) for rank in range(source.spec.ranks))
    return "".join(f'<template data-log="{rank}">{escape(text)}</template>\n' for rank, text in logs if text)

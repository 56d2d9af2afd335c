"""The forms in which a run can be taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from dashboard.runs.exports import chrome, hta, page, tables
from dashboard.runs.exports.source import Progress, Source


@dataclass(frozen=True)
class Format:
    title: str
    for_what: str
    suffix: str
    content_type: str
    write: Callable[[Source, BinaryIO, Progress], None]


FORMATS = {
    "html": Format("Page, HTML", "one file that any browser opens from disk, without a server or a network",
                   ".html", "text/html; charset=utf-8", page.page_html),
    "trace": Format("Trace for Perfetto", "Perfetto and chrome://tracing open it as it is: ranks as processes, messages as flows",
                    ".trace.json.gz", "application/gzip", chrome.trace_json_gz),
    "hta": Format("Trace for HTA", "HolisticTraceAnalysis reads it once it is unpacked: a file a rank, lanes as streams",
                  ".hta.zip", "application/zip", hta.hta_zip),
    "spans-parquet": Format("Spans, Parquet", "a row a span, for pandas, DuckDB and the like",
                            ".spans.parquet", "application/vnd.apache.parquet", tables.spans_parquet),
    "spans-csv": Format("Spans, CSV", "the same for spreadsheets", ".spans.csv", "text/csv; charset=utf-8", tables.spans_csv),
    "steps-parquet": Format("Step figures, Parquet", "a row a step: times, bubble, loss, throughput",
                            ".steps.parquet", "application/vnd.apache.parquet", tables.steps_parquet),
    "steps-csv": Format("Step figures, CSV", "the same for spreadsheets", ".steps.csv", "text/csv; charset=utf-8",
                        tables.steps_csv),
}

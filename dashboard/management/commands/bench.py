"""`manage.py bench NAME`: measure what the product promises, on this machine."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dashboard.bench import (
    analysis,
    collectives,
    ingest,
    launching,
    listing,
    live,
    overhead,
    pages,
    presets,
    start,
    timeline,
    views,
    windows,
)
from dashboard.bench.place import CannotMeasure
from dashboard.stack.own import NoStack

BENCHES: dict[str, Any] = {
    "analysis": analysis, "collectives": collectives, "ingest": ingest, "launch": launching, "list": listing, "live": live,
    "overhead": overhead, "pages": pages, "presets": presets, "start": start, "timeline": timeline,
    "views": views, "windows": windows,
}


class Command(BaseCommand):
    help = "Measure: " + "; ".join(f"{name}: {module.HELP}" for name, module in BENCHES.items())
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", choices=sorted(BENCHES))
        parser.add_argument("--json", action="store_true", help="print one object on standard output and nothing else")
        live.add_arguments(parser)
        windows.add_arguments(parser)
        ingest.add_arguments(parser)
        presets.add_arguments(parser)

    def handle(self, **options: Any) -> None:
        try:
            figures = BENCHES[options["name"]].run(options)
        except (CannotMeasure, NoStack) as trouble:
            self.stderr.write(str(trouble))
            sys.exit(2)
        if options["json"]:
            self.stdout.write(json.dumps(figures))
            return
        for name, value in figures.items():
            self.stdout.write(f"{name:24} {value}")

"""`manage.py compare A B`: what the comparing page shows, without a browser."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dashboard.charts.rows import step_rows
from dashboard.runs import comparison
from dashboard.runs.models import Run
from trainer.complaints import SpecError


class Command(BaseCommand):
    help = "Compare two to four runs, by their ids: what differs in their jobs, then their figures against the first's."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", nargs="+")
        parser.add_argument("--json", action="store_true", help="print one object on standard output and nothing else")

    def handle(self, **options: Any) -> None:
        try:
            ids = comparison.wanted(options["run"])
        except SpecError as error:
            self._give_up(str(error))
        known = {run.pk: run for run in Run.objects.filter(pk__in=ids, deleted_at=None)}
        if missing := [one for one in ids if one not in known]:
            self._give_up(f"There is no run {' and no run '.join(missing)}.")
        found = comparison.compare([known[one] for one in ids], [step_rows(known[one]) for one in ids])
        if options["json"]:
            self.stdout.write(json.dumps(found.as_dict()))
            return
        self._show(found)

    def _show(self, found: comparison.Comparison) -> None:
        self._line("", [run.pk for run in found.runs])
        for one in found.differences:
            self._line(one.path, ["–" if value is None else str(value) for value in one.values])
        for line in found.lines:
            self._line(line.definition.title, [" ".join(filter(None, cell)) for cell in line.cells])
        self.stdout.write(found.as_dict()["test"])

    def _line(self, head: str, cells: list[str]) -> None:
        self.stdout.write(f"{head:26} " + "  ".join(f"{cell:40}" for cell in cells).rstrip())

    def _give_up(self, words: str) -> None:
        self.stderr.write(words)
        sys.exit(2)

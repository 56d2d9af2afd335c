"""`manage.py doctor`: is everything here that Lockstep needs, and what to do where it is not."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from dashboard.stack.checkup import FAIL, WARN, Finding, examine


class Command(BaseCommand):
    help = "Check every part and say what to do; the exit status is 1 when something fails."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one object on standard output and nothing else")
        parser.add_argument("--port", type=int, default=8000, help="the port that `up` would use")

    def handle(self, **options: Any) -> None:
        findings = []
        for finding in examine(options["port"]):
            findings.append(finding)
            if not options["json"]:
                self._show(finding)
        failed = [finding.name for finding in findings if finding.level == FAIL]
        if options["json"]:
            self.stdout.write(json.dumps({"ok": not failed, "checks": [asdict(finding) for finding in findings]}))
        else:
            self.stdout.write(f"\n{', '.join(failed)} must be mended." if failed else "\nAll that is needed is here.")
        if failed:
            sys.exit(1)

    def _show(self, finding: Finding) -> None:
        style = {FAIL: self.style.ERROR, WARN: self.style.WARNING}.get(finding.level, self.style.SUCCESS)
        self.stdout.write(f"{style(f'{finding.level:<5}')} {finding.name:<16} {finding.words}")
        if finding.advice:
            self.stdout.write(f"{'':<22} → {finding.advice}")
        self.stdout.flush()

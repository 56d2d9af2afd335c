"""`manage.py launch PRESET|FILE`: what the launch page does, without a browser."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from argparse import SUPPRESS, ArgumentParser
from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from dashboard.conf import ROOT
from dashboard.runs import services
from dashboard.runs.models import Run
from dashboard.stack import waiting
from dashboard.stack.files import Stack
from dashboard.stack.jobs import read_spec
from dashboard.stack.own import NoStack, answering, own_stack
from trainer.complaints import SpecError
from trainer.lifeline import tied_command
from trainer.spec import JobSpec


class Command(BaseCommand):
    help = "Launch a job: a preset's name, a file with a JobSpec, or - for one on standard input."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", metavar="PRESET|FILE")
        parser.add_argument("--set", action="append", default=[], metavar="A.B=C", dest="changes",
                            help="change a field; the value is JSON, or else a string")
        parser.add_argument("--wait", action="store_true",
                            help="show its progress and end when it does: 0 finished, 1 failed or lost, 3 stopped")
        parser.add_argument("--json", action="store_true", help="print one object on standard output and nothing else")
        parser.add_argument("--as", dest="owner", metavar="USER", help="whose run it is; else the first administrator's")
        parser.add_argument("--own-stack", action="store_true", help=SUPPRESS)  # the stack ends with this command

    def handle(self, **options: Any) -> None:
        try:
            spec = read_spec(options["job"], options["changes"])
        except SpecError as error:
            self._give_up("\n".join(map(str, error.errors)))
        stack = answering(settings.CONF.home, settings.CONF.redis_url)
        if stack is None:
            if options["own_stack"]:
                self._give_up("The stack that was started for this run does not answer.")
            sys.exit(self._with_own_stack(spec, options))
        run = services.launch(spec, self._owner(options["owner"]))
        if not (options["wait"] or options["own_stack"]):
            self._show(run, stack, options["json"])
            return
        run = self._wait_for(run, stack, is_own=options["own_stack"])
        self._show(run, stack, options["json"])
        sys.exit(waiting.EXIT_STATUS[run.state])

    def _with_own_stack(self, spec: JobSpec, options: dict[str, Any]) -> int:
        """Start a stack, then this command again as a process that knows it from its first line on."""
        self._say("No stack answers here, so one is started for this run.")
        again = [sys.executable, str(ROOT / "manage.py"), "launch", "-", "--own-stack"]
        again += ["--json"] if options["json"] else []
        again += ["--as", options["owner"]] if options["owner"] else []
        before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the inner command, which gets it too
        try:
            with own_stack(settings.CONF.home):
                return subprocess.run(tied_command(again), input=spec.to_json().encode()).returncode
        except NoStack as error:
            self._give_up(str(error))
        finally:
            signal.signal(signal.SIGINT, before)

    def _wait_for(self, run: Run, stack: Stack, is_own: bool) -> Run:
        self._say(f"{stack.url}/runs/{run.id}/")
        while True:
            try:
                return waiting.until_over(run.id, self._say)
            except KeyboardInterrupt:
                if not is_own:
                    self._say(f"No longer waiting; the run goes on: {stack.url}/runs/{run.id}/")
                    sys.exit(130)
                self._say("Stopping the run. Once more, and its stack ends at once.")
                if not services.stop(run.id):
                    sys.exit(130)

    def _owner(self, name: str | None) -> Any:
        users = get_user_model().objects
        if name is None:
            return users.filter(is_superuser=True).order_by("pk").first()
        owner = users.filter(username=name).first()
        if owner is None:
            self._give_up(f"--as: there is no user {name!r}.")
        return owner

    def _show(self, run: Run, stack: Stack, as_json: bool) -> None:
        result = waiting.as_result(run, stack.url)
        if as_json:
            self.stdout.write(json.dumps(result))
            return
        self.stdout.write(f"{run.id} {run.state}: {result['url']}")
        if run.sealed_at and result["bubble_share"] is not None:
            self.stdout.write(f"bubble {result['bubble_share']:.1%} of the whole, in theory {result['bubble_share_theory']:.1%}")

    def _say(self, words: str) -> None:
        self.stderr.write(words)
        self.stderr.flush()

    def _give_up(self, words: str) -> NoReturn:
        self.stderr.write(words)
        sys.exit(2)

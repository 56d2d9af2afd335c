"""A process of a stack's Django that stays, for a test that asks it often: to start one takes a second each time.

As a program, it answers requests, a line of JSON each: what an expression is, or what a management command prints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from io import StringIO
from typing import Any

from tests.stack.home import ROOT


class Console:
    """Started by the first question."""

    def __init__(self, environment: dict[str, str]):
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None

    def python(self, expression: str) -> Any:
        return self._ask({"python": expression})

    def manage(self, *words: str) -> Any:
        """What the command prints on standard output."""
        return self._ask({"manage": words})

    def _ask(self, request: dict[str, Any]) -> Any:
        process = self._process = self._process or subprocess.Popen(
            [sys.executable, "-m", "tests.stack.console", json.dumps(self._environment)], cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        print(json.dumps(request), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["is"]

    def close(self) -> None:
        if self._process:
            self._process.communicate()


def main() -> None:
    # Not by the environment it was started with, by which tests find the processes that a stack started.
    os.environ.clear()
    os.environ.update(json.loads(sys.argv[1]))
    answers, sys.stdout = sys.stdout, sys.stderr
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    known: dict[str, Any] = {}
    exec(_PRELUDE, known)

    def printed(words: list[str]) -> str:
        call_command(*words, stdout=(out := StringIO()))
        return out.getvalue()

    verbs: dict[str, Callable[[Any], Any]] = {"python": lambda expression: eval(expression, known), "manage": printed}
    for line in sys.stdin:
        [(verb, given)] = json.loads(line).items()
        try:
            answer = json.dumps({"is": verbs[verb](given)})
        except BaseException:  # a command may exit
            answer = json.dumps({"error": traceback.format_exc()})
        connections.close_all()
        print(answer, file=answers, flush=True)


_PRELUDE = """
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from dashboard.accounts import teams, tokens
from dashboard.runs import curation, door, fleet, links, services
from dashboard.runs.models import *
from trainer.presets import PRESETS
from trainer.spec import *
User = get_user_model().objects

def session_of(person):
    client = Client()
    client.force_login(person)
    return client.session.session_key
"""

if __name__ == "__main__":
    main()

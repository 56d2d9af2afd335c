"""`manage.py up`: the whole of Lockstep on this machine, until Ctrl-C."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any, NoReturn
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand

from dashboard.stack import files, ports, valkey
from dashboard.stack.supervisor import RedisAway, Supervisor


class Command(BaseCommand):
    help = "Start Valkey, the web server, a worker and the recorder; keep them running; stop them on Ctrl-C."
    requires_system_checks: list[str] = []  # `doctor` has them all; here every tenth of a second counts

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="where the pages are; 0 takes any that is free")
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on; names of it go into LOCKSTEP_HOSTS")
        parser.add_argument("--no-worker", action="store_true", help="run no jobs here; workers elsewhere share the Redis")

    def handle(self, **options: Any) -> None:
        conf = settings.CONF
        try:
            lock = files.hold(conf.home)
            listener = ports.listen(options["host"], options["port"])
            given_redis = _checked(conf.redis_url) if conf.redis_given else ""
            url = ports.url_of(options["host"], listener.getsockname()[1])
            supervisor = Supervisor(
                conf.home, listener, url, given_redis, not options["no_worker"], say=self._say, greet=lambda: self._greet(url)
            )
            with lock, listener:
                supervisor.run(prepare=lambda: call_command("migrate", verbosity=0, interactive=False))
        except (files.AlreadyUp, ports.PortRefused, valkey.NoServer, RedisAway) as trouble:
            self._give_up(str(trouble))

    def _greet(self, url: str) -> None:
        self._say(f"Lockstep is at {url}/")
        if not get_user_model().objects.exists():
            from dashboard.accounts.first_visit import token

            self._say(f"First visit, to make the owner's account: {url}/welcome/{token()}/")

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()

    def _give_up(self, words: str) -> NoReturn:
        self.stderr.write(words)
        sys.exit(2)


def _checked(redis_url: str) -> str:
    address = urlsplit(redis_url)
    if address.scheme not in ("redis", "rediss", "unix"):
        raise RedisAway(f"REDIS_URL begins with {address.scheme!r}; redis://host:6379/0 would do.")
    return redis_url

"""`manage.py record`: the recorder, in the foreground, until it is told to stop."""

import signal
import threading
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Record what runs send: seal it on disk, figure out their steps, and judge runs whose worker is gone."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.CONF.redis_url:
            raise CommandError("No Redis is known: set REDIS_URL, or start the whole stack by `manage.py up`.")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        # By name: the dashboard imports nothing of the workers, and this process is one of theirs.
        import_module("workers.record").record(stop)

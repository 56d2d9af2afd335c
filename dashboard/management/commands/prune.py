"""`manage.py prune`: old runs go, by the same way as from the list."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dashboard.operating.pruning import Old, old_runs
from dashboard.runs import curation


def days(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 36_500:
        raise ArgumentTypeError(f"{text!r} is no number of days; 0 to 36500 would do")
    return value


class Command(BaseCommand):
    help = ("Delete runs that ended long ago or are archived; pinned ones stay. They can come back for a week "
            "(`is:deleted` in the list), and their space is free after it, or at once with --now.")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--older-than", type=days, metavar="DAYS", help="runs that ended so many days ago")
        parser.add_argument("--archived", action="store_true", help="archived runs alone")
        parser.add_argument("--dry-run", action="store_true", help="say what would go, and delete nothing")
        parser.add_argument("--now", action="store_true", help="do not keep them for a week: what goes cannot come back")
        parser.add_argument("--json", action="store_true", help="print one object on standard output and nothing else")

    def handle(self, **options: Any) -> None:
        if options["older_than"] is None and not options["archived"]:
            raise CommandError("Which ones? --older-than 90, or --archived, or both would do.")
        conf = settings.CONF
        gone: list[Old] = []
        refused: list[str] = []
        for old in old_runs(conf.home, options["older_than"], options["archived"]):
            if not options["dry_run"]:
                try:
                    self._delete(old, options["now"])
                except (curation.StillRuns, redis.RedisError, OSError, ValueError) as error:
                    refused.append(f"{old.run.pk}: {error}")
                    continue
            gone.append(old)
            if not options["json"]:
                self.stdout.write(f"{old.run.pk}  ended {old.ended:%Y-%m-%d}  {old.bytes:>15,} B  {old.run.name}")
        self._sum_up(gone, refused, options)

    def _delete(self, old: Old, now: bool) -> None:
        if not now:
            curation.delete(old.run)
            return
        client = redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=5, socket_connect_timeout=2)
        client.ping()  # else the run would be deleted, and not removed
        curation.delete(old.run)
        curation.remove(old.run.pk, settings.CONF.home, client)

    def _sum_up(self, gone: list[Old], refused: list[str], options: dict[str, Any]) -> None:
        total = sum(old.bytes for old in gone)
        if options["json"]:
            runs = [{"run": old.run.pk, "name": old.run.name, "ended": old.ended.isoformat(), "bytes": old.bytes} for old in gone]
            self.stdout.write(json.dumps({"dry_run": options["dry_run"], "runs": runs, "bytes": total, "kept": refused}))
        else:
            deleted = "are gone" if options["now"] else "are deleted, and can come back for a week"
            self.stdout.write(f"{len(gone)} runs, {total:,} bytes, {'would go' if options['dry_run'] else deleted}.")
            for words in refused:
                self.stderr.write(f"kept {words}")
        if refused:
            sys.exit(1)

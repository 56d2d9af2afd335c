"""How long the server takes for a run's page and for the list, and with how many queries, as runs and comments add up.

10,000 runs of four people in three teams, 100 comments on one of them, in a database of the bench's own. The list is
asked for by its owner, by a member of the teams and by an administrator; each kind of search is asked for by the member.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.accounts import teams
from dashboard.accounts.models import Membership
from dashboard.bench.listing import fill, own_database
from dashboard.comments import services as comments
from dashboard.roles import Role
from dashboard.runs import fleet
from dashboard.runs.models import Run

HELP = "the server's time and queries for a run's page with 100 comments and for the list of 10,000 runs, by each search"

RUNS, COMMENTS, ROUNDS = 10_000, 100, 7
SEARCHES = {
    "state": "state:failed", "not_state": "-state:finished", "model": "model:gpt", "schedule": "schedule:1f1b",
    "owner": "owner:eve", "team": "team:one", "tag": "tag:odd", "rare_tag": "tag:t7",
    "no_tag": "-tag:odd", "device": "device:cpu", "axis": "pp>=2",
    "bubble": "bubble>30%", "loss": "loss<2.5", "step_time": "step>200ms", "steps": "steps>=20", "age": "age<2d",
    "pinned": "is:pinned", "mine": "is:mine", "archived": "is:archived", "deleted": "is:deleted", "words": "pipeline slow",
    "one_word": "slow", "part_of_a_word": "igit", "no_word": "zebra", "not_word": "-slow", "id": "{id}",
    "phrase": '"data parallel"', "all": 'state:finished bubble>25% tag:odd slow',
}
SORTS = ("-bubble", "loss", "name", "state", "-steps", "-step", "created")


def run(options: dict[str, Any]) -> dict[str, Any]:
    fleet.workers, kept = lambda client=None: [], fleet.workers  # Redis is not what is measured
    try:
        with own_database():
            settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
            return _measured()
    finally:
        fleet.workers = kept


def _measured() -> dict[str, Any]:
    member, admin, run_id = _people_and_runs()
    figures: dict[str, Any] = {"runs": RUNS, "comments": COMMENTS}
    figures |= _page(member, f"/runs/{run_id}/", "run_page")
    figures |= _page(member, f"/runs/{run_id}/comments.json", "comments")
    figures |= _page(member, "/", "list")
    figures["list_as_administrator_ms"] = _page(admin, "/", "list")["list_ms"]
    figures["last_page_ms"] = _page(member, "/?page=100000", "list")["list_ms"]
    found = {f"search_{name}_ms": _page(member, f"/?q={quote(text.format(id=run_id))}", "list")["list_ms"]
             for name, text in SEARCHES.items()}
    found |= {f"sort_{name.strip('-')}_ms": _page(member, f"/?sort={name}", "list")["list_ms"] for name in SORTS}
    return figures | found | {"slowest_ms": max(found.values())}


def _page(client: Client, address: str, name: str) -> dict[str, Any]:
    """From request to answer, in this process: middleware, session, queries, template."""
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        answer = client.get(address)
        times.append(perf_counter() - began)
        assert answer.status_code == 200, (address, answer.status_code)
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    return {f"{name}_ms": round(median(times) * 1000, 1), f"{name}_queries": len(queries)}


def _people_and_runs() -> tuple[Client, Client, str]:
    """Browsers of a member of all teams and of an administrator, and the id of the run that was talked about."""
    people = [get_user_model().objects.create_user(name) for name in ("ada", "bob", "eve", "kim")]
    admin = get_user_model().objects.create_superuser("bench")
    crews = [teams.make(name, people[0]) for name in ("one", "two", "three")]
    for crew in crews:
        Membership.objects.create(team=crew, user=people[1], role=Role.EDITOR)
    fill(people, [*crews, None], RUNS)
    talked = Run.objects.filter(team=crews[0]).order_by("-created_at").first()
    assert talked is not None
    first = comments.write(talked, people[0], "Why is the third stage **late**?", {"kind": "rank", "rank": 0})
    for at in range(COMMENTS - 1):
        comments.write(talked, people[at % 2], f"Looked at step {at}, @ada", parent_id=first.pk if at % 2 else None)
    return _browser(people[1]), _browser(admin), talked.pk


def _browser(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client

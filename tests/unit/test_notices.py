"""Notices: who is told of what, on the page and by webhooks."""

import hashlib
import hmac
import json
import threading
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.utils import timezone

from dashboard.comments import services as comments
from dashboard.notices import hooks, reading
from dashboard.notices.models import Delivery, Notice, Webhook
from dashboard.runs import services
from dashboard.runs.models import State


def end(people, state=State.FAILED, **fields):
    services.claim(people.run.pk, "w1")
    services.move(people.run.pk, State.RUNNING)
    assert services.move(people.run.pk, state, **fields)


def test_the_owner_hears_that_her_run_ended_and_why(people):
    end(people, reason="Rank 2 ended by signal SIGKILL.")
    [told] = reading.latest(people.user("member"))
    assert (told["title"], told["words"], told["is_read"]) == (
        f"{people.run.name} failed", "Rank 2 ended by signal SIGKILL.", False)
    assert reading.bell(people.user("member"))["unread"] == 1
    assert reading.bell(people.user("editor"))["unread"] == 0


def test_the_page_shows_them_and_they_are_read_by_a_press_or_by_looking_at_the_run(people):
    end(people, State.FINISHED)
    client, member = people.client("member"), people.user("member")
    assert f"{people.run.name} finished" in client.get("/notices/").content.decode()
    assert reading.bell(member)["unread"] == 1
    client.post("/notices/read/")
    assert reading.bell(member)["unread"] == 0
    comments.write(people.run, people.user("editor"), "@member look")
    assert reading.bell(member)["newest"]["title"] == f"editor mentioned you in {people.run.name}"
    client.get(f"/runs/{people.run.pk}/")
    assert reading.bell(member)["unread"] == 0


def test_who_may_see_the_run_no_more_is_told_nothing_of_it(people):
    comments.write(people.run, people.user("member"), "@viewer look")
    assert len(reading.latest(people.user("viewer"))) == 1
    services.give(people.run, None)
    assert reading.latest(people.user("viewer")) == []
    assert reading.bell(people.user("viewer")) == {"unread": 0, "newest": None}


def test_old_notices_go(people):
    comments.write(people.run, people.user("member"), "@viewer look")
    Notice.objects.update(made_at=timezone.now() - timedelta(days=91))
    comments.write(people.run, people.user("member"), "@viewer again")
    assert [one["words"] for one in reading.latest(people.user("viewer"))] == ["@viewer again"]


@pytest.fixture
def tool(settings):
    """Another tool's server: `got` are the requests, `answers` what it says to the next ones."""

    class Tool(BaseHTTPRequestHandler):
        got, answers = [], []

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.got.append((self.path, dict(self.headers), body))
            self.send_response(self.answers.pop(0) if self.answers else 204)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Tool)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.CONF = replace(settings.CONF, hook_hosts=["127.0.0.1"])
    Tool.url = f"http://127.0.0.1:{server.server_port}/hook?x=1"
    yield Tool
    server.shutdown()
    server.server_close()


@pytest.fixture
def hook(people, tool):
    return Webhook.objects.create(team=people.team, url=tool.url, secret="salt")


def test_a_teams_tool_is_told_and_can_prove_who_says_it(people, tool, hook):
    end(people, reason="why")
    assert hooks.deliver_due() == 1
    [(path, headers, body)] = tool.got
    assert (path, headers["X-Lockstep-Event"]) == ("/hook?x=1", "run.failed")
    said = json.loads(body)
    assert (said["event"], said["run"], said["reason"], said["path"]) == (
        "run.failed", people.run.pk, "why", f"/runs/{people.run.pk}/")
    at, signed = (part.split("=")[1] for part in headers["X-Lockstep-Signature"].split(","))
    assert signed == hmac.new(b"salt", f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert Delivery.objects.get().answer == "204 No Content" and Delivery.objects.get().done_at
    assert hooks.deliver_due() == 0


def test_what_is_not_taken_is_tried_again_later_and_at_last_given_up(people, tool, hook):
    end(people)
    tool.answers += [500, 302, 500, 500, 500]  # a redirect is followed nowhere
    for wait in hooks.AGAIN_AFTER:
        assert hooks.deliver_due() == 1
        waits = Delivery.objects.get().due_at - timezone.now()
        assert wait - timedelta(seconds=5) < waits <= wait
        assert hooks.deliver_due() == 0
        Delivery.objects.update(due_at=timezone.now())
    assert hooks.deliver_due() == 1
    given_up = Delivery.objects.get()
    assert (given_up.tries, given_up.due_at, given_up.done_at) == (5, None, None)
    assert len(tool.got) == 5 and all(path == "/hook?x=1" for path, _, _ in tool.got)


def test_a_private_run_and_another_teams_run_are_told_to_no_tool(people, tool, hook):
    services.give(people.run, None)
    end(people)
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("url", [
    "http://127.0.0.1:6379/", "http://[::1]/", "http://10.0.0.1/", "http://169.254.169.254/latest/", "http://localhost/",
    "ftp://example.org/", "file:///etc/passwd", "http://user:word@1.1.1.1/", "http://0.0.0.0/", "http://[::ffff:127.0.0.1]/",
    "http://1.1.1.1:99999/",
])
def test_addresses_inside_the_machines_network_are_not_called(people, url):
    answer = people.client("member").post(f"/teams/{people.team.pk}/webhooks/", {"url": url})
    assert answer.status_code == 422 and not Webhook.objects.exists()
    stored = Webhook.objects.create(team=people.team, url=url, secret="s")  # or its name leads elsewhere by now
    end(people)
    hooks.deliver_due()
    delivery = stored.deliveries.get()
    assert delivery.due_at is None and delivery.done_at is None and delivery.answer


def test_a_secret_is_shown_once(people):
    client = people.client("member")
    page = client.post(f"/teams/{people.team.pk}/webhooks/", {"url": "https://1.1.1.1/hook"})
    assert page.status_code == 201
    secret = Webhook.objects.get().secret
    assert len(secret) * 6 >= 128 and secret in page.content.decode()
    assert secret not in client.get(f"/teams/{people.team.pk}/webhooks/").content.decode()

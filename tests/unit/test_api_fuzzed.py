"""The API under requests made from its own description: it never answers 500, and only what the description says.

Of numbers and ids in addresses most are those of things that are there: what is made up alone finds nothing but 404.
"""

import json

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from dashboard.accounts import teams, tokens
from dashboard.accounts.models import Invitation
from dashboard.api import auth
from dashboard.api.routes import api
from dashboard.comments import services as comments
from dashboard.comments.models import Comment
from dashboard.notices.models import Webhook
from dashboard.roles import Role
from dashboard.runs import saved_views
from dashboard.runs.finding import SORTS
from dashboard.runs.models import Run, ShareLink, State
from dashboard.runs.query import FIELDS

EXAMPLES = 15  # of each operation, and as many again that break its description
SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(api.get_openapi_schema())))
OPERATIONS = {operation.ok().label: operation.ok() for operation in SCHEMA.get_all_operations()}
# Django's handler on threads of its own would not see this test's transaction; WSGI answers in ours.
APP = get_wsgi_application()
CHECKS = [status_code_conformance, response_schema_conformance, content_type_conformance]
FUZZ = settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))

NUMBERS = st.sampled_from(["0", "1", "30%", "1e400", "9" * 30, "-1", ".5", "2s", "7d", "1e-400", "99999999d", "1µs", "nan", "٣"])
TERMS = st.builds("{}{}{}{}".format, st.sampled_from(["", "-"]), st.sampled_from([*FIELDS, "x", ""]),
                  st.sampled_from([":", "=", "<", ">", "<=", ">="]), NUMBERS | st.text(max_size=6))
SEARCHES = st.lists(TERMS | st.text(max_size=8), max_size=4).map(" ".join)


@pytest.fixture
def there(people, monkeypatch):
    """Headers of the member's token with every scope, and what stands in addresses of things that are there."""
    monkeypatch.setattr(auth, "REQUESTS_A_MINUTE", 10**9)
    for signal in (request_started, request_finished):  # the connection is the test's, with its transaction
        signal.disconnect(close_old_connections)
    member = people.user("member")
    comment = comments.write(people.run, member, "first")
    _, token = tokens.make(member, "fuzz", tokens.SCOPES)
    known = {
        "run_id": people.run.pk, "comment_id": comment.pk, "link_id": people.link.pk, "rank": 0, "key": "steps-csv",
        "team_id": people.team.pk, "name": "viewer", "view_id": saved_views.save(member, "mine", "q=is:mine").pk,
        "invitation_id": teams.invite(people.team, member, Role.VIEWER, 7, 5)[0].pk,
        "hook_id": Webhook.objects.create(team=people.team, url="https://example.org/", secret="s").pk,
    }
    yield {"Authorization": f"Bearer {token}"}, known
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def as_it_was(state):
    """What an example before may have ended."""
    Run.objects.update(state=state, deleted_at=None)
    Comment.objects.update(deleted_at=None)
    ShareLink.objects.update(taken_back_at=None)
    Invitation.objects.update(taken_back_at=None)


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("label", OPERATIONS)
def test_it_answers_as_it_is_described(there, label, mode):
    headers, known = there
    cases = OPERATIONS[label].as_strategy(generation_mode=mode)

    @given(case=cases, is_there=st.integers(0, 4), state=st.sampled_from(State.values))
    @FUZZ
    def fuzz(case, is_there, state):
        as_it_was(state)
        if is_there:
            case.path_parameters |= {name: known[name] for name in case.path_parameters if name in known}
        response = case.call(headers=headers, app=APP)
        assert response.status_code != 500
        case.validate_response(response, checks=CHECKS)

    try:
        fuzz()
    except Unsatisfiable:
        assert mode == GenerationMode.NEGATIVE and not OPERATIONS[label].body and not OPERATIONS[label].query


HOSTILE = ["\0", "\ud800", "\U0010ffff" * 300, "é\u202e\r\n", "../" * 9, "<script>alert(1)</script>", "9" * 400, "%s{0}"]


def with_text(value, text):
    """`value` with `text` in the place of every text in it."""
    if isinstance(value, dict):
        return {key: with_text(one, text) for key, one in value.items()}
    if isinstance(value, list):
        return [with_text(one, text) for one in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("label", [label for label, operation in OPERATIONS.items() if operation.body])
def test_no_text_in_a_body_breaks_it(there, label):
    """Also half of a pair of UTF-16, which JSON can write and UTF-8 cannot."""
    headers, known = there
    client = Client(headers=headers)

    @given(case=OPERATIONS[label].as_strategy(), text=st.sampled_from(HOSTILE))
    @FUZZ
    def fuzz(case, text):
        as_it_was(State.RUNNING)
        case.path_parameters |= {name: known[name] for name in case.path_parameters}
        body = json.dumps(with_text(case.body, text) if isinstance(case.body, dict) else None)
        answer = client.generic(case.method, case.formatted_path, body, content_type="application/json")
        assert answer.status_code < 500 and json.loads(answer.content or "{}") is not None

    fuzz()


def test_every_search_is_answered(there):
    """Conditions of every field, with numbers at which databases and clocks end."""
    headers, _ = there
    client = Client(headers=headers)

    @given(q=SEARCHES, sort=st.sampled_from(list(SORTS)))
    @settings(FUZZ, max_examples=300)
    def fuzz(q, sort):
        assert client.get("/api/v1/runs", {"q": q, "sort": sort}).status_code in (200, 422)

    fuzz()

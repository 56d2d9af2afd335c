"""What a link opens, and that it opens nothing once it is over."""

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.runs import services
from dashboard.runs.models import Run, ShareLink
from tests.answers import GET, LOGIN, OK, UNKNOWN
from tests.unit.test_access import address, told
from trainer.presets import PRESETS


@pytest.mark.parametrize("token", ["x", "x" * 32, "x" * 300, "..", "%00", "a'b", "é" * 30])
@pytest.mark.parametrize("path", ["/s/{}/", "/s/{}/logs/0/", "/invited/{}/"])
def test_a_wrong_or_malformed_token_opens_nothing(people, token, path):
    assert people.client("link_holder").get(path.format(token)).status_code == 404


SHARED = sorted(name for name in GET if name.startswith(("shared-", "embedded-")) and name != "shared-comments")
OVER = {
    "taken back": {"taken_back_at": timezone.now()},
    "ended": {"ends_at": timezone.now() - timedelta(seconds=1)},
    "of a run that is deleted": None,
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("how", OVER)
def test_a_link_that_is_over_opens_nothing(people, name, how):
    url, client = address(name, people), people.client("link_holder")
    assert client.get(url).status_code == OK
    if how == "of a run that is deleted":
        Run.objects.update(deleted_at=timezone.now())
    else:
        ShareLink.objects.update(**OVER[how])
    assert client.get(url).status_code == UNKNOWN
    assert people.client("owner").get(url).status_code == UNKNOWN  # it is the link that opens, whoever holds it


def test_a_link_opens_its_run_alone(people):
    other = services.launch(PRESETS["ddp-digits"].spec, people.user("member"))
    client = people.client("link_holder")
    assert told(client.get(f"/runs/{other.pk}/")) == LOGIN
    assert people.run.name in client.get(f"/s/{people.token}/").content.decode()

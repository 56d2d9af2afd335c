"""Share links: what they open at, for how long, how often they were used; frames and pictures in chats."""

import json
import struct
import zlib
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from dashboard.conf import ConfigError, load
from dashboard.runs import links, pictures, png, preview
from dashboard.runs.links import Wish
from dashboard.runs.models import Run, ShareLink
from trainer.complaints import SpecError
from trainer.trace.kinds import Kind

VIEW = "t=1000,2000000&span=2,0,1500&by=pp&fold=pp0,pp1&latest=1&bare=1&q=kind%3Aall_reduce%20dur%3A%3E5ms"


def make(people, **fields):
    link, token = links.share(people.run, people.user("member"), Wish(**fields))
    return link, f"/s/{token}/"


def test_a_link_opens_at_the_view_that_it_is_for(people):
    _, url = make(people, view=VIEW)
    html = people.client("link_holder").get(url).content.decode()
    assert f'data-view="{VIEW.replace("&", "&amp;")}"' in html
    assert 'data-view=""' in people.client("link_holder").get(f"/s/{people.token}/").content.decode()


def test_a_link_ends_when_it_was_said_to(people):
    link, url = make(people, days=3)
    assert timedelta(days=2.9) < link.ends_at - timezone.now() <= timedelta(days=3)
    ShareLink.objects.filter(pk=link.pk).update(ends_at=timezone.now())
    assert people.client("link_holder").get(url).status_code == 404


def test_its_uses_are_counted_by_pages_that_were_opened(people):
    link, url = make(people)
    client = people.client("link_holder")
    for path in (url, url, url.replace("/s/", "/embed/"), url + "preview.png", url + "charts/loss.json"):
        assert client.get(path).status_code == 200
    client.head(url)
    link.refresh_from_db()
    assert link.uses == 3 and timezone.now() - link.last_used_at < timedelta(seconds=10)


@pytest.mark.parametrize("wish, field", [
    (Wish(name="x" * 61), "name"), (Wish(name="a\nb"), "name"), (Wish(days=0), "days"), (Wish(days=366), "days"),
    (Wish(view="<script>"), "view"), (Wish(view='"'), "view"), (Wish(view="x" * 3001), "view"),
])
def test_what_makes_no_sense_is_refused_with_its_field(people, wish, field):
    with pytest.raises(SpecError) as refused:
        links.share(people.run, None, wish)
    assert [error.field for error in refused.value.errors] == [field]


def test_the_api_makes_links_as_the_page_does(people):
    client = people.client("editor")
    body = {"name": "review", "days": 2, "view": VIEW, "with_comments": True}
    made = client.post(f"/api/v1/runs/{people.run.pk}/links", json.dumps(body), content_type="application/json")
    assert made.status_code == 201
    listed = client.get(f"/api/v1/runs/{people.run.pk}/links").json()[0]
    assert {key: listed[key] for key in ("name", "view", "with_comments", "uses", "by")} == {
        "name": "review", "view": VIEW, "with_comments": True, "uses": 0, "by": "editor"}
    assert client.post(f"/api/v1/runs/{people.run.pk}/links", content_type="application/json").status_code == 201
    wrong = client.post(f"/api/v1/runs/{people.run.pk}/links", '{"days": 0}', content_type="application/json")
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "days")


def test_a_page_by_a_link_tells_chats_what_it_is_and_other_pages_do_not(people):
    html = people.client("link_holder").get(f"/s/{people.token}/").content.decode()
    assert f'<meta property="og:title" content="{people.run.name}">' in html
    assert f'<meta property="og:image" content="http://testserver/s/{people.token}/preview.png">' in html
    assert "og:" not in people.client("member").get(f"/runs/{people.run.pk}/").content.decode()


def read_png(data):
    """Its pixels, of shape (height, width, 3), with every check sum looked at."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(name + body)
        parts[name] = body
        at += 12 + size
    width, height, depth, colour = struct.unpack_from(">IIBB", parts[b"IHDR"])
    assert (depth, colour) == (8, 2)
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_png_holds_its_pixels():
    pixels = np.random.default_rng(1).integers(0, 256, (7, 5, 3), np.uint8)
    assert (read_png(png.encode(pixels)) == pixels).all()


def test_the_picture_in_a_chat_is_the_runs_in_the_colours_of_its_kinds(people):
    looks = np.zeros((2, 4, 2), np.uint8)
    looks[0, :2] = (Kind.FORWARD, 255)
    looks[1, 2:] = (Kind.BACKWARD, 255)
    Run.objects.update(picture=bytes([pictures.VERSION, 2, 4]) + looks.tobytes())
    answer = people.client("nobody").get(f"/s/{people.token}/preview.png")
    assert answer["Content-Type"] == "image/png"
    pixels = read_png(answer.content)
    assert pixels.shape == (preview.HEIGHT, preview.WIDTH, 3)
    theme = preview._dark_theme()
    upper, lower, left, right = 200, 500, 100, preview.WIDTH - 100
    for y, x, name in ((upper, left, "--kind-forward"), (upper, right, "--lane"), (lower, left, "--lane"),
                       (lower, right, "--kind-backward")):
        assert pixels[y, x].tolist() == theme[name].tolist(), name


def test_a_run_without_a_picture_has_empty_lanes(people):
    pixels = read_png(people.client("nobody").get(f"/s/{people.token}/preview.png").content)
    assert pixels[200, 600].tolist() == preview._dark_theme()["--lane"].tolist()


def policy(answer):
    return dict(part.strip().split(" ", 1) for part in answer["Content-Security-Policy"].split(";"))


def test_a_frame_is_for_the_sites_that_the_operator_named(people, settings):
    client = people.client("nobody")
    assert policy(client.get(f"/embed/{people.token}/"))["frame-ancestors"] == "'none'"
    settings.CONF = replace(settings.CONF, embed_in=["https://wiki.example.org", "https://*.example.com"])
    answer = client.get(f"/embed/{people.token}/")
    assert policy(answer)["frame-ancestors"] == "https://wiki.example.org https://*.example.com"
    assert "X-Frame-Options" not in answer
    assert policy(answer)["script-src"].startswith("'self'")
    page = client.get(f"/s/{people.token}/")
    assert (page["X-Frame-Options"], policy(page)["frame-ancestors"]) == ("DENY", "'none'")


@pytest.mark.parametrize("origin", ["wiki.example.org", "https://a.b; script-src *", "*", "https://", "javascript:x"])
def test_what_is_no_origin_is_refused_at_the_start(monkeypatch, origin):
    monkeypatch.setenv("LOCKSTEP_EMBED_IN", origin)
    with pytest.raises(ConfigError, match="LOCKSTEP_EMBED_IN"):
        load()

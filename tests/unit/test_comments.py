"""Comments: written, answered, edited and deleted; what a page is told of them; what they do not let through."""

import json

import pytest
from django.utils import timezone

from dashboard import markdown
from dashboard.comments import services
from dashboard.comments.models import Comment
from dashboard.notices.models import Notice
from dashboard.runs import links
from dashboard.runs import services as runs
from dashboard.runs.links import Wish
from trainer.complaints import SpecError

RANGE = {"kind": "range", "from_ns": 1e6, "to_ns": 2.5e6}


@pytest.fixture
def api(people):
    """api("member", "post", {...}, 5): the status and the answer of the run's comments."""

    def call(who, method, body=None, comment=None):
        url = f"/api/v1/runs/{people.run.pk}/comments" + (f"/{comment}" if comment else "")
        answer = getattr(people.client(who), method)(url, json.dumps(body) if body else None, content_type="application/json")
        return answer.status_code, answer.json() if answer.content else None

    return call


def told(people, who="member", after=0):
    return people.client(who).get(f"/runs/{people.run.pk}/comments.json?after={after}").json()


def test_a_thread_about_a_range_is_answered_and_both_are_told(people, api):
    status, first = api("editor", "post", {"text": "The *bubble* here", "about": RANGE})
    assert status == 201
    assert (first["author"], first["about"], first["is_own"]) == ("editor", RANGE, True)
    assert first["html"] == "<p>The <em>bubble</em> here</p>\n"
    api("viewer", "post", {"text": "I see it", "parent": first["id"]})
    found = told(people)
    assert [(one["text"], one["parent"]) for one in found["comments"]] == [("The *bubble* here", None), ("I see it", first["id"])]
    assert told(people, after=found["through"])["comments"] == []


def test_a_page_is_told_what_changed_since_it_looked(people, api):
    _, first = api("editor", "post", {"text": "one"})
    through = told(people)["through"]
    api("editor", "patch", {"text": "two"}, first["id"])
    after = told(people, after=through)
    assert [(one["id"], one["text"]) for one in after["comments"]] == [(first["id"], "two")]
    assert after["comments"][0]["edited"] is not None
    assert api("editor", "delete", comment=first["id"])[0] == 204
    gone = told(people, after=after["through"])["comments"][0]
    assert (gone["text"], gone["html"], gone["is_deleted"]) == ("", "", True)
    assert not Comment.objects.filter(text__contains="two").exists()
    people.run.refresh_from_db()
    assert people.run.comments_revision == gone_revision(first["id"]) == 3


def gone_revision(pk):
    return Comment.objects.get(pk=pk).revision


def test_a_long_talk_is_told_a_page_at_a_time(people, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(services, "A_PAGE", 2)
    for number in range(5):
        services.write(people.run, people.user("member"), str(number))
    seen, after, more = [], 0, True
    while more:
        page = told(people, after=after)
        seen += [one["text"] for one in page["comments"]]
        after, more = page["through"], page["more"]
    assert seen == list("01234")
    monkeypatch.setattr(services, "A_PAGE", 200)
    member = people.user("member")
    with django_assert_num_queries(2):  # comments with their authors, names
        services.changes(people.run, 0, member)


@pytest.mark.parametrize("body, field", [
    ({"text": "  "}, "text"), ({"text": "x" * 4001}, "text"), ({"text": "x", "about": {"kind": "moon"}}, "about.kind"),
    ({"text": "x", "about": {"kind": "range", "from_ns": 5, "to_ns": 1}}, "about.to_ns"),
    ({"text": "x", "about": {"kind": "range", "from_ns": 5}}, "about.to_ns"),
    ({"text": "x", "about": {"kind": "rank", "rank": 4}}, "about.rank"),
    ({"text": "x", "about": {"kind": "span", "from_ns": 0, "to_ns": 1, "rank": 0, "lane": 9}}, "about.lane"),
    ({"text": "x", "about": {"kind": "range", "from_ns": 0, "to_ns": 1e30}}, "about.to_ns"),
])
def test_what_makes_no_sense_is_refused_with_its_field(api, body, field):
    status, problem = api("member", "post", body)
    assert (status, problem["errors"][0]["field"]) == (422, field)


def test_an_answer_goes_to_a_thread_of_the_same_run(people, api):
    assert api("member", "post", {"text": "x", "parent": 2**40})[0] == 404
    first = services.write(people.run, people.user("member"), "one")
    second = services.write(people.run, people.user("member"), "two", parent_id=first.pk)
    assert api("member", "post", {"text": "x", "parent": second.pk})[0] == 404  # threads have one level


def test_a_mention_is_told_to_those_who_may_see_the_run(people, api):
    api("editor", "post", {"text": "@viewer, @outsider and @editor: look. Mail me@viewer too"})
    assert [(one.user.username, one.kind, one.by.username) for one in Notice.objects.all()] == [("viewer", "mentioned", "editor")]


def test_an_edit_tells_only_those_it_mentions_anew(people, api):
    _, first = api("editor", "post", {"text": "@viewer look"})
    api("editor", "patch", {"text": "@viewer and @member. look"}, first["id"])
    told_of = sorted((one.user.username, one.kind) for one in Notice.objects.all())
    assert told_of == [("member", "mentioned"), ("viewer", "mentioned")]


def test_an_answer_is_told_to_those_in_the_thread_once(people, api):
    _, first = api("viewer", "post", {"text": "why?"})
    api("editor", "post", {"text": "because, @viewer", "parent": first["id"]})
    api("member", "post", {"text": "yes", "parent": first["id"]})
    assert sorted((one.user.username, one.kind, one.by.username) for one in Notice.objects.all()) == [
        ("editor", "answered", "member"), ("viewer", "answered", "member"), ("viewer", "mentioned", "editor")]


def test_a_link_shows_comments_where_its_maker_wished_so(people):
    services.write(people.run, people.user("member"), "between us")
    assert people.client("nobody").get(f"/s/{people.token}/comments.json").status_code == 404
    assert "tab-comments" not in people.client("nobody").get(f"/s/{people.token}/").content.decode()
    _, token = links.share(people.run, None, Wish(with_comments=True))
    shown = people.client("nobody").get(f"/s/{token}/comments.json").json()
    assert [one["text"] for one in shown["comments"]] == ["between us"] and shown["people"] == []
    assert "tab-comments" in people.client("nobody").get(f"/s/{token}/").content.decode()


def test_a_run_holds_so_many_comments_and_no_more(people, monkeypatch):
    monkeypatch.setattr(services, "MOST", 1)
    services.write(people.run, people.user("member"), "one")
    with pytest.raises(SpecError, match="as many as a run may have"):
        services.write(people.run, people.user("member"), "two")


NASTY = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)", "![x](https://evil.example/pixel.png)", "<javascript:alert(1)>",
    '[x](https://a.b "onmouseover=alert(1)")', "[x](//evil.example)", "@<b>member</b>", "`<script>`", "<iframe src=//x>",
    "[x]: javascript:alert(1)\n\n[x]", "&lt;script&gt;", "@member\"><script>", "<a href='vbscript:x'>y</a>", "[x](/logout/)",
]


@pytest.mark.parametrize("text", NASTY)
def test_no_text_becomes_a_script_a_picture_or_a_way_elsewhere(text):
    html = markdown.html(text, {"member"})
    tags = {part.split(">")[0].split()[0].strip("/") for part in html.split("<")[1:]}
    assert tags <= {"p", "a", "b", "code", "em", "strong", "blockquote"}, html
    for name in ("href=\"javascript", "href=\"data", "href=\"vbscript", "href=\"/", "<img", "<script", "<iframe"):
        assert name not in html.lower(), html
    if "<a " in html:
        assert 'rel="nofollow noopener noreferrer"' in html


def test_markdown_and_mentions_are_shown():
    html = markdown.html("**bold** [view](#t=1,2) [site](https://a.b)\n- @ada. `@ada`", {"ada"})
    assert "<strong>bold</strong>" in html and '<a href="#t=1,2">view</a>' in html
    assert '<a href="https://a.b" rel="nofollow noopener noreferrer" target="_blank">site</a>' in html
    assert '<li><b class="mention">@ada</b>. <code>@ada</code></li>' in html


@pytest.mark.parametrize("text", ["<script>alert('x')</script>", '"><img src=x onerror=alert(1)>', "</script><b>"])
def test_names_notes_and_tags_of_people_are_text_on_every_page(people, text):
    people.run.name, people.run.note = text[:120], text
    people.run.save()
    people.link.name = text[:60]
    people.link.save()
    people.team.name = text[:60]
    people.team.save()
    services.write(people.run, people.user("member"), text)
    Notice.objects.create(user=people.user("member"), run=people.run, kind="failed", words=text, made_at=timezone.now())
    client = people.client("member")
    assert client.post("/views/", {"name": text[:40], "address": "q=is:mine"}).status_code == 302
    other = runs.launch(people.run.spec, people.user("member"), fallback_name=text[:120])
    pages = ["/", f"/runs/compare/?run={people.run.pk}&run={other.pk}", f"/runs/{people.run.pk}/exports/",
             f"/runs/{people.run.pk}/", "/account/", f"/teams/{people.team.pk}/", f"/s/{people.token}/",
             f"/embed/{people.token}/", "/notices/", "/launch/", f"/teams/{people.team.pk}/webhooks/"]
    for path in pages:
        html = client.get(path).content.decode()
        assert "<script>alert" not in html and "<img src=x" not in html and "</script><b>" not in html, path

"""Pages to learn from: what they say in numbers is what the facts are, and what they run is what they speak of."""

import re
from html import unescape

import pytest

from dashboard.charts.panels import panel
from dashboard.conf import ROOT
from dashboard.learn.drawing import WIDTH
from dashboard.learn.drawings import DRAWINGS, SKETCHES
from dashboard.learn.ideas import IDEAS
from dashboard.learn.numbers import NUMBERS, everyone_bytes, ring_bytes, size
from dashboard.runs.models import Run
from trainer.presets import PRESETS

# What FACTS.md says, by idea.
FACTS = {
    "one-device": ["140 GB", "350 GB", "5"],
    "two-walls": ["16 bytes a parameter", "1.12 TB"],
    "data": ["12,960 + 42 = 13,002 parameters"],
    "cloning": ["44,100 GB", "1,411,200 GB"],
    "bubble": ["75.0 %"],
    "micro-batches": ["27.3 %"],
    "long-context": ["9,663,676,416 B"],
    "five-axes": ["2,048 ranks", "8,192 ranks"],
    "placement": ["900 GB/s, 5 µs", "1800 GB/s, 5 µs", "50 GB/s, 1 µs"],
    "collectives": ["6", "338.8 GB/s"],
}

# What a guide may mark besides a view, as the run's page has it.
PARTS = {"timeline": 'data-part="frame"', "figures": 'class="card run-now"', "loss": 'charts/loss.json"'}


def text(response):
    return unescape(response.content.decode())


@pytest.mark.parametrize("key", FACTS)
def test_numbers_are_the_facts(key):
    assert set(FACTS[key]) <= {one.value for one in NUMBERS[key]()}


def test_traffic_is_that_of_the_formulas():
    assert (ring_bytes(350, 64), everyone_bytes(350, 64)) == (44_100, 1_411_200)
    assert [size(count) for count in (999, 52_008, 140e9, 1.12e12)] == ["999 B", "52 kB", "140 GB", "1.12 TB"]


@pytest.mark.parametrize("key", IDEAS)
def test_every_idea_has_its_page(key, client, db):
    shown = text(client.get(f"/learn/{key}/"))
    idea = IDEAS[key]
    assert shown.count("<svg class=\"sketch") == 1 and idea.look in shown
    assert all(one.formula in shown and one.value in shown for one in NUMBERS[key]())
    assert len(re.findall(r"<p>", shown.split('class="learn-prose"')[1].split("</section>")[0])) >= 3
    assert f"/login/?next=/learn/{key}/" in shown and "start/" not in shown
    assert "manage.py launch " in shown


def test_the_list_has_all_of_them_in_order(client, db):
    shown = text(client.get("/learn/"))
    places = [shown.index(f'href="/learn/{key}/"') for key in IDEAS]
    assert places == sorted(places)
    assert IDEAS.keys() == NUMBERS.keys() == DRAWINGS.keys() | SKETCHES.keys()
    assert client.get("/learn/nothing/").status_code == 404


@pytest.mark.parametrize("key", DRAWINGS)
def test_drawings_keep_to_their_paper(key):
    drawn = DRAWINGS[key]()
    assert drawn.boxes and drawn.title
    for box in drawn.boxes:
        assert box.x >= 0 and box.x + box.width <= WIDTH + 0.1 and box.y >= 0 and box.y + box.height <= drawn.height + 0.1


@pytest.mark.parametrize("key", IDEAS)
def test_one_press_runs_it_and_its_page_says_what_to_look_at(key, people):
    client = people.client("member")
    answer = client.post(f"/learn/{key}/start/")
    run = Run.objects.exclude(pk=people.run.pk).get()
    idea = IDEAS[key]
    assert answer["Location"] == f"/runs/{run.pk}/?learn={key}"
    assert run.spec == idea.spec and idea.preset in PRESETS
    shown = text(client.get(answer["Location"]))
    assert idea.look in shown and f'data-where="{idea.where}"' in shown
    assert idea.where in PARTS or panel(run.spec, idea.where)
    assert shown.count(PARTS.get(idea.where, f'id="panel-{idea.where}"')) == 1


def test_parts_that_a_guide_can_mark_are_those_that_its_script_knows():
    [known] = re.findall(r"const PARTS = \{(.*)\};", (ROOT / "static/js/views/guide.js").read_text())
    assert re.findall(r"(\w+): ['\"]", known) == list(PARTS)


def test_without_a_guide_there_is_none(people):
    client = people.client("member")
    for query in ("", "?learn=", "?learn=nothing"):
        assert 'data-part="guide"' not in text(client.get(f"/runs/{people.run.pk}/{query}"))


def test_the_ring_that_is_drawn_ends_with_all_sums_everywhere():
    drawn = DRAWINGS["collectives"]()
    last = [box.word for box in drawn.boxes][-16:]
    assert last == ["4"] * 16

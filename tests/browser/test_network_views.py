"""The views on the network in a real browser: the step player's states, a topology of 1,024 ranks, matching by the page."""

import json
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboard.charts.panels import collectives, topology
from tests.browser.static_server import serving, until
from trainer.presets import preset

pytestmark = pytest.mark.browser

VECTOR = json.loads((Path(__file__).parents[1] / "unit" / "vectors" / "ring_allreduce_4.json").read_text())
STATES = [VECTOR["start"], *(step["after"] for step in VECTOR["reduce_scatter"] + VECTOR["all_gather"])]
HTML = """<!doctype html><html data-theme=light><head><link rel=stylesheet href=/css/tokens.css>
<link rel=stylesheet href=/css/panels.css><link rel=stylesheet href=/css/network.css></head>
<body><div id=box></div></body></html>"""
RANKS = 1024


def answer(panel, spec, **fields):
    return "application/json", json.dumps(panel(SimpleNamespace(spec=spec), fields)).encode()


def opened(answers):
    return serving({"/": ("text/html", HTML.encode()), **answers})


@contextmanager
def player_of_four(page):
    """The step player on a ring of four, without a run behind it."""
    spec = preset("allreduce-ring").spec
    answers = {
        "/known.json": answer(collectives.panel, spec, groups="dp"),
        "/plan.json": answer(collectives.panel, spec, collective="all_reduce", algorithm="ring", ranks="4"),
    }
    with opened(answers) as address:
        page.goto(address)
        page.evaluate("""async () => {
          const [{ player }, { Trace }] = await Promise.all(
            [import("/js/views/panels/player.js"), import("/js/timeline/trace.js")]);
          const given = async (name) => (await fetch(name)).json();
          const made = player({ trace: new Trace(4), ask: () => given("/plan.json") });
          document.getElementById("box").append(made.box);
          made.know(await given("/known.json"));
        }""")
        until(page, "document.querySelector('.player-table td')")
        yield


def held(page):
    return page.evaluate("""() => [...document.querySelectorAll(".player-table tbody tr")].map(
      (row) => [...row.querySelectorAll("td")].map((cell) => cell.dataset.held))""")


def test_the_step_player_shows_the_textbooks_states_forwards_and_backwards_by_keyboard(page):
    with player_of_four(page):
        onward, back = (page.get_by_role("button", name=name) for name in ("A step on", "A step back"))
        for state in STATES:
            assert held(page) == list(state.values())
            onward.focus()
            page.keyboard.press("Enter")
        for state in reversed(STATES[:-1]):
            back.focus()
            page.keyboard.press("Space")
            assert held(page) == list(state.values())
        assert page.locator(".player-chip").count() == 4  # each rank has something on its way


def test_playing_ends_with_everything_everywhere(page):
    with player_of_four(page):
        page.get_by_label("Speed").select_option("4")
        page.get_by_role("button", name="Play").click()
        until(page, "document.querySelector('.player').dataset.step === '6'")
        assert held(page) == list(STATES[-1].values())
        assert page.get_by_role("button", name="Play").is_visible()


def test_a_topology_of_1024_ranks_is_drawn_with_every_rank_in_its_server(page, record_property):
    spec = SimpleNamespace(grid=SimpleNamespace(dp=16, ep=1, pp=8, cp=1, tp=8, ranks=RANKS), ranks=RANKS, ways=1,
                           placement=preset("ddp-digits").spec.placement, links=preset("allreduce-ring").spec.links)
    answers = {"/known.json": answer(topology.panel, spec), "/lines.json": answer(topology.panel, spec, group="dp")}
    with opened(answers) as address:
        page.goto(address)
        made = page.evaluate("""async () => {
          const { topologyMap, layoutOf } = await import("/js/views/panels/topology_map.js");
          const given = async (name) => (await fetch(name)).json();
          const [known, laid] = await Promise.all([given("/known.json"), given("/lines.json")]);
          const map = topologyMap(() => {});
          document.getElementById("box").append(map.box);
          const sent = Array.from({ length: 1024 }, (_, rank) => rank);
          map.show({ ...known, sent, cell: 10, lines: { groups: laid.groups, pairs: laid.pairs.ring } });
          const { ranks, servers, racks, cell } = layoutOf(known, 10, 1200);
          const inside = ranks.every(({ x, y }, rank) => {
            const box = servers[known.servers[rank]];
            return x >= box.x && y >= box.y && x + cell <= box.x + box.width && y + cell <= box.y + box.height;
          });
          const places = new Set(ranks.map(({ x, y }) => `${x},${y}`)).size;
          return { inside, places, servers: servers.length, racks: racks.length, drawn: map.box.dataset.ranks,
            ms: Number(map.box.dataset.drawnMs) };
        }""")
    record_property("drawn_ms", made["ms"])
    print(f"1,024 ranks drawn in {made['ms']:.1f} ms")
    assert (made["inside"], made["places"], made["servers"], made["racks"], made["drawn"]) == (True, RANKS, 128, 32, "1024")


def test_a_matrix_of_1024_ranks_says_what_a_cell_holds(page):
    with opened({}) as address:
        page.goto(address)
        page.evaluate("""async () => {
          const { heat, squares } = await import("/js/views/panels/heat.js");
          const map = heat("Traffic", { cellPx: squares });
          document.getElementById("box").append(map.box);
          map.show({ rows: 128, columns: 128, value: (row, column) => row * column, rowName: String, columnName: String,
            words: (row, column) => `${row} to ${column}` });
        }""")
        page.get_by_role("img", name="Traffic").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        assert page.get_by_role("status").inner_text() == "1 to 1"


def test_only_a_rank_that_is_later_than_every_other_is_the_latest(page):
    with opened({}) as address:
        page.goto(address)
        found = page.evaluate("""async () => {
          const { lateness } = await import("/js/views/panels/stragglers.js");
          return lateness([[0, 5, 9], [0, 4, 4], [0, 0, 7], [0, 0, 0]].map((late_ns) => ({ figures: { late_ns } })), 3);
        }""")
    assert [(one["rank"], one["share"], one["medianNs"]) for one in found] == [(2, 0.5, 7), (1, 0, 4), (0, 0, 0)]


def test_a_slow_rank_is_named_with_its_factor(page):
    """As the recorder's figures say it; tests/stack/test_restarts.py holds these to 10 % of what a job ordered."""
    with opened({}) as address:
        page.goto(address)
        one, none = page.evaluate("""async () => {
          const { slowWords } = await import("/js/views/panels/stragglers.js");
          return [slowWords([{ rank: 2, from_step: 8, factor: 1.4983 }]), slowWords([])];
        }""")
    assert one == "Rank 2 has computed 1.50 times as long as the others in every step since step 8."
    assert none.startswith("No rank computes for longer")


def test_the_page_matches_collectives_as_the_analysis_does(bench):
    """Two groups along tp; rank 3 comes 40 ns late, and the backend's name of the second group's sequence is the same."""
    found = bench.evaluate("""async () => {
      const [{ collectivesOfStep }, { Trace }] = await Promise.all(
        [import("/static/js/timeline/collectives.js"), import("/static/js/timeline/trace.js")]);
      const span = (rank, startNs, endNs) => ({
        rank, kind: 9, startNs, endNs, durationNs: endNs - startNs, step: 2, sequence: 7, group: 1, name: 2, bytes: 80 });
      const spans = [span(0, 100, 200), span(1, 110, 200), span(2, 100, 260), span(3, 140, 260)];
      const lane = (rank) => ({
        spans: 1, end: 1, firstEndingAfter: () => 0, startOf: () => spans[rank].startNs, next: (place) => place + 1,
        spanAt: () => spans[rank] });
      const trace = Object.assign(new Trace(4, [0, 1, 2, 3].map((rank) => ({ dp: rank >> 1, tp: rank & 1 }))),
        { strings: ["", "tp", "all-reduce · ring"], lane });
      return collectivesOfStep(trace, { step: 2, figures: { start_ns: 0, end_ns: 1000 } }).map(
        ({ members, transferNs, waitNs, algorithm, operation }) =>
          [members.map(({ rank }) => rank), transferNs, waitNs, algorithm, operation]);
    }""")
    assert found == [[[0, 1], 90, 5, "ring", "all_reduce"], [[2, 3], 120, 20, "ring", "all_reduce"]]


def test_a_view_that_is_still_at_it_is_not_begun_again(page):
    """Two beginnings of the topology would list each warning twice."""
    spec = preset("tensor-across-servers").spec
    tab = '<button role=tab id=tab-topology aria-selected=true aria-controls=panel-topology>Topology</button>'
    panel = '<div id=panel-topology><div data-part=panel-body></div></div>'
    html = HTML.replace("<div id=box></div>", f"<section id=box>{tab}{panel}</section>").encode()
    answers = {"/": ("text/html", html), "/panels/topology.json": answer(topology.panel, spec)}
    with serving(answers) as address:
        page.goto(address)
        page.evaluate("""async (run) => {
          const [{ Panels }, { Trace }] = await Promise.all([import("/js/views/panels.js"), import("/js/timeline/trace.js")]);
          const context = { run: () => run, timeline: { trace: new Trace(4) }, readBase: "/" };
          const panels = new Panels(document.getElementById("box"), context);
          panels.isSeen = true;
          for (let press = 0; press < 5; press++) panels.show(panels.shown);
          window.panels = panels;
        }""", {"ranks": 4, "spec": spec.model_dump(), "grid": [{"tp": rank} for rank in range(4)]})
        until(page, "document.querySelector('.topology-warnings li')")
        until(page, "window.panels.due.size === 0")
        assert page.locator(".topology-warnings li").count() == 1

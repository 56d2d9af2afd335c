"""The page's end of a live run: goes on where it was, and hands on every span exactly once."""

import json

import numpy as np
import pytest

from dashboard.live.cursor import parse
from dashboard.live.messages import Batch
from tests.browser.static_server import serving, until
from trainer.trace.frame import COUNTER_COLUMNS, MARK_COLUMNS, SPAN_COLUMNS, Frame, empty, encode

pytestmark = pytest.mark.browser

WATCH = """async () => {
  const { connect } = await import("/js/core/live.js");
  window.seen = { starts: [], losses: [], statuses: [], states: [], events: [], redis: [] };
  window.live = connect({
    url: "/ws/runs/x/",
    onState: (run) => seen.states.push(run.id),
    onFrames: async (frames, events) => {
      for (const { spans, counters } of frames) {
        seen.starts.push(...spans.start_ns);
        seen.losses.push(...counters.value);
      }
      seen.events.push(...events);
      await new Promise((resolve) => setTimeout(resolve));
    },
    onConnection: ({ status, retryInMs, redisAway }) => {
      seen.statuses.push(status);
      if (redisAway !== undefined) seen.redis.push(redisAway);
    },
  });
}"""


def frame(sequence, first, last, spans_dropped=0):
    """Frame number `sequence` of rank 0 with its spans `first` up to `last`, each with a counter."""
    numbers = np.arange(first, last)
    spans = empty(SPAN_COLUMNS, len(numbers)) | {"start_ns": numbers * 1000.0}
    counters = empty(COUNTER_COLUMNS, len(numbers)) | {"value": numbers * 1.0, "time_ns": numbers * 1000.0}
    return encode(
        Frame(0, sequence, spans, counters, empty(MARK_COLUMNS), ["loss"], spans_before=first, spans_dropped=spans_dropped)
    )


def batch(cursor, frames, **more):
    return Batch(parse(cursor), frames, **more).encode()


@pytest.fixture
def watch(page):
    """watch(connections): each is a dictionary from a pull's cursor to the answer, bytes or a close code."""
    with serving() as address:

        def start(*connections):
            scripts = iter(connections)

            def connected(socket):
                script = next(scripts)
                pulls.append([])
                socket.send(json.dumps({"type": "state", "run": {"id": "x"}}))

                def pulled(text):
                    cursor = json.loads(text)["after"]
                    pulls[-1].append(cursor)
                    answer = script.get(cursor)
                    if isinstance(answer, int):
                        socket.close(code=answer)
                    elif answer is not None:
                        socket.send(answer)

                socket.on_message(pulled)
                if None in script and script[None] == 4404:
                    socket.close(code=4404)

            pulls = []
            page.route_web_socket("**/ws/runs/x/", connected)
            page.goto(address)
            page.evaluate(WATCH)
            return pulls

        yield start


def test_after_a_lost_connection_every_span_is_there_once(page, watch):
    pulls = watch(
        {None: batch("r:1-0", [frame(1, 0, 10), frame(2, 10, 15)]), "r:1-0": batch("r:2-0", [frame(3, 15, 20)]), "r:2-0": 1012},
        {
            # while the page was away its place was sealed: the segment holds frames 2 to 5, two of which it has
            "r:2-0": batch("s:2:0", [frame(5, 10, 40)], merged=True),
            "s:2:0": batch("s:3:0", [frame(7, 40, 50)], merged=True),
            "s:3:0": batch("r:9-0", [frame(7, 48, 50), frame(8, 50, 55)]),
            "r:9-0": batch("r:9-0", [], complete=True),
        },
    )
    until(page, "seen.statuses.includes('complete')")
    seen, stats = page.evaluate("[seen, live.stats]")
    assert seen["starts"] == [number * 1000 for number in range(55)]
    assert seen["losses"] == list(range(55))
    assert pulls == [[None, "r:1-0", "r:2-0"], ["r:2-0", "s:2:0", "s:3:0", "r:9-0"]]
    assert seen["statuses"] == ["connecting", "live", "lost", "connecting", "live", "complete"]
    assert stats["spans"] == 55 and stats["duplicates"] == 1 and stats["bytes"] > 0
    assert (stats["missing_frames"], stats["missing_spans"], stats["dropped_spans"]) == (0, 0, 0)


def test_what_is_missing_and_what_was_dropped_is_counted(page, watch):
    frames = [frame(1, 0, 10), frame(4, 25, 30, spans_dropped=6)]
    watch({None: batch("r:1-0", frames), "r:1-0": batch("r:1-0", [], complete=True)})
    until(page, "seen.statuses.includes('complete')")
    stats = page.evaluate("live.stats")
    assert stats["spans"] == 15 and stats["missing_frames"] == 2
    assert stats["dropped_spans"] == 6 and stats["missing_spans"] == 9


def test_a_link_that_was_taken_back_is_not_tried_again(page, watch):
    pulls = watch({None: 4404}, {})
    until(page, "seen.statuses.includes('gone')")
    page.evaluate("dispatchEvent(new Event('online'))")
    assert page.evaluate("seen.statuses.at(-1)") == "gone" and len(pulls) == 1


def test_a_broken_batch_is_asked_for_again(page, watch):
    pulls = watch(
        {None: batch("r:1-0", [frame(1, 0, 10)]), "r:1-0": batch("r:2-0", [frame(2, 10, 20)])[:-8]},
        {"r:1-0": batch("r:2-0", [frame(2, 10, 20)])},
    )
    until(page, "seen.starts.length === 20")
    assert pulls[1][0] == "r:1-0"


def test_losing_the_network_is_noticed_and_its_return_too(page, watch):
    pulls = watch({None: batch("r:1-0", [frame(1, 0, 10)])}, {"r:1-0": batch("r:2-0", [frame(2, 10, 20)])})
    until(page, "seen.starts.length === 10")
    page.evaluate("dispatchEvent(new Event('offline')); dispatchEvent(new Event('online'))")
    until(page, "seen.starts.length === 20")
    assert page.evaluate("seen.statuses") == ["connecting", "live", "lost", "connecting", "live"] and len(pulls) == 2


def test_closing_ends_it(page, watch):
    pulls = watch({None: batch("r:1-0", [frame(1, 0, 10)])}, {})
    until(page, "seen.starts.length === 10")
    page.evaluate("live.close(); dispatchEvent(new Event('online'))")
    page.wait_for_timeout(700)  # longer than the first retry would take
    assert len(pulls) == 1 and "lost" not in page.evaluate("seen.statuses")

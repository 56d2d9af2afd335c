"""What the page tells benchmarks: the spans it times are evenly chosen of all, however many and however late they come."""

from itertools import pairwise

import pytest

pytestmark = pytest.mark.browser

SPANS, PER_PAINT = 200_000, [1_000, 30_000, 9_000, 60_000]

# Span number n ended n seconds after 1970, so that its sample tells its number.
NOTE = """([most, sizes]) => {
  const surface = window.lockstep;
  Object.assign(surface, { zeroUnixMs: 0, openedMs: -1, waiting: [], latencySamples: [], stride: 1, noted: 0 });
  for (let first = 0, turn = 0; first < most; turn++) {
    const length = Math.min(sizes[turn % sizes.length], most - first);
    const start_ns = Float64Array.from({ length }, (_, at) => (first + at) * 1e9);
    surface.note([{ spans: { start_ns, duration_ns: new Float64Array(length), length }, marks: { length: 0 }, strings: [] }]);
    surface.timeline.dispatchEvent(new Event("painted"));
    first += length;
  }
  const nowMs = performance.timeOrigin + performance.now();
  return surface.latencySamples.map((sample) => Math.round((nowMs - sample) / 1000));
}"""


def test_the_spans_that_are_timed_are_spread_evenly_over_all(finished):
    numbers = finished.evaluate(NOTE, [SPANS, PER_PAINT])
    assert 10_000 <= len(numbers) <= 20_000
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    stride = SPANS / len(numbers)
    assert all(abs(step - stride) <= 2 for step in steps), "some stretch counts for more than another"
    assert numbers[0] <= stride + 1 and numbers[-1] >= SPANS - stride - 2

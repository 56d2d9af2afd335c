"""What the golden bytes in `golden/` hold. `python -m tests.unit.golden_frames` writes them anew.

They change only when the layout does, and then the magic has to change with them.
"""

from __future__ import annotations

from pathlib import Path

from dashboard.live.cursor import AfterEntry
from dashboard.live.messages import Batch
from tests.unit.frames import frame_of
from trainer.trace.frame import encode
from trainer.trace.kinds import Kind

FOLDER = Path(__file__).parent / "golden"


def golden() -> dict[str, bytes]:
    """File names and their bytes."""
    first = encode(frame_of(
        2, 1,
        [
            (Kind.WAIT, 1_000, 2_500, 0, -1, 2, 1, -1, -1, "", ""),
            (Kind.FORWARD, 2_500, 20_002_500, 0, 3, 2, -1, -1, -1, "F3", ""),
            (Kind.SEND, 20_003_000, 20_103_000, 0, 3, 2, 3, 131_072, 7, "F3 →", "pp"),
            (Kind.ALL_REDUCE, 90_000_000_000_001, 90_000_000_500_000, 4, -1, -1, -1, 2**41, 12, "größer 🚀", "dp"),
            (Kind.STEP, 0, 90_000_001_000_000, 4, -1, -1, -1, -1, -1, "step 4", ""),
        ],
        counters=[("loss", 2.5, 0, 20_200_000), ("loss", float("inf"), 1, 20_300_000), ("samples", 64, 0, 20_200_000)],
        marks=[("zero", "1780000000123456789", -1, 0), ("realtime", "refused: Operation not permitted", -1, 5_000)],
        clock_offset_ns=-12_345.0, clock_uncertainty_ns=20_480.5, written_ns=100_000_000.0,
    ))
    last = encode(frame_of(
        2, 2, [(Kind.OPTIMIZER, 2**52 + 1, 2**53 - 1, 2**31 - 1, 32_767, 32_767, 1023, 2**52 + 1, 2**31 - 1, "", "")],
        before=5, spans_dropped=3, final=True,
    ))
    empty = encode(frame_of(0, 9, [], before=2**40))
    events = [{"type": "steps", "rows": [{"step": 0, "loss": 2.5, "bubble_share": None}]}]
    batch = Batch(AfterEntry((1_780_000_000_123, 4)), [first, empty, last], events)
    return {"frame.bin": first, "frame-last.bin": last, "frame-empty.bin": empty, "batch.bin": batch.encode()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, data in golden().items():
        (FOLDER / name).write_bytes(data)

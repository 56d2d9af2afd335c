"""What a rank could not send lies in a file, and is sent again from there."""

import pytest

from tests.unit.baskets import Basket, bytes_of
from trainer.trace.sinks import SinkAway, append_frame, resend_spill


@pytest.fixture
def spill(tmp_path):
    return tmp_path / "spill" / "rank-0.frames"


def test_a_spill_that_goes_only_in_part_keeps_the_rest(spill):
    for sequence in range(1, 6):
        spill.parent.mkdir(exist_ok=True)
        append_frame(spill, bytes_of(sequence))

    class Tired(Basket):
        def send(self, frame):
            if len(self.frames) == 2:
                raise SinkAway("enough")
            super().send(frame)

    with pytest.raises(SinkAway):
        resend_spill(spill, Tired())
    basket = Basket()
    assert resend_spill(spill, basket) == 3 and basket.numbers == [3, 4, 5]
    assert resend_spill(spill, basket) == 0


def test_a_frame_cut_off_at_the_end_of_a_spill_is_passed_over(spill):
    spill.parent.mkdir()
    append_frame(spill, bytes_of(1))
    append_frame(spill, bytes_of(2)[:50])
    basket = Basket()
    assert resend_spill(spill, basket) == 1 and basket.numbers == [1]

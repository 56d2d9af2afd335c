"""What browser and server say to each other."""

import pytest

from dashboard.live.cursor import START, AfterEntry
from dashboard.live.messages import Batch, MalformedMessage, ShownView, decode_batch, parse_message


def test_frames_of_a_batch_begin_at_multiples_of_eight():
    for name in ("a", "ab", "abcdefg", "größer"):
        data = Batch(AfterEntry((1, 2)), [b"f" * 96, b"g" * 104], [{"type": name}]).encode()
        meta, frames = decode_batch(data)
        assert (len(data) - len(frames)) % 8 == 0
        assert frames == b"f" * 96 + b"g" * 104
        assert meta == {"cursor": "r:1-2", "events": [{"type": name}], "complete": False, "frames": 2, "merged": False}


def test_what_is_no_batch_is_refused():
    with pytest.raises(ValueError):
        decode_batch(b"NOPE" + bytes(20))


def test_a_pull_names_where_to_go_on():
    assert parse_message('{"type": "pull", "after": null}') == START
    assert parse_message('{"type": "pull"}') == START
    assert parse_message('{"type": "pull", "after": "r:5-1"}') == AfterEntry((5, 1))


def test_a_view_is_shown_or_no_longer():
    assert parse_message('{"type": "lead", "view": "t=1,2&span=0,0,5"}') == ShownView("t=1,2&span=0,0,5")
    assert parse_message('{"type": "lead", "view": null}') == ShownView(None)


@pytest.mark.parametrize(
    "text",
    ['{"type": "lead"}', '{"type": "lead", "view": 5}', '{"type": "lead", "view": "<b>"}',
     '{"type": "lead", "view": "", "name": "me"}', '{"type": "lead", "view": "' + "x" * 3001 + '"}',
     "", "{", "[]", "null", "7", '{"type": "push"}', '{"type": "pull", "after": 5}', '{"type": "pull", "after": "zzz"}',
     '{"type": "pull", "more": 1}', "[" * 4000, '{"type": ["pull"]}'],
)
def test_anything_else_is_malformed(text):
    with pytest.raises(MalformedMessage):
        parse_message(text)

"""Request bodies are bounded before Django puts them on disk."""

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from dashboard.asgi import application
from dashboard.bodies import bounded

MOST = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
PIECE_BYTES = 65_536


async def read_all(scope, receive, send):
    """An application that answers with how much it was given, or not at all where the request ended before its body."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def posted(app, length=None):
    headers = [(b"host", b"localhost")] + ([(b"content-length", str(length).encode())] if length is not None else [])
    return ApplicationCommunicator(app, {"type": "http", "method": "POST", "path": "/login/", "query_string": b"",
                                         "headers": headers})


async def send_pieces(request, sizes):
    for at, size in enumerate(sizes):
        await request.send_input({"type": "http.request", "body": bytes(size), "more_body": at < len(sizes) - 1})


@pytest.mark.parametrize("length", [MOST + 1, "much", "-1"])
async def test_a_length_that_is_too_large_or_none_is_refused_before_anything_is_read(length):
    request = posted(application, length)
    assert (await request.receive_output())["status"] == 413
    assert b"more than" in (await request.receive_output())["body"]
    await request.wait()


@pytest.mark.parametrize("length", [MOST, None])
async def test_as_much_as_may_be_comes_through_in_pieces(length):
    request = posted(bounded(read_all), length)
    await send_pieces(request, [MOST // 4] * 3 + [MOST - 3 * (MOST // 4)])
    assert (await request.receive_output())["status"] == 200
    assert (await request.receive_output())["body"] == str(MOST).encode()


async def test_a_body_that_grows_beyond_what_was_told_ends_the_request():
    request = posted(bounded(read_all))
    await send_pieces(request, [PIECE_BYTES] * (MOST // PIECE_BYTES + 1))
    await request.wait()
    assert await request.receive_nothing()

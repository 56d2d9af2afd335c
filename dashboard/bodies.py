"""How much a request may bring. Django puts a whole body on disk before any view or middleware sees the request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

_REFUSED = b"This is more than a page or a program of Lockstep has to send."


def bounded(app: App) -> App:
    """`app`, for requests of at most settings.DATA_UPLOAD_MAX_MEMORY_SIZE bytes.

    A length that is too large is refused with 413; a body that grows beyond what was told ends the request.
    """

    async def bounded_app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        most, came = settings.DATA_UPLOAD_MAX_MEMORY_SIZE, 0
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if not told.isdigit() or int(told) > most:
            headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 413, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSED})
            return

        async def receive_bounded() -> Mapping[str, Any]:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            return message if came <= most else {"type": "http.disconnect"}

        await app(scope, receive_bounded, send)

    return bounded_app

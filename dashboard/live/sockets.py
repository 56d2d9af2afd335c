"""What the two websockets share: several things go on at once, until one of them ends the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def until_one_ends(*works: Coroutine[Any, Any, int | None]) -> int | None:
    """The code to close with that the first one to end gives; None when the browser has left."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    try:
        return next(iter(done)).result()
    except OSError:  # the browser left while something was being sent to it
        return None

"""What one viewer has yet to be told. Only the latest state is kept, however slow the viewer is."""

from __future__ import annotations

import asyncio
from typing import Any

from dashboard.live.messages import RedisMessage, StateMessage
from dashboard.live.rights import Right


class Viewer:
    def __init__(self, right: Right, state: dict[str, Any]):
        self.right = right
        self.close_code: int | None = None
        self._state = state
        self._state_is_news = True
        self._redis_away: bool | None = None
        self._news = asyncio.Event()
        self._news.set()

    def tell_state(self, state: dict[str, Any], even_if_known: bool = False) -> None:
        if state != self._state or even_if_known:
            self._state = state
            self._state_is_news = True
            self._news.set()

    def tell_redis(self, away: bool) -> None:
        self._redis_away = away
        self._news.set()

    def close(self, code: int) -> None:
        self.close_code = code
        self._news.set()

    async def news(self) -> list[StateMessage | RedisMessage]:
        """Wait for something to tell; when it is nothing, the viewer is to be closed."""
        await self._news.wait()
        self._news.clear()
        messages: list[StateMessage | RedisMessage] = []
        if self.close_code is not None:
            return messages
        if self._state_is_news:
            self._state_is_news = False
            messages.append({"type": "state", "run": self._state})
        if self._redis_away is not None:
            messages.append({"type": "redis", "away": self._redis_away})
            self._redis_away = None
        return messages

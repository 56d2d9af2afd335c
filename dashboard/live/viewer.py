"""What one viewer has yet to be told. Of each thing only the latest is kept, however slow the viewer is."""

from __future__ import annotations

import asyncio
from typing import Any

from dashboard.live.messages import LeadMessage, PeopleMessage, RedisMessage, StateMessage
from dashboard.live.presence import Lead, Visitor
from dashboard.live.rights import Right

Message = StateMessage | RedisMessage | PeopleMessage | LeadMessage


class Viewer:
    def __init__(self, right: Right, visitor: Visitor, state: dict[str, Any]):
        self.right = right
        self.visitor = visitor
        self.close_code: int | None = None
        self._state = state
        self._state_is_news = True
        self._redis_away: bool | None = None
        self._people: PeopleMessage | None = None
        self._people_are_news = False
        self._lead: LeadMessage = {"type": "lead", "lead": None}
        self._lead_is_news = False
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

    def tell_people(self, people: list[dict[str, Any]]) -> None:
        shown = [] if self.visitor.is_guest else people
        message: PeopleMessage = {
            "type": "people", "people": shown, "count": sum(1 if not one["is_guest"] else one["pages"] for one in people),
            "me": self.visitor.key,
        }
        if message != self._people:
            self._people, self._people_are_news = message, True
            self._news.set()

    def tell_lead(self, lead: Lead | None) -> None:
        """A guest is taken along, but learns no name."""
        shown = None if lead is None else {"key": lead.key, "name": lead.name, "view": lead.view}
        if shown and self.visitor.is_guest:
            shown |= {"key": "", "name": ""}
        message: LeadMessage = {"type": "lead", "lead": shown}
        if message != self._lead:
            self._lead, self._lead_is_news = message, True
            self._news.set()

    def close(self, code: int) -> None:
        self.close_code = code
        self._news.set()

    async def news(self) -> list[Message]:
        """Wait for something to tell; when it is nothing, the viewer is to be closed."""
        await self._news.wait()
        self._news.clear()
        messages: list[Message] = []
        if self.close_code is not None:
            return messages
        if self._state_is_news:
            self._state_is_news = False
            messages.append({"type": "state", "run": self._state})
        if self._redis_away is not None:
            messages.append({"type": "redis", "away": self._redis_away})
            self._redis_away = None
        if self._people_are_news and self._people:
            self._people_are_news = False
            messages.append(self._people)
        if self._lead_is_news:
            self._lead_is_news = False
            messages.append(self._lead)
        return messages

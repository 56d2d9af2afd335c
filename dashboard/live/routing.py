"""Websockets: a run is watched at /ws/runs/<id>/ by those who may see it, at /ws/s/<token>/ by link holders.

/ws/news/ is of every page behind the login.
"""

from typing import Any

from django.urls import path

from dashboard.live.consumers import watch_run
from dashboard.live.news import watch_news

websocket_urlpatterns: list[Any] = [
    path("ws/runs/<str:run_id>/", watch_run),  # type: ignore[arg-type]  # an ASGI application, as channels' router wants
    path("ws/s/<str:token>/", watch_run),  # type: ignore[arg-type]
    path("ws/news/", watch_news),  # type: ignore[arg-type]
]

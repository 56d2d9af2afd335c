"""Websockets: a run is watched at /ws/runs/<id>/ by those who may see it, at /ws/s/<token>/ by link holders."""

from typing import Any

from django.urls import path

from dashboard.live.consumers import watch_run

websocket_urlpatterns: list[Any] = [
    path("ws/runs/<str:run_id>/", watch_run),  # type: ignore[arg-type]  # an ASGI application, as channels' router wants
    path("ws/s/<str:token>/", watch_run),  # type: ignore[arg-type]
]

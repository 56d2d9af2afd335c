"""Addresses. A run is read at /runs/<id>/… by those who may see it and at /s/<token>/… by link holders."""

from django.urls import include, path

urlpatterns = [
    path("", include("dashboard.accounts.urls")),
    path("", include("dashboard.runs.urls")),
    path("", include("dashboard.comments.urls")),
    path("", include("dashboard.notices.urls")),
    path("", include("dashboard.charts.urls")),
    path("", include("dashboard.live.urls")),
    path("", include("dashboard.learn.urls")),
    path("", include("dashboard.api.urls")),
    path("", include("dashboard.operating.urls")),
]

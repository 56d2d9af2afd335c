"""Addresses of what is sealed of a run, by its id and by a link's token."""

from django.urls import path

from dashboard.live import windows

urlpatterns = [
    path("runs/<str:run_id>/window/", windows.run_window, name="run-window"),
    path("s/<str:token>/window/", windows.shared_window, name="shared-window"),
]

"""Addresses of what is sealed of a run, by its id and by a link's token."""

from django.urls import path

from dashboard.live import searching, windows

urlpatterns = [
    path("runs/<str:run_id>/window/", windows.run_window, name="run-window"),
    path("s/<str:token>/window/", windows.shared_window, name="shared-window"),
    path("runs/<str:run_id>/search/", searching.run_search, name="run-search"),
    path("s/<str:token>/search/", searching.shared_search, name="shared-search"),
]

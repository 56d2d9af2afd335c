"""Runs' addresses. Whatever reads a run is there twice: by its id, and by the token of a link."""

from django.urls import path, register_converter

from dashboard.runs.views import acting, ideal, launching, listing, logs, run, sharing


class RunId:
    regex = "[a-z0-9]{1,16}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(RunId, "run")

urlpatterns = [
    path("", listing.runs, name="runs"),
    path("rows/", listing.rows, name="runs-rows"),
    path("launch/", launching.launch, name="launch"),
    path("launch/check/", launching.check, name="launch-check"),
    path("runs/<run:run_id>/", run.run, name="run"),
    path("runs/<run:run_id>/stop/", acting.stop, name="run-stop"),
    path("runs/<run:run_id>/share/", sharing.share, name="run-share"),
    path("runs/<run:run_id>/share/<int:link_id>/take-back/", sharing.take_back, name="run-take-back"),
    path("runs/<run:run_id>/logs/<int:rank>/", logs.log, name="run-log"),
    path("runs/<run:run_id>/ideal.json", ideal.ideal, name="run-ideal"),
    path("s/<str:token>/", run.shared_run, name="shared-run"),
    path("s/<str:token>/logs/<int:rank>/", logs.shared_log, name="shared-run-log"),
    path("s/<str:token>/ideal.json", ideal.shared_ideal, name="shared-run-ideal"),
]

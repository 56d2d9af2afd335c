"""Runs' addresses. Whatever reads a run is there twice: by its id, and by the token of a link."""

from django.urls import path, register_converter

from dashboard.runs.views import acting, bulk, comparing, exporting, ideal, launching, listing, logs, run, sharing


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
    path("bulk/", bulk.bulk, name="runs-bulk"),
    path("views/", bulk.save_view, name="runs-save-view"),
    path("views/<int:view_id>/forget/", bulk.forget_view, name="runs-forget-view"),
    path("launch/", launching.launch, name="launch"),
    path("launch/check/", launching.check, name="launch-check"),
    path("runs/compare/", comparing.compare, name="runs-compare"),
    path("runs/compare/loss.json", comparing.loss_chart, name="runs-compare-loss"),
    path("runs/compare/step.json", comparing.step, name="runs-compare-step"),
    path("runs/<run:run_id>/", run.run, name="run"),
    path("runs/<run:run_id>/change/", acting.change, name="run-change"),
    path("runs/<run:run_id>/again/", acting.again, name="run-again"),
    path("runs/<run:run_id>/exports/", exporting.exports, name="run-exports"),
    path("runs/<run:run_id>/exports/<slug:key>/", exporting.export, name="run-export"),
    path("runs/<run:run_id>/exports/<slug:key>/file/", exporting.export_file, name="run-export-file"),
    path("runs/<run:run_id>/stop/", acting.stop, name="run-stop"),
    path("runs/<run:run_id>/give/", sharing.give, name="run-give"),
    path("runs/<run:run_id>/share/", sharing.share, name="run-share"),
    path("runs/<run:run_id>/share/<int:link_id>/take-back/", sharing.take_back, name="run-take-back"),
    path("runs/<run:run_id>/logs/<int:rank>/", logs.log, name="run-log"),
    path("runs/<run:run_id>/ideal.json", ideal.ideal, name="run-ideal"),
    path("s/<str:token>/", run.shared_run, name="shared-run"),
    path("s/<str:token>/preview.png", run.preview, name="shared-preview"),
    path("embed/<str:token>/", run.embedded_run, name="embedded-run"),
    path("s/<str:token>/logs/<int:rank>/", logs.shared_log, name="shared-run-log"),
    path("s/<str:token>/ideal.json", ideal.shared_ideal, name="shared-run-ideal"),
]

"""Charts' and panels' addresses, by a run's id and by a link's token."""

from django.urls import path

from dashboard.charts import views

urlpatterns = [
    path("runs/<str:run_id>/charts/<str:name>.json", views.run_chart, name="run-chart"),
    path("s/<str:token>/charts/<str:name>.json", views.shared_chart, name="shared-chart"),
    path("runs/<str:run_id>/panels/<str:name>.json", views.run_panel, name="run-panel"),
    path("s/<str:token>/panels/<str:name>.json", views.shared_panel, name="shared-panel"),
]

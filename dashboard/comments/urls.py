"""Comments' addresses, by a run's id and by a link's token."""

from django.urls import path

from dashboard.comments import views

urlpatterns = [
    path("runs/<str:run_id>/comments.json", views.comments, name="run-comments"),
    path("s/<str:token>/comments.json", views.shared_comments, name="shared-comments"),
]

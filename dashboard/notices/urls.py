from django.urls import path

from dashboard.notices import views

urlpatterns = [
    path("notices/", views.notices, name="notices"),
    path("notices/read/", views.read, name="notices-read"),
    path("teams/<int:team_id>/webhooks/", views.webhooks, name="webhooks"),
    path("teams/<int:team_id>/webhooks/<int:hook_id>/remove/", views.remove_webhook, name="webhook-remove"),
]

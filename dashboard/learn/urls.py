from django.urls import path

from dashboard.learn import views

urlpatterns = [
    path("learn/", views.index, name="learn"),
    path("learn/<slug:key>/", views.idea, name="idea"),
    path("learn/<slug:key>/start/", views.start, name="idea-start"),
]

from django.urls import path

from dashboard.operating.health import healthz, readyz
from dashboard.operating.views import metrics

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, path

from dashboard.api.client import client
from dashboard.api.routes import api


def _answering_for_itself(urls: list[URLPattern | URLResolver]) -> list[URLPattern | URLResolver]:
    """Strangers get the API's own 401, not the pages' way to the login; its reference stays behind it."""
    for url in urls:
        if isinstance(url, URLPattern) and url.name not in ("openapi-json", "openapi-view"):
            login_not_required(url.callback)
    return urls


_urls, _app, _namespace = api.urls

urlpatterns = [
    path("client/lockstep.py", client, name="client"),
    path("api/v1/", (_answering_for_itself(_urls), _app, _namespace)),
]

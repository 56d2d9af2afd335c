"""The server's entry: pages over HTTP, live runs over websockets."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
_pages = get_asgi_application()

from dashboard.bodies import bounded  # noqa: E402  (needs Django's settings)
from dashboard.live.routing import websocket_urlpatterns  # noqa: E402  (needs Django's apps)

application = ProtocolTypeRouter({
    "http": bounded(_pages),
    "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
})

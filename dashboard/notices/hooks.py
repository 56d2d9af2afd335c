"""Sending to webhooks: signed, to addresses that may be called, tried again when they do not answer.

The signature is `t=<seconds since 1970>,v1=<hex HMAC-SHA256 of "<t>.<body>" by the hook's secret>` in
`X-Lockstep-Signature`: the time is part of what is signed, so that an old message cannot be sent again unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import time
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from dashboard.notices.models import Delivery

TIMEOUT_SECONDS = 5
AGAIN_AFTER = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1))
KEPT = timedelta(days=14)


class NotAllowed(Exception):
    """The address may not be called, and why."""


def signature(secret: str, body: bytes, at: int) -> str:
    found = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={found}"


def check_address(url: str) -> tuple[str, int]:
    """The IP address and port to call. NotAllowed for what could reach into this machine's network.

    Hosts in LOCKSTEP_HOOK_HOSTS may be anywhere; others only at public addresses.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise NotAllowed("an address such as https://chat.example.org/hooks/1 would do")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        raise NotAllowed(f"{parts.hostname} is not found") from None
    address = str(found[0][4][0])
    if parts.hostname not in settings.CONF.hook_hosts and not ipaddress.ip_address(address.split("%")[0]).is_global:
        raise NotAllowed(f"{parts.hostname} is inside a private network; an administrator may allow it by LOCKSTEP_HOOK_HOSTS")
    return address, port


def post(url: str, secret: str, event: str, body: dict[str, Any]) -> str:
    """What was answered. NotAllowed or OSError when nothing was sent; redirects are not followed."""
    address, port = check_address(url)  # the one that was looked at is the one that is called
    parts = urlsplit(url)
    data = json.dumps(body, ensure_ascii=False).encode()
    at = int(time.time())
    connection = http.client.HTTPConnection(parts.hostname or "", port, timeout=TIMEOUT_SECONDS)
    connection.sock = socket.create_connection((address, port), TIMEOUT_SECONDS)
    try:
        if parts.scheme == "https":
            connection.sock = ssl.create_default_context().wrap_socket(connection.sock, server_hostname=parts.hostname)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, data, {
            "Content-Type": "application/json", "User-Agent": "Lockstep", "X-Lockstep-Event": event,
            "X-Lockstep-Signature": signature(secret, data, at),
        })
        answer = connection.getresponse()
        if not 200 <= answer.status < 300:
            raise OSError(f"{answer.status} {answer.reason}")
        return f"{answer.status} {answer.reason}"
    finally:
        connection.close()


def deliver_due() -> int:
    """Send what is due; how many were tried."""
    now = timezone.now()
    due = list(Delivery.objects.filter(due_at__lte=now).select_related("webhook").order_by("due_at")[:20])
    for delivery in due:
        # Taken before it is sent: another process leaves it alone, and a crash means one try less, not one for ever.
        again = now + AGAIN_AFTER[delivery.tries] if delivery.tries < len(AGAIN_AFTER) else None
        mine = Delivery.objects.filter(pk=delivery.pk, tries=delivery.tries)
        if mine.update(tries=F("tries") + 1, due_at=again):
            _deliver(delivery)
    Delivery.objects.filter(made_at__lt=now - KEPT).delete()
    return len(due)


def _deliver(delivery: Delivery) -> None:
    hook = delivery.webhook
    try:
        answer = post(hook.url, hook.secret, delivery.event, delivery.body)
    except NotAllowed as why:
        fields: dict[str, Any] = {"answer": str(why)[:200], "due_at": None}
    except (OSError, http.client.HTTPException) as error:
        fields = {"answer": (str(error) or type(error).__name__)[:200]}
    else:
        fields = {"answer": answer[:200], "due_at": None, "done_at": timezone.now()}
    Delivery.objects.filter(pk=delivery.pk).update(**fields)

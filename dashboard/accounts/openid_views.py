"""To the company's login and back. Where none is set these addresses do not exist."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from dashboard.accounts import openid

REFUSED = "The login at your company's provider did not let you in here. Ask whoever runs this server."


class _Ours:
    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        return openid.setting(attr, *args)


@method_decorator([login_not_required, never_cache], name="dispatch")
class _Start(_Ours, OIDCAuthenticationRequestView):
    pass


@method_decorator([login_not_required, never_cache], name="dispatch")
class _Callback(_Ours, OIDCAuthenticationCallbackView):
    def login_failure(self) -> HttpResponseBase:
        messages.error(self.request, REFUSED)
        return redirect("login")


@login_not_required
def start(request: HttpRequest) -> HttpResponseBase:
    if not openid.is_on():
        raise Http404("There is no such page.")
    try:
        return _Start.as_view()(request)
    except openid.ProviderAway as trouble:
        messages.error(request, f"Your company's login cannot be reached: {trouble}.")
        return redirect("login")


@login_not_required
def callback(request: HttpRequest) -> HttpResponseBase:
    if not openid.is_on():
        raise Http404("There is no such page.")
    try:
        return _Callback.as_view()(request)
    except SuspiciousOperation:  # a state that this browser did not begin with, or that was used already
        messages.error(request, "That login was over already, or began in another browser. Begin anew.")
        return redirect("login")

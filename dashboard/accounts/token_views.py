"""The account's page: its teams, and its API tokens, made and taken back."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.accounts import tokens
from dashboard.accounts.forms import TokenForm


@never_cache
@sensitive_variables("text")
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """A new token is shown in the answer to the form that made it, and nowhere else."""
    if request.method != "POST":
        return _page(request, TokenForm(request.user))
    form = TokenForm(request.user, request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    _, text = tokens.make(request.user, form.cleaned_data["name"], form.cleaned_data["scopes"])
    return _page(request, TokenForm(request.user), new_token=text, status=201)


@require_POST
def take_back(request: HttpRequest, token_id: int) -> HttpResponse:
    token = request.user.api_tokens.filter(pk=token_id).first()  # type: ignore[union-attr]  # logged in
    if token is None:
        raise Http404("There is no such token.")
    token.delete()
    messages.success(request, f"The token “{token.name}” no longer opens anything.")
    return redirect("account")


def _page(request: HttpRequest, form: TokenForm, new_token: str = "", status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "tokens": list(request.user.api_tokens.all()),  # type: ignore[union-attr]
        "memberships": list(request.user.memberships.select_related("team").order_by("team__name")),  # type: ignore[union-attr]
        "scopes": tokens.SCOPES,
        "new_token": new_token,
        "server": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "accounts/account.html", context, status=status)

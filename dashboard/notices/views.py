"""The page of notices, and a team's webhooks."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts.teams import team_and_role
from dashboard.notices import hooks, reading
from dashboard.notices.models import Webhook
from dashboard.roles import Role
from dashboard.runs import door

MOST_HOOKS = 10  # of a team
SHOWN_DELIVERIES = 20


class HookForm(forms.Form):
    url = forms.URLField(max_length=500, assume_scheme="https")

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            hooks.check_address(url)
        except hooks.NotAllowed as why:
            raise forms.ValidationError(f"This cannot be called: {why}.") from None
        return url


@never_cache
@require_safe
def notices(request: HttpRequest) -> HttpResponse:
    return render(request, "notices/notices.html", {"notices": reading.notices_of(request.user)[: reading.SHOWN]})


@require_POST
def read(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    if reading.read(user):
        door.tell_people([user.pk])
    return redirect("notices")


@never_cache
@sensitive_variables("secret")
def webhooks(request: HttpRequest, team_id: int) -> HttpResponse:
    """A new secret is shown in the answer to the form that made it, and nowhere else."""
    team, _ = team_and_role(request.user, team_id, needs=Role.OWNER)
    form, secret, status = HookForm(request.POST if request.method == "POST" else None), "", 200
    if request.method == "POST":
        if team.webhooks.count() >= MOST_HOOKS:
            form.add_error(None, f"{MOST_HOOKS} are as many as a team may have. Remove one first.")
        status = 422
        if form.is_valid():
            secret, status = secrets.token_urlsafe(32), 201
            Webhook.objects.create(team=team, url=form.cleaned_data["url"], secret=secret)
            form = HookForm()
    found = [(hook, list(hook.deliveries.all()[:SHOWN_DELIVERIES])) for hook in team.webhooks.all()]
    context = {"team": team, "hooks": found, "form": form, "secret": secret}
    return render(request, "notices/webhooks.html", context, status=status)


@require_POST
def remove_webhook(request: HttpRequest, team_id: int, hook_id: int) -> HttpResponse:
    team, _ = team_and_role(request.user, team_id, needs=Role.OWNER)
    if not team.webhooks.filter(pk=hook_id).delete()[0]:
        raise Http404("There is no such webhook.")
    messages.success(request, "Nothing is sent there any more.")
    return redirect("webhooks", team.pk)

"""Logging in and out, the first visit, coming in by an invitation, and another password."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dashboard.accounts import first_visit, openid, teams
from dashboard.accounts.forms import AccountForm, LoginForm, PasswordForm
from dashboard.roles import Role
from dashboard.runs import services

BY_PASSWORD = "django.contrib.auth.backends.ModelBackend"


@method_decorator(login_not_required, name="dispatch")
class Login(LoginView):
    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        provider = settings.CONF.oidc_name if openid.is_on() else ""
        return super().get_context_data(**kwargs) | {"nobody_yet": not first_visit.is_over(), "provider": provider}

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = 429 if form.waits else 422
        return response


@login_not_required
@never_cache
@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "POST"])
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    """Makes the owner's account. Once anybody has one, this address never existed."""
    if not first_visit.is_open_to(token):
        raise Http404("There is no such page.")
    form = AccountForm(request.POST or None)
    if request.method == "GET":
        return render(request, "accounts/welcome.html", {"form": form})
    if not form.is_valid():
        return render(request, "accounts/welcome.html", {"form": form}, status=422)
    with first_visit.claimed() as mine:
        if not mine:
            raise Http404("There is no such page.")
        owner = form.save(commit=False)
        owner.is_superuser = owner.is_staff = True
        owner.save()
    services.adopt(owner)
    login(request, owner, backend=BY_PASSWORD)
    return redirect("runs")


@login_not_required
@never_cache
@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "POST"])
def invited(request: HttpRequest, token: str) -> HttpResponse:
    """Into a team: with the account that is logged in, or with a new one."""
    invitation = teams.find_invitation(token)
    form = None if request.user.is_authenticated else AccountForm(request.POST or None)
    context = {"invitation": invitation, "form": form, "may": Role(invitation.role).may}
    if request.method == "GET":
        return render(request, "accounts/invited.html", context)
    if form is None:
        teams.accept(invitation, request.user)
        return redirect("team", invitation.team_id)
    if not form.is_valid():
        return render(request, "accounts/invited.html", context, status=422)
    with transaction.atomic():  # no account without the team: another may have been the last whom the link lets in
        user = form.save()
        teams.accept(invitation, user)
    login(request, user, backend=BY_PASSWORD)
    return redirect("team", invitation.team_id)


@never_cache
@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@require_http_methods(["GET", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Other browsers are logged out by it; tokens stay."""
    user: Any = request.user
    if not user.has_usable_password():
        raise Http404("Who logs in elsewhere has no password here.")
    form = PasswordForm(user, request.POST or None)
    if request.method == "GET":
        return render(request, "accounts/password.html", {"form": form})
    if not form.is_valid():
        return render(request, "accounts/password.html", {"form": form}, status=422)
    update_session_auth_hash(request, form.save())
    messages.success(request, "Your password is changed. Other browsers in which you were logged in are no longer.")
    return redirect("account")

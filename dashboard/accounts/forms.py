"""Logging in, a new account, another password, a new API token, a team and its invitations."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, UserCreationForm
from django.contrib.auth.models import User

from dashboard.accounts import teams, throttle, tokens
from dashboard.roles import Role


class LoginForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "This name and password do not belong together. Capital letters matter in both.",
        "inactive": "This account is switched off. Ask whoever runs this server.",
    }
    waits = False  # whether the attempt was refused unseen

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username") or ""
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        seconds = throttle.wait_seconds(name, address)
        if seconds:
            self.waits = True
            unit = "second" if seconds == 1 else "seconds"
            raise forms.ValidationError(f"There were several wrong passwords in a row. Try again in {seconds} {unit}.")
        try:
            cleaned = super().clean()
        except forms.ValidationError:
            if name and self.cleaned_data.get("password"):
                throttle.missed(name, address)
            raise
        if self.user_cache is not None:
            throttle.got_in(name, address)
        return cleaned


class AccountForm(UserCreationForm):
    class Meta(UserCreationForm.Meta):
        model = User
        fields = ("username",)


class PasswordForm(PasswordChangeForm):
    error_messages = PasswordChangeForm.error_messages | {"password_incorrect": "This is not the password that you have now."}

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        del self.fields["old_password"].widget.attrs["autofocus"]  # the page has a heading to begin at


class TokenForm(forms.Form):
    name = forms.CharField(max_length=60, error_messages={"required": "A name would do by which you know it again: ci, laptop."})
    scopes = forms.MultipleChoiceField(
        choices=list(tokens.SCOPES.items()), widget=forms.CheckboxSelectMultiple, initial=["read"],
        error_messages={"required": "A token that may do nothing is of no use: tick at least one."},
    )

    def __init__(self, user: Any, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._user = user

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self._user.api_tokens.count() >= tokens.MOST_TOKENS:
            raise forms.ValidationError(f"{tokens.MOST_TOKENS} tokens are as many as an account may have. Take one back first.")
        return cleaned


class TeamForm(forms.Form):
    name = forms.CharField(max_length=60, error_messages={"required": "A team has a name: compilers, the reading group."})

    def __init__(self, user: Any, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._user = user

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self._user.memberships.count() >= teams.MOST_TEAMS:
            raise forms.ValidationError(f"{teams.MOST_TEAMS} teams are as many as an account may be in. Leave one first.")
        return cleaned


class InviteForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices, initial=Role.VIEWER)
    days = forms.IntegerField(min_value=1, max_value=90, initial=7)
    most_uses = forms.IntegerField(min_value=1, max_value=200, initial=1)

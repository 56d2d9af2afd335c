"""Logging in, and the owner's first account."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, UserCreationForm
from django.contrib.auth.models import User

from dashboard.accounts import throttle


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


class OwnerForm(UserCreationForm):
    class Meta(UserCreationForm.Meta):
        model = User
        fields = ("username",)

"""Pages to learn from, open to everybody; to run what they show takes an account."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.learn.drawings import DRAWINGS, SKETCHES
from dashboard.learn.ideas import IDEAS, Idea
from dashboard.learn.numbers import NUMBERS
from dashboard.runs import services
from dashboard.runs.intake import checked, command_line


@login_not_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return render(request, "learn/index.html", {"ideas": [(one, *_drawn(one.key)) for one in IDEAS.values()]})


@login_not_required
@require_safe
def idea(request: HttpRequest, key: str) -> HttpResponse:
    found = _found(key)
    order = list(IDEAS.values())
    at = order.index(found)
    drawing, sketch = _drawn(key)
    return render(request, "learn/idea.html", {
        "idea": found, "prose": f"learn/ideas/{key}.html", "drawing": drawing, "sketch": sketch, "numbers": NUMBERS[key](),
        "command": command_line(found.spec), "number": at + 1, "count": len(order),
        "before": order[at - 1] if at else None, "after": order[at + 1] if at + 1 < len(order) else None,
    })


@require_POST
def start(request: HttpRequest, key: str) -> HttpResponse:
    """Launch the idea's job and open its page, where the idea's guide says what to look at."""
    run = services.launch(checked(_found(key).spec.model_dump()), request.user)
    return redirect(f"{reverse('run', args=[run.pk])}?learn={key}")


def _found(key: str) -> Idea:
    if key not in IDEAS:
        raise Http404("There is no such idea.")
    return IDEAS[key]


@lru_cache(maxsize=len(IDEAS))
def _drawn(key: str) -> tuple[Any, Any]:
    """The idea's drawing or its sketch, and None in place of the other."""
    return (DRAWINGS[key](), None) if key in DRAWINGS else (None, SKETCHES[key]())

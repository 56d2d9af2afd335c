"""The gallery of presets and the launch form."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.runs import forms, services
from dashboard.runs.access import access
from dashboard.runs.earlier import last_run_of
from dashboard.runs.intake import api_call, as_value, checked, same_preset, with_changes
from dashboard.runs.plan import plan
from dashboard.runs.sketch import sketch
from dashboard.runs.teams import asked_team, teams_of
from trainer.complaints import FieldError, SpecError
from trainer.presets import GROUPS, PRESETS, preset
from trainer.spec import JobSpec


@require_http_methods(["GET", "HEAD", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _launched(request)
    try:
        spec, source = _starting_point(request)
    except SpecError as error:
        return _page(request, forms.values_of(JobSpec()), error.errors, status=404)
    changes = _changes(request.GET)
    try:
        changed = checked(with_changes(spec.model_dump(), changes)) if changes else spec
    except SpecError as error:
        return _page(request, _overlaid(spec, changes), error.errors, status=422, source=source)
    return _page(request, forms.values_of(changed), [], spec=changed, source=source, changes=changes)


def _changes(asked: QueryDict) -> dict[str, Any]:
    """What the address sets on top of the starting point: `?from=…&schedule.name=gpipe`."""
    fields = {path.split(".")[0] for path in JobSpec.model_fields}
    return {path: as_value(str(text)) for path, text in asked.items() if path.split(".")[0] in fields}


def _overlaid(spec: JobSpec, changes: dict[str, Any]) -> dict[str, str]:
    named = {forms.field_name(path, spec.model.name): str(value) for path, value in changes.items()}
    return forms.values_of(spec) | {name: value for name, value in named.items() if name}


def _starting_point(request: HttpRequest) -> tuple[JobSpec, str]:
    """The job that the form shows first, and where it comes from."""
    if run_id := request.GET.get("from"):
        run = access(request.user, run_id).run
        return run.spec, f"{run.name} ({run.id})"
    if key := request.GET.get("preset"):
        return preset(key).spec, ""
    return next(iter(PRESETS.values())).spec, ""


def _launched(request: HttpRequest) -> HttpResponse:
    as_json = "json" in request.POST
    given = request.POST["json"] if as_json else forms.read(request.POST)
    try:
        spec = checked(given)
    except SpecError as error:
        values = forms.values_of(JobSpec()) if as_json else _posted(request.POST)
        return _page(request, values, error.errors, status=422, json_text=request.POST.get("json"))
    if request.POST.get("do") == "fill":
        return _page(request, forms.values_of(spec), [], spec=spec)
    try:
        team = asked_team(request.user, request.POST.get("team", ""))
    except SpecError as error:
        return _page(request, forms.values_of(spec), error.errors, status=422, spec=spec)
    return redirect("run", services.launch(spec, request.user, team=team).pk)


@require_POST
def check(request: HttpRequest) -> JsonResponse:
    """What the form, as it stands, would launch; asked for while one types."""
    try:
        spec = checked(forms.read(request.POST))
    except SpecError as error:
        return JsonResponse({"errors": [_for_form(one, request.POST) for one in error.errors]})
    found, before = plan(spec), last_run_of(spec, request.user)
    shown = {"plan": found, "before": before, "preset": same_preset(spec), "api_call": _api_call(request, spec)}
    html = render_to_string("runs/_plan.html", shown, request)
    told = {"run": before.pk, "step_seconds": before.step_seconds} if before else None
    return JsonResponse(found.as_dict() | {"before": told, "errors": [], "html": html, "json": _pretty(spec)})


def _for_form(error: FieldError, posted: QueryDict) -> dict[str, Any]:
    name = forms.field_name(error.field, posted.get("model.name") or "gpt")
    return error.as_dict() | {"field": name or error.field}


def _page(request: HttpRequest, values: dict[str, str], errors: list[FieldError], *, spec: JobSpec | None = None,
          source: str = "", changes: dict[str, Any] | None = None, status: int = 200,
          json_text: str | None = None) -> HttpResponse:
    if json_text is not None and errors:
        sections, homeless = forms.bound(values, [])[0], errors  # the file is at fault, not the form
    else:
        sections, homeless = forms.bound(values, errors)
    chosen = same_preset(spec) if spec else None
    context = {
        "gallery": [(name, [(one, _picture(one.key), one is chosen) for one in group]) for name, group in GROUPS.items()],
        "sections": sections,
        "errors": homeless,
        "failed": bool(errors),
        "teams": _teams(request),
        "plan": plan(spec) if spec else None,
        "before": last_run_of(spec, request.user) if spec else None,
        "preset": chosen,
        "api_call": _api_call(request, spec) if spec else "",
        "source": source,
        "changes": [(path, json.dumps(value, ensure_ascii=False)) for path, value in (changes or {}).items()],
        "json_text": json_text,
        "json_errors": json_text is not None and bool(errors),
        "spec_json": _pretty(spec) if spec else "",
    }
    return render(request, "runs/launch.html", context, status=status)


@lru_cache(maxsize=len(PRESETS))
def _picture(key: str) -> str:
    """A preset's sketch as markup: the gallery has dozens of them, and they are the same for everybody."""
    return render_to_string("runs/_sketch.html", {"sketch": sketch(PRESETS[key].spec), "stretched": True})


def _api_call(request: HttpRequest, spec: JobSpec) -> str:
    return api_call(spec, request.build_absolute_uri("/api/v1/runs"))


def _teams(request: HttpRequest) -> list[tuple[Any, bool]]:
    """Those that one may launch for, and which is chosen: as the last time."""
    user: Any = request.user
    last = user.runs.order_by("-created_at").values_list("team", flat=True).first()
    chosen = request.POST.get("team", str(last))
    return [(team, str(team.pk) == chosen) for team in teams_of(user)]


def _posted(posted: QueryDict) -> dict[str, str]:
    """Everything that was typed, right or wrong."""
    return {name: str(posted[name]) for name in forms.FIELDS if name in posted}


def _pretty(spec: JobSpec) -> str:
    return json.dumps(spec.model_dump(), indent=2, ensure_ascii=False)



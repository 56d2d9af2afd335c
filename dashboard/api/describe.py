"""The API's description (OpenAPI), and its reference page: Swagger UI from ninja's package, inside our page and CSP."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase
from ninja.openapi.schema import OpenAPISchema

from trainer.presets import PRESETS
from trainer.spec import JobSpec

_JOB = JobSpec.model_json_schema(ref_template="#/components/schemas/{model}")
_JOB_PARTS = _JOB.pop("$defs")
_PRESET = {
    "title": "A preset with changes",
    "type": "object",
    "required": ["preset"],
    "properties": {
        "preset": {"type": "string", "enum": list(PRESETS)},
        "set": {"type": "object", "description": "Dotted paths to values, such as `grid.pp`"},
    },
    "additionalProperties": False,
}
# The body is read by `trainer.spec.parse`, whose complaints say what would do.
LAUNCH_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [_PRESET, _JOB | {"title": "A JobSpec"}]},
                "example": {"preset": "pipeline-1f1b", "set": {"steps": 10}},
            }
        },
    }
}


_UNREADABLE = {
    "description": "The body is not JSON",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def answers_in(*content_types: str) -> dict[str, Any]:
    """For an operation's `openapi_extra`: what it answers is no JSON. Its response model is None then."""
    content = {one.partition(";")[0]: {"schema": {"type": "string"}} for one in content_types}
    return {"responses": {200: {"content": content}}}


class DescribedAPI(NinjaAPI):
    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        schema["components"]["schemas"] |= _JOB_PARTS
        for path in schema["paths"].values():
            for operation in path.values():
                if "requestBody" in operation:
                    operation["responses"][400] = _UNREADABLE
                _name_problems(operation["responses"])
        return schema


def _name_problems(responses: dict[int, dict[str, Any]]) -> None:
    """Refusals come with a content type of their own."""
    for response in responses.values():
        content = response.get("content", {})
        if content.get("application/json", {}).get("schema", {}).get("$ref", "").endswith("/Problem"):
            response["content"] = {"application/problem+json": content["application/json"]}


class Reference(DocsBase):
    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        settings = {
            "url": self.get_openapi_url(api, kwargs),
            "layout": "BaseLayout",
            "deepLinking": True,
            "validatorUrl": None,  # would send the address of this server to another
        }
        return render(request, "api/reference.html", {"settings": json.dumps(settings)})

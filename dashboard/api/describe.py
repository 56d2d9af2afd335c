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


class DescribedAPI(NinjaAPI):
    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        schema["components"]["schemas"] |= _JOB_PARTS
        return schema


class Reference(DocsBase):
    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        settings = {
            "url": self.get_openapi_url(api, kwargs),
            "layout": "BaseLayout",
            "deepLinking": True,
            "validatorUrl": None,  # would send the address of this server to another
        }
        return render(request, "api/reference.html", {"settings": json.dumps(settings)})

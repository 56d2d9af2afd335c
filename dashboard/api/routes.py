"""The HTTP API, version 1: what the pages do, for programs; by a token, or by a session and CSRF as on the pages."""

from __future__ import annotations

from dashboard.api import changing, commenting, exporting, listing, reading, teaming  # noqa: F401 (they add their operations to the router)
from dashboard.api.auth import Rate
from dashboard.api.bodies import Bodies
from dashboard.api.describe import DescribedAPI, Reference
from dashboard.api.problems import explain
from dashboard.api.router import router

api = DescribedAPI(
    title="Lockstep",
    version="1",
    description="Launch, follow, compare and export runs. A program sends a token of yours (from the account's page) as "
    "`Authorization: Bearer …`. A refusal is a problem (RFC 9457) with a list of `errors`: "
    "which field, what was given, and what would do.",
    throttle=[Rate()],
    docs=Reference(),
    parser=Bodies(),
    urls_namespace="api",
)
explain(api)
api.add_router("", router)

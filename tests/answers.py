"""What every address answers to everybody: a row an address, in the order of people.EVERYBODY."""

from dashboard.roles import Role
from tests.people import EVERYBODY

OK, MADE, EMPTY, FOUND, UNKNOWN, WRONG_METHOD, REFUSED, FORBIDDEN, LOGIN = 200, 201, 204, 302, 404, 405, 401, 403, "login"


def page(*accounts):
    """Answers of a page to owner, member, editor, viewer, outsider; strangers are sent to the login."""
    return (*accounts, LOGIN, LOGIN)


def api(*accounts):
    """The same for the API, which refuses strangers."""
    return (*accounts, REFUSED, REFUSED)


def anyone(answer):
    return (answer,) * len(EVERYBODY)


def of_run(kind, answer, needs=Role.VIEWER):
    """An address of the run: who has no part in it cannot tell it from none, who has too small a one is told so."""
    editor = answer if Role.EDITOR.allows(needs) else FORBIDDEN
    viewer = answer if Role.VIEWER.allows(needs) else FORBIDDEN
    return kind(answer, answer, editor, viewer, UNKNOWN)


def with_account(kind, answer):
    return kind(*(answer,) * 5)


POST_ONLY, API_POST_ONLY = with_account(page, WRONG_METHOD), anyone(WRONG_METHOD)
SEEN, API_SEEN = of_run(page, OK), of_run(api, OK)
LOGGED_IN, API_LOGGED_IN = with_account(page, OK), with_account(api, OK)

GET = {
    "login": (FOUND,) * 5 + (OK, OK),
    "logout": POST_ONLY,
    "welcome": anyone(UNKNOWN),
    "openid-start": anyone(UNKNOWN),  # no provider is set
    "openid-callback": anyone(UNKNOWN),
    "invited": anyone(OK),
    "account": LOGGED_IN,
    "password": LOGGED_IN,
    "token-take-back": POST_ONLY,
    "team": SEEN,
    "team-make": POST_ONLY,
    "team-invite": POST_ONLY,
    "invitation-take-back": POST_ONLY,
    "team-member": POST_ONLY,
    "webhooks": of_run(page, OK, Role.OWNER),
    "webhook-remove": POST_ONLY,
    "notices": LOGGED_IN,
    "notices-read": POST_ONLY,
    "runs": LOGGED_IN,
    "runs-bulk": POST_ONLY,
    "runs-save-view": POST_ONLY,
    "runs-forget-view": POST_ONLY,
    "runs-compare": SEEN,
    "runs-compare-loss": SEEN,
    "runs-compare-step": SEEN,
    "runs-rows": LOGGED_IN,
    "launch": LOGGED_IN,
    "learn": anyone(OK),
    "idea": anyone(OK),
    "idea-start": POST_ONLY,
    "launch-check": POST_ONLY,
    "run": SEEN,
    "run-stop": POST_ONLY,
    "run-change": POST_ONLY,
    "run-again": POST_ONLY,
    "run-exports": SEEN,
    "run-export": POST_ONLY,
    "run-export-file": with_account(page, UNKNOWN),  # none was made
    "run-give": POST_ONLY,
    "run-share": POST_ONLY,
    "run-take-back": POST_ONLY,
    "run-log": SEEN,
    "run-chart": SEEN,
    "run-panel": SEEN,
    "run-ideal": SEEN,
    "run-window": SEEN,
    "run-search": SEEN,
    "run-comments": SEEN,
    "shared-comments": anyone(UNKNOWN),  # this link is without them
    "shared-run": anyone(OK),
    "shared-run-log": anyone(OK),
    "shared-preview": anyone(OK),
    "embedded-run": anyone(OK),
    "shared-chart": anyone(OK),
    "shared-panel": anyone(OK),
    "shared-run-ideal": anyone(OK),
    "shared-window": anyone(OK),
    "shared-search": anyone(OK),
    "client": anyone(OK),
    "healthz": anyone(503),  # there is no Redis in unit tests
    "readyz": anyone(503),
    "metrics": anyone(OK),  # from this machine; test_operating asks from others
    "openapi-json": LOGGED_IN,
    "openapi-view": LOGGED_IN,
    "api-root": anyone(UNKNOWN),
    "presets": API_LOGGED_IN,
    "list_runs": API_LOGGED_IN,
    "launch_run": API_LOGGED_IN,  # the address of "list_runs"
    "me": API_LOGGED_IN,
    "workers": with_account(api, 503),
    "show": API_SEEN,
    "steps": API_SEEN,
    "log": API_SEEN,
    "picture": API_SEEN,
    "links": of_run(api, OK, Role.EDITOR),
    "compare": API_SEEN,
    "exports": API_SEEN,
    "bulk": API_POST_ONLY,
    "list_views": API_LOGGED_IN,
    "save_view": API_LOGGED_IN,  # the address of "list_views"
    "forget_view": API_POST_ONLY,
    "list_notices": API_LOGGED_IN,
    "read_notices": API_POST_ONLY,
    "make_team": API_POST_ONLY,
    "show_team": API_SEEN,
    "set_role": API_POST_ONLY,
    "remove_member": API_POST_ONLY,
    "invite": API_POST_ONLY,
    "take_invitation_back": API_POST_ONLY,
    "hooks": of_run(api, OK, Role.OWNER),
    "add_hook": of_run(api, OK, Role.OWNER),  # the address of "hooks"
    "remove_hook": API_POST_ONLY,
    "make": API_POST_ONLY,
    "export_file": with_account(api, UNKNOWN),
    "comments": API_SEEN,
    "comment": API_SEEN,  # the address of "comments"
    "edit_comment": API_POST_ONLY,
    "delete_comment": API_POST_ONLY,
    "stop": API_POST_ONLY,
    "again": API_POST_ONLY,
    "restore": API_POST_ONLY,
    "give": API_POST_ONLY,
    "take_back": API_POST_ONLY,
    "change": API_SEEN,  # the address of "show"
    "delete": API_SEEN,
    "share": of_run(api, OK, Role.EDITOR),  # the address of "links"
}
# What a POST answers, where there is one.
POST = {
    "logout": with_account(page, FOUND),
    "welcome": anyone(UNKNOWN),
    "invited": (FOUND,) * 5 + (422, 422),
    "launch": with_account(page, FOUND),
    "launch-check": LOGGED_IN,
    "idea-start": with_account(page, FOUND),
    "account": with_account(page, 422),
    "password": with_account(page, 422),
    "token-take-back": page(UNKNOWN, FOUND, UNKNOWN, UNKNOWN, UNKNOWN),  # the member's
    "team-make": with_account(page, FOUND),
    "team-invite": of_run(page, MADE, Role.OWNER),
    "invitation-take-back": of_run(page, FOUND, Role.OWNER),
    "team-member": of_run(page, FOUND, Role.OWNER),
    "webhooks": of_run(page, MADE, Role.OWNER),
    "webhook-remove": of_run(page, FOUND, Role.OWNER),
    "notices-read": with_account(page, FOUND),
    "runs-bulk": with_account(page, FOUND),  # in silence: which of the runs are there is secret
    "runs-save-view": with_account(page, FOUND),
    "runs-forget-view": page(UNKNOWN, FOUND, UNKNOWN, UNKNOWN, UNKNOWN),  # the member's
    "run-stop": of_run(page, FOUND, Role.EDITOR),
    "run-change": of_run(page, FOUND, Role.EDITOR),
    "run-again": of_run(page, FOUND),
    "run-export": of_run(page, FOUND),
    "run-give": of_run(page, FOUND, Role.OWNER),
    "run-share": of_run(page, FOUND, Role.EDITOR),
    "run-take-back": of_run(page, FOUND, Role.EDITOR),
    "make": of_run(api, OK),
    "again": of_run(api, MADE),
    "comment": of_run(api, MADE),
    "restore": with_account(api, UNKNOWN),  # it was not deleted
    "stop": of_run(api, OK, Role.EDITOR),
    "share": of_run(api, MADE, Role.EDITOR),
    "bulk": with_account(api, OK),  # which of the runs are there it says of each
    "launch_run": with_account(api, MADE),
    "save_view": with_account(api, MADE),
    "read_notices": with_account(api, OK),
    "make_team": with_account(api, MADE),
    "invite": of_run(api, MADE, Role.OWNER),
    "add_hook": of_run(api, MADE, Role.OWNER),
    "shared-run": anyone(WRONG_METHOD),
    "shared-run-log": anyone(WRONG_METHOD),
}
OPEN_POSTS = {"welcome", "invited", "shared-run", "shared-run-log"}  # those that ask for no login
SOCKETS = {"ws/runs/<str:run_id>/", "ws/s/<str:token>/", "ws/news/"}

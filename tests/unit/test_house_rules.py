"""Rules of the house that a linter does not know."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for pattern in ("*.py", "*.js", "*.css", "*.html")
    for folder in ("dashboard", "workers", "trainer", "static", "templates", "tests")
    for path in (ROOT / folder).rglob(pattern)
    if "migrations" not in path.parts and "vendor" not in path.parts
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_holds_one_thing_in_under_300_lines(path):
    assert len(path.read_text().splitlines()) < 300


@pytest.mark.parametrize("module", ["dashboard.asgi", "workers.app", "workers.tasks", "workers.record", "dashboard.exporting"])
def test_server_and_workers_never_load_torch(module, tmp_path):
    """A process that loads torch starts seconds later and holds hundreds of megabytes more."""
    check = (
        "import sys, importlib, django\n"
        "django.setup()\n"
        f"importlib.import_module({module!r})\n"
        "from django.urls import get_resolver; get_resolver().url_patterns\n"
        "print([name for name in ('torch', 'sklearn') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={"PATH": "/usr/bin:/bin", "DJANGO_SETTINGS_MODULE": "dashboard.settings", "LOCKSTEP_HOME": str(tmp_path)},
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_top_level_is_the_fixed_one():
    expected = {"dashboard", "workers", "trainer", "static", "templates", "tests"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout, so nothing says which folders belong to it")
    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}
    assert folders - {".ci"} == expected

"""Models, queries and services on a real Postgres, in a process of its own whose settings lead there."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.postgres import refusal, running_postgres
from tests.stack.stack import ROOT

pytestmark = [pytest.mark.stack, pytest.mark.skipif(bool(refusal()), reason=refusal())]

# Whatever filters, sorts, counts, locks, or reads JSON in the database.
FILES = (
    "test_models", "test_query", "test_services", "test_curation", "test_views_list", "test_comments", "test_notices",
    "test_teams", "test_links", "test_reap", "test_operating", "test_prune", "test_comparison", "test_api",
)


def test_models_and_queries_work_on_postgres():
    with tempfile.TemporaryDirectory(prefix="lockstep-postgres-") as folder:
        os.chmod(folder, 0o755)  # its server runs as another user than root
        with running_postgres(Path(folder)) as url:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/unit/{name}.py" for name in FILES)],
                cwd=ROOT, env={**os.environ, "LOCKSTEP_TEST_DATABASE": url}, capture_output=True, text=True, timeout=900,
            )
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout.splitlines()[-1]

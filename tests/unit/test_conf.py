import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dashboard import conf

ROOT = Path(__file__).parents[2]


def manage(*arguments, **environment):
    clean = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "dashboard.settings", **environment}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=60)


def test_a_secret_is_made_once_and_only_its_owner_can_read_it(tmp_path):
    path = tmp_path / "home" / "secret-key"
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: conf.kept_secret(path), range(32)))
    assert len(secrets) == 1 and len(secrets.pop()) > 40
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["secret-key"]


def test_a_home_that_cannot_be_written_is_said_in_a_line(tmp_path):
    (tmp_path / "file").write_text("")
    done = manage("check", LOCKSTEP_HOME=str(tmp_path / "file" / "home"))
    assert done.returncode == 2
    assert "LOCKSTEP_HOME has to be a folder of your own" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name, value", [
    ("LOCKSTEP_MOST_RANKS", "many"), ("LOCKSTEP_FLUSH_MS", "1"), ("LOCKSTEP_DEVICES", "tpu"),
    ("LOCKSTEP_LOG_FORMAT", "xml"),
])
def test_a_setting_that_cannot_be_used_is_named(tmp_path, name, value):
    done = manage("check", LOCKSTEP_HOME=str(tmp_path), **{name: value})
    assert done.returncode == 2 and name in done.stderr and value in done.stderr
    assert "Traceback" not in done.stderr


def test_a_token_that_could_be_guessed_is_refused_and_not_repeated(tmp_path):
    done = manage("check", LOCKSTEP_HOME=str(tmp_path), LOCKSTEP_METRICS_TOKEN="hunter2")
    assert done.returncode == 2 and "LOCKSTEP_METRICS_TOKEN has 7 characters" in done.stderr
    assert "hunter2" not in done.stderr

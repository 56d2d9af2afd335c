"""`up`, `launch` and `doctor` as a person types them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.stack.home import ROOT, clean_environment
from tests.stack.stack import processes_of, running_stack, wait_for

pytestmark = pytest.mark.stack

PROMISED = {
    "run", "url", "state", "ranks", "steps", "spans", "dropped_spans", "bubble_share", "bubble_share_theory",
    "loss_first", "loss_last", "step_seconds", "step_seconds_theory", "realtime", "wall_seconds",
}


def manage(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=clean_environment(home, **environment), capture_output=True, text=True, timeout=120
    )


def _heed_interrupts() -> None:
    """A shell lets what it runs in the background ignore them, and all that these tests start with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def a_waiting_launch(environment: dict[str, str], stderr: IO[str] | int) -> Iterator[subprocess.Popen[str]]:
    """`launch --wait` of a run that would take half an hour, in a session of its own as under a terminal."""
    command = [sys.executable, str(ROOT / "manage.py"), "launch", "pipeline-1f1b", "--set", "steps=2000", "--wait", "--json"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True,
        preexec_fn=_heed_interrupts,
    ) as waiting:
        try:
            yield waiting
        finally:
            waiting.kill()


def test_up_names_a_port_in_use_and_what_would_do(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = manage(tmp_path, "up", "--port", str(port))
    assert done.returncode == 2 and done.stdout == ""
    assert f"Port {port} on 127.0.0.1 is in use" in done.stderr and "--port" in done.stderr


def test_up_in_a_home_that_has_a_stack_says_where_it_is(stack):
    done = stack.manage("up", "--port", "0", status=2)
    assert f"A stack runs already in {stack.home} at {stack.url} (process {stack.process.pid})" in done.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/0", "localhost:6379"])
def test_up_refuses_what_is_no_address_of_redis(tmp_path, url):
    done = manage(tmp_path, "up", "--port", "0", REDIS_URL=url)
    assert done.returncode == 2 and "redis://host:6379/0 would do" in done.stderr


def test_up_waits_for_redis_a_while_and_then_says_what_to_do(tmp_path):
    started_at = time.monotonic()
    done = manage(tmp_path, "up", "--port", "0", REDIS_URL="redis://127.0.0.1:1/0")
    assert done.returncode == 2 and 10 < time.monotonic() - started_at < 30
    assert "no answer yet" in done.stdout and "unset it" in done.stderr
    assert not processes_of(tmp_path)


def test_up_says_how_every_part_is_and_prints_the_first_visit_last(stack):
    lines = stack.output.read_text().splitlines()
    for part in ("redis", "web", "worker", "recorder"):
        assert any(line.startswith(f"{part:<9} ready") and "pid" in line for line in lines), lines
    greeting = lines.index(f"Lockstep is at {stack.url}/")
    assert lines[greeting + 1].startswith(f"First visit, to make the owner's account: {stack.url}/welcome/")
    assert (stack.home / "redis-url").stat().st_mode & 0o777 == 0o600


def test_a_part_that_dies_is_started_again_where_it_was(stack):
    before, url = stack.pid_of("web"), stack.url
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: "web       down" in stack.output.read_text(), 5, "a line on its death")
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=5):
        pass  # its port refuses nobody meanwhile
    wait_for(lambda: stack.output.read_text().count("web       ready") >= 2, 20, "it to be back")
    assert stack.pid_of("web") != before


def test_a_worker_that_hangs_while_idle_is_started_again(stack):
    worker = stack.pid_of("worker")
    os.kill(worker, signal.SIGSTOP)
    wait_for(lambda: "worker    stalled" in stack.output.read_text(), 40, "it to be found out")
    run_id = stack.launch("pipeline-1f1b", "steps=1")
    assert stack.wait_for_state(run_id, "finished", "failed", "lost")["state"] == "finished"
    assert stack.pid_of("worker") != worker


def test_doctor_finds_a_running_stack_well(stack):
    report = json.loads(stack.manage("doctor", "--json").stdout)
    levels = {check["name"]: check["level"] for check in report["checks"]}
    assert report["ok"]
    assert {name for name, level in levels.items() if level != "ok"} <= {"real-time class", "GPUs", "Chromium", "memory"}


def test_doctor_fails_with_advice_where_redis_is_away(tmp_path):
    done = manage(tmp_path, "doctor", REDIS_URL="redis://127.0.0.1:1/0")
    assert done.returncode == 1
    assert "fail  Redis" in done.stdout and "correct REDIS_URL" in done.stdout


def test_launch_waits_and_prints_one_object_with_all_that_is_promised(stack):
    done = stack.manage("launch", "pipeline-1f1b", "--set", "steps=3", "--wait", "--json")
    result = json.loads(done.stdout)
    assert set(result) >= PROMISED and result["state"] == "finished" and result["dropped_spans"] == 0
    assert result["url"] == f"{stack.url}/runs/{result['run']}/" and result["ranks"] == 4 and result["spans"] > 0
    assert all(result[name] is not None for name in PROMISED), result
    assert "step" in done.stderr


def test_launch_says_by_its_status_that_a_run_was_stopped(stack):
    with a_waiting_launch(stack.environment, stderr=subprocess.PIPE) as waiting:
        run_id = wait_for(lambda: stack.python("[run.pk for run in Run.objects.filter(state='running')]"), 60, "its run")[0]
        stack.stop_run(run_id)
        out, _progress = waiting.communicate(timeout=60)
    assert waiting.returncode == 3 and json.loads(out)["state"] == "stopped"


def test_an_interrupted_launch_leaves_the_run_to_the_stack(stack):
    with a_waiting_launch(stack.environment, stderr=subprocess.PIPE) as waiting:
        run_id = wait_for(lambda: stack.python("[run.pk for run in Run.objects.filter(state='running')]"), 60, "its run")[0]
        waiting.send_signal(signal.SIGINT)
        out, progress = waiting.communicate(timeout=20)
    assert waiting.returncode == 130 and out == "" and "the run goes on" in progress
    assert stack.run(run_id)["state"] == "running"
    stack.stop_run(run_id)
    stack.wait_for_state(run_id, "stopped")


def test_launch_gives_the_run_to_whom_it_is_told_to(stack):
    stack.create_user("ada")
    stack.create_user("ben", is_superuser=False)
    owner = "Run.objects.get(pk={!r}).owner.username"
    mine = stack.launch("pipeline-1f1b", "steps=1")
    bens = json.loads(stack.manage("launch", "pipeline-1f1b", "--set", "steps=1", "--json", "--as", "ben").stdout)["run"]
    assert stack.python(owner.format(mine)) == "ada" and stack.python(owner.format(bens)) == "ben"
    assert "there is no user 'eve'" in stack.manage("launch", "pipeline-1f1b", "--as", "eve", status=2).stderr


def test_launch_refuses_field_by_field_before_anything_starts(tmp_path):
    done = manage(tmp_path, "launch", "pipeline-1f1b", "--set", "steps=0", "--set", "grid.zz=1", "--json")
    assert done.returncode == 2 and done.stdout == ""
    assert "steps: 0 was given: 1 or more would do" in done.stderr and "grid.zz" in done.stderr
    assert not (tmp_path / "stack.lock").exists()


def test_launch_without_a_stack_brings_its_own_and_takes_it_away(tmp_path):
    done = manage(tmp_path, "launch", "pipeline-1f1b", "--set", "steps=3", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["state"] == "finished" and result["spans"] > 0
    assert not processes_of(tmp_path)


def test_an_interrupted_launch_with_its_own_stack_stops_the_run(tmp_path):
    with (tmp_path / "err").open("w+") as progress, a_waiting_launch(clean_environment(tmp_path), stderr=progress) as waiting:
        wait_for(lambda: "running, step" in (tmp_path / "err").read_text(), 90, "its run to run")
        os.killpg(waiting.pid, signal.SIGINT)  # as a terminal does
        out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 3 and json.loads(out)["state"] == "stopped", (tmp_path / "err").read_text()
    assert not processes_of(tmp_path)


def test_a_redis_of_ones_own_is_used_and_left_alone(stack):
    with running_stack("--no-worker", REDIS_URL=stack.redis_url) as guest:
        assert guest.redis_url == stack.redis_url and "redis" in guest.output.read_text()
    assert stack.client.ping()

"""What `manage.py doctor` looks at: each check says how a part is and, when it is not well, what to do."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from packaging.requirements import Requirement

from dashboard.conf import ROOT
from dashboard.runs import fleet, kept
from dashboard.stack import valkey
from dashboard.stack.files import running
from dashboard.stack.health import recorder_pid
from trainer.privileges import realtime_refusal
from trainer.trace import packer

OK, WARN, FAIL = "ok", "warn", "fail"
_GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    name: str
    level: str  # OK, WARN or FAIL
    words: str
    advice: str = ""


def examine(port: int) -> Iterator[Finding]:
    """All checks, in the order in which a person would mend things."""
    checks: tuple[Callable[[], Finding], ...] = (
        _python, _packages, _torch, _home, _storage, _database, _redis, lambda: _port(port), _worker, _recorder, _packer,
        _realtime, _cores, _memory, _gpus, _chromium,
    )
    for check in checks:
        yield check()


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] == (3, 11):
        return Finding("Python", OK, found)
    return Finding("Python", FAIL, f"{found}, but Lockstep is made for 3.11", "Make the environment with 3.11: `make setup`.")


def _packages() -> Finding:
    import tomllib

    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wrong = []
    for requirement in map(Requirement, wanted):
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} is {version}, not {requirement.specifier}")
    if wrong:
        return Finding("packages", FAIL, "; ".join(wrong), "Run `make setup`.")
    return Finding("packages", OK, f"{len(wanted)} as they should be")


def _torch() -> Finding:
    """In a process of its own: torch never loads into this one."""
    code = "import torch, torch.distributed as d; print(torch.__version__, d.is_available() and d.is_gloo_available())"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return Finding("torch", FAIL, "does not load within two minutes", "See whether the disk or the machine is overloaded.")
    if done.returncode:
        return Finding("torch", FAIL, (done.stderr.strip().splitlines() or ["it does not load"])[-1], "Run `make setup`.")
    version, has_gloo = done.stdout.split()[-2:]
    if has_gloo != "True":
        return Finding("torch", FAIL, f"{version} was built without gloo", "Install the build that `make setup` installs.")
    return Finding("torch", OK, version)


def _home() -> Finding:
    home: Path = settings.CONF.home
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = home / f".doctor-{os.getpid()}"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        return Finding("home folder", FAIL, f"{home}: {error.strerror}", "Make it writable, or set LOCKSTEP_HOME to one that is.")
    free_gib = shutil.disk_usage(home).free / _GIB
    if home.stat().st_mode & 0o077:
        return Finding("home folder", WARN, f"others on this machine can look into {home}", f"Run `chmod 700 {home}`.")
    if free_gib < 2:
        return Finding("home folder", WARN, f"{home} has {free_gib:.1f} GiB left", "Runs are kept there: make room.")
    return Finding("home folder", OK, f"{home}, {free_gib:.0f} GiB free")


def _storage() -> Finding:
    if not kept.is_set():
        return Finding("storage", OK, "sealed runs stay in the home folder")
    place = settings.CONF.storage
    try:
        kept.probe()
    except kept.StorageAway as away:
        return Finding("storage", FAIL, str(away), f"Correct LOCKSTEP_STORAGE={place}; a bucket needs the extra s3 too.")
    return Finding("storage", OK, f"sealed runs are kept in {place}, which takes and gives back")


def _database() -> Finding:
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return Finding("database", FAIL, str(error), "Start the database, or correct DATABASE_URL; without it SQLite is used.")
    if missing:
        return Finding("database", WARN, f"{len(missing)} migrations to do", "`manage.py up` does them, or `manage.py migrate`.")
    return Finding("database", OK, f"{connection.vendor}, all migrations done")


def _redis() -> Finding:
    url = settings.CONF.redis_url
    if not url:
        try:
            return Finding("Redis", OK, f"none runs; `manage.py up` starts {valkey.server()}")
        except valkey.NoServer as error:
            return Finding("Redis", FAIL, "none runs and none can be started", str(error))
    try:
        info = redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3).info("server")
    except (redis.RedisError, ValueError) as error:
        if not settings.CONF.redis_given and running(settings.CONF.home) is None:
            return Finding("Redis", OK, "none runs: the last stack was killed; `manage.py up` starts a new one")
        return Finding("Redis", FAIL, str(error), "Start it, correct REDIS_URL, or unset it to use Lockstep's own.")
    return Finding("Redis", OK, f"answers, version {info.get('valkey_version') or info.get('redis_version')}")


def _port(port: int) -> Finding:
    stack = running(settings.CONF.home)
    if stack:
        return Finding("address", OK, f"a stack runs at {stack.url}")
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        return Finding("address", WARN, f"port {port}: {error.strerror}", "Start with another: `manage.py up --port 8001`.")
    return Finding("address", OK, f"port {port} is free")


def _worker() -> Finding:
    advice = "`manage.py up` starts one; so does `celery -A workers.app worker`."
    try:
        there = fleet.workers() if settings.CONF.redis_url else []
    except fleet.FleetUnknown:
        return Finding("worker", WARN, "nobody knows: Redis does not answer", advice)
    if not there:
        return Finding("worker", WARN, "none is there; runs would wait in the queue", advice)
    return Finding("worker", OK, ", ".join(f"{worker.name} ({', '.join(worker.devices)})" for worker in there))


def _recorder() -> Finding:
    advice = "`manage.py up` starts one; so does `manage.py record`."
    url = settings.CONF.redis_url
    try:
        pid = recorder_pid(redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)) if url else None
    except redis.RedisError:
        return Finding("recorder", WARN, "nobody knows: Redis does not answer", advice)
    if pid is None:
        return Finding("recorder", WARN, "none is there; runs would be live but not kept", advice)
    return Finding("recorder", OK, f"process {pid}")


def _packer() -> Finding:
    if packer.IS_COMPILED:
        return Finding("packer of spans", OK, "compiled")
    return Finding("packer of spans", WARN, "not compiled; recording takes a job several times as long",
                   "Install a C compiler and Python's headers (gcc, python3.11-dev), then run `make setup`.")


def _realtime() -> Finding:
    refusal = realtime_refusal()
    if refusal:
        return Finding("real-time class", WARN, f"refused: {refusal}; paced ranks will be less exact, and the page says so",
                       "Give the worker CAP_SYS_NICE, or an rtprio limit in /etc/security/limits.conf.")
    return Finding("real-time class", OK, "granted to paced ranks")


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        return Finding("cores", WARN, "1", "Ranks share it with the server; two or more are better.")
    return Finding("cores", OK, str(cores))


def _memory() -> Finding:
    fields = dict(text.split(":", 1) for text in Path("/proc/meminfo").read_text().splitlines())
    free_gib = int(fields["MemAvailable"].split()[0]) * 1024 / _GIB
    if free_gib < 2:
        return Finding("memory", WARN, f"{free_gib:.1f} GiB free", "A rank takes about 0.2 GiB; run fewer at once.")
    return Finding("memory", OK, f"{free_gib:.1f} GiB free")


def _gpus() -> Finding:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return Finding("GPUs", OK, "none found; jobs run on the CPU")
    try:
        done = subprocess.run([smi, "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
        names = done.stdout.strip().splitlines() if done.returncode == 0 else []
    except subprocess.TimeoutExpired:
        names = []
    if not names:
        return Finding("GPUs", WARN, "nvidia-smi finds none", "See to the driver, or go on with the CPU.")
    return Finding("GPUs", OK, ", ".join(names))


def _chromium() -> Finding:
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return Finding("Chromium", OK, f"{found}, for the browser tests")
    return Finding("Chromium", WARN, "not found; only the browser tests need it", "Install the system's package `chromium`.")

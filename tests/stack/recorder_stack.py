"""A Valkey, a database and recorders in processes of their own, for tests of the recorder."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from tests.stack.home import ROOT, clean_environment, give_database
from tests.valkey import port_of, start_valkey
from trainer.folder import run_folder, spill_file, store_folder
from trainer.spec import GridSpec, JobSpec, ScheduleSpec
from trainer.trace.sinks import RedisSink
from trainer.trace.store import StoreReader
from trainer.trace.stream import EVENT, LIVE_RUNS, RECORDER, frames_key
from trainer.trace.writer import Writer

SPEC = JobSpec(grid=GridSpec(pp=4), schedule=ScheduleSpec(name="gpipe", micro_batches=8), steps=30)


def until(what: str, condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What `condition` returns once that is true."""
    give_up = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < give_up, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return found


class RecorderStack:
    def __init__(self, folder: Path, beside: Path | None = None):
        """`beside` is where Valkey and the log lie, if that is not to be the same disk as the home folder's."""
        self.home = folder / "home"
        beside = beside or folder
        self._valkey_folder = beside / "valkey"
        self.url, self.valkey = start_valkey(self._valkey_folder)
        self.client = redis.Redis.from_url(self.url, socket_timeout=5)
        self.env = clean_environment(self.home, REDIS_URL=self.url)
        self.recorders: list[subprocess.Popen[bytes]] = []
        self.log_file = beside / "recorder.log"
        self._log = self.log_file.open("ab")

    def make_runs(self, count: int = 1) -> list[str]:
        made = give_database(self.home, count, SPEC.to_json())
        self.client.sadd(LIVE_RUNS, *made)
        return made

    def start_recorder(self, *arguments: str) -> subprocess.Popen[bytes]:
        """`manage.py record`, or whatever else Python is to run in its place."""
        command = [sys.executable, *(arguments or ("manage.py", "record"))]
        recorder = subprocess.Popen(command, cwd=ROOT, env=self.env, stdout=self._log, stderr=self._log)
        self.recorders.append(recorder)
        return recorder

    def beat(self) -> dict[str, Any]:
        return json.loads(self.client.get(RECORDER) or "{}")

    def wait_for_beat_of(self, recorder: subprocess.Popen[bytes]) -> None:
        until("the recorder beats", lambda: self.beat().get("pid") == recorder.pid)

    def writer(self, run_id: str, rank: int) -> Writer:
        writer = Writer(rank, RedisSink(self.url, run_id), spill_file(run_folder(self.home, run_id), rank), flush_ms=5)
        writer.set_zero(0)
        return writer

    def spilled_bytes(self, run_id: str) -> int:
        """What writers have put on disk because Redis does not take it."""
        return sum(path.stat().st_size for path in spill_file(run_folder(self.home, run_id), 0).parent.glob("*"))

    def end(self, run_id: str) -> None:
        self.client.xadd(frames_key(run_id), {EVENT: json.dumps({"type": "end"})})

    def row(self, run_id: str) -> dict[str, Any]:
        """The run as the database has it."""
        with sqlite3.connect(self.home / "lockstep.sqlite3", timeout=10) as database:
            database.row_factory = sqlite3.Row
            row = dict(database.execute("select * from runs_run where id = ?", [run_id]).fetchone())
        return {**row, "figures": json.loads(row["figures"])}

    def wait_until_sealed(self, run_id: str) -> dict[str, Any]:
        until("the run is sealed", lambda: self.row(run_id)["sealed_at"], seconds=60)
        return self.row(run_id)

    def reader(self, run_id: str) -> StoreReader:
        return StoreReader(store_folder(run_folder(self.home, run_id)))

    def restart_valkey(self, while_away: Callable[[], None] = lambda: None) -> None:
        self.valkey.kill()
        self.valkey.wait()
        while_away()
        _, self.valkey = start_valkey(self._valkey_folder, port_of(self.url))

    def close(self) -> None:
        for process in [*self.recorders, self.valkey]:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        self._log.close()

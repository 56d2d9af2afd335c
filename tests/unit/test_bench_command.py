"""`manage.py bench`: one object with --json, and words when it cannot measure."""

import contextlib
import json
import os
import subprocess
import sys
import time

import pytest
from django.core.management import CommandError, call_command

from dashboard.bench import analysis, hta, live, overhead, place, presets, start
from dashboard.bench.server_cost import ServerCost
from dashboard.stack.own import NoStack


def test_json_is_one_object_and_nothing_else(monkeypatch, capsys):
    monkeypatch.setattr(start, "run", lambda options: {"warm_seconds": 0.5})
    call_command("bench", "start", "--json")
    assert json.loads(capsys.readouterr().out) == {"warm_seconds": 0.5}


def test_without_json_people_read_it(monkeypatch, capsys):
    monkeypatch.setattr(live, "run", lambda options: {"viewers": options["viewers"]})
    call_command("bench", "live", "--viewers", "3")
    assert capsys.readouterr().out.split() == ["viewers", "3"]


def test_presets_may_be_measured_one_by_one(monkeypatch, capsys):
    monkeypatch.setattr(presets, "run", lambda options: {"measured": options["preset"]})
    call_command("bench", "presets", "--preset", "tensor", "--preset", "experts", "--json")
    assert json.loads(capsys.readouterr().out) == {"measured": ["tensor", "experts"]}
    with pytest.raises(CommandError, match="invalid choice"):
        call_command("bench", "presets", "--preset", "tensors")


def test_how_far_a_steps_time_is_from_its_theory(monkeypatch):
    launched = []

    def launch(command, **_):
        launched.append(command[command.index("launch") + 1:])
        planned = 0.3 if "tensor" in command else None
        result = dict.fromkeys(presets._KEPT) | {"step_seconds": 0.33, "step_seconds_theory": planned}
        if "zero-1" in command:
            return subprocess.CompletedProcess(command, 2, "", "steps: 'x' was given")
        return subprocess.CompletedProcess(command, 0, json.dumps(result | {"state": "finished"}), "")

    monkeypatch.setattr(presets.subprocess, "run", launch)
    monkeypatch.setattr(presets, "own_place", lambda: contextlib.nullcontext((None, None, 0.0)))
    monkeypatch.setattr(presets, "wait_for_worker", lambda home: None)
    found = presets.run({"preset": ["tensor", "experts", "zero-1"], "set": ["steps=4"]})
    assert launched[0] == ["tensor", "--set", "steps=4", "--wait", "--json"]
    assert found["largest_step_off"] == found["presets"]["tensor"]["step_off"] == pytest.approx(0.1)
    assert found["presets"]["experts"]["step_off"] is None, "at the real pace nothing was planned"
    assert found["unfinished"] == ["zero-1"] and found["presets"]["zero-1"]["reason"] == "steps: 'x' was given"


@pytest.mark.parametrize("trouble", [place.CannotMeasure("Playwright is missing"), NoStack("No stack answers")])
def test_what_it_lacks_is_said_on_standard_error(monkeypatch, capsys, trouble):
    def cannot(options):
        raise trouble

    monkeypatch.setattr(live, "run", cannot)
    with pytest.raises(SystemExit) as ended:
        call_command("bench", "live", "--json")
    out, err = capsys.readouterr()
    assert ended.value.code == 2 and out == "" and str(trouble) in err


def test_a_missing_playwright_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    with pytest.raises(place.CannotMeasure, match="Playwright is missing"), place.browser():
        pass


def test_a_missing_chromium_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(place.CannotMeasure, match="Chromium"), place.browser():
        pass


def test_a_bench_needs_a_page_to_measure():
    with pytest.raises(place.CannotMeasure):
        live.run({"viewers": 0, "rate": None})


def test_a_missing_viztracer_is_named(monkeypatch):
    monkeypatch.setattr(overhead, "find_spec", lambda name: None)
    with pytest.raises(place.CannotMeasure, match="viztracer is missing"):
        overhead.run({})


def test_what_a_server_costs_is_counted_from_when_one_begins(monkeypatch):
    cost = ServerCost(os.getpid())
    _burn(0.3)
    cost.begin()
    kept = bytearray(50_000_000)
    kept[:] = b"x" * len(kept)
    _burn(0.5)
    cost.end()
    found = cost.per_viewer(4)
    grown_mb = found["server_mb_peak"] - found["server_mb_before"]
    assert grown_mb > 45 and found["server_mb_per_viewer"] == pytest.approx(grown_mb / 4, abs=0.1)
    assert 0.1 < found["server_cores"] < 2
    assert found["server_cores_per_viewer"] == pytest.approx(found["server_cores"] / 4, abs=1e-4)
    assert set(found) < set(live.KEYS) and all(key in live.HELP for key in live.KEYS)


def _burn(cpu_seconds):
    until = time.process_time() + cpu_seconds
    while time.process_time() < until:
        pass


def test_the_analysis_is_measured_also_where_nothing_stands_beside_it(monkeypatch, tmp_path):
    monkeypatch.setattr(hta, "FOLDER", tmp_path)
    found = analysis.run({"spans": 5000})
    assert found["spans"] >= 5000 and found["seconds"] > 0
    assert found["hta_seconds"] is None and "make readers" in found["hta_missing"]

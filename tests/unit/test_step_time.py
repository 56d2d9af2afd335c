"""A step's time of many micro-batches follows from shorter ones."""

from __future__ import annotations

from typing import Any

import pytest

from trainer import step_time
from trainer.presets import PRESETS, preset
from trainer.schedules.cuts import shares_of
from trainer.spec import JobSpec, parse
from trainer.step_time import StepTime

CHUNKS = {"gpipe": 1, "1f1b": 1, "zb-h1": 1, "dualpipe": 1, "interleaved": 2, "breadth-first": 2, "interleaved-zb": 2, "zb-v": 2,
          "dualpipe-v": 2, "naive": 1}
OWN = dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), "auto")


def job(name: str, micro_batches: int, size_factor: float = 40.0, **changes: Any) -> JobSpec:
    chunks = CHUNKS[name]
    return parse({
        "model": {"name": "gpt", "layers": 8 * chunks}, "grid": {"pp": 4, "dp": 2}, "batch": 2 * micro_batches,
        "schedule": {"name": name, "micro_batches": micro_batches, "chunks": chunks},
        "pace": {"kind": "paced", "forward_ms": 20.0, "backward_ms": 40.0}, "collectives": OWN,
        "links": {"kind": "modelled", "size_factor": size_factor}, "placement": {"gpus_per_server": 1}, "steps": 2,
    } | changes)


def played_ms(spec: JobSpec, monkeypatch: pytest.MonkeyPatch) -> float:
    """All of its micro-batches played, however many."""
    with monkeypatch.context() as patch:
        patch.setattr(step_time, "MOST_SIMULATED", 10**9)
        return StepTime(spec)._played_ms


@pytest.mark.parametrize("name", CHUNKS)
@pytest.mark.parametrize("more", [0, 4, 12])
def test_it_is_as_long_as_if_all_were_played(name: str, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job(name, 96 + more)
    time = StepTime(spec)
    assert time._is_long and time._messages_pass and len(shares_of(spec)) == 4 * CHUNKS[name]
    assert time.ms == pytest.approx(played_ms(spec, monkeypatch), rel=1e-12)


@pytest.mark.parametrize("mode", ["zero-2", "zero-3"])
def test_with_what_copies_share_in_every_micro_batch(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job("1f1b", 96, splits={"data": {"mode": mode}})
    assert StepTime(spec).ms == pytest.approx(played_ms(spec, monkeypatch), rel=1e-12)


@pytest.mark.parametrize("name", ["breadth-first", "interleaved", "1f1b"])
def test_where_messages_take_longer_than_actions_all_are_played(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job(name, 64, size_factor=4000.0)
    assert not StepTime(spec)._messages_pass
    assert StepTime(spec).ms == played_ms(spec, monkeypatch)


def test_a_step_too_long_to_play_follows_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job("interleaved-zb", 1024)
    assert not step_time._is_simulated(spec)
    assert StepTime(spec).ms == pytest.approx(played_ms(spec, monkeypatch), rel=1e-12)


def test_a_schedule_of_ones_own_is_played_as_it_is() -> None:
    own = next(one.spec for one in PRESETS.values() if one.spec.schedule.name == "csv")
    assert not StepTime(own)._is_long
    assert not StepTime(preset("pipeline-1f1b").spec)._is_long, "nor is a short one"

"""Whatever a JobSpec accepts can be planned and built, and what a refusal says would do, does."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.runs import forms
from dashboard.runs.sketch import sketch
from tests.any_spec import jobs, mended, specs
from trainer.emulate.durations import durations_ms
from trainer.models import model_of
from trainer.schedules import schedule_of
from trainer.schedules.cuts import layers_of, shares_of
from trainer.schedules.simulate import simulate
from trainer.schedules.theory import bubble_formula, bubble_share, ideal_formula
from trainer.schedules.validate import validate
from trainer.spec import JobSpec, parse
from trainer.training import Training

STABLE = settings(derandomize=True, database=None, deadline=None)


@settings(STABLE, max_examples=300)
@given(jobs, st.data())
def test_what_a_refusal_says_would_do_does(job: dict, data: st.DataObject) -> None:
    mended(job, lambda values: data.draw(st.sampled_from(values)))


@settings(STABLE, max_examples=200)
@given(specs(64))
def test_what_is_accepted_is_planned(spec: JobSpec) -> None:
    stages = spec.grid.pp * spec.schedule.chunks
    schedule = schedule_of(spec)
    validate(schedule, stages, spec.schedule.micro_batches, copies=spec.ways)
    assert (len(layers_of(spec)), sum(layers_of(spec))) == (stages, spec.model.layers)
    simulated = simulate(schedule, durations_ms(spec), shares=shares_of(spec)).bubble_share
    assert abs(bubble_share(spec) - simulated) < 1e-9
    assert bubble_formula(spec) and ideal_formula(spec)
    assert sketch(spec) is not None
    assert parse(forms.read(forms.values_of(spec))) == spec == parse(spec.to_json())


@settings(STABLE, max_examples=30)
@given(specs(4))
def test_what_is_accepted_is_built_by_every_rank(spec: JobSpec) -> None:
    torch.set_num_threads(1)
    parts = [Training(spec, rank, torch.device("cpu")) for rank in range(spec.ranks)]
    held = sum(parameter.numel() for part in parts for parameter in part.modules.parameters())
    model = model_of(spec)
    assert held >= sum(parameter.numel() for parameter in model.stage(0, model.layers).parameters()), "all of it is somewhere"

"""The launch form reads and shows every field of a JobSpec, and what a person gives becomes a job or a complaint."""

import shlex
from dataclasses import replace

import pytest

from dashboard.runs import forms, intake
from dashboard.stack.jobs import read_spec
from trainer.complaints import FieldError, SpecError
from trainer.presets import PRESETS
from trainer.spec import (
    ContextSplit,
    Gpt,
    GridSpec,
    JobSpec,
    Moe,
    OptimizerSpec,
    Pace,
    Perceptron,
    ScheduleSpec,
    SplitsSpec,
    TensorSplit,
    parse,
)

ODD = JobSpec(
    name="odd one", model=Gpt(layers=6, width=24, heads=4, context=24), grid=GridSpec(pp=3, dp=2, cp=3, tp=2),
    splits=SplitsSpec(tensor=TensorSplit(sequence_parallel=True), context=ContextSplit(order="zigzag")),
    schedule=ScheduleSpec(name="gpipe", micro_batches=5, split_backward=True, layers=(1, 2, 3)),
    optimizer=OptimizerSpec(name="sgd", learning_rate=0.123456789, warmup_steps=2, decay="cosine", final_share=0.25,
                            weight_decay=0.01, clip_norm=1.5),
    checkpointing="layer", pace=Pace(kind="paced", forward_ms=0.5, backward_ms=7.25),
    batch=20, steps=3, precision="float64", device="cuda", seed=12, timeout_seconds=61.5,
)
JOBS = [
    *(preset.spec for preset in PRESETS.values()), ODD, JobSpec(name="12"), JobSpec(model=Perceptron(hidden_layers=5, width=7)),
    JobSpec(model=Moe(experts=6, top_k=3, capacity_factor=0.75, balance=0.0), grid=GridSpec(ep=3), batch=24),
]


@pytest.mark.parametrize("spec", JOBS, ids=lambda spec: spec.name or spec.model.name)
def test_a_job_survives_the_way_through_the_form(spec):
    assert parse(forms.read(forms.values_of(spec))) == spec


def test_the_form_has_every_field():
    every = {path for model in (Gpt(), Moe(), Perceptron()) for path in intake.flat(JobSpec(model=model).model_dump())}
    assert {one.path for one in forms.FIELDS.values()} == every


@pytest.mark.parametrize("one", [one for one in forms.FIELDS.values() if one.options], ids=lambda one: one.name)
def test_every_value_of_a_choice_has_words(one):
    assert {value for value, _ in one.choices} == set(one.options)


def test_bounds_come_from_the_job():
    assert forms.FIELDS["grid.pp"].bounds == {"min": 1, "max": 1024, "step": 1}
    assert forms.FIELDS["optimizer.learning_rate"].bounds == {"min": 0, "max": 10, "step": "any"}
    assert forms.FIELDS["name"].bounds == {"maxlength": 120}


@pytest.mark.parametrize("name, given, complaint", [
    ("grid.pp", "three", "a whole number would do"),
    ("grid.pp", "2.5", "a whole number would do"),
    ("grid.pp", "", "a whole number would do"),
    ("grid.pp", "٣", "a whole number would do"),
    ("grid.pp", "9" * 5000, "a whole number would do"),
    ("grid.pp", "0", "1 or more would do"),
    ("grid.pp", "3", "4 layers do not divide into 3 stages; 1, 2 or 4 would do"),
    ("grid.tp", "3", "1, 2 or 4 would do"),
    ("grid.cp", "3", "a context of 32 does not divide among 3 ranks"),
    ("splits.context.order", "reverse", "would do"),
    ("schedule.layers", "1, 1, 1", "of 4 stages it names 3 and of 4 layers 3; 1, 1, 1, 1 would do"),
    ("schedule.layers", "1 1 1 1", "a whole number would do"),
    ("schedule.layers", "1, 2, , 1", "a whole number would do"),
    ("schedule.layers", "0, 1, 1, 2", "1 or more would do"),
    ("optimizer.warmup_steps", "30", "of 30 steps none would have the full rate; 29 or less would do"),
    ("optimizer.clip_norm", "-1", "0.0 or more would do"),
    ("steps", "1e6", "a whole number would do"),
    ("batch", "33", "do not divide a batch of 33; 32 or 40 would do"),
    ("optimizer.learning_rate", "nan", "a finite number would do"),
    ("optimizer.learning_rate", "1e999", "a finite number would do"),
    ("optimizer.learning_rate", "-1", "more than 0"),
    ("pace.forward_ms", "fast", "a number would do"),
    ("model.name", "llama", "would do"),
    ("model.gpt.heads", "5", "5 heads do not divide a width of 32"),
    ("schedule.name", "zigzag", "would do"),
    ("device", "tpu", "would do"),
    ("name", "x" * 121, "at most 120 characters would do"),
    ("name", "two\nlines", "a name of one line"),
])
def test_a_complaint_stands_beside_its_field_and_nothing_typed_is_lost(name, given, complaint):
    values = forms.values_of(PRESETS["pipeline-1f1b"].spec) | {name: given}
    with pytest.raises(SpecError) as refused:
        intake.checked(forms.read(values))
    sections, homeless = forms.bound(values, refused.value.errors)
    fields = {bound.field.name: bound for section in sections for bound in section.fields}
    assert homeless == []
    assert any(complaint in error for error in fields[name].errors)
    assert fields[name].value == given


def test_the_other_models_fields_are_not_read():
    values = forms.values_of(JobSpec(model=Perceptron())) | {"model.gpt.width": "nonsense"}
    assert parse(forms.read(values)).model == Perceptron()


def test_another_schedules_text_is_not_read():
    values = forms.values_of(PRESETS["pipeline-own"].spec) | {"schedule.name": "gpipe"}
    assert parse(forms.read(values)).schedule == ScheduleSpec(name="gpipe", micro_batches=8)


def test_complaints_without_a_field_of_the_form_are_kept():
    with pytest.raises(SpecError) as refused:
        intake.checked({"grid": {"ep": 2}, "colour": "red"})
    assert [error.field for error in forms.bound({}, refused.value.errors)[1]] == ["colour"]


def test_more_ranks_than_the_host_allows_are_refused_with_what_would_do(settings):
    settings.CONF = replace(settings.CONF, most_ranks=8)
    with pytest.raises(SpecError) as refused:
        intake.checked({"grid": {"dp": 12}, "batch": 96})
    (error,) = refused.value.errors
    assert error.field == "grid.dp"
    assert "12 ranks and this host runs at most 8 (LOCKSTEP_MOST_RANKS); 8 or fewer here would do" in error.message
    with pytest.raises(SpecError) as refused:
        intake.checked({"grid": {"pp": 4, "dp": 3}, "batch": 96})
    (error,) = refused.value.errors
    assert error.field == "grid.pp"
    assert "2 or fewer here would do" in error.message


@pytest.mark.parametrize("given, complaint", [
    ("{", "this is not JSON"),
    ("[" * 100_000, "this is not JSON"),
    ('{"steps": ' + "9" * 5000 + "}", "this is not JSON"),
    (b"\xff\xfe", "this is not JSON"),
    ("[1]", "a job is a JSON object"),
    ('{"steps": NaN}', "NaN is not a number a job can use"),
    ('{"steps": "3"}', "a whole number would do"),
    ('{"spteps": 3}', "there is no such field"),
    ('{"name": "\\ud800"}', ""),
    ('{"name": "\\u0000"}', "control characters"),
])
def test_a_file_that_is_no_job_is_refused(given, complaint):
    with pytest.raises(SpecError) as refused:
        intake.checked(given)
    assert complaint in str(refused.value)


def test_a_preset_with_changes():
    spec = intake.from_preset("pipeline-1f1b", {"grid.pp": 2, "steps": 5})
    assert (spec.grid.pp, spec.steps, spec.schedule.name) == (2, 5, "1f1b")
    assert intake.from_preset("ddp-digits", {"model.name": "gpt", "model.layers": 8}).model == Gpt(layers=8)


@pytest.mark.parametrize("key, changes, field", [
    ("pipeline-2f2b", None, "preset"),
    (7, None, "preset"),
    ("pipeline-1f1b", ["steps"], "set"),
    ("pipeline-1f1b", {"steps.more": 1}, "steps.more"),
    ("pipeline-1f1b", {"colour": 1}, "colour"),
    ("pipeline-1f1b", {"": 1}, ""),
])
def test_a_preset_that_is_none_and_changes_that_fit_nowhere_are_refused(key, changes, field):
    with pytest.raises(SpecError) as refused:
        intake.from_preset(key, changes)
    assert refused.value.errors[0].field == field


@pytest.mark.parametrize("spec", JOBS, ids=lambda spec: spec.name or spec.model.name)
def test_the_command_line_launches_the_same_job(spec):
    program, command, preset, *rest = shlex.split(intake.command_line(spec))
    assert (program, command) == ("manage.py", "launch")
    assert set(rest[::2]) <= {"--set"}
    assert read_spec(preset, rest[1::2]) == spec


def test_a_section_that_folds_is_open_where_something_is_not_as_it_comes():
    def folding(spec):
        sections = forms.bound(forms.values_of(spec), [])[0]
        return {one.section.key: one.changed for one in sections if one.section.folds and one.is_open}

    assert folding(JobSpec()) == {}
    assert folding(JobSpec(splits=SplitsSpec(tensor=TensorSplit(sequence_parallel=True)))) == {"splits": ["Sequence parallel"]}
    assert folding(JobSpec(optimizer=OptimizerSpec(name="sgd"))) == {"recipe": ["Optimizer"]}
    wrong = forms.bound(forms.usual_values(), [FieldError("links.slow_down", "0", "too few")])[0]
    (links,) = [one for one in wrong if one.section.key == "links"]
    assert links.is_open and not links.changed

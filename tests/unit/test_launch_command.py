"""What `manage.py launch` makes of what was typed."""

import io
import json
from dataclasses import replace

import pytest

from dashboard.stack.jobs import read_spec
from trainer.complaints import SpecError


def complaint(what, *changes):
    with pytest.raises(SpecError) as caught:
        read_spec(str(what), list(changes))
    return str(caught.value)


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "job.json"
        path.write_text(text)
        return path

    return write


def test_a_preset_with_changes():
    spec = read_spec("pipeline-1f1b", ["steps=3", "optimizer.name=sgd", "optimizer.learning_rate=0.5", 'name="mine"'])
    assert (spec.steps, spec.optimizer.name, spec.optimizer.learning_rate, spec.name) == (3, "sgd", 0.5, "mine")


def test_a_file_with_changes(file):
    spec = read_spec(str(file(json.dumps({"steps": 4, "grid": {"pp": 2}}))), ["grid.dp=2", "batch=64"])
    assert (spec.steps, spec.grid.pp, spec.grid.dp) == (4, 2, 2)


def test_an_unknown_preset_names_those_there_are():
    assert "pipeline-gpipe" in complaint("pipeline-2f2b")


def test_a_file_that_is_missing():
    assert "there is no such file" in complaint("jobs/mine.json")


def test_a_file_that_is_not_json(file):
    assert "is not JSON" in complaint(file("steps: 3"))


def test_a_file_that_is_not_an_object(file):
    assert "no JSON object" in complaint(file("[1, 2]"))


def test_unknown_keys_are_named(file):
    assert complaint(file('{"stepz": 3}')).startswith("stepz: 3 was given")
    assert complaint("pipeline-1f1b", "grid.zz=2").startswith("grid.zz: 2 was given")


def test_nan_and_infinity_are_refused(file):
    assert "optimizer.learning_rate" in complaint(file('{"optimizer": {"learning_rate": NaN}}'))
    assert "optimizer.learning_rate" in complaint("ddp-digits", "optimizer.learning_rate=Infinity")


def test_a_number_out_of_range_says_what_would_do():
    assert "steps: 0 was given: 1 or more would do" in complaint("pipeline-1f1b", "steps=0")


def test_every_field_at_fault_has_its_line():
    assert len(complaint("pipeline-1f1b", "steps=0", "batch=-1", "seed=x").splitlines()) == 3


def test_more_ranks_than_the_host_allows(settings):
    settings.CONF = replace(settings.CONF, most_ranks=3)
    assert "at most 3" in complaint("pipeline-1f1b")


def test_standard_input_with_changes(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"steps": 4, "grid": {"pp": 3}}'))
    assert read_spec("-", ["grid.pp=2"]).grid.pp == 2


def test_another_kind_of_model_starts_from_its_defaults():
    assert read_spec("ddp-digits", ["model.name=gpt"]).model.name == "gpt"


@pytest.mark.parametrize("change", ["steps", "=3", "steps.deep=3"])
def test_a_change_that_cannot_be_read(change):
    assert "was given" in complaint("pipeline-1f1b", change)

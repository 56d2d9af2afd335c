"""Every change of a run goes through services, and a state changes only from one that allows it."""

import pytest
from django.contrib.auth.models import User

from dashboard.runs import door, links, services
from dashboard.runs.models import ACTIVE, ENDED, Run, State
from trainer.presets import PRESETS
from trainer.spec import GridSpec, JobSpec, Perceptron

# Which states a run may go to from each.
ALLOWED = {
    State.QUEUED: {State.STARTING, State.STOPPED},
    State.STARTING: {State.RUNNING, State.STOPPING, State.FAILED, State.LOST},
    State.RUNNING: {State.STOPPING, State.FINISHED, State.FAILED, State.LOST},
    State.STOPPING: {State.STOPPED, State.FINISHED, State.FAILED, State.LOST},
    State.FINISHED: set(), State.FAILED: set(), State.STOPPED: set(), State.LOST: set(),
}


@pytest.fixture
def ticks(monkeypatch):
    """The runs whose viewers were told to look again, in order."""
    told: list[str] = []
    monkeypatch.setattr(door, "tell", told.append)
    return told


@pytest.fixture
def run(db, ticks):
    return services.launch(JobSpec(), None)


def state_of(run):
    return Run.objects.get(pk=run.pk).state


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_a_state_changes_only_from_one_that_allows_it(run, ticks, before, after):
    Run.objects.update(state=before)
    went = services.move(run.pk, after)
    assert went == (after in ALLOWED[before])
    assert state_of(run) == (after if went else before)
    assert (run.pk in ticks) == went


def test_a_run_is_claimed_by_one_worker(run):
    assert services.claim(run.pk, "w1")
    assert not services.claim(run.pk, "w2")
    found = Run.objects.get()
    assert (found.state, found.worker) == ("starting", "w1")
    assert found.started_at is not None


def test_a_stopped_run_cannot_be_claimed(run):
    assert services.stop(run.pk)
    assert not services.claim(run.pk, "w1")
    assert Run.objects.get().reason == "Stopped before it began."


@pytest.mark.parametrize("state", ACTIVE)
def test_an_active_run_is_asked_to_stop_once(run, state):
    Run.objects.update(state=state)
    assert services.stop(run.pk) == (state != State.STOPPING)
    assert state_of(run) == State.STOPPING


@pytest.mark.parametrize("state", ENDED)
def test_a_run_that_has_ended_cannot_be_stopped(run, state):
    Run.objects.update(state=state)
    assert not services.stop(run.pk)
    assert state_of(run) == state


def test_the_end_has_a_time_and_a_reason(run):
    services.claim(run.pk, "w1")
    services.move(run.pk, State.LOST, reason="Its worker fell silent.")
    found = Run.objects.get()
    assert found.ended_at is not None
    assert found.has_ended
    assert found.reason == "Its worker fell silent."


def test_a_note_changes_fields_and_never_the_state(run, ticks):
    services.note(run.pk, steps_done=3, figures={"spans": 12})
    assert Run.objects.get().steps_done == 3
    assert ticks == [run.pk]
    with pytest.raises(ValueError, match="move"):
        services.note(run.pk, state=State.FINISHED)
    assert state_of(run) == State.QUEUED


def test_a_note_on_a_run_that_is_gone_tells_nobody(db, ticks):
    services.note("nosuchrun1", steps_done=3)
    assert ticks == []


def test_places_in_the_queue_move_up_and_those_who_wait_are_told(db, ticks):
    first, second, third = (services.launch(JobSpec(), None) for _ in range(3))
    gpu = services.launch(JobSpec(device="cuda"), None)
    assert [services.place_in_queue(run) for run in (first, second, third, gpu)] == [1, 2, 3, 1]
    services.claim(first.pk, "w1")
    assert {second.pk, third.pk} <= set(ticks)
    assert [services.place_in_queue(run) for run in (second, third)] == [1, 2]
    assert services.place_in_queue(Run.objects.get(pk=first.pk)) == 0


def test_active_runs_are_those_a_worker_has(run):
    assert services.active_runs() == []
    services.claim(run.pk, "w1")
    assert services.active_runs() == [run]


def test_links_are_made_and_taken_back(run, ticks):
    link, token = links.share(run, None)
    other, other_token = links.share(run, None)
    assert token != other_token
    assert token not in link.token_digest
    links.take_back(link)
    link.refresh_from_db()
    other.refresh_from_db()
    assert link.taken_back_at is not None
    assert other.taken_back_at is None
    assert ticks == [run.pk]  # who looks through the link is shown out


def test_runs_without_an_owner_are_adopted_and_others_keep_theirs(run):
    ada, bob = User.objects.create_user("ada"), User.objects.create_user("bob")
    his = services.launch(JobSpec(), bob)
    services.adopt(ada)
    assert Run.objects.get(pk=run.pk).owner == ada
    assert Run.objects.get(pk=his.pk).owner == bob


@pytest.mark.parametrize("spec, name", [
    (PRESETS["pipeline-1f1b"].spec, "Pipeline, 1F1B"),
    (JobSpec(), "gpt · one rank"),
    (JobSpec(model=Perceptron(), grid=GridSpec(dp=4)), "perceptron · dp4"),
])
def test_a_run_without_a_name_is_called_by_its_shape(db, spec, name):
    assert services.launch(spec, None).name == name

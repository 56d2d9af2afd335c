"""What happens to runs. Every change of a run goes through here; states change by compare-and-set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone

from dashboard.notices import telling
from dashboard.runs import door
from dashboard.runs.models import ACTIVE, Run, State
from trainer.spec import JobSpec

# From each state, the states a run may go to.
NEXT: dict[str, tuple[str, ...]] = {
    State.QUEUED: (State.STARTING, State.STOPPED),
    State.STARTING: (State.RUNNING, State.STOPPING, State.FAILED, State.LOST),
    State.RUNNING: (State.STOPPING, State.FINISHED, State.FAILED, State.LOST),
    State.STOPPING: (State.STOPPED, State.FINISHED, State.FAILED, State.LOST),
}


def launch(spec: JobSpec, owner: Any, fallback_name: str = "", team: Any = None) -> Run:
    """A queued run of `spec`, the team's if one is given, put before the workers once the transaction is through."""
    run = Run.objects.create(
        owner=owner, team=team, name=spec.name or fallback_name or describe(spec), spec_json=spec.model_dump(mode="json"),
        device=spec.device,
    )
    transaction.on_commit(lambda: door.put_in_queue(run.id, run.device))
    transaction.on_commit(lambda: door.tell_lists(run))
    return run


def describe(spec: JobSpec) -> str:
    """A name for a run that was given none."""
    axes = " × ".join(f"{axis}{size}" for axis, size in spec.grid.model_dump().items() if size > 1) or "one rank"
    return f"{spec.model.name} · {axes}"


def move(run_id: str, to: str, only_from: Iterable[str] | None = None, **fields: Any) -> bool:
    """Take the run to state `to` if its present state allows; whether it went."""
    sources = [state for state, following in NEXT.items() if to in following]
    if only_from is not None:
        sources = [state for state in sources if state in set(only_from)]
    now = timezone.now()
    if to == State.STARTING:
        fields.setdefault("started_at", now)
    if to in (State.FINISHED, State.FAILED, State.STOPPED, State.LOST):
        fields.setdefault("ended_at", now)
    went = Run.objects.filter(pk=run_id, state__in=sources).update(state=to, **fields) == 1
    if went:
        door.tell(run_id)
        if to == State.STOPPED:
            _tell_queue()
        run = Run.objects.defer("picture").get(pk=run_id)
        door.tell_lists(run)
        if run.has_ended:
            telling.run_ended(run)
    return went


def claim(run_id: str, worker: str) -> bool:
    """A worker takes a queued run; False when another has it or it was stopped."""
    won = move(run_id, State.STARTING, worker=worker)
    if won:
        _tell_queue()
    return won


def stop(run_id: str) -> bool:
    """Ask for a stop: a queued run is stopped at once, an active one by its worker."""
    stopped = move(run_id, State.STOPPED, only_from=[State.QUEUED], reason="Stopped before it began.")
    return stopped or move(run_id, State.STOPPING)


def note(run_id: str, **fields: Any) -> None:
    """Progress and figures of a run that goes on: any fields but its state."""
    if "state" in fields:
        raise ValueError("a run's state changes by `move`")
    if Run.objects.filter(pk=run_id).update(**fields):
        door.tell(run_id)


def give(run: Run, team: Any) -> None:
    """From now on the run is `team`'s, or private to its owner when that is None."""
    Run.objects.filter(pk=run.pk).update(team=team)
    door.tell(run.pk)  # whoever looks at it and may no longer is shown out
    door.tell_lists(run)  # those it was in
    run.team = team
    door.tell_lists(run)


def adopt(owner: Any) -> None:
    """Runs that the command line launched before anybody had an account become the first owner's."""
    Run.objects.filter(owner=None).update(owner=owner)


def place_in_queue(run: Run) -> int:
    """1 for the next to start; 0 when it is not waiting."""
    if run.state != State.QUEUED:
        return 0
    return Run.objects.filter(state=State.QUEUED, device=run.device, created_at__lte=run.created_at).count()


def places_in_queue() -> dict[str, int]:
    """Every waiting run's place in its device's queue, in one query."""
    places: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for run_id, device in Run.objects.filter(state=State.QUEUED).order_by("created_at").values_list("pk", "device"):
        waiting[device] = waiting.get(device, 0) + 1
        places[run_id] = waiting[device]
    return places


def active_runs() -> list[Run]:
    return list(Run.objects.filter(state__in=ACTIVE))


def _tell_queue() -> None:
    for run_id in Run.objects.filter(state=State.QUEUED).values_list("pk", flat=True)[:100]:
        door.tell(run_id)

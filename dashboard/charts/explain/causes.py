"""What the view Explain shows: the pieces of a step, and causes with their remedies, the dearest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dashboard.charts.explain.memory import Peaks, memory_cause
from dashboard.charts.explain.pieces import MOST_SIMULATED, can_simulate, pieces
from dashboard.charts.explain.remedies import remedies
from dashboard.charts.explain.seen import Seen, seen
from dashboard.runs.words import milliseconds, percent
from trainer.spec import JobSpec

NOTABLE = 0.02  # of a step: what costs less is in the drawing alone


def explanation(spec: JobSpec, rows: Sequence[dict[str, Any]], peaks: Peaks | None = None) -> dict[str, Any]:
    """`rows` are the latest steps'; `peaks` is what ranks had in memory at most. Times in ms of one step; a cause's share is
    of the measured step time, memory's of the card."""
    memory = memory_cause(spec, peaks or {})
    first = [memory] if memory else []  # before all that costs time: what does not fit does not run
    found = seen(spec, rows)
    if found is None:
        return _nothing("A step that every rank went through is not there yet; the explanation begins with it.", first)
    if not can_simulate(spec):
        return _nothing(f"A step of more than {MOST_SIMULATED} micro-batches times stages is not simulated here, "
                        "so its time is not cut into causes.", first)
    cut, causes = _explained(found)
    words = f"{memory['says']} {_words(found)}" if memory else _words(found)
    return {"words": words, "step_ms": found.period_ms, "steps": found.steps, "pieces": cut, "causes": first + causes,
            "is_paced": found.keeps_pace}


def _nothing(words: str, causes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"words": words, "step_ms": None, "steps": 0, "pieces": [], "causes": causes, "is_paced": False}


def _explained(found: Seen) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The pieces, and those of them that cost something with their remedies."""
    cut = [asdict(piece) | {"share": piece.ms / found.period_ms} for piece in pieces(found)]
    causes = [
        piece | {"remedies": [asdict(one) | {"share": one.gain_ms / found.period_ms} for one in remedies(found, piece["key"])]}
        for piece in cut if piece["key"] != "work" and piece["share"] >= NOTABLE
    ]
    return cut, sorted(causes, key=lambda cause: -cause["ms"])


def _words(found: Seen) -> str:
    cut = {piece.key: piece for piece in pieces(found)}
    work_ms, step = cut.pop("work").ms, _step_words(found)
    if not cut or max(piece.ms for piece in cut.values()) < NOTABLE * found.period_ms:
        return f"{step}, and {percent(work_ms / found.period_ms)} of it is work: nothing else costs much."
    dearest = max(cut.values(), key=lambda piece: piece.ms)
    return (f"{step}, of which {milliseconds(work_ms)} are work. "
            f"What costs most besides: {dearest.title[0].lower()}{dearest.title[1:]}, {milliseconds(dearest.ms)} "
            f"or {percent(dearest.ms / found.period_ms)} of the step.")


def _step_words(found: Seen) -> str:
    """Which steps it is about: the median above the timeline is of all."""
    latest = f"A step takes {milliseconds(found.period_ms)}"
    return latest if found.steps < 2 else f"{latest} (median of the latest {found.steps})"

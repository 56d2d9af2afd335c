"""What the view Explain shows: the pieces of a step, and causes with their remedies, the dearest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dashboard.charts.explain.pieces import MOST_SIMULATED, can_simulate, pieces
from dashboard.charts.explain.remedies import remedies
from dashboard.charts.explain.seen import Seen, seen
from dashboard.runs.words import percent
from trainer.spec import JobSpec

NOTABLE = 0.02  # of a step: what costs less is in the drawing alone


def explanation(spec: JobSpec, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`rows` are the latest steps'. Times in ms of one step; a share is of the measured step time."""
    found = seen(spec, rows)
    if found is None:
        return _nothing("A step that every rank went through is not there yet; the explanation begins with it.")
    if not can_simulate(spec):
        return _nothing(f"A step of more than {MOST_SIMULATED} micro-batches times stages is not simulated here, "
                        "so its time is not cut into causes.")
    return {"words": _words(found), "step_ms": found.period_ms, "steps": found.steps, **_explained(found)}


def _nothing(words: str) -> dict[str, Any]:
    return {"words": words, "step_ms": None, "steps": 0, "pieces": [], "causes": []}


def _explained(found: Seen) -> dict[str, Any]:
    cut = [asdict(piece) | {"share": piece.ms / found.period_ms} for piece in pieces(found)]
    causes = [
        piece | {"remedies": [asdict(one) | {"share": one.gain_ms / found.period_ms} for one in remedies(found, piece["key"])]}
        for piece in cut if piece["key"] != "work" and piece["share"] >= NOTABLE
    ]
    return {"pieces": cut, "causes": sorted(causes, key=lambda cause: -cause["ms"])}


def _words(found: Seen) -> str:
    cut = {piece.key: piece for piece in pieces(found)}
    work_ms = cut.pop("work").ms
    if not cut or max(piece.ms for piece in cut.values()) < NOTABLE * found.period_ms:
        share = percent(work_ms / found.period_ms)
        return f"A step takes {found.period_ms:.4g} ms, and {share} of it is work: nothing else costs much."
    dearest = max(cut.values(), key=lambda piece: piece.ms)
    return (f"A step takes {found.period_ms:.4g} ms, of which {work_ms:.4g} ms are work. "
            f"What costs most besides: {dearest.title[0].lower()}{dearest.title[1:]}, {dearest.ms:.4g} ms "
            f"or {percent(dearest.ms / found.period_ms)} of the step.")

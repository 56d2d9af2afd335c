"""The gallery: jobs to start from, each a JobSpec with two sentences on what to look at."""

from __future__ import annotations

from trainer.complaints import FieldError, SpecError
from trainer.presets import copies, faults, networks, pipelines, products, recipes, stages
from trainer.presets.kit import Preset

PRESETS = {
    preset.key: preset
    for part in (pipelines, copies, stages, products, networks, recipes, faults) for preset in part.PRESETS
}


def preset(key: str) -> Preset:
    try:
        return PRESETS[key]
    except KeyError:
        raise SpecError([FieldError("preset", key, f"there is no such preset; {', '.join(PRESETS)} would do")]) from None

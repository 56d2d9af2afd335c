"""The gallery: jobs to start from, each a JobSpec with two sentences on what to look at."""

from __future__ import annotations

from trainer.complaints import FieldError, SpecError
from trainer.presets import copies, faults, networks, pipelines, products, recipes, stages
from trainer.presets.kit import Preset

GROUPS = {
    "Pipelines": pipelines.PRESETS, "Copies": copies.PRESETS, "Inside a stage": stages.PRESETS, "Products": products.PRESETS,
    "Network": networks.PRESETS, "Recipes": recipes.PRESETS, "Faults": faults.PRESETS,
}
PRESETS = {preset.key: preset for group in GROUPS.values() for preset in group}


def preset(key: str) -> Preset:
    try:
        return PRESETS[key]
    except KeyError:
        raise SpecError([FieldError("preset", key, f"there is no such preset; {', '.join(PRESETS)} would do")]) from None

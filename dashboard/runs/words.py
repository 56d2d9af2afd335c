"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from trainer.emulate.link_classes import CLASSES
from trainer.schedules.family import SCHEDULES as FAMILIES

_AXES = (("pp", "stages"), ("dp", "copies"), ("cp", "context parts"), ("tp", "tensor slices"), ("ep", "expert parts"))
_ATTENTION = {"ring": "attention over a ring", "all_to_all": "attention by all-to-all"}
_COPIES = {
    "ddp": "gradients averaged by AllReduce (DDP)",
    "zero-1": "optimizer state in parts (ZeRO-1)",
    "zero-2": "optimizer state and gradients in parts (ZeRO-2)",
    "zero-3": "optimizer state, gradients and parameters in parts (ZeRO-3)",
    "parameter-server": "a parameter server averages gradients and updates",
    "everyone": "everyone sends gradients to everyone",
}
_ALGORITHMS = {"auto": "whichever is quickest"}
_OPTIMIZERS = {"adamw": "AdamW", "sgd": "SGD"}
_TRANSFORMERS = {"gpt": "GPT", "moe": "GPT with experts"}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def grid_words(spec: dict[str, Any]) -> str:
    """"4 stages × 2 copies"; "4 × 2 stages" of four ranks that hold two each, "4 stages both ways" of DualPipe's."""
    grid, chunks = spec["grid"], spec["schedule"].get("chunks", 1)
    parts = [f"{grid[axis]} {word}" for axis, word in _AXES if grid.get(axis, 1) > 1]
    if chunks > 1 and grid["pp"] > 1:
        parts[0] = f"{grid['pp']} × {chunks} stages"
    if _goes_both_ways(spec):
        parts[0] += " both ways"
    return " × ".join(parts) or "1 rank"


def axis_words(axes: str) -> str:
    """"dp×cp" as "copies × context parts"."""
    words = dict(_AXES) | {"pp": "pipeline", "mirror": "mirrored stages"}
    return " × ".join(words[axis] for axis in axes.split("×"))


def copies_words(spec: dict[str, Any]) -> str:
    """How ranks with copies of the same stages share their work, of a whole JobSpec; empty where each stage is on one."""
    grid = spec["grid"]
    has_copies = grid["dp"] * grid["ep"] * grid["cp"] > 1 or _goes_both_ways(spec)
    return _COPIES[spec["splits"]["data"]["mode"]] if has_copies else ""


def _goes_both_ways(spec: dict[str, Any]) -> bool:
    family = FAMILIES.get(spec["schedule"].get("name", ""))
    return family is not None and family.ways == 2


def link_class(key: str) -> str:
    """The name of a class of links, as its maker has it."""
    return CLASSES[key].word


def number(value: float) -> str:
    """Without the zeros that say nothing: 20.0 is 20."""
    return f"{value:,g}" if abs(value) < 1e6 else f"{value:,.0f}"


def model_words(model: dict[str, Any]) -> str:
    """A model with its sizes."""
    kind = _TRANSFORMERS.get(model["name"])
    if kind is None:
        return f"perceptron, {model['hidden_layers']} hidden layers of {model['width']}"
    words = f"{kind}, {model['layers']} layers of width {model['width']}, {model['heads']} heads, context {model['context']}"
    if model["name"] != "moe":
        return words
    return (f"{words}; {model['experts']} experts a layer, {model['top_k']} a token, "
            f"capacity factor {model['capacity_factor']:g}, balance {model['balance']:g}")


def splits_words(spec: dict[str, Any]) -> str:
    """How ranks share the inside of a stage, of a whole JobSpec; empty when none do."""
    parts = []
    if spec["grid"]["tp"] > 1:
        between = ", between them the sequence" if spec["splits"]["tensor"]["sequence_parallel"] else ""
        parts.append(f"tensors{between}")
    if spec["grid"]["ep"] > 1:
        parts.append(f"the experts, {spec['model']['experts'] // spec['grid']['ep']} of each layer on a rank")
    if spec["grid"]["cp"] > 1:
        context = spec["splits"]["context"]
        parts.append(f"the sequence in {context['order']} order, {_ATTENTION[context['attention']]}")
    return "; ".join(parts)


def collectives_words(spec: dict[str, Any]) -> str:
    """"all-reduce by tree; all-gather by whichever is quickest"; empty where every collective is the backend's."""
    by: dict[str, list[str]] = {}
    for name, algorithm in spec.get("collectives", {}).items():
        if algorithm != "backend":
            by.setdefault(algorithm, []).append(name.replace("_", "-"))
    return "; ".join(f"{', '.join(names)} by {_ALGORITHMS.get(algorithm, algorithm)}" for algorithm, names in by.items())


def faults_words(faults: list[dict[str, Any]]) -> str:
    """"rank 2 takes 1.5 times as long from step 8 on; rank 1 is killed in step 12"."""
    return "; ".join(_fault_words(**fault) for fault in faults)


def _fault_words(kind: str, rank: int | None, step: int | None, factor: float, peer: int | None, **_: Any) -> str:
    who, when = "a rank" if rank is None else f"rank {rank}", "a step" if step is None else f"step {step}"
    return {
        "slow-rank": f"{who} takes {factor:g} times as long from {when} on",
        "slow-link": f"messages between {who} and {'others' if peer is None else f'rank {peer}'} take {factor:g} times as long "
                     f"from {when} on",
        "lost-message": f"a message of {who} is lost in {when}",
        "kill": f"{who} is killed in {when}",
        "hang": f"{who} hangs in {when}",
    }[kind]


SCHEDULES = {
    "naive": "naive", "gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B", "breadth-first": "breadth-first",
    "zb-h1": "ZB-H1", "interleaved-zb": "interleaved zero bubble", "zb-v": "ZB-V", "dualpipe-v": "DualPipeV",
    "dualpipe": "DualPipe", "csv": "its own schedule",
}


def schedule_name(name: str) -> str:
    return SCHEDULES.get(name, name)


def schedule_words(spec: dict[str, Any]) -> str:
    schedule = spec["schedule"]
    if spec["grid"]["pp"] == 1:
        count = schedule["micro_batches"]
        return "one batch" if count == 1 else f"{count} micro-batches"
    return f"{schedule_name(schedule['name'])} · {schedule['micro_batches']} micro-batches"


def recipe_words(spec: dict[str, Any]) -> str:
    """"AdamW at 0.003, 10 steps of warm-up, cosine decay, gradients clipped to 1"."""
    recipe = spec["optimizer"]
    parts = [f"{_OPTIMIZERS[recipe['name']]} at {recipe['learning_rate']}"]
    if recipe.get("warmup_steps"):
        parts.append(f"{recipe['warmup_steps']} steps of warm-up")
    if recipe.get("decay", "none") != "none":
        parts.append(f"{recipe['decay']} decay to {percent(recipe['final_share'])}")
    if recipe.get("weight_decay"):
        parts.append(f"weight decay {recipe['weight_decay']}")
    if recipe.get("clip_norm"):
        parts.append(f"gradients clipped to {recipe['clip_norm']:g}")
    return ", ".join(parts)


def percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f} %".replace("-", "−")


def milliseconds(value: float) -> str:
    """Three figures that count, as the pages' scripts write them."""
    units = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"))
    unit_ms, unit = next((one for one in units if abs(value) >= 0.9995 * one[0]), units[-1])
    digits = 0 if abs(value) >= 99.95 * unit_ms else 1 if abs(value) >= 9.995 * unit_ms else 2
    return f"{value / unit_ms:.{digits}f} {unit}"


def figure(value: float | None) -> str:
    """Four digits that count."""
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.4g}"


def size(count: float | None) -> str:
    """Bytes, in decimal units."""
    if count is None:
        return ""
    for unit_bytes, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit_bytes:
            return f"{count / unit_bytes:.3g} {unit}" if count < 999.5 * unit_bytes else f"{count / unit_bytes:.0f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def ago(moment: datetime) -> str:
    seconds = (timezone.now() - moment).total_seconds()
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now" if seconds < 10 else f"{int(seconds)} s ago"

"""What each field of a JobSpec allows but their combination does not, and what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.complaints import FieldError, choices
from trainer.network_misfits import network_misfits
from trainer.schedules import fits

if TYPE_CHECKING:
    from trainer.spec import Gpt, JobSpec


def complaints(spec: JobSpec) -> list[FieldError]:
    """What each field allows but their combination does not."""
    found = []
    grid, schedule = spec.grid, spec.schedule
    if grid.ep != 1:
        found.append(FieldError("grid.ep", grid.ep, "this axis has no split to run yet; 1 would do"))
    found += fits.complaints(spec)
    share = grid.dp * schedule.micro_batches
    if spec.batch % share:
        lower, upper = spec.batch // share * share, (spec.batch // share + 1) * share
        found.append(FieldError("batch", spec.batch,
                                f"{grid.dp} copies × {schedule.micro_batches} micro-batches do not divide a batch of "
                                f"{spec.batch}; {choices([n for n in (lower, upper) if n])} would do"))
    if spec.model.name == "perceptron":
        found += [FieldError(f"grid.{axis}", getattr(grid, axis), "a perceptron has no heads and no sequence; 1 would do")
                  for axis in ("cp", "tp") if getattr(grid, axis) != 1]
    else:
        found += _head_misfits(spec.model) + _tensor_misfits(spec, spec.model) + _context_misfits(spec, spec.model)
    return found + network_misfits(spec)


def _head_misfits(model: Gpt) -> list[FieldError]:
    if model.width % model.heads == 0:
        return []
    fitting = [n for n in range(1, model.width + 1) if model.width % n == 0 and n <= 64]
    return [FieldError("model.heads", model.heads,
                       f"{model.heads} heads do not divide a width of {model.width}; {choices(fitting)} would do")]


def _tensor_misfits(spec: JobSpec, model: Gpt) -> list[FieldError]:
    """Every rank of the axis has whole heads, and as much of the vocabulary and of the feed-forward as each other."""
    tp = spec.grid.tp
    wholes = {"heads": model.heads, "bytes of the vocabulary": model.vocabulary, "features of the feed-forward": 4 * model.width}
    uneven = [f"{count} {what}" for what, count in wholes.items() if count % tp]
    if uneven:
        fitting = [n for n in range(1, model.heads + 1) if not any(count % n for count in wholes.values())]
        return [FieldError("grid.tp", tp, f"{' and '.join(uneven)} do not divide among {tp} ranks; {choices(fitting)} would do")]
    tokens = model.context // spec.grid.cp
    if spec.splits.tensor.sequence_parallel and tokens % tp:
        return [FieldError("splits.tensor.sequence_parallel", True,
                           f"{tokens} tokens of a sequence do not divide among {tp} ranks; false would do, "
                           f"or a context that is a multiple of {tp * spec.grid.cp}")]
    return []


def _context_misfits(spec: JobSpec, model: Gpt) -> list[FieldError]:
    """Every rank of the axis has as many tokens as each other; those that exchange heads, as many heads."""
    cp, split = spec.grid.cp, spec.splits.context
    if cp == 1:
        return []
    found = []
    pieces = 2 if split.order == "zigzag" else 1
    if model.context % (cp * pieces):
        fitting = [n for n in range(1, 1025) if model.context % (n * pieces) == 0] or [1]
        zigzag = ", two pieces each" if pieces == 2 else ""
        found.append(FieldError("grid.cp", cp, f"a context of {model.context} does not divide among {cp} ranks{zigzag}; "
                                               f"{choices(fitting)} would do"))
    if split.attention == "all_to_all":
        if split.order == "zigzag":
            found.append(FieldError("splits.context.order", split.order,
                                    "by all-to-all every rank attends over the whole sequence, so parts are even; "
                                    "'contiguous' would do"))
        heads = model.heads // spec.grid.tp
        if heads % cp:
            fitting = [n for n in range(1, heads + 1) if heads % n == 0]
            found.append(FieldError("splits.context.attention", split.attention,
                                    f"{heads} heads do not divide among {cp} ranks; 'ring' would do, "
                                    f"or a grid.cp of {choices(fitting)}"))
    return found


"""What each field of a JobSpec allows but their combination does not, and what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.complaints import FieldError, choices
from trainer.emulate.devices import device_misfits
from trainer.emulate.faults import fault_misfits
from trainer.network_misfits import network_misfits
from trainer.schedules import fits, puts_off_weights

if TYPE_CHECKING:
    from trainer.spec import Gpt, JobSpec

MOST_EXPERTS = 128  # in all layers


def complaints(spec: JobSpec) -> list[FieldError]:
    """What each field allows but their combination does not."""
    found = []
    grid, schedule = spec.grid, spec.schedule
    found += fits.complaints(spec) + _expert_misfits(spec)
    if not found:  # which a schedule that can be made takes
        found += _data_misfits(spec)
    if spec.optimizer.warmup_steps >= spec.steps:
        found.append(FieldError("optimizer.warmup_steps", spec.optimizer.warmup_steps,
                                f"of {spec.steps} steps none would have the full rate; {spec.steps - 1} or less would do"))
    share = grid.copies * schedule.micro_batches
    if spec.batch % share:
        lower, upper = spec.batch // share * share, (spec.batch // share + 1) * share
        copies = "1 copy" if grid.copies == 1 else f"{grid.copies} copies"
        found.append(FieldError("batch", spec.batch,
                                f"{copies} × {schedule.micro_batches} micro-batches do not divide a batch of {spec.batch}; "
                                f"{choices([n for n in (lower, upper) if n])} would do"))
    if spec.model.name == "perceptron":
        found += [FieldError(f"grid.{axis}", getattr(grid, axis), "a perceptron has no heads and no sequence; 1 would do")
                  for axis in ("cp", "tp") if getattr(grid, axis) != 1]
    else:
        found += _head_misfits(spec.model) + _tensor_misfits(spec, spec.model) + _context_misfits(spec, spec.model)
    return found + network_misfits(spec) + device_misfits(spec) + fault_misfits(spec)


def _data_misfits(spec: JobSpec) -> list[FieldError]:
    """A weight's gradient that is put off has to find its parameter, which zero-3 lets go of."""
    if spec.splits.data.mode != "zero-3" or spec.averaging_ranks == 1 or not puts_off_weights(spec):
        return []
    return [FieldError("splits.data.mode", "zero-3",
                       "this schedule puts off gradients of weights, and by then zero-3 has let go of these; "
                       "zero-2 would do, or a schedule of whole backwards")]


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


def _expert_misfits(spec: JobSpec) -> list[FieldError]:
    """Every rank of the axis has as many experts as each other. What each expert did is counted, so they are not too many."""
    model, ep = spec.model, spec.grid.ep
    if model.name != "moe":
        return [] if ep == 1 else [FieldError("grid.ep", ep, "this model has no experts; 1 would do, or the model 'moe'")]
    found, experts = [], model.experts
    if experts % ep:
        fitting = [n for n in range(1, experts + 1) if experts % n == 0]
        found.append(FieldError("grid.ep", ep, f"{experts} experts do not divide among {ep} ranks; {choices(fitting)} would do"))
    if model.top_k > experts:
        found.append(FieldError("model.top_k", model.top_k, f"there are {experts} experts; {experts} or less would do"))
    if model.layers * experts > MOST_EXPERTS:
        found.append(_too_many_experts(model.layers, experts))
    if spec.splits.data.mode != "ddp" and ep > 1:
        found.append(FieldError("splits.data.mode", spec.splits.data.mode,
                                "experts that copies share are averaged over other ranks than all else; 'ddp' would do, "
                                "or a grid.ep of 1"))
    if spec.splits.tensor.sequence_parallel and spec.grid.tp > 1:
        found.append(FieldError("splits.tensor.sequence_parallel", True,
                                "a router needs whole sequences, not the stretch of a tensor slice; false would do"))
    return found


def _too_many_experts(layers: int, experts: int) -> FieldError:
    whole = f"each one's load is counted in every step, and {experts} in each of {layers} layers are more than {MOST_EXPERTS}; "
    if MOST_EXPERTS // layers < 2:  # the fewest that a mixture has
        return FieldError("model.layers", layers, f"{whole}{MOST_EXPERTS // experts} or less would do")
    return FieldError("model.experts", experts, f"{whole}{MOST_EXPERTS // layers} or less would do, or fewer layers")


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


"""The launch form: JobSpec's fields with words around them. Bounds and choices come from JobSpec itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen
from pydantic.fields import FieldInfo

from trainer.complaints import FieldError
from trainer.spec import Gpt, JobSpec, Perceptron

MODELS: dict[str, type[Gpt] | type[Perceptron]] = {"gpt": Gpt, "perceptron": Perceptron}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")


@dataclass(frozen=True)
class Field:
    """`name` is what the form posts: a dotted path of JobSpec, with the model's kind after `model.`."""

    name: str
    label: str
    help: str = ""
    unit: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    lines: int = 1  # of text that it shows
    schedule: str = ""  # the one that has this field; empty when every schedule has it

    @property
    def path(self) -> str:
        """The field's path in a JobSpec: `model.gpt.width` is `model.width` there."""
        parts = self.name.split(".")
        return ".".join([parts[0], *parts[2:]]) if self.of_model else self.name

    @property
    def of_model(self) -> str:
        """The kind of model that has this field; empty when every job has it."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "model" and len(parts) == 3 else ""

    @property
    def info(self) -> FieldInfo:
        if self.of_model:
            return MODELS[self.of_model].model_fields[self.name.rsplit(".", 1)[1]]
        fields, info = JobSpec.model_fields, None
        for part in self.name.split("."):
            info = fields[part]
            fields = getattr(info.annotation, "model_fields", {})
        assert info is not None
        return info

    @property
    def widget(self) -> str:
        if self.name == "model.name" or get_origin(self.info.annotation) is Literal:
            return "choice"
        if self.info.annotation is bool:
            return "switch"
        if self.lines > 1:
            return "lines"
        return "text" if self.info.annotation is str else "number"

    @property
    def choices(self) -> list[tuple[str, str]]:
        values = tuple(MODELS) if self.name == "model.name" else get_args(self.info.annotation)
        return [(value, self.options.get(value, value)) for value in values]

    @property
    def bounds(self) -> dict[str, Any]:
        """Attributes of the input. A lower bound that is itself too low is left to the server's message."""
        found: dict[str, Any] = {}
        for bound in self.info.metadata:
            if isinstance(bound, Ge):
                found["min"] = bound.ge
            elif isinstance(bound, Gt):
                found["min"] = bound.gt
            elif isinstance(bound, Le):
                found["max"] = bound.le
            elif isinstance(bound, MaxLen):
                found["maxlength"] = bound.max_length
        if self.widget == "number":
            found["step"] = 1 if self.info.annotation is int else "any"
        return found

    def read(self, given: str) -> Any:
        """The value a JobSpec takes; text that is no number stays text, so that the complaint can show it."""
        if self.widget == "lines":
            return given.replace("\r\n", "\n")  # browsers send the former
        if self.widget != "number":
            return given
        text = given.strip()
        if _WHOLE.match(text):
            return int(text)
        if self.info.annotation is float:
            try:
                return float(text)
            except ValueError:
                return text
        return text


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    fields: tuple[Field, ...]


SECTIONS = (
    Section("model", "Model", (
        Field("model.name", "Kind", options={"gpt": "GPT, learns text byte by byte", "perceptron": "Perceptron, reads digits"}),
        Field("model.gpt.layers", "Layers", "A pipeline's stages divide them."),
        Field("model.gpt.width", "Width", "Numbers that stand for one token."),
        Field("model.gpt.heads", "Heads", "They divide the width."),
        Field("model.gpt.context", "Context", "Bytes a sample holds.", "bytes"),
        Field("model.perceptron.hidden_layers", "Hidden layers", "One more linear layer follows; stages divide them all."),
        Field("model.perceptron.width", "Width", "Neurons of a hidden layer."),
    )),
    Section("grid", "Grid", (
        Field("grid.pp", "Pipeline stages", "So many ranks, each with its share of the layers."),
        Field("grid.dp", "Data copies", "Each copy learns from its share of the batch."),
        Field("grid.tp", "Tensor slices", "Every matrix is cut into so many; a slice has whole heads."),
        Field("grid.cp", "Context parts", "Every sequence is cut into so many."),
    )),
    Section("splits", "Inside a stage", (
        Field("splits.tensor.sequence_parallel", "Sequence parallel",
              "Between its matrices a tensor slice keeps its stretch of the sequence alone."),
        Field("splits.context.attention", "Attention between parts", options={
            "ring": "Ring: keys and values travel around",
            "all_to_all": "All-to-all: a part of the heads each",
        }),
        Field("splits.context.order", "Order of tokens", options={
            "contiguous": "Contiguous: one stretch a part",
            "zigzag": "Zigzag: a piece from either end",
        }),
    )),
    Section("schedule", "Schedule", (
        Field("schedule.name", "Order of work", options={
            "1f1b": "1F1B: a forward and a backward in turn",
            "gpipe": "GPipe: all forwards, then all backwards",
            "naive": "Naive: one micro-batch at a time",
            "interleaved": "Interleaved 1F1B: several stages a rank",
            "breadth-first": "Looped breadth-first: GPipe with several stages a rank",
            "zb-h1": "ZB-H1: 1F1B with weights put off into the bubble",
            "interleaved-zb": "Interleaved zero bubble: both at once",
            "zb-v": "ZB-V: stages in a V, no rank waits",
            "dualpipe-v": "DualPipeV: a V that works both ways",
            "csv": "Your own, as text",
        }),
        Field("schedule.micro_batches", "Micro-batches", "Each copy's share of a batch is cut into so many."),
        Field("schedule.chunks", "Stages a rank", "1, but 2 in a V and 2 or more where stages interleave."),
        Field("schedule.csv", "Your schedule", "A row for each rank, a cell for each action: 0F0,0F1,0B0 is stage, "
              "F, B, I or W, and micro-batch, as torch writes them.", lines=6, schedule="csv"),
        Field("schedule.split_backward", "Split backward", "The weights' gradient becomes an action of its own."),
    )),
    Section("pace", "Pace", (
        Field("pace.kind", "Pace", options={"real": "Real: nothing is slowed", "paced": "Paced: every action takes a set time"}),
        Field("pace.forward_ms", "Forward", "Of one stage and micro-batch.", "ms"),
        Field("pace.backward_ms", "Backward", "Both gradients together.", "ms"),
    )),
    Section("training", "Training", (
        Field("batch", "Batch", "Samples a step, over all copies."),
        Field("steps", "Steps"),
        Field("optimizer.name", "Optimizer", options={"adamw": "AdamW", "sgd": "SGD"}),
        Field("optimizer.learning_rate", "Learning rate"),
        Field("precision", "Precision"),
        Field("seed", "Seed", "The same seed gives the same run."),
    )),
    Section("run", "Run", (
        Field("name", "Name", "Left empty, the job's shape is its name."),
        Field("device", "Device", options={"cpu": "CPU", "cuda": "GPU (CUDA)"}),
        Field("timeout_seconds", "Time-out", "How long a rank waits for another before it gives up.", "s"),
    )),
)
FIELDS = {one.name: one for section in SECTIONS for one in section.fields}


@dataclass(frozen=True)
class Bound:
    """A field with what it shows."""

    field: Field
    value: str
    errors: list[str]

    @property
    def id(self) -> str:
        return "f-" + self.field.name.replace(".", "-").replace("_", "-")


@dataclass(frozen=True)
class BoundSection:
    section: Section
    fields: list[Bound]


def read(posted: Mapping[str, str]) -> dict[str, Any]:
    """What `trainer.spec.parse` takes, from what the form posted. Fields of other models and schedules are left out."""
    job: dict[str, Any] = {}
    kind, schedule = posted.get("model.name", ""), posted.get("schedule.name", "")
    for one in FIELDS.values():
        if one.of_model not in ("", kind) or one.schedule not in ("", schedule):
            continue
        if one.widget == "switch":
            value: Any = one.name in posted
        elif one.name in posted:
            value = one.read(posted[one.name])
        else:
            continue
        at = job
        *parents, last = one.path.split(".")
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return job


def values_of(spec: JobSpec) -> dict[str, str]:
    """What the form shows of a job; the other kind of model shows its defaults."""
    job = spec.model_dump()
    models = {kind: (spec.model if spec.model.name == kind else made()).model_dump() for kind, made in MODELS.items()}
    shown = {}
    for one in FIELDS.values():
        at: Any = models[one.of_model] if one.of_model else job
        for part in one.name.split(".")[2 if one.of_model else 0:]:
            at = at[part]
        if one.widget != "switch":
            shown[one.name] = repr(at).removesuffix(".0") if isinstance(at, float) else str(at)
        elif at:
            shown[one.name] = "on"
    return shown


def bound(values: Mapping[str, str], errors: list[FieldError]) -> tuple[list[BoundSection], list[FieldError]]:
    """The sections with values and complaints in their places, and the complaints that have no place."""
    placed: dict[str, list[str]] = {}
    homeless = []
    for error in errors:
        name = field_name(error.field, values.get("model.name", "gpt"))
        if name is None:
            homeless.append(error)
        else:
            placed.setdefault(name, []).append(error.message)
    sections = [
        BoundSection(section, [Bound(one, values.get(one.name, ""), placed.get(one.name, [])) for one in section.fields])
        for section in SECTIONS
    ]
    return sections, homeless


def field_name(path: str, model: str) -> str | None:
    """The form's name for a JobSpec path, None when the form has no such field."""
    if path == "model":
        return "model.name"
    for name in (path, path.replace("model.", f"model.{model}.", 1)):
        if name in FIELDS:
            return name
    return None

"""JobSpec: what a job is. One definition feeds the form, the API, the command line and the trainer."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError

from trainer import misfits
from trainer.complaints import FieldError, SpecError, from_pydantic
from trainer.emulate.orders import Faults, Pace
from trainer.part import Part
from trainer.schedules.family import SCHEDULES

VOCABULARY = 256  # a GPT reads and writes bytes


class Perceptron(Part):
    """Fully connected 784–16–16–10 by default: 13,002 parameters, the classic digit reader."""

    most_layers: ClassVar[int] = 65
    name: Literal["perceptron"] = "perceptron"
    hidden_layers: Annotated[int, Field(ge=1, le=most_layers - 1)] = 2
    width: Annotated[int, Field(ge=1, le=4096)] = 16

    @property
    def layers(self) -> int:
        """Linear layers, the unit a pipeline cuts."""
        return self.hidden_layers + 1


class Gpt(Part):
    """A decoder-only transformer over bytes."""

    vocabulary: ClassVar[int] = VOCABULARY
    most_layers: ClassVar[int] = 96
    name: Literal["gpt"] = "gpt"
    layers: Annotated[int, Field(ge=1, le=most_layers)] = 4
    width: Annotated[int, Field(ge=8, le=4096)] = 32
    heads: Annotated[int, Field(ge=1, le=64)] = 4
    context: Annotated[int, Field(ge=2, le=4096)] = 32


class Moe(Gpt):
    """A GPT whose feed-forwards are mixtures of experts: a router sends every token to `top_k` of `experts`.

    `capacity_factor` is the room of an expert, as a multiple of what it would get if all got the same; what finds
    no room is dropped. `balance` is how much the penalty on uneven routers counts in what is trained.
    """

    name: Literal["moe"] = "moe"  # type: ignore[assignment]
    experts: Annotated[int, Field(ge=2, le=64)] = 8
    top_k: Annotated[int, Field(ge=1, le=8)] = 2
    capacity_factor: Annotated[float, Field(gt=0, le=64)] = 1.25
    balance: Annotated[float, Field(ge=0, le=10)] = 0.01

    @property
    def capacity(self) -> int:
        """Tokens of one sample that an expert takes: ⌈factor · k · context / experts⌉, and never more than there are."""
        factor = Fraction(str(self.capacity_factor))  # 1.1 is 11/10 here: a whole number of tokens is not rounded up
        return min(self.context, math.ceil(factor * self.top_k * self.context / self.experts))


class GridSpec(Part):
    """How many ranks each axis has; their product is the number of ranks."""

    dp: Annotated[int, Field(ge=1, le=4096)] = 1
    pp: Annotated[int, Field(ge=1, le=1024)] = 1
    cp: Annotated[int, Field(ge=1, le=1024)] = 1
    tp: Annotated[int, Field(ge=1, le=1024)] = 1
    ep: Annotated[int, Field(ge=1, le=1024)] = 1

    @property
    def ranks(self) -> int:
        return self.dp * self.pp * self.cp * self.tp * self.ep

    @property
    def copies(self) -> int:
        """Copies of the model that learn from samples of their own. Those that share experts are copies in all else."""
        return self.dp * self.ep


# A tuple, so that a JobSpec can be a key; what JSON has is a list.
Layers = Annotated[tuple[Annotated[int, Field(ge=1, le=96)], ...], Field(max_length=1024),
                   BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]


class ScheduleSpec(Part):
    """The order of a pipeline's actions; without a pipeline, micro-batches accumulate gradients.

    `chunks` is how many stages each rank holds of one copy of the model (dualpipe has two), `layers` how many layers each
    stage has, in the order of stages; empty means equally many. `csv` is a schedule of one's own, for the name csv
    (trainer.schedules.csv_text).
    """

    name: Literal[
        "naive", "gpipe", "1f1b", "interleaved", "breadth-first", "zb-h1", "interleaved-zb", "zb-v", "dualpipe-v", "dualpipe",
        "csv"
    ] = "1f1b"
    micro_batches: Annotated[int, Field(ge=1, le=4096)] = 8
    chunks: Annotated[int, Field(ge=1, le=16)] = 1
    split_backward: bool = False
    layers: Layers = ()
    csv: Annotated[str, Field(max_length=65_536)] = ""


class DataSplit(Part):
    """How ranks with copies of the same stages (`grid.dp`, `grid.ep`, and the parts of `grid.cp`) come to equal parameters.

    `ddp`: each has everything, gradients are averaged by AllReduce in buckets of `bucket_mb` MiB. `zero-1`: each keeps
    the optimizer's state of a part of every parameter; `zero-2`: and the gradients; `zero-3`: and the parameters.
    `parameter-server` and `everyone` are what there was before AllReduce: all send to one, or to all others.
    """

    mode: Literal["ddp", "zero-1", "zero-2", "zero-3", "parameter-server", "everyone"] = "ddp"
    bucket_mb: Annotated[float, Field(gt=0, le=1024)] = 25.0


class TensorSplit(Part):
    """Of the ranks that share every matrix (`grid.tp`). Sequence parallel ones keep a stretch of the sequence in between."""

    sequence_parallel: bool = False


class ContextSplit(Part):
    """Of the ranks that share every sequence (`grid.cp`): how one part attends to others, and which tokens a part has."""

    attention: Literal["ring", "all_to_all"] = "ring"
    order: Literal["contiguous", "zigzag"] = "contiguous"


class SplitsSpec(Part):
    """How the ranks of an axis share what they have; without effect on an axis of one rank."""

    data: DataSplit = Field(default_factory=DataSplit)
    tensor: TensorSplit = Field(default_factory=TensorSplit)
    context: ContextSplit = Field(default_factory=ContextSplit)


class OptimizerSpec(Part):
    """How gradients change the weights. The rate rises over `warmup_steps`, then falls to `final_share` of it at the last step.

    A gradient longer than `clip_norm` is shortened to it; 0 leaves every gradient as it is.
    """

    name: Literal["sgd", "adamw"] = "adamw"
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 3e-3
    warmup_steps: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    decay: Literal["none", "linear", "cosine"] = "none"
    final_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    clip_norm: Annotated[float, Field(ge=0, le=1e6)] = 0.0


class CollectivesSpec(Part):
    """By which algorithm each collective goes (trainer.collectives.plans): the backend's own, ours by name, or of ours
    the one that α and β make the quickest."""

    all_reduce: Literal["backend", "auto", "ring", "tree", "recursive-doubling", "halving-doubling"] = "backend"
    all_gather: Literal["backend", "auto", "ring", "tree", "recursive-doubling", "bruck", "pat"] = "backend"
    reduce_scatter: Literal["backend", "auto", "ring", "tree", "recursive-halving", "pat"] = "backend"
    all_to_all: Literal["backend", "auto", "ring", "bruck"] = "backend"
    broadcast: Literal["backend", "auto", "ring", "tree"] = "backend"
    reduce: Literal["backend", "auto", "ring", "tree"] = "backend"
    barrier: Literal["backend", "auto", "ring", "tree", "recursive-doubling"] = "backend"

    @property
    def own(self) -> bool:
        """Whether any of them is ours."""
        return any(name != "backend" for name in self.model_dump().values())


InServer = Literal["nvlink-4", "nvlink-5", "pcie-5", "pcie-6"]
BetweenServers = Literal["infiniband-ndr", "infiniband-xdr", "roce-v2"]


class LinksSpec(Part):
    """`real`, or modelled by classes of links (trainer.emulate.link_classes).

    What a message takes is multiplied by `slow_down`, and it counts as `size_factor` times as long as it is.
    """

    kind: Literal["real", "modelled"] = "real"
    in_server: InServer = "nvlink-4"
    in_rack: BetweenServers = "infiniband-ndr"
    between_racks: BetweenServers = "infiniband-ndr"
    ports_per_server: Annotated[int, Field(ge=1, le=64)] = 1
    slow_down: Annotated[float, Field(ge=1, le=1e6)] = 1000.0
    size_factor: Annotated[float, Field(ge=1, le=1e9)] = 1.0


class PlacementSpec(Part):
    """Where modelled links find the ranks: by rule, or by a list of each rank's server, as text: "0, 0, 1, 1"."""

    gpus_per_server: Annotated[int, Field(ge=1, le=1024)] = 8
    servers_per_rack: Annotated[int, Field(ge=1, le=1024)] = 4
    servers: Annotated[str, Field(max_length=8192)] = ""

    @property
    def server_of_rank(self) -> list[int]:
        """Empty for the rule; ValueError where `servers` is no list of whole numbers."""
        return [int(number) for number in self.servers.split(",")] if self.servers.strip() else []


class JobSpec(Part):
    """A whole job. `batch` counts samples a step over all copies of the model.

    Under the precision bf16 weights, their gradients and what stages hand on are float32; matrix products are bfloat16
    (torch.autocast). `checkpointing` of each layer keeps its input alone and runs it again in the backward.

    After every `checkpoint_every` steps (0: never) all that training needs to go on is put on disk. A job that has lost a
    rank begins again from there, or from the start, at most `restarts` times.
    """

    name: Annotated[str, Field(max_length=120)] = ""
    model: Annotated[Perceptron | Gpt | Moe, Field(discriminator="name")] = Field(default_factory=Gpt)
    grid: GridSpec = Field(default_factory=GridSpec)
    splits: SplitsSpec = Field(default_factory=SplitsSpec)
    schedule: ScheduleSpec = Field(default_factory=ScheduleSpec)
    optimizer: OptimizerSpec = Field(default_factory=OptimizerSpec)
    pace: Pace = Field(default_factory=Pace)
    collectives: CollectivesSpec = Field(default_factory=CollectivesSpec)
    links: LinksSpec = Field(default_factory=LinksSpec)
    placement: PlacementSpec = Field(default_factory=PlacementSpec)
    faults: Faults = ()
    checkpoint_every: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    restarts: Annotated[int, Field(ge=0, le=100)] = 0
    batch: Annotated[int, Field(ge=1, le=1_048_576)] = 32
    steps: Annotated[int, Field(ge=1, le=1_000_000)] = 30
    precision: Literal["float32", "float64", "bf16"] = "float32"
    checkpointing: Literal["none", "layer"] = "none"
    device: Literal["cpu", "cuda"] = "cpu"
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    timeout_seconds: Annotated[float, Field(ge=5, le=3600)] = 60.0

    @property
    def ranks(self) -> int:
        return self.grid.ranks

    @property
    def micro_batch_samples(self) -> int:
        """Samples in one micro-batch of one copy."""
        return self.batch // (self.grid.copies * self.schedule.micro_batches)

    @property
    def ways(self) -> int:
        """2 where half of the micro-batches go up the ranks, through a second copy of every stage."""
        family = SCHEDULES.get(self.schedule.name)
        return family.ways if family else 1

    @property
    def averaging_ranks(self) -> int:
        """Ranks that have the same stages and average their gradients: they see other samples or other tokens."""
        return self.grid.copies * self.grid.cp * self.ways

    @property
    def sequence_parts(self) -> int:
        """Parts of a sequence between two layers, each on ranks of its own."""
        return self.grid.cp * (self.grid.tp if self.splits.tensor.sequence_parallel else 1)

    @property
    def data(self) -> str:
        """What the model learns from: a perceptron reads digits, a GPT reads text."""
        return "digits" if self.model.name == "perceptron" else "text"

    def to_json(self) -> str:
        return self.model_dump_json()


def parse(given: str | bytes | dict[str, Any]) -> JobSpec:
    """A valid JobSpec, or a SpecError naming each field, what was given and what would do."""
    if isinstance(given, (str, bytes)):
        given = _load_json(given)
    if not isinstance(given, dict):
        raise SpecError([FieldError("", given, "a job is a JSON object of fields, such as {\"steps\": 30}")])
    try:
        # Through JSON, so that a whole number is a fit value for a float but a string is not for an int.
        spec = JobSpec.model_validate(given, strict=True)
    except ValidationError as error:
        raise SpecError(from_pydantic(error)) from None
    complaints = misfits.complaints(spec)
    if complaints:
        raise SpecError(complaints)
    return spec


def _load_json(text: str | bytes) -> Any:
    def refuse(constant: str) -> None:
        raise SpecError([FieldError("", constant, f"{constant} is not a number a job can use; give a finite number")])

    try:
        return json.loads(text, parse_constant=refuse)
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists in lists without end
        raise SpecError([FieldError("", None, f"this is not JSON: {error}")]) from None

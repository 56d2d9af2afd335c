"""The ideas that can be learned here, in the order in which one needs them: each with a job that shows it running.

An idea's prose is templates/learn/ideas/<key>.html, its numbers are `numbers`, its drawing is `drawings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.runs.intake import with_changes
from trainer.presets import preset
from trainer.spec import JobSpec, parse


@dataclass(frozen=True)
class Idea:
    """`preset` with `changes`, of dotted paths, is the job. On its page `look` says what to see, in the part `where`:
    "timeline", "figures", "loss", or the key of a view beside the timeline."""

    key: str
    title: str
    tells: str
    preset: str
    where: str
    look: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> JobSpec:
        changes = {"name": self.title, **self.changes}
        return parse(with_changes(preset(self.preset).spec.model_dump(), changes))


IDEAS = {idea.key: idea for idea in (
    Idea("one-device", "One device's limits", "A card has a fixed memory and a finite speed; large models overflow both.",
         "pipeline-1f1b", "timeline",
         "One lane that works without a pause: no bubble, no messages. It is as fast as one device can be, and no faster.",
         {"grid.pp": 1}),
    Idea("two-walls", "The two walls of memory", "What stays with the model, and what comes and goes with the data.",
         "pipeline-gpipe", "memory",
         "Weights, gradients and optimizer are level ground. Activations climb with every forward and fall with every backward; "
         "choose another rank, and see that all hold all eight micro-batches at the top."),
    Idea("data", "Copies that share the data", "Every device has the whole model and its own slice of the batch.",
         "ddp-digits", "timeline",
         "Four lanes do the same work at the same time, each on its own digits. Behind each backward stands one AllReduce, "
         "after which all copies are equal again."),
    Idea("cloning", "The cloning bottleneck", "Copies save time, not memory, and each step they pay to stay equal.",
         "links-infiniband", "explain",
         "How much of a step lies between the last backward and the next forward: that is gradients on their way. "
         "No device does anything else meanwhile."),
    Idea("tensor", "Slicing a layer", "A matrix is cut into groups of columns, one for each device.",
         "tensor", "timeline",
         "Zoom into one forward with W. In the lane below it stand two AllReduces a layer, and the forward goes on only when "
         "each of them is over."),
    Idea("heads", "Attention by whole heads", "A head cannot be cut in two, but heads never meet before their outputs join.",
         "tensor", "timeline",
         "Eight heads on four ranks, two each. Zoom into a forward: between two AllReduces there is not one message, "
         "because queries, keys and scores of a head stay on its rank.",
         {"model.heads": 8}),
    Idea("pipeline", "Cutting between layers", "Each device has a band of layers and hands its result to the next.",
         "pipeline-naive", "timeline",
         "Work goes down the lanes like a relay and comes back up. Select a forward and press ] to follow its message to the "
         "next stage."),
    Idea("bubble", "The pipeline's bubble", "While one device works the others wait for their turn.",
         "pipeline-gpipe", "pipeline",
         "The triangles at both ends of a step, in the ideal order and as it was measured: nobody has failed, there is "
         "nothing to do yet, or nothing any more."),
    Idea("micro-batches", "Micro-batches", "A batch in many small pieces keeps all stages busy at once.",
         "pipeline-1f1b", "pipeline",
         "The last table: what twice or half as many micro-batches would do to the bubble and to what a rank holds. "
         "Open one of them in the form and compare."),
    Idea("long-context", "Long context", "Twice the tokens are twice the activations, and four times the pairs.",
         "ring-attention", "memory",
         "Activations against all the rest, with the whole sequence on one rank. Then run “Ring attention” and look at the same "
         "mountain on each of four ranks.",
         {"grid.cp": 1, "splits.context.order": "contiguous"}),
    Idea("ring-attention", "Ring attention", "Queries stay, keys and values travel, and nobody ever has the whole sequence.",
         "ring-attention", "timeline",
         "Zoom into one forward: three hops in every layer, each from a rank to the next, and at the same moment on all four."),
    Idea("experts", "Sparse experts", "Many feed-forwards, of which every token uses a few.",
         "experts", "timeline",
         "Two AllToAlls in each layer of a forward: one takes every token to the ranks that have its experts, one brings "
         "back what they made of it."),
    Idea("routing", "Routing", "A small layer scores all experts, and the best few do the work.",
         "experts-favourites", "loss",
         "The loss of a router that may have favourites: what finds no room at its expert passes the layer by, and learns less. "
         "Launch “Experts” and compare the two curves."),
    Idea("five-axes", "Five axes, one grid", "Each split cuts something else, so all of them multiply.",
         "three-axes", "timeline",
         "Three rhythms in eight ranks: AllReduces within every action, messages with every micro-batch, averaged gradients once "
         "a step. A rank's address stands beside its lane."),
    Idea("placement", "Placement", "The chattiest axis gets the fastest wires.",
         "tensor-across-servers", "explain",
         "How much longer actions last than their work: slices talk inside them, and a server here holds two of four. "
         "Give a server four GPUs on the launch page and run it again."),
    Idea("collectives", "Collectives and rings", "How many devices add up one array, and why a ring is hard to beat.",
         "allreduce-ring", "timeline",
         "Zoom into one AllReduce: six steps, each a send and a receive of a quarter, on all four ranks at once."),
)}

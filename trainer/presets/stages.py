"""Splits inside a stage: matrices and sequences."""

from __future__ import annotations

from trainer.presets.kit import Preset, inside_a_stage
from trainer.spec import ContextSplit, GridSpec, SplitsSpec

PRESETS = (
    Preset("tensor", "Tensor parallel",
           "Four ranks share every matrix of every layer, a head each. Zoom into one forward: "
           "two AllReduces a layer, one behind attention and one behind the feed-forward, and as many on the way back.",
           inside_a_stage("Tensor parallel", GridSpec(tp=4))),
    Preset("ring-attention", "Ring attention",
           "Four ranks have a quarter of every text, and in each layer keys and values go around all of them, three hops. "
           "In a backward count four for their gradients: they follow, grow at every rank, and have to come home.",
           inside_a_stage("Ring attention", GridSpec(cp=4), SplitsSpec(context=ContextSplit(order="zigzag")), context=64)),
)

"""Splits inside a stage: matrices, sequences and experts."""

from __future__ import annotations

from trainer.presets.kit import TOKENS_SLOW_DOWN, Preset, inside_a_stage, over_nvlink
from trainer.spec import ContextSplit, GridSpec, Moe, SplitsSpec

PRESETS = (
    Preset("tensor", "Tensor parallel",
           "Four ranks share every matrix of every layer, a head each. Zoom into one forward: "
           "two AllReduces a layer, one behind attention and one behind the feed-forward, and as many on the way back.",
           inside_a_stage("Tensor parallel", GridSpec(tp=4))),
    Preset("ring-attention", "Ring attention",
           "Four ranks have a quarter of every text, and in each layer keys and values go around all of them, three hops. "
           "In a backward count four for their gradients: they follow, grow at every rank, and have to come home.",
           inside_a_stage("Ring attention", GridSpec(cp=4), SplitsSpec(context=ContextSplit(order="zigzag")), context=64)),
    Preset("experts", "Experts",
           "Four ranks have two of every layer's eight experts each, and a token goes to the two that its router scores "
           "highest, wherever they are. Zoom into one forward: in each layer an AllToAll takes tokens out and another brings "
           "them back.",
           over_nvlink(inside_a_stage("Experts", GridSpec(ep=4), model=Moe(layers=4)), TOKENS_SLOW_DOWN)),
    Preset("experts-favourites", "Experts, an unbalanced router",
           "The router is not held to balance and an expert has room for half of an equal load, so favourites turn tokens "
           "away. Compare the loss with “Experts”: a dropped token passes its layer by.",
           over_nvlink(inside_a_stage("Experts, an unbalanced router", GridSpec(ep=4),
                                      model=Moe(layers=4, capacity_factor=0.5, balance=0.0)), TOKENS_SLOW_DOWN)),
)

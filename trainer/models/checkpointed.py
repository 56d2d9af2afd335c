"""Activation checkpointing: a layer's input is all that is kept for its backward, which runs its forward again.

What ranks exchange inside a layer they exchange again then; all of them meet the layer at the same point of their
backward, so the order is the same on all. (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016)
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from trainer.models.gpt import Embedding, Head


class Checkpointed(nn.Sequential):
    """A stage whose layers are run again. An embedding keeps nothing but its bytes, and a head's backward follows its
    forward: running them again would save no memory."""

    def forward(self, inputs: Any) -> Any:
        for part in self:
            if isinstance(part, (Embedding, Head)):
                inputs = part(inputs)
            else:
                inputs = checkpoint(part, inputs, use_reentrant=False, preserve_rng_state=False)  # nothing here is random
        return inputs

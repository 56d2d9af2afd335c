"""What ranks hand to AllReduces in one step of a job, by formulas: sizes in bytes, and how often. Nothing here loads torch.

A test holds it to the spans of real ranks.
"""

from __future__ import annotations

from collections import Counter

from trainer.memory import predicted
from trainer.memory.activations import ELEMENT_BYTES, hand_off_bytes
from trainer.spec import JobSpec

LOSS_BYTES = 8  # a float64, averaged over the copies


def of_copies(spec: JobSpec) -> Counter[int]:
    """Of copies that average by DDP, once a step: gradients in one bucket, and the loss. Empty where the memory of the model
    has no formulas, where copies share otherwise, and where the gradients need several buckets."""
    held = predicted(spec)
    gradients = max((one.gradients for one in held), default=0)
    averaged = spec.grid.copies * spec.grid.cp > 1 and spec.splits.data.mode == "ddp"
    if not averaged or not gradients or gradients > spec.splits.data.bucket_mb * 2**20:
        return Counter()
    return Counter([gradients, LOSS_BYTES])


def of_slices(spec: JobSpec) -> Counter[int]:
    """Of tensor slices, in all micro-batches of a step, where one rank has all stages of a slice.

    Of activations: two in a layer's forward and two in its backward, one of the embedding, one behind the scores. Of a number
    or two for each token: the scores' maximum, then their sum and the target's score. Empty for sequence parallel slices,
    which have none.
    """
    if spec.grid.tp == 1 or spec.grid.pp > 1 or spec.splits.tensor.sequence_parallel or spec.model.name != "gpt":
        return Counter()
    tokens = spec.micro_batch_samples * spec.model.context // spec.grid.cp
    token_bytes = ELEMENT_BYTES["float64" if spec.precision == "float64" else "float32"] * tokens
    count = spec.schedule.micro_batches
    found = Counter({hand_off_bytes(spec): (4 * spec.model.layers + 2) * count})
    return found + Counter({token_bytes: count}) + Counter({2 * token_bytes: count})

"""What ranks hand to AllReduces in one step of a job, by formulas: sizes in bytes, and how often. Nothing here loads torch.

A test holds it to the spans of real ranks.
"""

from __future__ import annotations

import math
from collections import Counter

from trainer.memory import predicted
from trainer.memory.activations import ELEMENT_BYTES, hand_off_bytes
from trainer.memory.stages import stage_parameters
from trainer.schedules import stages_of
from trainer.spec import JobSpec

LOSS_BYTES = 8  # a float64, averaged over the copies


def of_copies(spec: JobSpec) -> Counter[int]:
    """Of copies that average by DDP, once a step: a stage's gradients in one bucket, and the loss; of the rank with most.
    Empty where the memory of the model has no formulas, where copies share otherwise, and where a stage needs several buckets.
    """
    if spec.averaging_ranks == 1 or spec.splits.data.mode != "ddp" or not predicted(spec):
        return Counter()
    element = ELEMENT_BYTES[spec.precision]
    by_place = [[element * sum(map(math.prod, stage_parameters(spec, stage))) for stage in own] for own in stages_of(spec)]
    gradients = max(by_place, key=sum)
    return Counter() if max(gradients) > spec.splits.data.bucket_mb * 2**20 else Counter([*gradients, LOSS_BYTES])


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

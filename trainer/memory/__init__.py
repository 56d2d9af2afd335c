"""How much memory a job takes, by formulas, before it runs. Nothing here loads torch.

Measured beside it is what `trainer.probes.memory` counts.
"""

from trainer.memory.predicted import RankMemory, predicted

__all__ = ["RankMemory", "predicted"]

"""What ranks that take the place of lost ones go on from: a run may have several lives. Nothing here loads torch."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.grid import Grid, first_copy

if TYPE_CHECKING:
    from trainer.spec import JobSpec

_COMPLETE = ".metadata"  # torch.distributed.checkpoint writes it last, and whole


@dataclass(frozen=True)
class Life:
    """A rank's life in its run. Its frames' numbers, the count of its spans and the run's clock go on from the life before."""

    number: int = 0
    first_step: int = 0
    reached_step: int = -1  # the last one that any rank had begun in a life before
    zero_ns: int = 0  # of the run's clock on the machine of rank 0; 0 while nobody knows it
    frames: int = 0
    spans: int = 0
    cause: str = ""  # of the end of the life before

    @property
    def words(self) -> str:
        """What a person is to know about a life that is not the first."""
        again = self.reached_step - self.first_step + 1
        whence = f"from the checkpoint before step {self.first_step}" if self.first_step else "from the start"
        steps = "no step is" if again <= 0 else "1 step is" if again == 1 else f"{again} steps are"
        return f"Restart {self.number}: {self.cause} All ranks begin again {whence}: {steps} done again."


FIRST_LIFE = Life()


def holder_of(spec: JobSpec, rank: int) -> int:
    """The rank whose checkpoint `rank` goes on from: of copies that are equal in everything the first one keeps it."""
    if spec.splits.data.mode.startswith("zero") or spec.averaging_ranks == 1:
        return rank
    grid = Grid.of(spec.grid)
    return grid.rank(first_copy(spec, grid.address(rank)))


def checkpoints_folder(folder: Path) -> Path:
    return folder / "checkpoints"


def checkpoint_folder(folder: Path, steps_done: int, holder: int) -> Path:
    return checkpoints_folder(folder) / str(steps_done) / f"rank-{holder}"


def newest_checkpoint(spec: JobSpec, folder: Path) -> int:
    """After how many steps the newest checkpoint was taken that every holder has finished; 0 without any."""
    holders = {holder_of(spec, rank) for rank in range(spec.ranks)}
    for steps_done in sorted(_taken(folder), reverse=True):
        if all((checkpoint_folder(folder, steps_done, holder) / _COMPLETE).exists() for holder in holders):
            return steps_done
    return 0


def forget_after(folder: Path, steps_done: int) -> None:
    """Remove checkpoints of later steps: they are unfinished, and are to be taken again."""
    for later in _taken(folder):
        if later > steps_done:
            shutil.rmtree(checkpoints_folder(folder) / str(later), ignore_errors=True)


def _taken(folder: Path) -> list[int]:
    try:
        return [int(path.name) for path in checkpoints_folder(folder).iterdir() if path.name.isdigit()]
    except FileNotFoundError:
        return []

"""The grid: every rank's address, one number an axis, and the groups of ranks that talk along an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trainer.spec import GridSpec, JobSpec

# From the slowest to the fastest axis: neighbours in rank share a server, so the axis that
# suffers most from a slow link (tensor) comes last, and the one that suffers least (data) first.
AXES = ("dp", "ep", "pp", "cp", "tp")
# No axis, but named as one in groups: the two places of a pipeline that are as far from either end. Where micro-batches go
# both ways they have the same stages.
MIRROR = "mirror"
GROUP_AXES = {*AXES, MIRROR}


def averaging_axes(spec: JobSpec) -> str:
    """The axes over which gradients are averaged, such as "dp×cp", empty if there is none: along them ranks see other
    samples or other tokens."""
    return _joined(spec, ("dp", "ep", "cp"))


def expert_axes(spec: JobSpec) -> str:
    """The axes over which gradients of experts are averaged: along `ep` ranks have other experts."""
    return _joined(spec, ("dp", "cp"))


def _joined(spec: JobSpec, axes: tuple[str, ...]) -> str:
    return "×".join([axis for axis in axes if getattr(spec.grid, axis) > 1] + [MIRROR] * (spec.ways == 2))


def holds_whole_gradient(spec: JobSpec) -> bool:
    """Whether every rank has all of the averaged gradient by itself: nobody has to tell its length, not even to clip it."""
    return spec.ranks == spec.averaging_ranks and spec.grid.ep == 1 and not (
        spec.splits.data.mode.startswith("zero") and spec.averaging_ranks > 1)


def norm_is_told(spec: JobSpec) -> bool:
    """Whether all ranks wait for each other before the optimizer, to tell the length of a gradient that is to be clipped."""
    return spec.optimizer.clip_norm > 0 and not holds_whole_gradient(spec)


def first_copy(spec: JobSpec, address: Address) -> Address:
    """The first address whose rank holds the same numbers: of all that share out samples or tokens, not experts or slices."""
    return replace(address, dp=0, cp=0, pp=_nearer(address.pp, spec.grid.pp) if spec.ways == 2 else address.pp)


def speaks_for_its_stages(spec: JobSpec, address: Address) -> bool:
    """Whether this rank is the one that counts what all ranks of the same stages did together."""
    return address == replace(first_copy(spec, address), ep=0, tp=0)


def _nearer(place: int, places: int) -> int:
    """Of a place and the one as far from the other end, that which comes first."""
    return min(place, places - 1 - place)


@dataclass(frozen=True)
class Address:
    """One rank's place on every axis."""

    dp: int = 0
    ep: int = 0
    pp: int = 0
    cp: int = 0
    tp: int = 0


@dataclass(frozen=True)
class Grid:
    """`sizes` follows AXES."""

    sizes: tuple[int, int, int, int, int]

    @classmethod
    def of(cls, spec: GridSpec) -> Grid:
        return cls((spec.dp, spec.ep, spec.pp, spec.cp, spec.tp))

    @property
    def ranks(self) -> int:
        count = 1
        for size in self.sizes:
            count *= size
        return count

    def size(self, axis: str) -> int:
        return self.sizes[AXES.index(axis)]

    def size_of(self, axes: str) -> int:
        """Ranks of a group along axes such as "dp×cp", or "dp×mirror"."""
        return math.prod(2 if axis == MIRROR else self.size(axis) for axis in axes.split("×"))

    def address(self, rank: int) -> Address:
        if not 0 <= rank < self.ranks:
            raise ValueError(f"rank {rank} is outside a grid of {self.ranks} ranks")
        place = []
        for size in reversed(self.sizes):
            rank, index = divmod(rank, size)
            place.append(index)
        return Address(*reversed(place))

    def rank(self, address: Address) -> int:
        number = 0
        for axis, size in zip(AXES, self.sizes, strict=True):
            index = getattr(address, axis)
            if not 0 <= index < size:
                raise ValueError(f"{axis}={index} is outside an axis of {size}")
            number = number * size + index
        return number

    def groups(self, *axes: str) -> list[list[int]]:
        """The groups of ranks that differ on `axes` alone, MIRROR among them or not; each group in the order of its ranks."""
        along, across = [0], [0]  # what the group's axes add to a rank's number, and what the others do
        stride = self.ranks
        for axis, size in zip(AXES, self.sizes, strict=True):
            stride //= size
            steps = range(0, size * stride, stride)
            if axis in axes:
                along = [one + step for one in along for step in steps]
            else:
                across = [one + step for one in across for step in steps]
        groups = [[first + one for one in along] for first in across]
        return self._with_mirrored(groups) if MIRROR in axes else groups

    def _with_mirrored(self, groups: list[list[int]]) -> list[list[int]]:
        """Each group together with that of the place as far from the pipeline's other end."""
        joined: dict[int, list[int]] = {}
        for group in groups:
            address = self.address(group[0])
            nearer = self.rank(replace(address, pp=_nearer(address.pp, self.size("pp"))))
            joined.setdefault(nearer, []).extend(group)
        return [sorted(group) for group in joined.values()]

    def group(self, axis: str, rank: int) -> list[int]:
        """The group on `axis` that holds `rank`."""
        return next(group for group in self.groups(axis) if rank in group)

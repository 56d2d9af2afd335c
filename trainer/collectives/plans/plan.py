"""A plan: who sends which chunks to whom in which step. Nothing here knows of tensors, processes or time.

The data is cut into chunks with numbers that mean the same on every rank. A plan is all that tells one
algorithm from another: what runs it, what it costs, what it moves and what a page shows of it are read from the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Chunks = tuple[int, ...]


class Move(NamedTuple):
    """`source` sends its `chunks` to `target`, which adds them to its own (`reduce`) or puts them in their place."""

    source: int
    target: int
    chunks: Chunks
    reduce: bool = False


class Turn(NamedTuple):
    """What one rank does in one step: at most one send and one receive, both at once. `step` counts from 0."""

    step: int
    send: Move | None
    receive: Move | None


Steps = list[list[Move]]


@dataclass(frozen=True, eq=False)  # there is one of each, and a cache by plan must not read it all to find it
class Plan:
    """`steps` of moves among `ranks`, of data in `chunks`.

    A rank begins a step as soon as it is through with its last one, whatever the others do. All moves of a step
    carry what their sources had before it.
    """

    collective: str
    algorithm: str
    ranks: int
    chunks: int
    steps: tuple[tuple[Move, ...], ...]

    @cached_property
    def turns(self) -> tuple[tuple[Turn, ...], ...]:
        """Of each rank, the steps in which it has something to do."""
        return tuple(tuple(self._turns_of(rank)) for rank in range(self.ranks))

    def _turns_of(self, rank: int) -> Iterator[Turn]:
        for number, moves in enumerate(self.steps):
            sends = [move for move in moves if move.source == rank]
            receives = [move for move in moves if move.target == rank]
            assert len(sends) <= 1 and len(receives) <= 1, "a rank sends once and receives once in a step"
            if sends or receives:
                yield Turn(number, sends[0] if sends else None, receives[0] if receives else None)

    def traffic(self, sizes: Sequence[int]) -> Counter[tuple[int, int]]:
        """Bytes from each rank to each other, of chunks of such `sizes` in bytes; pairs that exchange none are left out."""
        found: Counter[tuple[int, int]] = Counter()
        for moves in self.steps:
            for move in moves:
                if size := sum(sizes[chunk] for chunk in move.chunks):
                    found[move.source, move.target] += size
        return found

    def start(self, root: int = 0) -> list[dict[int, frozenset[int]]]:
        """Whose contributions each rank has in each chunk before the first step."""
        ranks = range(self.ranks)
        match self.collective:
            case "all_gather":
                return [{rank: frozenset([rank])} for rank in ranks]
            case "all_to_all":
                return [{rank * self.ranks + to: frozenset([rank]) for to in ranks} for rank in ranks]
            case "broadcast":
                return [{chunk: frozenset([root]) for chunk in ranks} if rank == root else {} for rank in ranks]
            case _:
                return [{chunk: frozenset([rank]) for chunk in ranks} for rank in ranks]

    def states(self, start: Sequence[Mapping[int, frozenset[int]]]) -> Iterator[list[dict[int, frozenset[int]]]]:
        """After every step, whose contributions each rank has in each chunk, from what each had at the `start`.

        ValueError if a rank would send what it has not, or count a contribution twice.
        """
        now = [dict(chunks) for chunks in start]
        for moves in self.steps:
            before = [dict(chunks) for chunks in now]
            for source, target, chunks, reduce in moves:
                for chunk in chunks:
                    if chunk not in before[source]:
                        raise ValueError(f"rank {source} has no chunk {chunk} to send to rank {target}")
                    arriving, own = before[source][chunk], before[target].get(chunk, frozenset())
                    if reduce and arriving & own:
                        raise ValueError(f"rank {target} would count ranks {sorted(arriving & own)} twice in chunk {chunk}")
                    now[target][chunk] = arriving | own if reduce else arriving
            yield [dict(chunks) for chunks in now]


def transposed(steps: Iterable[Iterable[Move]]) -> Steps:
    """All steps backwards, every move the other way and adding up: what spread now gathers.

    So a reduce-scatter is an all-gather read from its end, and a reduce a broadcast.
    """
    return [[Move(move.target, move.source, move.chunks, True) for move in moves] for moves in reversed(list(map(list, steps)))]


def turned(steps: Iterable[Iterable[Move]], ranks: int, by: int) -> Steps:
    """The same moves `by` ranks further along: what began at rank 0 begins at rank `by`. Chunks keep their numbers."""
    return [[move._replace(source=(move.source + by) % ranks, target=(move.target + by) % ranks) for move in moves]
            for moves in steps]


def cut(count: int, chunks: int) -> list[int]:
    """Where each of `chunks` begins in `count` elements, and where the last one ends: sizes differ by one at most."""
    size, longer = divmod(count, chunks)
    return [chunk * size + min(chunk, longer) for chunk in range(chunks + 1)]

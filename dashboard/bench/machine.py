"""How much of its own time a virtual machine gets: what its host gives to others makes everything here late."""

from __future__ import annotations

from pathlib import Path

_STAT = Path("/proc/stat")


def machine_time() -> tuple[int, int]:
    """Time stolen from this machine, and all its time, in ticks, proc(5); zeros where the system does not tell."""
    if not _STAT.exists():
        return 0, 0
    ticks = [int(word) for word in _STAT.read_text().partition("\n")[0].split()[1:9]]
    return ticks[7], sum(ticks)


def stolen_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    return (after[0] - before[0]) / max(1, after[1] - before[1])

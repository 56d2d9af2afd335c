"""Changes of a job that would make its steps shorter, or its ranks' memory smaller."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """`gain_ms` a step. `sets` is what the launch form's address has to set; empty where no job can do it."""

    title: str
    says: str
    gain_ms: float
    sets: dict[str, str]


@dataclass(frozen=True)
class MemoryRemedy:
    """`gain_bytes` on the fullest rank; `costs_ms` is what a step takes longer for it, None where that is not known."""

    title: str
    says: str
    gain_bytes: float
    costs_ms: float | None
    sets: dict[str, str]

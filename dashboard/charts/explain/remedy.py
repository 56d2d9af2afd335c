"""A change of a job that would make its steps shorter."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """`gain_ms` a step. `sets` is what the launch form's address has to set; empty where no job can do it."""

    title: str
    says: str
    gain_ms: float
    sets: dict[str, str]

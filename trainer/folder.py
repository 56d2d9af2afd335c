"""Where a run's files lie, under one folder a run."""

from __future__ import annotations

from pathlib import Path


def runs_folder(home: Path) -> Path:
    return home / "runs"


def run_folder(home: Path, run_id: str) -> Path:
    return runs_folder(home) / run_id


def log_file(folder: Path, rank: int) -> Path:
    """What the rank printed, both streams."""
    return folder / "logs" / f"rank-{rank}.log"


def spill_file(folder: Path, rank: int) -> Path:
    """Whole frames, one after another, that could not be sent."""
    return folder / "spill" / f"rank-{rank}.frames"


def store_folder(folder: Path) -> Path:
    """Sealed segments, zoom levels, step figures and their manifest."""
    return folder / "store"

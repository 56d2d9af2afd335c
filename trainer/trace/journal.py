"""Files of JSON lines that only grow. The manifest says how much of each is valid; the rest is cut off."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def append(path: Path, valid_bytes: int, rows: Iterable[Any]) -> int:
    """Add `rows` after the first `valid_bytes`, on disk when this returns; how many bytes are valid then."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
    if not text:
        return valid_bytes
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.truncate(valid_bytes)
        file.seek(valid_bytes)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return valid_bytes + len(text)


def read(path: Path, start: int, end: int) -> list[Any]:
    """The rows between two places that `append` returned (or 0)."""
    if end <= start:
        return []
    with path.open("rb") as file:
        file.seek(start)
        return [json.loads(line) for line in file.read(end - start).splitlines()]

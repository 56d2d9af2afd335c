"""The most that exporting holds, Python's objects and Arrow's buffers: `python -m tests.unit.export_peak FORMAT < exports`.

A process of its own, which ends with tracemalloc on: stopping it beside Arrow's threads can crash Python 3.11
(github.com/python/cpython/issues/128679).
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

Export = tuple[Any, dict[str, Any], Path]  # a run, the state its page begins with, the home its store lies in


def peaks(key: str, exports: list[Export]) -> list[int]:
    """The most bytes that each export holds at once beyond what was there before."""
    command = [sys.executable, "-m", "tests.unit.export_peak", key]
    return json.loads(subprocess.run(command, input=pickle.dumps(exports), stdout=subprocess.PIPE, check=True).stdout)


def main(key: str) -> None:
    import django

    django.setup()
    exports: list[Export] = pickle.load(sys.stdin.buffer)
    tracemalloc.start()
    print(json.dumps([peak(key, *export) for export in exports]))


def peak(key: str, run: Any, state: dict[str, Any], home: Path) -> int:
    import pyarrow as pa

    from dashboard.runs.exports.formats import FORMATS
    from dashboard.runs.exports.source import Source

    source = Source.of(run, state, home)
    arrow_before = pa.total_allocated_bytes()
    arrow_held = [0]
    with tempfile.TemporaryFile() as file:
        tracemalloc.reset_peak()
        python_before, _ = tracemalloc.get_traced_memory()
        FORMATS[key].write(source, file, lambda *_: arrow_held.append(pa.total_allocated_bytes() - arrow_before))
        _, python_peak = tracemalloc.get_traced_memory()
    return python_peak - python_before + max(arrow_held)


if __name__ == "__main__":
    main(sys.argv[1])

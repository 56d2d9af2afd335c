from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.recorder_stack import RecorderStack
from tests.stack.stack import Stack, running_stack


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A whole stack that the tests of one file share; they leave it as they found it."""
    with running_stack(LOCKSTEP_STOP_SECONDS="5") as running:
        yield running


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[RecorderStack]:
    """A Valkey and recorders that a test has for itself, to break."""
    stack = RecorderStack(tmp_path)
    yield stack
    stack.close()


@pytest.fixture
def run(recording: RecorderStack) -> str:
    """A run to be recorded there."""
    (run_id,) = recording.make_runs()
    return run_id

from collections.abc import Iterator

import pytest

from tests.stack.stack import Stack, running_stack


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A whole stack that the tests of one file share; they leave it as they found it."""
    with running_stack(LOCKSTEP_STOP_SECONDS="5") as running:
        yield running

"""Whatever a JobSpec accepts runs to its end."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from tests.any_spec import specs
from tests.ranks.launch import run
from trainer.spec import JobSpec

pytestmark = pytest.mark.ranks


@settings(derandomize=True, database=None, deadline=None, max_examples=15)
@given(specs(4).filter(lambda spec: spec.ranks > 1))
def test_what_is_accepted_runs(tmp_path_factory: pytest.TempPathFactory, spec: JobSpec) -> None:
    ran = run(spec, tmp_path_factory.mktemp("any")).check()
    assert len(ran.losses) == spec.steps
    assert all(map(math.isfinite, ran.losses))
    ran.assert_lanes_are_in_order()

"""A recorder with a bucket: sealed runs end up there, whole, and another machine's server reads them from there."""

import json
import subprocess
import sys

import pytest

from tests.bucket import BUCKET, bucket
from tests.stack.emulated_ranks import Ranks, assert_whole
from tests.stack.recorder_stack import ROOT, RecorderStack, until
from trainer.folder import run_folder, store_folder

pytestmark = pytest.mark.stack

READ = """
import django, json, sys
django.setup()
from dashboard.runs.stored import store_of
reader = store_of(sys.argv[1])
frames = [len(frame.spans["kind"]) for segment in reader.segments for frame in reader.segment_frames(segment)]
print(json.dumps({"complete": reader.manifest.complete, "spans": sum(frames), "steps": len(reader.steps())}))
"""


@pytest.fixture
def stack(tmp_path):
    with bucket() as environment:
        stack = RecorderStack(tmp_path)
        stack.env |= environment | {"LOCKSTEP_STORAGE": f"s3://{BUCKET}/lockstep", "LOCKSTEP_STORAGE_LOCAL_GB": "0"}
        yield stack
        stack.close()


def recorded(stack):
    """A run whose ranks are through, by a recorder that goes on."""
    (run_id,) = stack.make_runs()
    stack.start_recorder()
    ranks = Ranks(stack, run_id)
    ranks.work(50)
    ranks.close()
    stack.end(run_id)
    return run_id, ranks


def test_a_recorded_run_is_read_from_the_bucket_by_a_server_with_an_empty_home(stack, tmp_path):
    run_id, ranks = recorded(stack)
    until("the run is in the bucket", lambda: stack.row(run_id)["kept_at"])
    until("its copy at home went", lambda: not store_folder(run_folder(stack.home, run_id)).exists(), seconds=90)
    env = stack.env | {"LOCKSTEP_HOME": str(tmp_path / "another")}
    read = subprocess.run([sys.executable, "-c", READ, run_id], cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    assert json.loads(read.stdout) == {"complete": True, "spans": ranks.spans, "steps": ranks.steps}


def test_what_is_sealed_at_home_is_what_the_bucket_gets(stack):
    stack.env["LOCKSTEP_STORAGE_LOCAL_GB"] = "1"
    run_id, ranks = recorded(stack)
    assert_whole(stack, run_id, ranks)
    until("the run is in the bucket", lambda: stack.row(run_id)["kept_at"])
    assert store_folder(run_folder(stack.home, run_id)).exists()

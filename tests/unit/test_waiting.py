import pytest

from dashboard.runs.fleet import Worker
from dashboard.runs.waiting import words


def worker(devices=("cpu",), ranks_free=64, host_ready=True):
    return Worker(name="one", host="here", pid=1, devices=list(devices), cores=2, gpus=0, ranks=64, ranks_free=ranks_free,
                  realtime=True, host_ready=host_ready, runs=[], beat_unix=0.0)


@pytest.mark.parametrize("device, there, said", [
    ("cpu", [], "No worker is there that takes cpu jobs: manage.py up starts one."),
    ("cuda", [worker()], "manage.py up starts one. 1 worker is there for other devices."),
    ("cpu", [worker(ranks_free=0), worker(ranks_free=0)], "2 workers are there for cpu jobs, busy now"),
    ("cpu", [worker(host_ready=False)], "loading torch"),
    ("cpu", [worker(ranks_free=0), worker()], "A worker takes it in a moment."),
])
def test_a_queued_run_says_what_it_waits_for(device, there, said):
    assert said in words(device, there)

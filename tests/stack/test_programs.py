"""Programs against a real stack: the client as a command and as a module, exports by the exporter, comparing."""

import gzip
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from dashboard.client.lockstep import Lockstep, Refused
from tests.stack.home import ROOT
from tests.stack.stack import Stack, wait_for
from tests.unit import chrome_reader

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def token(stack: Stack) -> str:
    stack.create_user("ada")
    return stack.make_token("ada", "read", "launch", "manage")


@pytest.fixture(scope="module")
def client(stack, token, tmp_path_factory):
    """client(*words): the exit code, standard output and error of the client that the server hands out."""
    folder = tmp_path_factory.mktemp("client")
    with urllib.request.urlopen(f"{stack.url}/client/lockstep.py") as answer:
        (folder / "lockstep.py").write_bytes(answer.read())

    def called(*words, token=token, url=stack.url):
        done = subprocess.run(
            [sys.executable, "lockstep.py", *words], cwd=folder, capture_output=True, text=True, timeout=120,
            env={"PATH": "/usr/bin:/bin", "LOCKSTEP_URL": url, "LOCKSTEP_TOKEN": token},
        )
        return done.returncode, done.stdout, done.stderr

    return called


@pytest.fixture(scope="module")
def run(client):
    """Of a run that the client launched and watched to its end."""
    code, out, _ = client("launch", "pipeline-1f1b", "--set", "steps=4", "--watch", "--json")
    assert code == 0
    return json.loads(out)


def test_a_run_is_launched_and_watched_to_its_end(run):
    assert (run["state"], run["steps_done"], run["owner"]) == ("finished", 4, "ada")
    assert run["sealed"] is not None


def test_it_is_listed_shown_and_watched_in_the_terminal(client, run):
    code, out, _ = client("list", "state:finished pp:4", "--json")
    assert code == 0 and run["id"] in [one["id"] for one in json.loads(out)]
    code, out, _ = client("show", run["id"])
    assert code == 0 and "4 of 4" in out and "bubble in theory" in out
    code, out, _ = client("watch", run["id"])
    assert code == 0 and "finished" in out and any(bar in out for bar in "▁▂▃▄▅▆▇█")


@pytest.mark.parametrize("words, code, message", [
    (["launch", "pipeline-1f1b", "--set", "steps=0"], 2, "1 or more would do"),
    (["list", "colour:red"], 2, "there is no such field"),
    (["show", "nosuchrun1"], 2, "There is no such run"),
    (["nonsense"], 2, "invalid choice"),
])
def test_a_refusal_says_what_would_do(client, words, code, message):
    found = client(*words)
    assert found[0] == code and message in found[2] and found[1] == ""


def test_other_exit_codes(client, stack):
    assert client("list", token="lockstep_wrong")[0] == 2
    code, _, words = client("list", url="http://127.0.0.1:9")
    assert code == 4 and "does not answer" in words
    stopped = json.loads(client("launch", "pipeline-1f1b", "--set", "steps=1000", "--json")[1])["id"]
    stack.wait_for_state(stopped, "running")
    assert json.loads(client("stop", stopped, "--json")[1]) == {"stopped": True}
    assert client("watch", stopped, "--json")[0] == 3


def test_a_share_link_opens_the_run_to_anybody(client, run):
    url = json.loads(client("share", run["id"], "--json")[1])["url"]
    with urllib.request.urlopen(url) as answer:
        assert run["name"] in answer.read().decode()


def test_an_exported_trace_has_what_the_store_has(client, run, tmp_path):
    code, out, _ = client("export", run["id"], "trace", "--to", str(tmp_path), "--json")
    assert code == 0
    trace = chrome_reader.read(Path(json.loads(out)["file"]).read_bytes())
    assert len(trace.slices) == run["figures"]["spans"]
    assert {one.process for one in trace.slices} == {f"rank {rank}" for rank in range(4)}
    assert len(trace.flows) == 4 * 8 * 2 * 3 and trace.loose_ends == 0  # steps × micro-batches × both ways × borders
    late = [sent.start_ns - received.start_ns for sent, received in trace.flows]
    assert max(late) <= run["figures"]["clock_uncertainty_ns"] * 2 + 1000
    assert {name for _, name, _, _ in trace.counters} >= {"loss"}


def test_a_large_export_is_made_by_the_exporter(stack, client, run):
    wait_for(lambda: "ready" in (stack.home / "logs" / "exporter.log").read_text(), 60, "the exporter")
    assert stack.python(f"door.ask_for_export({run['id']!r}, 'spans-csv')")
    file = stack.home / "runs" / run["id"] / "exports" / f"{run['id']}.spans.csv"
    wait_for(file.exists, 60, f"the exporter\n{stack.logs()}")
    assert len(file.read_text().splitlines()) == run["figures"]["spans"] + 1


def test_runs_are_compared_by_client_and_by_manage(stack, client, run):
    other = json.loads(client("launch", "pipeline-gpipe", "--set", "steps=4", "--watch", "--json")[1])
    found = json.loads(client("compare", run["id"], other["id"], "--json")[1])
    assert [one["path"] for one in found["differences"]] == ["schedule.name"]
    assert json.loads(stack.manage("compare", run["id"], other["id"], "--json").stdout) == found
    assert "schedule.name" in stack.manage("compare", run["id"], other["id"]).stdout
    assert "There is no run nosuchrun1" in stack.manage("compare", run["id"], "nosuchrun1", status=2).stderr


def test_the_module_in_a_program(stack, token, run, tmp_path):
    server = Lockstep(stack.url, token)
    seen = server.run(run["id"])
    assert [row["step"] for row in seen.steps()] == [0, 1, 2, 3]
    assert seen.change(tags=["ci"], note="<b>n</b>").tags == ["ci"]
    assert [one.id for one in server.runs("tag:ci")] == [run["id"]]
    seen.change(name="<i>named</i>")
    shown = seen._repr_html_()
    assert "&lt;i&gt;named" in shown and "<i>" not in shown and '<path fill="#4a86ee"' in shown and f"/runs/{run['id']}/" in shown
    assert gzip.decompress(seen.export("trace", tmp_path).read_bytes())[:1] == b"{"
    with pytest.raises(Refused, match="1 to 120 characters") as refused:
        seen.change(name="")
    assert refused.value.errors[0]["field"] == "name"
    assert server.bulk("tag", run["id"], "nosuchrun1", tags=["two"]) == {
        "done": [run["id"]], "left": [{"run": "nosuchrun1", "why": "there is no such run"}],
    }
    assert "finished" in [notice["kind"] for notice in server.call("GET", "notices")["notices"]]
    with pytest.raises(ValueError, match="go with a preset"):
        server.launch({"steps": 1}, {"steps": 2})


def test_the_client_is_one_file_of_the_standard_library_alone():
    code = "import sys; sys.path.insert(0, 'dashboard/client'); import lockstep; print('django' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr

"""What a run recorded, taken away: the same counts, times and texts in every form, in memory that does not grow."""

import csv
import io
import random
import time
import zipfile
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from dashboard.runs import curation, door, state
from dashboard.runs.exports import making
from dashboard.runs.exports.files import State
from dashboard.runs.exports.formats import FORMATS
from dashboard.runs.exports.source import Source
from dashboard.runs.models import Run
from dashboard.runs.models import State as RunState
from tests.unit import chrome_reader
from tests.unit.export_peak import peaks
from tests.unit.frames import all_spans, frame_of, gpipe_rows, shuffled
from trainer.folder import run_folder, store_folder
from trainer.trace import stream
from trainer.trace.kinds import Kind, Lane
from trainer.trace.store import StoreWriter

NONE = -1


def message_rows(rank, step, ranks=4, micro_batches=8):
    """Sends to the next stage and receives from the one before; every second hop of a ring beside them, twice the same."""
    rows = []
    for m in range(micro_batches):
        at = 10_000 * step + 100 * m + rank
        if rank + 1 < ranks:
            rows.append((Kind.SEND, at, at + 1, step, m, rank + 1, rank + 1, 64, NONE, f"F{m}", "pp"))
        if rank:
            rows.append((Kind.RECEIVE, at + 2, at + 5, step, m, rank, rank - 1, 64, NONE, f"F{m}", "pp"))
    for hop in range(2):
        at = 10_000 * step + 5000 + 10 * hop
        rows.append((Kind.SEND, at, at + 1, step, NONE, NONE, (rank + 1) % ranks, 32, NONE, "hop", "cp"))
        rows.append((Kind.RECEIVE, at + 2, at + 3, step, NONE, NONE, (rank - 1) % ranks, 32, NONE, "hop", "cp"))
    return rows


def pipeline_frames(steps):
    frames, before = [], [0] * 4
    for step in range(steps):
        for rank in range(4):
            rows = gpipe_rows(rank, step) + message_rows(rank, step)
            values = {"loss": 3.0, "grad_norm": float("nan")} if rank == 0 else {}
            counters = [(name, value, step, 100 * step) for name, value in values.items()]
            marks = [("note", "=cmd|' /C calc'!A0", -1, 5)] if step == rank == 0 else []
            frames.append(frame_of(rank, step + 1, rows, before[rank], counters, marks))
            before[rank] += len(rows)
    return frames


def stored(home, run, frames, most_spans=500, complete=True):
    writer = StoreWriter(store_folder(run_folder(home, run.pk)), most_spans=most_spans)
    for at, frame in enumerate(frames):
        writer.add(frame, f"{at + 1}-0")
        if writer.is_full:
            writer.seal()
    writer.add_steps([step_row(step) for step in range(40)])
    writer.seal(complete=complete)
    return frames


def step_row(step):
    return {"step": step, "start_ns": step, "end_ns": step + 9, "duration_ns": 9, "period_ns": 9, "work_start_ns": None,
            "work_end_ns": None, "bubble_share": None if step == 3 else 0.25, "ideal_share": 1 / 3, "exposed_share": 0.125,
            "busy_ns": [1, 2, 3, 4],
            "wait_ns": [0] * 4, "collective_ns": [5] * 4, "loss": 2.5, "samples": 32.0, "learning_rate": 1e-3, "grad_norm": None,
            "samples_per_second": 48.0, "complete": True}


def made(home, run, key):
    file = io.BytesIO()
    told = []
    FORMATS[key].write(Source.of(run, state.for_page(run), home), file, lambda done, of: told.append((done, of)))
    return file.getvalue(), told


@pytest.fixture(params=["random", "pipeline"])
def frames(request, people, home):
    kinds = {"random": lambda: shuffled(random.Random(7)), "pipeline": lambda: pipeline_frames(5)}
    return stored(home, people.run, kinds[request.param]())


def words(kind):
    return Kind(kind).name.lower().replace("_", "-")


def test_a_trace_has_every_span_with_its_time_to_the_nanosecond(people, home, frames):
    packed, told = made(home, people.run, "trace")
    trace = chrome_reader.read(packed)
    expected = all_spans(frames)
    lanes = {Lane.COMPUTE: "compute", Lane.COLLECTIVE: "collectives", Lane.POINT_TO_POINT: "messages", Lane.HOST: "host"}
    wanted = [(f"rank {rank}", lanes[lane], int(start), int(length), name or words(kind), words(kind))
              for rank, start, length, *_, kind, lane, name, _group in expected]
    found = [(one.process, one.thread, one.start_ns, one.duration_ns, one.name, one.category) for one in trace.slices]
    assert sorted(found) == sorted(wanted)
    assert told[-1] == (len(expected), len(expected)) and len(told) > 1
    steps = {span[4] for span in expected if span[4] >= 0}
    assert {one.args["step"] for one in trace.slices if "step" in one.args} == steps
    assert trace.counters and all(value == value for *_, value in trace.counters)


def test_each_message_is_a_flow_from_its_send_to_its_receive(people, home):
    stored(home, people.run, pipeline_frames(5))
    trace = chrome_reader.read(made(home, people.run, "trace")[0])
    assert trace.loose_ends == 0
    assert len(trace.flows) == 5 * (3 * 8 + 4 * 2)
    for sent, received in trace.flows:
        assert (sent.category, received.category) == ("send", "receive")
        assert sent.start_ns <= received.start_ns
        assert (sent.args["step"], sent.args.get("micro_batch")) == (received.args["step"], received.args.get("micro_batch"))
        assert sent.process == f"rank {received.args['peer']}" and received.process == f"rank {sent.args['peer']}"


def test_tables_have_every_span(people, home, frames):
    table = pq.read_table(io.BytesIO(made(home, people.run, "spans-parquet")[0]))
    names = {value.name.lower().replace("_", "-"): value for value in (*Kind, *Lane)}
    rows = [
        (row["rank"], float(row["start_ns"]), float(row["duration_ns"]), *(
            NONE if row[key] is None else row[key] for key in ("bytes", "step", "sequence", "peer", "micro_batch", "stage")
        ), names[row["kind"]], names[row["lane"]], row["name"], row["group"])
        for row in table.to_pylist()
    ]
    assert sorted(rows) == all_spans(frames)
    text = made(home, people.run, "spans-csv")[0].decode()
    read = list(csv.DictReader(io.StringIO(text)))
    assert len(read) == len(rows)
    assert sorted((int(row["rank"]), int(row["start_ns"]), row["kind"]) for row in read) == sorted(
        (row["rank"], row["start_ns"], row["kind"]) for row in table.to_pylist())
    assert "" in {row["step"] for row in read} | {row["stage"] for row in read}


def test_step_figures_as_tables(people, home):
    stored(home, people.run, pipeline_frames(1))
    table = pq.read_table(io.BytesIO(made(home, people.run, "steps-parquet")[0])).to_pylist()
    assert [row["step"] for row in table] == list(range(40))
    assert (table[3]["bubble_share"], table[4]["bubble_share"]) == (None, 0.25)
    assert (table[0]["busy_ns"], table[0]["complete"]) == (10, True)
    read = list(csv.DictReader(io.StringIO(made(home, people.run, "steps-csv")[0].decode())))
    assert [float(row["loss"]) for row in read] == [2.5] * 40


def test_a_text_that_begins_like_a_formula_is_harmless_in_a_spreadsheet(people, home):
    bad = ["=HYPERLINK(1)", "+1", "-2+3", "@SUM(A1)", "\t=1", "F0", "a=b"]
    rows = [(Kind.FORWARD, at, at + 1, 0, 0, 0, NONE, NONE, NONE, name, "") for at, name in enumerate(bad)]
    stored(home, people.run, [frame_of(0, 1, rows)])
    read = list(csv.DictReader(io.StringIO(made(home, people.run, "spans-csv")[0].decode(), newline="")))
    assert [row["name"] for row in read] == [f"'{name}" for name in bad[:5]] + bad[5:]
    parquet = pq.read_table(io.BytesIO(made(home, people.run, "spans-parquet")[0]))
    assert parquet["name"].to_pylist() == bad


@pytest.mark.parametrize("key", ["trace", "hta", "spans-parquet", "spans-csv"])
def test_memory_does_not_grow_with_the_run(people, home, key, tmp_path):
    exports = []
    for steps in (2, 5, 40):  # the first takes what is loaded once
        folder = tmp_path / f"{steps}"
        stored(folder, people.run, pipeline_frames(steps), most_spans=200)
        exports.append((people.run, state.for_page(people.run), folder))
    _, few, many = peaks(key, exports)
    assert many < 1.5 * few + 300_000


@pytest.mark.parametrize("key", FORMATS)
def test_a_run_that_recorded_nothing_is_exported_as_nothing(people, home, key):
    data, _ = made(home, people.run, key)
    if key == "trace":
        assert chrome_reader.read(data).slices == []
    elif key == "hta":
        assert zipfile.ZipFile(io.BytesIO(data)).namelist() == []
    elif key.endswith("csv"):
        assert len(data.decode().splitlines()) == 1
    elif key.endswith("parquet"):
        assert pq.read_table(io.BytesIO(data)).num_rows == 0


# Asking for one


@pytest.fixture
def client(people):
    return people.client("member")


def content(answer):
    return b"".join(answer)


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_a_small_one_is_there_at_once_and_is_not_shown_but_saved(client, people, home):
    stored(home, people.run, pipeline_frames(2))
    address = f"/runs/{people.run.pk}/exports/spans-csv/"
    assert client.get(f"{address}file/").status_code == 404
    assert client.post(address)["Location"] == f"{address}file/"
    answer = client.get(f"{address}file/")
    data = content(answer)
    assert answer["Content-Disposition"] == f'attachment; filename="{people.run.pk}.spans.csv"'
    assert int(answer["Content-Length"]) == len(data) > 1000
    assert "no-store" in answer["Cache-Control"]
    by_api = client.post(f"/api/v1/runs/{people.run.pk}/exports/spans-csv")
    assert (by_api.status_code, by_api.json()["state"], by_api.json()["bytes"]) == (200, "ready", len(data))
    assert content(client.get(f"/api/v1/runs/{people.run.pk}/exports/spans-csv/file")) == data


def test_a_large_one_is_asked_for_by_task_name_and_says_how_far_it_is(client, people, home, monkeypatch):
    stored(home, people.run, pipeline_frames(2))
    asked = []
    monkeypatch.setattr(making, "SMALL_SPANS", 10)
    monkeypatch.setattr(door, "ask_for_export", lambda *what: asked.append(what) or True)
    answer = client.post(f"/api/v1/runs/{people.run.pk}/exports/trace")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    client.post(f"/api/v1/runs/{people.run.pk}/exports/trace")
    assert asked == [(people.run.pk, "trace")]  # once
    page = client.get(f"/runs/{people.run.pk}/exports/")
    assert "waiting" in page.content.decode() and page["Refresh"] == "2"
    making.place(people.run, "trace").note(State("making", 0.4))
    assert "40 %" in client.get(f"/runs/{people.run.pk}/exports/").content.decode()
    making.make(people.run, "trace")
    assert client.post(f"/api/v1/runs/{people.run.pk}/exports/trace").json()["state"] == "ready"
    assert "Refresh" not in client.get(f"/runs/{people.run.pk}/exports/")


def test_without_redis_a_large_one_cannot_be_had_and_it_is_said(client, people, home, monkeypatch):
    stored(home, people.run, pipeline_frames(2))
    monkeypatch.setattr(making, "SMALL_SPANS", 10)
    monkeypatch.setattr(door, "ask_for_export", lambda *what: False)
    answer = client.post(f"/api/v1/runs/{people.run.pk}/exports/trace")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    text = client.post(f"/runs/{people.run.pk}/exports/trace/", follow=True).content.decode()
    assert "Redis does not answer" in text and "waiting" not in text


def test_an_export_is_kept_until_more_is_sealed(people, home):
    stored(home, people.run, pipeline_frames(2), complete=False)
    first = making.ask(people.run, "trace")
    at = making.place(people.run, "trace").file.stat().st_mtime_ns
    assert making.ask(people.run, "trace") == first
    assert making.place(people.run, "trace").file.stat().st_mtime_ns == at
    writer = StoreWriter(store_folder(run_folder(home, people.run.pk)))
    writer.add(frame_of(0, 99, gpipe_rows(0, 9)), "99-0")
    writer.seal(complete=True)
    assert making.ask(people.run, "trace").version != first.version


def test_a_maker_that_fell_silent_or_failed_is_told_and_can_be_tried_again(people, home, monkeypatch):
    stored(home, people.run, pipeline_frames(1))
    making.place(people.run, "trace").note(State("making", 0.5))
    now = time.time()
    monkeypatch.setattr("dashboard.runs.exports.files.time.time", lambda: now + 100)
    found = making.place(people.run, "trace").state()
    assert (found.state, found.moves) == ("failed", False) and "fallen silent" in found.reason
    assert making.ask(people.run, "trace").state == "ready"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(FORMATS, "trace", replace(FORMATS["trace"], write=full))
    making.make(people.run, "trace")
    assert "No space left" in making.place(people.run, "trace").state().reason
    assert not list(making.place(people.run, "trace").folder.glob("*.part"))


@pytest.mark.parametrize("key", ["nope", "..", "%2e%2e", "trace.state.json", "....//"])
def test_no_path_comes_from_outside(client, people, home, key):
    stored(home, people.run, pipeline_frames(1))
    making.make(people.run, "trace")
    for address in (f"/runs/{people.run.pk}/exports/{key}/file/", f"/api/v1/runs/{people.run.pk}/exports/{key}/file"):
        assert client.get(address).status_code == 404


def test_exports_go_with_their_run(people, home, monkeypatch):
    stored(home, people.run, pipeline_frames(1))
    making.make(people.run, "trace")
    Run.objects.update(state=RunState.FINISHED)
    curation.delete(people.run)
    Run.objects.update(deleted_at="2020-01-01T00:00:00Z")
    monkeypatch.setattr(stream, "forget", lambda client, run_id: None)
    curation.purge(home, client=None)
    assert not making.place(people.run, "trace").file.exists()

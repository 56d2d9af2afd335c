import json
from dataclasses import replace
from html import unescape

import pytest

from dashboard.runs import forms, services
from dashboard.runs.models import Run, State
from dashboard.runs.sketch import sketch
from trainer.presets import PRESETS
from trainer.spec import JobSpec

FORM = forms.values_of(PRESETS["pipeline-1f1b"].spec)


@pytest.fixture
def client(people, workers):
    Run.objects.all().delete()
    return people.client("member")


def text(response):
    return unescape(response.content.decode())


def test_the_gallery_shows_every_preset_with_a_drawing(client):
    shown = text(client.get("/launch/"))
    for preset in PRESETS.values():
        assert preset.title in shown
        assert preset.shows in shown
        assert f'href="?preset={preset.key}#job"' in shown
    assert shown.count('<svg class="sketch"') == len(PRESETS) + 1


def test_a_preset_fills_the_form(client):
    shown = text(client.get("/launch/?preset=ddp-digits"))
    assert 'name="grid.dp" value="4"' in shown
    assert '<option value="perceptron" selected>' in shown
    assert shown.count('aria-current="true"') == 1


def test_ranks_inside_a_stage_are_told_apart(client):
    found = check(client, **{"grid.pp": "2", "grid.tp": "2", "grid.cp": "2"})
    shared = {"copy": 0, "experts": 0, "part": 0, "slice": 1}
    assert found["grid"][1] == [{"rank": 1, "stages": [0]} | shared, {"rank": 5, "stages": [1]} | shared]
    assert "part 0, slice 1</th>" in found["html"] and 'title="rank 5: stage 1, part 0, slice 1"' in found["html"]
    assert found["command"] == "manage.py launch pipeline-1f1b --set grid.pp=2 --set grid.cp=2 --set grid.tp=2"


def test_an_unknown_preset_is_said_and_the_ones_there_are_named(client):
    response = client.get("/launch/?preset=pipeline-2f2b")
    assert response.status_code == 404
    assert "there is no such preset; pipeline-1f1b," in text(response)


def test_a_run_fills_the_form_for_those_who_may_see_it(people, client):
    client.post("/launch/", FORM | {"name": "mine", "steps": "7"})
    run = Run.objects.get()
    shown = text(client.get(f"/launch/?from={run.pk}"))
    assert 'name="steps" value="7"' in shown
    assert "Filled in from" in shown
    assert people.client("outsider").get(f"/launch/?from={run.pk}").status_code == 404
    changed = text(client.get(f"/launch/?from={run.pk}&schedule.name=gpipe&steps=7"))
    assert '<code>schedule.name="gpipe"</code>, <code>steps=7</code>. Change what you like' in changed


def test_launching_leads_to_the_run(people, client):
    response = client.post("/launch/", FORM)
    run = Run.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"/runs/{run.pk}/")
    assert run.spec == PRESETS["pipeline-1f1b"].spec
    assert (run.state, run.owner) == ("queued", people.user("member"))


def test_launching_puts_the_run_in_its_devices_queue(client, monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr("dashboard.runs.door.put_in_queue", lambda run_id, device: sent.append((run_id, device)))
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/launch/", FORM)
    assert sent == [(Run.objects.get().pk, "cpu")]


def test_what_cannot_work_is_said_beside_its_field_with_what_was_typed(client):
    response = client.post("/launch/", FORM | {"grid.pp": "3", "name": "<b>keep</b> me", "seed": "41"})
    assert response.status_code == 422
    shown = response.content.decode()
    assert 'name="grid.pp" value="3"' in shown
    assert 'aria-invalid="true"' in shown
    assert "4 layers do not divide into 3 stages; 1, 2 or 4 would do" in shown
    assert 'value="&lt;b&gt;keep&lt;/b&gt; me"' in shown
    assert 'name="seed" value="41"' in shown
    assert not Run.objects.exists()


def test_a_form_without_any_field_is_a_job_of_defaults(client):
    assert client.post("/launch/", {}).status_code == 302
    assert Run.objects.get().spec == JobSpec()


def test_more_ranks_than_the_host_runs_are_refused(client, settings):
    settings.CONF = replace(settings.CONF, most_ranks=2)
    response = client.post("/launch/", FORM)
    assert response.status_code == 422
    assert "this host runs at most 2 (LOCKSTEP_MOST_RANKS)" in text(response)


def test_a_job_as_json_is_launched(client):
    assert client.post("/launch/", {"json": '{"steps": 3}', "do": "launch"}).status_code == 302
    assert Run.objects.get().spec.steps == 3


@pytest.mark.parametrize("given, complaint", [
    ("{steps: 3}", "this is not JSON"),
    ('{"grid": {"pp": 3}}', "grid.pp: 3 was given: 4 layers do not divide into 3 stages"),
    ('{"spteps": 3}', "spteps: 3 was given: there is no such field"),
])
def test_json_that_is_no_job_is_shown_again_with_what_is_wrong(client, given, complaint):
    response = client.post("/launch/", {"json": given, "do": "launch"})
    assert response.status_code == 422
    assert complaint in text(response)
    assert given in text(response)
    assert not Run.objects.exists()


def test_json_fills_in_the_form_without_launching(client):
    response = client.post("/launch/", {"json": '{"steps": 77, "model": {"name": "perceptron"}}', "do": "fill"})
    assert response.status_code == 200
    assert 'name="steps" value="77"' in text(response)
    assert not Run.objects.exists()


def test_a_body_that_is_too_large_is_refused(client):
    assert client.post("/launch/", {"json": "x" * 1_100_000}).status_code == 400


def check(client, **changes):
    response = client.post("/launch/check/", FORM | changes)
    assert response.status_code == 200
    return json.loads(response.content)


def test_the_check_tells_what_the_job_will_be(client):
    found = check(client, **{"grid.dp": "2"})
    assert found["errors"] == []
    assert found["ranks"] == 8
    assert [[cell["rank"] for cell in row] for row in found["grid"]] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found["grid"][1][2] == {"rank": 6, "stages": [2], "copy": 1, "experts": 0, "part": 0, "slice": 0}
    assert found["theory"]["bubble_share"] == pytest.approx(3 / 11)
    assert "3/11" in found["theory"]["formula"]
    assert found["step_ms"] == pytest.approx(11 * 60)
    assert found["command"] == "manage.py launch pipeline-1f1b --set grid.dp=2"
    assert json.loads(found["json"])["grid"]["dp"] == 2
    assert "F0" in found["html"]
    assert not Run.objects.exists()


def test_the_check_tells_what_goes_along_each_axis_and_what_modelled_links_take(client):
    far = {"grid.dp": "2", "links.kind": "modelled", "links.size_factor": "40", "placement.gpus_per_server": "1"} | {
        f"collectives.{name}": "auto" for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")}
    found = check(client, **far)
    assert list(found["traffic"]) == ["dp", "pp"]
    assert found["traffic"]["pp"] == 2 * 8 * 2 * 32 * 32 * 4, "forth and back, micro-batches of two samples"
    sent_ms = 2 * 32 * 32 * 4 * 40 / 50e6 * 1000
    assert found["step_ms"] > 11 * 60 + 6 * sent_ms, "three hand-offs each way at a thousandth of 50 GB/s"
    assert "a step and rank" in found["html"] and found["links_left_out"] == []
    old = check(client, **far | {"splits.data.mode": "parameter-server"})
    assert old["links_left_out"] == [] and old["step_ms"] > 11 * 60 + 6 * sent_ms, "and all gradients at the end"
    many = {"splits.data.mode": "parameter-server", "grid.dp": "16", "schedule.micro_batches": "32", "batch": "512"}
    left = check(client, **far | many)
    assert left["links_left_out"] == ["dp"] and "without the modelled links along" in left["html"]


def test_a_job_that_its_card_has_no_room_for_is_warned_of(client):
    assert any("would not fit" in said for said in check(client, **{"pace.memory_mb": "0.1"})["warnings"])
    assert not any("would not fit" in said for said in check(client, **{"pace.memory_mb": "100"})["warnings"])


def test_the_check_knows_no_time_where_nothing_is_paced(client):
    assert check(client, **{"pace.kind": "real"})["step_ms"] is None


def test_the_check_names_fields_as_the_form_does(client):
    (error,) = check(client, **{"model.gpt.heads": "5"})["errors"]
    assert error["field"] == "model.gpt.heads"
    assert error["given"] == "5"
    assert "would do" in error["message"]


def test_the_largest_job_is_checked_at_once_without_a_drawing(client):
    found = check(client, **{"schedule.micro_batches": "4096", "batch": "4096"})
    assert found["errors"] == []
    assert "too fine to draw" in found["html"]


def test_a_device_that_no_worker_has_is_a_warning_not_a_refusal(client, workers):
    found = check(client, device="cuda")
    assert found["errors"] == []
    assert "No worker here has a cuda device" in found["warnings"][0]
    workers[0] = replace(workers[0], devices=["cpu", "cuda"])
    assert check(client, device="cuda")["warnings"] == []


def test_a_job_larger_than_any_worker_is_a_warning(client, workers):
    workers[0] = replace(workers[0], ranks=2)
    assert "2 rank slots and this job needs 4" in check(client)["warnings"][0]


def test_what_a_step_took_when_the_job_last_ran_stands_beside_its_plan(people, client):
    member, outsider = people.user("member"), people.user("outsider")
    assert check(client)["before"] is None and "on top" in check(client)["html"]
    own = {f"collectives.{name}": "auto" for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")}
    assert "on top" not in check(client, **own, **{"links.kind": "modelled"})["html"], "modelled links take what was planned"

    def finished(seconds, owner=member, **changes):
        spec = PRESETS["pipeline-1f1b"].spec.model_copy(update={"name": "another", "steps": 7, "seed": 11} | changes)
        run = services.launch(spec, owner)
        Run.objects.filter(pk=run.pk).update(state=State.FINISHED, figures={"step_seconds": seconds})
        return run.pk

    older, newer = finished(0.70), finished(0.68)
    finished(0.5, batch=64)
    finished(0.6, owner=outsider)
    services.launch(PRESETS["pipeline-1f1b"].spec, member)  # is still to run
    found = check(client)
    assert found["before"] == {"run": newer, "step_seconds": 0.68}
    assert f'href="/runs/{newer}/"' in found["html"] and "680 ms" in found["html"] and "on top" not in found["html"]
    Run.objects.filter(pk=newer).update(state=State.FAILED)
    assert check(client)["before"]["run"] == older
    assert "700 ms" in text(client.get("/launch/?preset=pipeline-1f1b"))


def test_that_no_worker_is_there_is_a_warning(client, workers):
    workers.clear()
    assert "No worker is there" in check(client)["warnings"][0]


def test_a_rank_of_two_stages_is_planned_with_both(client):
    values = forms.values_of(PRESETS["pipeline-zb-v"].spec)
    found = client.post("/launch/check/", values).json()
    assert [cell["stages"] for cell in found["grid"][0]] == [[0, 7], [1, 6], [2, 5], [3, 4]]
    assert found["theory"] == {"bubble_share": pytest.approx(1 / 17), "formula": "½(p−1)F/(m(F+B)+½(p−1)F) = 1/17"}
    assert found["step_ms"] == pytest.approx(480), "rank 0 begins the next step while others are still at this one"
    assert "stages 0, 7" in found["html"]
    assert "4 × 2 stages" in found["html"]


def test_a_schedule_of_ones_own_is_typed_as_text(client):
    values = forms.values_of(PRESETS["pipeline-own"].spec)
    assert client.post("/launch/", values | {"schedule.csv": values["schedule.csv"].replace("\n", "\r\n")}).status_code == 302
    assert Run.objects.get().spec == PRESETS["pipeline-own"].spec
    wrong = values | {"schedule.csv": values["schedule.csv"].replace("2F3", "2F9")}
    (error,) = client.post("/launch/check/", wrong).json()["errors"]
    assert (error["field"], error["message"]) == ("schedule.csv", "rank 2, row 3, F9: there is no micro-batch 9, only 0 to 7")
    assert "2F9" in text(client.post("/launch/", wrong))


def test_a_drawing_of_ranks_with_two_stages_fills_the_simulated_step():
    drawn = sketch(PRESETS["pipeline-zb-v"].spec)
    assert len(drawn.bars) == 4 * 2 * 8 * 3
    assert [letter for _, letter, _ in drawn.legend] == ["F", "I", "W"]
    assert max(bar.x + bar.width for bar in drawn.bars) == pytest.approx(drawn.width - 1, abs=1)
    assert sketch(PRESETS["pipeline-own"].spec).bars


def test_memory_is_planned_by_place(client):
    found = check(client, **{"schedule.name": "gpipe"})
    assert [place["stages"] for place in found["memory"]] == [[0], [1], [2], [3]]
    for place in found["memory"]:
        kinds = ("weights", "gradients", "optimizer", "activations", "buffers")
        assert place["total"] == sum(place[kind] for kind in kinds) and all(place[kind] > 0 for kind in kinds)
    assert "Memory of each rank at most" in found["html"] and "kB" in found["html"]

"""Collectives where ports are shared: what they take, what is chosen, what a rank sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainer.collectives.cost import ALL_REDUCE_SECONDS, seconds
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.collectives.ported import Network, Program, Turn, ranked, repeated, together
from trainer.collectives.sent import sent_bytes
from trainer.emulate.link_classes import LinkClass
from trainer.emulate.links import Links, packet_bytes
from trainer.emulate.moment import Moment
from trainer.spec import DataSplit, GridSpec, JobSpec, LinksSpec, SplitsSpec, parse
from trainer.step_played import PlayedSteps
from trainer.step_time import StepTime, leaves_out_mirrors, step_ms
from trainer.talk_time import left_out
from trainer.traffic import talks

OWN = dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), "auto")


def job(**changes: Any) -> JobSpec:
    return parse({"model": {"name": "gpt", "layers": 4}, "grid": {"dp": 4}, "batch": 32, "schedule": {"micro_batches": 2},
                  "pace": {"kind": "paced"}, "collectives": OWN, "links": {"kind": "modelled"}} | changes)


def alone(spec: JobSpec) -> LinkClass:
    return Network(spec).link(0, 1)


@pytest.mark.parametrize("algorithm", ALL_REDUCE_SECONDS)
def test_with_a_port_each_it_is_the_formula(algorithm: str) -> None:
    spec = job()
    assert Network(spec).seconds([[0, 1, 2, 3]], [(plan_of("all_reduce", algorithm, 4), 4_000_000)]) == pytest.approx(
        ALL_REDUCE_SECONDS[algorithm](4, 4_000_000, alone(spec)))


@pytest.mark.parametrize(("collective", "algorithm"), [(one, name) for one in ("all_reduce", "all_gather", "all_to_all")
                                                       for name in ALGORITHMS[one]])
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_with_a_port_each_it_is_what_the_plan_costs(collective: str, algorithm: str, ranks: int) -> None:
    """But for ports that receive: of other numbers than powers of two some ranks are ahead, and two send to one at once."""
    spec, plan = job(grid={"dp": ranks}, batch=4 * ranks), plan_of(collective, algorithm, ranks)
    network = Network(spec)
    found, cost = network.seconds([range(ranks)], [(plan, 840_000)]), seconds(plan, 840_000, network.link)
    assert found == pytest.approx(cost, rel=1e-9) if ranks & (ranks - 1) == 0 else found >= cost * (1 - 1e-9)


def test_groups_at_one_port_take_as_long_as_their_sum() -> None:
    spec = job(placement={"gpus_per_server": 2})
    network, plan = Network(spec), plan_of("all_reduce", "ring", 2)
    link = network.link(0, 2)
    one, both = (network.seconds(groups, [(plan, 2_000_000)]) for groups in ([[0, 2]], [[0, 2], [1, 3]]))
    assert one == pytest.approx(2 * (link.latency_seconds + 1_000_000 / link.bytes_per_second))
    assert both == pytest.approx(link.latency_seconds + 4_000_000 / link.bytes_per_second)
    assert network.seconds([[0, 2]], [(plan, 2_000_000)] * 3) == pytest.approx(3 * one)
    assert repeated(network, [[0, 2]], plan, 2_000_000, 1_000_000) == pytest.approx(1_000_000 * one)


def test_a_shared_port_changes_what_is_chosen() -> None:
    """Where ranks of a server share a port, halving and doubling sends half of all through it from both ranks at once, a
    ring an eighth at a time from one of them."""
    spec = job(grid={"dp": 8}, batch=64, placement={"gpus_per_server": 4}, links={"kind": "modelled", "in_server": "pcie-6"})
    network, group = Network(spec), list(range(8))
    size_bytes = 80_000_000
    by_ports = [plan.algorithm for _, plan in ranked(network, [group], "all_reduce", size_bytes)]
    blind = sorted(ALGORITHMS["all_reduce"], key=lambda name: seconds(plan_of("all_reduce", name, 8), size_bytes, network.link))
    assert by_ports[0] == "ring" and blind[0] == "halving-doubling"


def test_groups_that_share_no_port_are_left_out() -> None:
    network = Network(job(grid={"dp": 2, "tp": 2}, placement={"gpus_per_server": 2}))
    assert together(network, [[0, 1], [2, 3]]) == [[0, 1]], "each in a server of its own"
    assert together(network, [[0, 2], [1, 3]]) == [[0, 2], [1, 3]]


def test_a_step_on_modelled_links_is_its_work_hand_offs_and_averaging() -> None:
    spec = job(grid={"pp": 2}, links={"kind": "modelled", "slow_down": 5000}, placement={"gpus_per_server": 1})
    sent = 16 * 32 * 32 * 4
    link = Network(spec).link(0, 1)
    hand_off_ms = 1000 * link.seconds(sent)
    assert step_ms(spec) == pytest.approx((2 + 1) * 60 + 2 * hand_off_ms, rel=1e-6)
    averaged = job(placement={"gpus_per_server": 1})
    (stage,) = StepTime(averaged).averaging_ms
    loss_ms = StepTime(averaged).end_ms(0)
    assert step_ms(averaged) == pytest.approx(2 * 60 + stage + loss_ms) and stage > loss_ms > 0


def test_pipelines_at_one_port_queue_at_it_once_unless_it_is_never_free() -> None:
    def shared(slow_down: int, **more: int) -> StepTime:
        links = {"kind": "modelled", "slow_down": slow_down}
        return StepTime(job(grid={"pp": 2} | more, links=links, placement={"gpus_per_server": 2}))

    slices, parts = shared(2000, tp=2), shared(2000, cp=2)
    link = slices._time.network.link(0, 2)
    own_ms = 1000 * link.seconds(16 * 32 * 32 * 4)
    both_ms = 2 * own_ms - 1000 * link.latency_seconds
    assert slices.hand_off_ms == pytest.approx([own_ms] * 2) and slices.queue_ms == 0, "nothing brings slices together again"
    assert parts.queue_ms == pytest.approx(parts.hand_off_ms[0] - 1000 * link.latency_seconds), "averaging does"
    assert shared(40_000, tp=2).hand_off_ms == pytest.approx([20 * both_ms] * 2) and 20 * both_ms > 60


def older(mode: str, **more: Any) -> tuple[float, float]:
    """A step's time of four copies, and what a message of all their gradients takes, ms."""
    spec = job(splits={"data": {"mode": mode}}, placement={"gpus_per_server": 1}, **more)
    (send,) = (talk for talk in talks(spec, 0) if talk.collective == "send")
    link = alone(spec)
    assert 1000 * link.latency_seconds < 1e-2 * 1000 * send.size_bytes / link.bytes_per_second
    return step_ms(spec) or 0.0, 1000 * send.size_bytes / link.bytes_per_second


LARGE = {"links": {"kind": "modelled", "slow_down": 1000, "size_factor": 100}}


def test_what_a_server_sends_is_in_the_way_of_the_next_steps_messages() -> None:
    """Three parameters out one after the other, the last copy's gradients in, and work in between are four messages."""
    lasts, message_ms = older("parameter-server", **LARGE)
    assert lasts == pytest.approx(2 * 60 + 4 * message_ms, rel=1e-3)


def test_two_copies_send_each_other_everything_at_once() -> None:
    two = job(grid={"dp": 2}, batch=16, splits={"data": {"mode": "everyone"}}, placement={"gpus_per_server": 1}, **LARGE)
    _, message_ms = older("parameter-server", **LARGE)
    assert left_out(two) == [] and step_ms(two) == pytest.approx(2 * 60 + message_ms, rel=0.01)


@pytest.mark.parametrize("copies", [3, 4, 6])
def test_everyone_sends_to_everyone_in_rounds(copies: int) -> None:
    spec = job(grid={"dp": copies}, batch=8 * copies, splits={"data": {"mode": "everyone"}}, placement={"gpus_per_server": 1},
               **LARGE)
    _, message_ms = older("parameter-server", **LARGE)
    assert step_ms(spec) == pytest.approx(2 * 60 + (copies - 1) * message_ms, rel=1e-2)


@pytest.mark.parametrize("per_server", [1, 2, 8])
@pytest.mark.parametrize(("mode", "grid"), [("parameter-server", {"dp": 16}), ("everyone", {"dp": 8, "cp": 2}),
                                            ("everyone", {"dp": 16}), ("everyone", {"dp": 8, "tp": 2})])
def test_what_many_copies_send_is_told_as_if_it_were_played(mode: str, grid: dict[str, int], per_server: int) -> None:
    spec = job(grid=grid, batch=2 * grid["dp"] * 4, splits={"data": {"mode": mode}}, placement={"gpus_per_server": per_server},
               **LARGE)
    assert StepTime(spec).ms == pytest.approx(PlayedSteps(spec).ms, rel=0.03)


def test_ranks_that_clip_wait_for_each_other_before_the_optimizer() -> None:
    """In a V-shaped schedule whoever is through goes on with the next step, unless it has to hear of the gradient's length."""
    clips = {"optimizer": {"clip_norm": 1.0}}
    v_shaped = {"model": {"name": "gpt", "layers": 8}, "grid": {"pp": 4}, "schedule": {"name": "zb-v", "chunks": 2}}
    real = {"links": {"kind": "real"}}
    assert step_ms(job(**v_shaped, **real)) == pytest.approx(480) and step_ms(job(**v_shaped, **real, **clips)) == 510
    far = {"placement": {"gpus_per_server": 1}}
    waits_ms = [step_ms(job(**v_shaped, **far, **more)) for more in ({}, clips)]
    assert waits_ms[1] > waits_ms[0] + 25
    assert step_ms(job(**far, **clips)) == step_ms(job(**far)), "a copy of the whole model knows it by itself"
    pipeline = job(grid={"pp": 4, "dp": 2}, **far, **clips)
    assert StepTime(pipeline).ms == pytest.approx(PlayedSteps(pipeline).ms, rel=0.01)


def test_a_packet_waits_for_nobody_and_nobody_for_it(tmp_path: Path) -> None:
    """As the loss and the gradients that are under way beside it: whichever is sent first."""
    spec = job(links={"kind": "modelled", "size_factor": 100})
    network = Network(spec)
    link = network.link(0, 1)
    expected = [link.seconds(8), link.seconds(1_000_000), 2 * link.seconds(1_000_000) - link.latency_seconds]
    for sizes in ((1_000_000, 8, 1_000_000), (8, 1_000_000, 1_000_000)):
        sends = Turn(tuple((1, size, number) for number, size in enumerate(sizes)), ())
        waits = [Program(1, 0.0, [Turn((), (number,))]) for number in range(len(sizes))]
        _, *arrived = network.played([Program(0, 0.0, [sends]), *waits])
        links = Links(spec, 0, tmp_path / f"ports-{sizes[0]}", Moment())
        assert [links.arrival_ns(1, size, 0) / 1e9 for size in sizes] == pytest.approx(arrived, abs=1e-6)
        assert sorted(arrived) == pytest.approx(expected)
    larger = job(links={"kind": "modelled", "size_factor": 1e6})
    assert (packet_bytes(job()), packet_bytes(larger)) == (4096, 8), "a lone number is one of a larger model too"


def test_mirrored_ranks_meet_for_their_averages() -> None:
    spec = job(model={"name": "gpt", "layers": 8}, grid={"pp": 4}, schedule={"name": "dualpipe", "micro_batches": 8}, **LARGE)
    time = StepTime(spec)
    assert left_out(spec) == [] and time.ms > step_ms(spec.model_copy(update={"links": LinksSpec()})) + min(time.averaging_ms)
    assert not leaves_out_mirrors(spec)
    sharded = spec.model_copy(update={"splits": SplitsSpec(data=DataSplit(mode="zero-2"))})
    assert not leaves_out_mirrors(sharded) and step_ms(sharded) > time.ms, "in every backward, at the ports of what is handed on"
    long = {"schedule": spec.schedule.model_copy(update={"micro_batches": 4096}), "batch": 4096}
    assert not leaves_out_mirrors(spec.model_copy(update=long)), "it follows from shorter steps"
    assert leaves_out_mirrors(sharded.model_copy(update=long))
    deep = spec.model_copy(update={"grid": GridSpec(pp=32), "model": spec.model.model_copy(update={"layers": 64})})
    assert not leaves_out_mirrors(deep.model_copy(update={"schedule": spec.schedule.model_copy(update={"micro_batches": 64})}))
    assert leaves_out_mirrors(deep.model_copy(update=long))


def test_no_step_time_where_nothing_is_emulated_and_what_is_left_out_is_said() -> None:
    assert step_ms(job(pace={"kind": "real"})) is None
    served = {"splits": {"data": {"mode": "parameter-server"}}}
    assert left_out(job(**served)) == [] == left_out(job(grid={"dp": 1024}, batch=2048, **served))
    assert left_out(job(grid={"dp": 128, "pp": 2}, batch=256, **served)) == ["dp"]
    assert left_out(job()) == [] == left_out(job(links={"kind": "real"}, splits={"data": {"mode": "everyone"}}))


@pytest.mark.parametrize("grid", [{"dp": 1024}, {"dp": 64, "pp": 4, "tp": 4}, {"cp": 8, "dp": 16, "tp": 8}])
def test_the_largest_grids_are_told_too(grid: dict[str, int]) -> None:
    spec = job(grid=grid, batch=4096, model={"name": "gpt", "layers": 4, "heads": 8, "width": 64, "context": 64})
    assert (step_ms(spec) or 0) > 2 * 60
    assert set(sent_bytes(spec)) == {"dp×cp" if "cp" in grid else "dp", *grid} - ({"dp"} if "cp" in grid else set())
    assert all(sent_bytes(spec).values())


@pytest.mark.parametrize("algorithm", ["ring", "tree", "recursive-doubling", "halving-doubling"])
def test_a_large_groups_share_is_that_of_a_plan(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job(collectives=OWN | {"all_reduce": algorithm}, grid={"dp": 16}, batch=64)
    planned = sent_bytes(spec)
    monkeypatch.setattr("trainer.collectives.sent.MOST_PLANNED", 1)
    assert sent_bytes(spec)["dp"] == pytest.approx(planned["dp"], rel=1e-3)

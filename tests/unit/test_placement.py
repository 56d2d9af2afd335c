"""Ranks in servers and racks: tensor slices in a server, a pipeline in a rack, copies between; and what is said of it."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from trainer.collectives.plans import ALGORITHMS
from trainer.complaints import SpecError
from trainer.grid import Grid
from trainer.placement import Placement, link_between, slow_axes
from trainer.spec import CollectivesSpec, JobSpec, parse

OWN = dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), "auto")


def spec_of(grid: dict[str, int], placement: dict[str, Any], **links: Any) -> JobSpec:
    return parse({"model": {"name": "gpt", "layers": 16, "heads": 8}, "grid": grid, "batch": 384, "collectives": OWN,
                  "links": {"kind": "modelled"} | links, "placement": placement})


def places(spec: JobSpec) -> Placement:
    return Placement.of(spec.grid, spec.placement)


@pytest.mark.parametrize(("grid", "placement"), [
    ({"tp": 8, "pp": 4, "dp": 3}, {"gpus_per_server": 8, "servers_per_rack": 4}),
    ({"tp": 4, "pp": 4, "dp": 3}, {"gpus_per_server": 6, "servers_per_rack": 6}),
    ({"tp": 2, "cp": 2, "pp": 2, "dp": 4}, {"gpus_per_server": 8, "servers_per_rack": 3}),
])
def test_slices_share_a_server_and_stages_a_rack(grid: dict[str, int], placement: dict[str, int]) -> None:
    spec = spec_of(grid, placement)
    placed = places(spec)
    for group in Grid.of(spec.grid).groups("cp", "tp"):
        assert len({placed.servers[rank] for rank in group}) == 1
    for group in Grid.of(spec.grid).groups("pp", "cp", "tp"):
        assert len({placed.racks[rank] for rank in group}) == 1
    assert max(map(placed.servers.count, placed.servers)) <= placement["gpus_per_server"]
    assert len({*zip(placed.servers, placed.racks, strict=True)}) == len(set(placed.servers)), "a server is in one rack"
    assert slow_axes(spec) == []


def test_a_list_places_ranks_where_one_wants() -> None:
    spec = spec_of({"pp": 2, "tp": 2}, {"gpus_per_server": 2, "servers_per_rack": 1, "servers": "0, 1, 0, 1"})
    assert places(spec) == Placement((0, 1, 0, 1), (0, 1, 0, 1))
    assert [places(spec).distance(0, other) for other in range(1, 4)] == ["cluster", "server", "cluster"]


def test_the_link_is_that_of_the_distance() -> None:
    spec = spec_of({"dp": 4}, {"gpus_per_server": 2, "servers_per_rack": 1}, in_server="nvlink-5", between_racks="roce-v2")
    assert link_between(spec, places(spec), 0, 1).word == "NVLink 5"
    assert link_between(spec, places(spec), 1, 2).word == "RoCE v2"


def test_slices_across_servers_are_warned_of() -> None:
    (said,) = slow_axes(spec_of({"tp": 4, "dp": 2}, {"gpus_per_server": 2}))
    assert said.startswith("Tensor slices talk in every layer, and those of ranks 0, 1, 2, 3 are on 2 servers: InfiniBand NDR "
                           "at 50 GB/s in place of NVLink 4 at 900. A server of 4 or more GPUs")
    assert slow_axes(parse({"grid": {"tp": 4}, "placement": {"gpus_per_server": 2}})) == [], "where links are real there is none"


@pytest.mark.parametrize(("given", "field", "message"), [
    ({"links": {"kind": "modelled"}, "collectives": OWN | {"all_gather": "backend"}}, "collectives.all_gather",
     "'auto' would do"),
    ({"device": "cuda", "collectives": {"all_reduce": "ring"}}, "collectives.all_reduce", "'backend' would do"),
    ({"device": "cuda", "links": {"kind": "modelled"}}, "links.kind", "'real' would do"),
    ({"collectives": {"all_to_all": "tree"}}, "collectives.all_to_all", "'ring' or 'bruck' would do"),
    ({"links": {"in_server": "roce-v2"}}, "links.in_server", "'pcie-6' would do"),
    ({"links": {"slow_down": 0.5}}, "links.slow_down", "1.0 or more would do"),
    ({"placement": {"servers": "0, 1"}}, "placement.servers", "it places 2 ranks and the job has 1"),
    ({"placement": {"servers": "a, b"}}, "placement.servers", "such as '0, 0, 1, 1'"),
    ({"grid": {"dp": 2}, "placement": {"servers": "0, 0", "gpus_per_server": 1}}, "placement.servers",
     "server 0 gets 2 ranks and has 1 GPUs; at most 1 a server would do"),
    ({"placement": {"servers": "-1"}}, "placement.servers", "from 0 to 65535 with commas between would do"),
])
def test_what_cannot_work_says_what_would(given: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(given)
    (error,) = refused.value.errors
    assert error.field == field and message in error.message


def test_every_algorithm_there_is_can_be_named() -> None:
    named = {name: set(get_args(info.annotation)) for name, info in CollectivesSpec.model_fields.items()}
    assert named == {name: {"backend", "auto", *algorithms} for name, algorithms in ALGORITHMS.items()}

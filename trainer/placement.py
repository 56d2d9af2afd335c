"""Where each rank is: its server, its rack, and the links between. Nothing here loads torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.emulate.link_classes import CLASSES, LinkClass
from trainer.grid import AXES, Grid

if TYPE_CHECKING:
    from trainer.spec import GridSpec, JobSpec, PlacementSpec

CHATTY = {"tp": "Tensor slices", "cp": "Context parts"}  # they talk in every layer


def servers_by_rule(grid: GridSpec, gpus_per_server: int) -> list[int]:
    """The server of each rank: tensor slices and context parts of one stage stay together if a server can hold them.

    Ranks follow one another with the tensor axis fastest, so a server is filled with whole stages of one pipeline
    as long as there are any, and only then by other copies.
    """
    unit = grid.cp * grid.tp
    held = gpus_per_server // unit * unit if unit <= gpus_per_server else gpus_per_server
    return [rank // held for rank in range(grid.ranks)]


def racks_by_rule(grid: GridSpec, servers: list[int], servers_per_rack: int) -> list[int]:
    """The rack of each rank: a whole pipeline in one rack if it fits, as many pipelines as do."""
    pipeline = len(set(servers[:grid.pp * grid.cp * grid.tp]))
    held = servers_per_rack // pipeline * pipeline if pipeline <= servers_per_rack else servers_per_rack
    return [server // held for server in servers]


@dataclass(frozen=True)
class Placement:
    """`servers` and `racks` of every rank."""

    servers: tuple[int, ...]
    racks: tuple[int, ...]

    @classmethod
    def of(cls, grid: GridSpec, given: PlacementSpec) -> Placement:
        listed = given.server_of_rank
        if listed:
            return cls(tuple(listed), tuple(server // given.servers_per_rack for server in listed))
        servers = servers_by_rule(grid, given.gpus_per_server)
        return cls(tuple(servers), tuple(racks_by_rule(grid, servers, given.servers_per_rack)))

    def distance(self, one: int, other: int) -> str:
        """"server" for two ranks in one server, "rack" for two in one rack, else "cluster"."""
        if self.servers[one] == self.servers[other]:
            return "server"
        return "rack" if self.racks[one] == self.racks[other] else "cluster"


def link_between(spec: JobSpec, placement: Placement, one: int, other: int) -> LinkClass:
    return _link_at(spec, placement.distance(one, other))


def _link_at(spec: JobSpec, distance: str) -> LinkClass:
    links = spec.links
    return CLASSES[{"server": links.in_server, "rack": links.in_rack, "cluster": links.between_racks}[distance]]


def link_as_counted(spec: JobSpec, distance: str) -> LinkClass:
    """The modelled link over a distance as a payload's bytes see it: slowed down, and of sizes that count for more."""
    link, links = _link_at(spec, distance), spec.links
    return LinkClass(link.word, link.latency_seconds * links.slow_down,
                     link.bytes_per_second / links.slow_down / links.size_factor)


def slow_axes(spec: JobSpec) -> list[str]:
    """A sentence for each axis that talks in every layer and has to leave a server for it; none where links are real."""
    if spec.links.kind == "real":
        return []
    placement, grid = Placement.of(spec.grid, spec.placement), Grid.of(spec.grid)
    said = []
    for axis in AXES:
        if axis not in CHATTY or grid.size(axis) == 1:
            continue
        for group in grid.groups(axis):
            servers = {placement.servers[rank] for rank in group}
            if len(servers) > 1:
                far = min((link_between(spec, placement, group[0], rank) for rank in group[1:]),
                          key=lambda link: link.bytes_per_second)
                near = CLASSES[spec.links.in_server]
                said.append(
                    f"{CHATTY[axis]} talk in every layer, and those of ranks {', '.join(map(str, group))} are on "
                    f"{len(servers)} servers: {far.word} at {far.bytes_per_second / 1e9:g} GB/s in place of {near.word} at "
                    f"{near.bytes_per_second / 1e9:g}. A server of {spec.grid.cp * spec.grid.tp} or more GPUs would keep them "
                    "together.")
                break
    return said

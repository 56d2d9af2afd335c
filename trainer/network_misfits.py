"""Which algorithms, links and places of ranks cannot go together, and what would do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trainer.complaints import FieldError

if TYPE_CHECKING:
    from trainer.spec import JobSpec

IN_STEPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")  # the others come before the steps and after

MOST_SERVERS = 65_536


def network_misfits(spec: JobSpec) -> list[FieldError]:
    return _algorithm_misfits(spec) + _placement_misfits(spec)


def _algorithm_misfits(spec: JobSpec) -> list[FieldError]:
    chosen = spec.collectives.model_dump()
    if spec.device != "cpu":
        found = [FieldError(f"collectives.{name}", algorithm, "our algorithms go over CPU ranks; 'backend' would do")
                 for name, algorithm in chosen.items() if algorithm != "backend"]
        if spec.links.kind == "modelled":
            found.append(FieldError("links.kind", "modelled", "links are modelled between CPU ranks; 'real' would do"))
        return found
    if spec.links.kind == "real":
        return []
    return [
        FieldError(f"collectives.{name}", "backend",
                   "what the backend sends cannot be slowed, and real and emulated time are not mixed; 'auto' would do, "
                   "or links.kind 'real'")
        for name in IN_STEPS if chosen[name] == "backend"
    ]


def _placement_misfits(spec: JobSpec) -> list[FieldError]:
    given, most = spec.placement.servers, spec.placement.gpus_per_server
    try:
        servers = spec.placement.server_of_rank
    except ValueError:
        servers = [-1]
    if not servers:
        return []
    if not all(0 <= server < MOST_SERVERS for server in servers):
        return [FieldError("placement.servers", given, f"numbers of servers from 0 to {MOST_SERVERS - 1} with commas between "
                                                       "would do, one for each rank, such as '0, 0, 1, 1'")]
    if len(servers) != spec.ranks:
        return [FieldError("placement.servers", given, f"it places {len(servers)} ranks and the job has {spec.ranks}; "
                                                       "a server for each would do, or an empty text for the rule")]
    server, count = Counter(servers).most_common(1)[0]
    if count > most:
        return [FieldError("placement.servers", given, f"server {server} gets {count} ranks and has {most} GPUs; at most "
                                                       f"{most} a server would do, or a placement.gpus_per_server of {count}")]
    return []

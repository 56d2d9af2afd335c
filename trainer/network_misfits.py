"""Which algorithms, links and places of ranks cannot go together, and what would do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trainer.complaints import FieldError

if TYPE_CHECKING:
    from trainer.spec import JobSpec

IN_STEPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")  # the others come before the steps and after


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
    servers, most = spec.placement.servers, spec.placement.gpus_per_server
    if not servers:
        return []
    if len(servers) != spec.ranks:
        return [FieldError("placement.servers", servers, f"it places {len(servers)} ranks and the job has {spec.ranks}; "
                                                         "a server for each would do, or an empty list for the rule")]
    server, count = Counter(servers).most_common(1)[0]
    if count > most:
        return [FieldError("placement.servers", servers, f"server {server} gets {count} ranks and has {most} GPUs; at most "
                                                         f"{most} a server would do, or a placement.gpus_per_server of {count}")]
    return []

"""What the network does to the same job: algorithms of one AllReduce, links of two kinds, slices far from each other."""

from __future__ import annotations

from typing import Any

from trainer.presets.kit import WATCHABLE, Preset
from trainer.spec import CollectivesSpec, Gpt, GridSpec, JobSpec, LinksSpec, PlacementSpec, ScheduleSpec

OWN = CollectivesSpec(all_reduce="auto", all_gather="auto", reduce_scatter="auto", all_to_all="auto")
# 274 KB of gradients in a step, as if they were 13.7 MB: by a ring over InfiniBand at a thousandth of its speed 417 ms.
LARGER = 50.0


def copies(title: str, algorithm: str, servers: dict[str, Any]) -> JobSpec:
    return JobSpec(
        name=title, model=Gpt(layers=4), grid=GridSpec(dp=4), schedule=ScheduleSpec(name="gpipe", micro_batches=1),
        pace=WATCHABLE, batch=16, steps=20,
        collectives=OWN.model_copy(update={"all_reduce": algorithm}),
        links=LinksSpec(kind="modelled", size_factor=LARGER), placement=PlacementSpec(**servers),
    )


ONE_EACH = {"gpus_per_server": 1, "servers_per_rack": 4}
TOGETHER = {"gpus_per_server": 4}

PRESETS = (
    Preset("allreduce-ring", "AllReduce by ring",
           "Four servers average their gradients in six steps of a quarter each, and every link carries as much as any "
           "other at every moment. Zoom into one AllReduce and follow a chunk from rank to rank.",
           copies("AllReduce by ring", "ring", ONE_EACH)),
    Preset("allreduce-tree", "AllReduce by tree",
           "The same job by a tree: four steps in place of six, but each of them carries everything. "
           "Look at how long rank 1 waits, after it has sent what it had, until the sum comes back.",
           copies("AllReduce by tree", "tree", ONE_EACH)),
    Preset("allreduce-halving-doubling", "AllReduce by halving and doubling",
           "The same job with partners 2 ranks apart, then 1, then 1 and 2 again: four steps of a half, a quarter, a quarter "
           "and a half. As little traffic as the ring's, and fewer latencies.",
           copies("AllReduce by halving and doubling", "halving-doubling", ONE_EACH)),
    Preset("links-nvlink", "Copies in one server, NVLink",
           "Four copies whose gradients travel over NVLink: 900 GB/s, a thousand times slower than it is. "
           "Look at the AllReduce behind each backward: it is short, for all that its latency is InfiniBand's five times.",
           copies("Copies in one server, NVLink", "ring", TOGETHER)),
    Preset("links-infiniband", "Copies in four servers, InfiniBand",
           "The same four copies, a server each: 50 GB/s between them, and the same gradients take longer than the "
           "backward that made them. Compare the step time with that of the copies in one server.",
           copies("Copies in four servers, InfiniBand", "ring", ONE_EACH)),
    Preset("tensor-across-servers", "Tensor parallel across servers",
           "Four ranks share every matrix, but a server holds two, so the AllReduces of every layer leave it. "
           "Look at a forward: most of it is the network, which is what the launch page warns of.",
           JobSpec(name="Tensor parallel across servers", model=Gpt(layers=2), grid=GridSpec(tp=4),
                   schedule=ScheduleSpec(name="1f1b", micro_batches=2), pace=WATCHABLE, batch=8, steps=10,
                   collectives=OWN, links=LinksSpec(kind="modelled", size_factor=60.0),
                   placement=PlacementSpec(gpus_per_server=2))),
)

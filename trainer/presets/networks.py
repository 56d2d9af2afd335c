"""What the network does to the same job: algorithms of one AllReduce, links of two kinds, slices far from each other."""

from __future__ import annotations

from trainer.presets.kit import ONE_EACH, OWN, TOGETHER, WATCHABLE, Preset, copies
from trainer.spec import Gpt, GridSpec, JobSpec, LinksSpec, PlacementSpec, ScheduleSpec

PRESETS = (
    Preset("allreduce-ring", "AllReduce by ring",
           "Four servers average their gradients in six steps of a quarter each, and every link carries as much as any "
           "other at every moment. Zoom into one AllReduce and follow a chunk from rank to rank.",
           copies("AllReduce by ring", ONE_EACH, "ring")),
    Preset("allreduce-tree", "AllReduce by tree",
           "The same job by a tree: four steps in place of six, but each of them carries everything. "
           "Look at how long rank 1 waits, after it has sent what it had, until the sum comes back.",
           copies("AllReduce by tree", ONE_EACH, "tree")),
    Preset("allreduce-halving-doubling", "AllReduce by halving and doubling",
           "The same job with partners 2 ranks apart, then 1, then 1 and 2 again: four steps of a half, a quarter, a quarter "
           "and a half. As little traffic as the ring's, and fewer latencies.",
           copies("AllReduce by halving and doubling", ONE_EACH, "halving-doubling")),
    Preset("links-nvlink", "Copies in one server, NVLink",
           "Four copies whose gradients travel over NVLink: 900 GB/s, a thousand times slower than it is. "
           "Look at the AllReduce behind each backward: it is short, for all that its latency is InfiniBand's five times.",
           copies("Copies in one server, NVLink", TOGETHER, "ring")),
    Preset("links-infiniband", "Copies in four servers, InfiniBand",
           "The same four copies, a server each: 50 GB/s between them, and the same gradients take longer than the "
           "backward that made them. Compare the step time with that of the copies in one server.",
           copies("Copies in four servers, InfiniBand", ONE_EACH, "ring")),
    Preset("tensor-across-servers", "Tensor parallel across servers",
           "Four ranks share every matrix, but a server holds two, so the AllReduces of every layer leave it. "
           "Look at a forward: most of it is the network, which is what the launch page warns of.",
           JobSpec(name="Tensor parallel across servers", model=Gpt(layers=2), grid=GridSpec(tp=4),
                   schedule=ScheduleSpec(name="1f1b", micro_batches=2), pace=WATCHABLE, batch=8, steps=10,
                   collectives=OWN, links=LinksSpec(kind="modelled", size_factor=60.0),
                   placement=PlacementSpec(gpus_per_server=2))),
)

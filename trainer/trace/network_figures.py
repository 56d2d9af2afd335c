"""The figures of the views on the network and on experts, with their definitions; worked out by the page from what it holds
(static/js/timeline/collectives.js and traffic.js), from steps' rows and from counters."""

from __future__ import annotations

from trainer.trace.figures import Definition

COLLECTIVE_DEFINITIONS = {
    "collective_bytes": Definition(
        "Size of a collective", "B", "The whole array, as nccl-tests counts it: of an AllGather or ReduceScatter that of all "
        "ranks together. The median of those shown.",
    ),
    "collective_transfer": Definition(
        "In transfer", "ns", "What a collective takes once all of its ranks have come; the median of those shown.",
        "the shortest duration among its ranks",
    ),
    "collective_wait": Definition(
        "Waiting for the last", "ns", "What a rank spends in a collective beyond that; the mean over ranks, then the median.",
        "mean over ranks of (own duration − shortest duration)",
    ),
    "algbw": Definition(
        "algbw", "B/s", "How fast the whole array went through, counted in transfer alone.", "bytes / time in transfer",
    ),
    "busbw": Definition(
        "busbw", "B/s", "What each link has to carry for it, whatever the algorithm, so that it can be held against the link.",
        "algbw × 2(N − 1)/N for AllReduce; × (N − 1)/N for AllGather, ReduceScatter, AllToAll, Gather, Scatter; × 1 for "
        "Broadcast and Reduce",
    ),
    "link_ceiling": Definition(
        "Ceiling", "B/s", "What the slowest link between neighbours of the group carries at most, as its ranks' bytes see it.",
        "bytes a second of the link's class / slow-down / size factor",
    ),
}

TOPOLOGY_DEFINITIONS = {
    "traffic_now": Definition(
        "Traffic now", "B", "Bytes from each rank to each other in the step shown, from the sends that ranks recorded. "
        "A collective that its backend carries out alone records no sends.", "Σ bytes of sends, by sender and receiver",
    ),
    "link_flow": Definition(
        "Flow over a class of links", "B/s", "The traffic of the step shown, over all links of the class, by the step's time.",
        "Σ bytes of sends / step time",
    ),
}

STRAGGLER_DEFINITIONS = {
    "late_median": Definition(
        "Lateness", "ns", "How much later than the first the rank came to its collectives in a step; the median over the steps "
        "shown.", "median over steps of Σ over collectives of (own start − first start)",
    ),
    "late_most": Definition(
        "Latest in", "share", "In which share of the steps shown the rank was later than every other. The same one in more than "
        "half of them recurs: look at its device or its work. Else it roams: look at the machine or the network.",
        "steps in which the rank is latest / steps shown",
    ),
}

BALANCE_DEFINITIONS = {
    "expert_imbalance": Definition(
        "Fullest expert", "times", "How much more the fullest expert of a layer works on than the average one; 1 is balance.",
        "max load / mean load",
    ),
    "expert_drop_share": Definition(
        "Dropped", "share", "Of all that a layer's router chose, what found no room.", "Σ dropped / Σ (load + dropped)",
    ),
    "tokens_seen": Definition(
        "Tokens", "count", "Tokens learned from up to the step, over all copies of the model.", "Σ samples × context",
    ),
}

NETWORK_DEFINITIONS = COLLECTIVE_DEFINITIONS | TOPOLOGY_DEFINITIONS | STRAGGLER_DEFINITIONS | BALANCE_DEFINITIONS

"""Every figure that is shown anywhere, with its one definition."""

from __future__ import annotations

from dataclasses import dataclass

RESIDUAL_STEPS = 200


@dataclass(frozen=True)
class Definition:
    title: str
    unit: str  # "share" is shown in per cent
    definition: str
    formula: str = ""


# Of a run. The keys are those of Run.figures.
RUN_DEFINITIONS = {
    "spans": Definition(
        "Spans", "count", "How many pieces of work, transfers and waits the run's ranks recorded and the store holds."
    ),
    "dropped_spans": Definition(
        "Lost spans", "count", "Spans that a rank recorded but that found no way to the store.", "recorded by all ranks − stored"
    ),
    "checked_ranks": Definition(
        "Checked ranks", "count",
        "Ranks of which the store holds exactly the spans that they recorded: the sum over what is sealed is the one that the "
        "rank sent along.",
        "a 64-bit sum over all numbers of all spans, by the rank = by the store",
    ),
    "bubble_share": Definition(
        "Bubble", "share",
        "The part of a step's work time in which ranks do not compute the model, as a share of the whole; the median over steps.",
        "median over steps of 1 − Σ busy / (ranks × (last end − first start))",
    ),
    "bubble_share_ideal": Definition(
        "Bubble, of the ideal", "share",
        "The same idle time as a share of the time that the work alone takes; the median over steps.",
        "median over steps of Σ idle / Σ busy",
    ),
    "bubble_share_theory": Definition(
        "Bubble in theory", "share",
        "What the bubble would be if every action took its modelled time and transfers took none, as a share of the whole.",
        "set by the schedule; (p − 1) / (m + p − 1) for p stages and m micro-batches under GPipe and 1F1B",
    ),
    "overlap_share": Definition(
        "Overlap", "share", "The part of all communication during which the rank computed, over all complete steps.",
        "Σ hidden communication / Σ communication",
    ),
    "ends_apart_ns": Definition(
        "Ends apart, typically", "ns", "By how much the ends of one collective differ between its ranks; the median over steps.",
        "median over steps of the step's largest (last end − first end)",
    ),
    "loss_first": Definition("First loss", "loss", "The loss of the first step that reported one."),
    "loss_last": Definition("Last loss", "loss", "The loss of the latest step that reported one."),
    "exposed_share": Definition(
        "Communication not hidden", "share",
        "The part of a step in which a rank communicates and computes nothing, the mean over ranks; the median over steps. What "
        "goes on inside a forward or a backward is not counted, though slices, parts and experts wait for it there.",
        "median over steps of (Σ communication − Σ hidden communication) / (ranks × extent)",
    ),
    "samples_per_second": Definition(
        "Samples per second", "1/s", "How fast steps went through their samples; the median over steps.",
        "median over steps of samples / step time",
    ),
    "step_seconds": Definition(
        "Step time", "s", "How long after one step the next one is through; the median over steps.",
        "median over steps of (end of the step − end of the step before)",
    ),
    "step_seconds_theory": Definition(
        "Step time in theory", "s",
        "What the launch page said that a step will take: its actions as long as the pace says, messages and collectives as long "
        "as modelled links do. None at the real pace, where it is for the run to tell.",
        "the simulator's (end of a step − end of the step before), of steps that are alike",
    ),
    "steps_figured": Definition(
        "Complete steps", "count", "Steps that every rank went through with no span missing; medians are taken over these."
    ),
    "slow_ranks": Definition(
        "Slow ranks", "rank, step, times",
        "Ranks whose busy time has been 1.15 or more times the others' median in each of the last 3 or more steps, by their "
        "device or by their share of the layers: which, from which step on, how many times.",
        "mean over these steps of own busy / median of the others' busy",
    ),
    "clock_uncertainty_ns": Definition(
        "Clock uncertainty", "ns", "By how much a rank's times may be out against rank 0's; the largest of all ranks.",
        "half of the quickest exchange with rank 0 + the drift's uncertainty × the time since",
    ),
    "rank_clock_uncertainty_ns": Definition(
        "Clock uncertainty of a rank", "ns", "The same for each rank, as its latest frame said; rank 0's clock is the run's."
    ),
    "clock_residual_ns": Definition(
        "Clock residual", "ns",
        "By how much a rank's clock still seems to be off after it was put right: all members see a collective end at once, so a "
        "rank that always sees it earlier or later than the others' mean has a clock that is off, or is always late to notice. "
        "The largest of all ranks, over the latest 200 complete steps.",
        "max over ranks of |median over steps of the mean over collectives of (own end − mean end of the members)|",
    ),
    "zero_unix_ns": Definition("Start of the run's clock", "unix ns", "The moment at which the run's clock shows 0."),
}

# Of a step. The keys are those of a step's row.
STEP_DEFINITIONS = {
    "step": Definition("Step", "number", "Steps count from 0."),
    "start_ns": Definition("Start", "ns", "When the first rank began the step, on the run's clock."),
    "end_ns": Definition("End", "ns", "When the last rank ended the step, on the run's clock."),
    "duration_ns": Definition(
        "Extent", "ns", "From the first rank's start to the last rank's end; a pipeline begins the next step before.",
        "end − start",
    ),
    "period_ns": Definition(
        "Step time", "ns", "How long after the step before this one was through; for the first step its extent.",
        "end − end of the step before",
    ),
    "work_start_ns": Definition("Start of the work", "ns", "When the first forward of any rank began."),
    "work_end_ns": Definition("End of the work", "ns", "When the last backward of any rank ended."),
    "bubble_share": Definition(
        "Bubble", "share",
        "The part of the step's work time in which ranks are neither in a forward nor in a backward, as a share of the whole.",
        "1 − Σ busy / (ranks × (end of the work − start of the work))",
    ),
    "ideal_share": Definition(
        "Bubble, of the ideal", "share", "The same idle time as a share of the time that the work alone takes.", "Σ idle / Σ busy"
    ),
    "recorded_spans": Definition("Recorded spans", "count", "How many spans each rank recorded of the step."),
    "busy_ns": Definition("Busy", "ns", "Time in forwards and backwards, for each rank.", "Σ durations of forward and backward"),
    "wait_ns": Definition("Waiting", "ns", "Time in which compute stood still until a sender had sent, for each rank."),
    "collective_ns": Definition("In collectives", "ns", "Time in collectives, waiting for others included, for each rank."),
    "communication_ns": Definition(
        "Communication", "ns",
        "Time in which anything was sent, received or exchanged, for each rank; what runs at once counts once.",
    ),
    "hidden_ns": Definition(
        "Hidden communication", "ns",
        "The part of the communication during which the rank computed, for each rank; its share is how well the two overlap.",
        "time in which a rank both communicates and computes",
    ),
    "exposed_share": Definition(
        "Communication not hidden", "share",
        "The part of the step in which a rank sends, receives or takes part in a collective while it computes nothing; the mean "
        "over ranks. What goes on inside a forward or a backward is not counted, though slices, parts and experts wait for it "
        "there.",
        "(Σ communication − Σ hidden communication) / (ranks × extent)",
    ),
    "transfer_ns": Definition(
        "Transfer", "ns",
        "What the rank's collectives took once all had come: of each the shortest member's duration, for each rank. The rest of "
        "the time in collectives is waiting for whoever came last.",
        "Σ over collectives of the least duration of their members",
    ),
    "late_ns": Definition(
        "Late", "ns",
        "How much later than the first member the rank came to its collectives, for each rank: the straggler's figure.",
        "Σ over collectives of (own start − first start)",
    ),
    "end_apart_ns": Definition(
        "Ends apart", "ns",
        "By how much the ends of one collective differ between its ranks at most. All see the same end, so what exceeds the "
        "clocks' uncertainty is an error of the clocks, or a rank that was kept from noticing.",
        "largest over collectives of (last end − first end)",
    ),
    "end_off_ns": Definition(
        "Ends off", "ns",
        "By how much each rank saw its collectives end after the mean of their members, before it where negative.",
        "mean over collectives of (own end − mean end of the members)",
    ),
    "loss": Definition(
        "Loss", "loss", "The step's mean cross-entropy over all samples, before its gradients changed the weights."
    ),
    "samples": Definition("Samples", "count", "Samples learned from in the step, over all copies of the model."),
    "samples_per_second": Definition(
        "Samples per second", "1/s", "How fast the step went through its samples.", "samples / step time"
    ),
    "learning_rate": Definition("Learning rate", "", "The optimizer's rate in the step."),
    "grad_norm": Definition(
        "Gradient norm", "", "The length of the whole model's gradient as one vector, before it was clipped. "
        "Where ranks hold parts of the model it is known only if gradients are clipped.", "√Σ gradient²"),
    "complete": Definition("Complete", "yes or no", "Whether every rank went through the step with no span missing."),
}

# Of a step's mixtures of experts: counters named by these keys, then layer and expert (`expert_load/2/7`), or the layer.
EXPERT_DEFINITIONS = {
    "expert_load": Definition(
        "Load of an expert", "tokens", "Tokens that the expert worked on in the step, over all copies of the model.",
    ),
    "expert_dropped": Definition(
        "Dropped tokens", "tokens",
        "Tokens that the router chose the expert for but that found no room there, over all copies of the model.",
        "load + dropped, added up over a layer's experts = top k × tokens of the step",
    ),
    "expert_penalty": Definition(
        "Balancing penalty", "", "How unevenly a layer's router chooses: 1 if all experts get the same, E if one gets all; "
        "the mean over samples. What is trained is the loss plus this of every layer, times the model's balance.",
        "E · Σ (share of the sample's choices × mean share of the softmax), over E experts",
    ),
}

# Of an analysis of what is stored (trainer.trace.analysis.run.Totals), beside sums of the steps' figures.
ANALYSIS_DEFINITIONS = {
    "path_ns": Definition(
        "On the critical path", "ns",
        "How much of the steps' critical paths a rank's spans make up: from the span that ended last back to what had to end "
        "before, from a receive to its send, from a collective to the member that came last.",
        "Σ over steps of the path's time on the rank",
    ),
    "path_by_kind_ns": Definition("Critical path by kind", "ns", "The same by what was done."),
    "path_idle_ns": Definition(
        "Gaps in the critical path", "ns", "Time on the critical path in which nothing was recorded: overhead between spans."
    ),
    "sent_bytes": Definition(
        "Traffic", "B", "Bytes from each rank to each other, from the sends that ranks recorded.",
        "Σ bytes of sends, by sender and receiver",
    ),
    "by_kind_ns": Definition("Time by kind", "ns", "How long each rank did what, all spans of a kind together."),
}

DEFINITIONS = {**ANALYSIS_DEFINITIONS, **STEP_DEFINITIONS, **RUN_DEFINITIONS, **EXPERT_DEFINITIONS}


def bubble_shares(busy_ns: float, ranks: int, window_ns: float) -> tuple[float, float]:
    """(share of the whole, share of the ideal) of the idle time of `ranks` that worked `busy_ns` together in a window."""
    idle_ns = ranks * window_ns - busy_ns
    return idle_ns / (ranks * window_ns), idle_ns / busy_ns


# Of a step, worked out by a run's page from the step's row (static/js/views/now.js).
PAGE_DEFINITIONS = {
    "slowest_rank": Definition(
        "Slowest rank", "rank", "The rank that spent the most time of a step in forwards and backwards: the others wait for it.",
        "the rank of max busy; beside it max busy / median busy",
    ),
}

# Of a rank's memory: the counters memory/…, and what stands beside them.
MEMORY_DEFINITIONS = {
    "memory_weights": Definition(
        "Weights", "B", "Storage of the rank's own parameters; of parameters shared out among ranks, its share.",
        "parameters × bytes of one",
    ),
    "memory_gradients": Definition(
        "Gradients", "B", "Storage of the gradients accumulated so far; gone when the optimizer has used them.",
        "parameters × bytes of one",
    ),
    "memory_optimizer": Definition(
        "Optimizer", "B", "Storage of what the optimizer remembers from step to step; there from its first step on.",
        "AdamW: 2 moments × parameters × bytes of one, and 4 bytes a tensor; SGD: 0",
    ),
    "memory_activations": Definition(
        "Activations", "B",
        "What forwards have left for their backwards, counted between actions: distinct storages that autograd or the stage "
        "holds. Computed on the way through an operation and dropped again, it is not in here.",
        "Σ micro-batches held × bytes of one; GPipe holds m, 1F1B min(m, p − stage)",
    ),
    "memory_buffers": Definition(
        "Buffers", "B", "The step's samples, messages between stages on their way or ready for use again, and DDP's buckets."
    ),
    "memory_allocated": Definition(
        "Allocated", "B", "On CUDA, what torch's allocator has given out, whatever for; beside it the most so far."
    ),
    "memory_predicted": Definition(
        "Predicted at most", "B",
        "By formulas, from the job alone: the sum of each kind's peak on the rank. Peaks need not fall together.",
        "weights + gradients + optimizer + activations + buffers",
    ),
}

DEFINITIONS |= MEMORY_DEFINITIONS

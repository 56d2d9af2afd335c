"""Pipelines: the same four ranks under every schedule."""

from __future__ import annotations

from trainer.presets.kit import Preset, over_nvlink, pipeline

# GPipe in two halves: a text such as one would write by hand.
TWO_FLOODS = "\n".join(
    ",".join(f"{rank}{do}{first + m}" for first in (0, 4) for do in "FB" for m in range(4)) for rank in range(4)
)

PRESETS = (
    Preset("pipeline-1f1b", "Pipeline, 1F1B",
           "Four stages, eight micro-batches, one forward and one backward in turn: "
           "GPipe's bubble, but a stage holds at most four micro-batches' activations.",
           pipeline("Pipeline, 1F1B", "1f1b")),
    Preset("pipeline-gpipe", "Pipeline, GPipe",
           "All forwards, then all backwards. The bubble is (p−1)/(m+p−1) of the step: 27.3 % here.",
           pipeline("Pipeline, GPipe", "gpipe")),
    Preset("pipeline-naive", "Pipeline, one micro-batch at a time",
           "The layers are spread over four ranks, but only one works at any moment: three of four are idle.",
           pipeline("Pipeline, one micro-batch at a time", "naive").model_copy(update={"steps": 10})),
    Preset("pipeline-interleaved", "Pipeline, interleaved 1F1B",
           "Every rank holds two thin stages, so the first micro-batch reaches the last rank in half the time: the bubble "
           "at both ends of a step is half of 1F1B's. Look at the messages: there are more than twice as many.",
           pipeline("Pipeline, interleaved 1F1B", "interleaved", 2)),
    Preset("pipeline-breadth-first", "Pipeline, looped breadth-first",
           "All micro-batches go through a rank's first stage before its second one begins: GPipe with half the bubble. "
           "Look at how long the first forwards wait for their backwards: every activation is held until then.",
           pipeline("Pipeline, looped breadth-first", "breadth-first", 2)),
    Preset("pipeline-zb-h1", "Pipeline, ZB-H1",
           "1F1B with its backwards split: the gradient that the previous stage waits for leaves first, the weights' is put "
           "off. Look at the end of a step: the later a stage, the more weights' gradients fill what was idle.",
           pipeline("Pipeline, ZB-H1", "zb-h1")),
    Preset("pipeline-interleaved-zb", "Pipeline, interleaved zero bubble",
           "Two thin stages a rank and split backwards at once: the bubble is half of ZB-H1's. "
           "Look at the last rank, which puts off three weights' gradients until nothing else is left to do.",
           pipeline("Pipeline, interleaved zero bubble", "interleaved-zb", 2)),
    Preset("pipeline-zb-v", "Pipeline, ZB-V",
           "The model goes down the ranks and up again, so the first rank also has the last stage. "
           "Look inside a rank: once it has begun nothing is idle; what is left is that ranks start one after the other.",
           pipeline("Pipeline, ZB-V", "zb-v", 2)),
    Preset("pipeline-dualpipe-v", "Pipeline, DualPipeV",
           "Stages in a V again, but in its middle every rank does a forward of one way and a backward of the other. "
           "Look at the start and the end of a step: only there are backwards split.",
           pipeline("Pipeline, DualPipeV", "dualpipe-v", 2)),
    Preset("pipeline-dualpipe", "Pipeline, DualPipe",
           "Micro-batches enter at both ends, F0↓ down the ranks and F4↑ up, so every rank has two stages and the model is "
           "there twice. Look at the middle of a step, where no rank waits, and at its end: ranks 0 and 3, and 1 and 2, "
           "average the gradients of the two stages that they have in common.",
           over_nvlink(pipeline("Pipeline, DualPipe", "dualpipe"))),
    Preset("pipeline-by-hand", "Pipeline, cut by hand",
           "The last of four stages has half of the layers, so its rank works all the time and the others wait for it, "
           "under whatever schedule. Change the layers from 1, 1, 2, 4 to 2, 2, 2, 2 and see the bubble halve.",
           pipeline("Pipeline, cut by hand", "1f1b", layers=(1, 1, 2, 4)).model_copy(update={"steps": 20})),
    Preset("pipeline-own", "Pipeline, a schedule of your own",
           "An order written as text, a row for each rank: GPipe in two halves of four micro-batches. Look at the middle "
           "of a step: the pipeline drains once more, the price of holding four activations a stage in place of eight.",
           pipeline("Pipeline, a schedule of your own", "csv", csv=TWO_FLOODS)),
)

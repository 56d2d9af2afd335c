"""One rank's life, from meeting the others to the last flush."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading
import traceback
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from trainer.checkpoints import Checkpoints
from trainer.collectives.own import OwnCollectives
from trainer.emulate.faults import RankFaults
from trainer.emulate.links import links_of
from trainer.emulate.moment import Moment
from trainer.emulate.strikes import Strikes
from trainer.ends import FINISHED, STOPPED, TERMINATED, TIMED_OUT
from trainer.folder import spill_file
from trainer.grid import AXES, Grid
from trainer.job import Control, RankJob
from trainer.probes.c10d import CollectiveProbe
from trainer.probes.optimizer import OptimizerProbe
from trainer.realtime import ask_for_realtime
from trainer.rendezvous import SharedClock, axis_groups, device_of, join, message_groups
from trainer.spec import JobSpec, parse
from trainer.trace.frame import NONE
from trainer.trace.in_order import InOrder
from trainer.trace.kinds import Lane
from trainer.trace.sinks import FileSink, RedisSink, Sink
from trainer.trace.writer import Writer
from trainer.training import Training


def main(job: RankJob, control: Control) -> int:
    """FINISHED, STOPPED if a stop was requested before the last step, or TIMED_OUT; whatever else goes wrong is raised."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # in every thread to come; one waits for it
    torch.set_num_threads(1)
    spec = parse(job.spec_json)
    training = Training(spec, job.rank, device_of(job, spec))
    realtime = ask_for_realtime(spec)  # not before: loading is real work, and gloo's threads are to inherit it
    life = job.life
    writer = Writer(job.rank, _sink(job), spill_file(job.folder, job.rank), job.flush_ms,
                    written=(life.frames, life.spans), note=partial(control.note_written, job.rank))
    is_final = life.number >= spec.restarts
    try:
        if life.number:
            writer.mark("restart", life.words, life.first_step)
        writer.mark("realtime", realtime)
        _leave_on_sigterm(writer, is_final)
        code = _run(job, spec, control, training, writer)
        is_final = True
        return code
    except RuntimeError as error:
        if not _is_time_out(error):
            raise
        traceback.print_exc()
        return TIMED_OUT
    finally:
        writer.close(final=is_final)


def _run(job: RankJob, spec: JobSpec, control: Control, training: Training, writer: Writer) -> int:
    store = join(job, spec)
    clock = SharedClock(job.rank, store, writer, job.life.zero_ns, control.set_zero)
    grid = Grid.of(spec.grid)
    groups = axis_groups(grid, job.rank, spec)
    letters = message_groups(grid, job.rank, groups, spec)
    current = _Step()
    moment = Moment(spec.pace.is_emulated, spec.links.kind == "modelled")
    links = links_of(spec, job.rank, job.folder, moment)
    if links is not None:
        writer.mark("links", links.words)
    own = None
    if spec.collectives.own or any(fault.kind == "lost-message" for fault in spec.faults):
        writer.add = InOrder(writer.add, Lane.POINT_TO_POINT)  # other threads send while the training thread does
    if spec.collectives.own:
        own = OwnCollectives(spec.collectives.model_dump(), writer.add, lambda text: writer.mark("algorithm", text), links)
    collectives = CollectiveProbe(writer.add, _names(groups), current.get, own)
    optimizers = OptimizerProbe(writer, current.get, moment)
    optimizers.install()
    faults = RankFaults(spec, job.rank, job.life.reached_step)
    training.connect(groups, letters, clock.run_clock, writer, moment, links, faults.slowness)
    collectives.install("CUDA" if spec.device == "cuda" else "CPU")  # what came before is no step's, and takes no emulated time
    strikes = Strikes(faults, writer, training.letters, links)
    checkpoints = training.checkpoints(job.rank, job.folder)
    if job.life.first_step:
        checkpoints.restore(job.life.first_step)
    gc.freeze()  # what is here now stays; the collector need not look at it in every step
    _say(f"rank {job.rank} of {spec.ranks}{_place(grid, job.rank)}: process {os.getpid()}, torch {torch.__version__} over "
         f"{dist.get_backend()}, begins at step {job.life.first_step} of {spec.steps}")
    dist.barrier()  # all begin the first step together, or it would show who came late
    moment.catch_up()
    done = _loop(job, spec.steps, control, training, current, strikes, checkpoints)
    dist.barrier()
    _say(f"{done} of {spec.steps} steps done")
    checkpoints.close()
    if training.prove_equal():
        writer.mark("parameters", "equal")
    collectives.remove()
    optimizers.remove()
    training.memory.remove()
    clock.close()
    dist.destroy_process_group()
    return FINISHED if done == spec.steps else STOPPED


def _say(words: str) -> None:
    """Into the rank's log, at once: what follows may be the last that it does."""
    print(words, flush=True)


def _place(grid: Grid, rank: int) -> str:
    """", pp 1, tp 0": on the axes that the job has."""
    address = grid.address(rank)
    return "".join(f", {axis} {getattr(address, axis)}" for axis, size in zip(AXES, grid.sizes, strict=True) if size > 1)


def _names(groups: dict[str, dist.ProcessGroup]) -> dict[Any, str]:
    """What spans call each group, by torch's name for it."""
    everyone = dist.group.WORLD
    assert everyone is not None
    return {everyone.group_name: "all"} | {group.group_name: axis for axis, group in groups.items()}


class _Step:
    """The step under way, for whoever records something in it."""

    def __init__(self) -> None:
        self.number = NONE

    def get(self) -> int:
        return self.number


def _loop(job: RankJob, steps: int, control: Control, training: Training, current: _Step, strikes: Strikes,
          checkpoints: Checkpoints) -> int:
    """How many steps were done, in all lives."""
    done = job.life.first_step
    while done < steps and control.may_begin(job.rank, done):
        control.begin_step(job.rank, done)
        current.number = done
        strikes.begin(done)
        training.step(done)
        done += 1
        checkpoints.after(done)
    current.number = NONE
    control.begin_step(job.rank, done)  # past the last one: whoever counts finished steps sees them all
    return done


def _is_time_out(error: RuntimeError) -> bool:
    """Whether torch gave up waiting for another rank; it has no error of its own for that."""
    return re.search(r"timed? ?out", str(error), re.IGNORECASE) is not None


def _sink(job: RankJob) -> Sink:
    """The run's stream, or a file for a run without Redis."""
    if job.redis_url:
        return RedisSink(job.redis_url, job.run)
    return FileSink(job.folder / "frames" / f"rank-{job.rank}.frames")


def _leave_on_sigterm(writer: Writer, is_final: bool) -> None:
    """Save what was recorded, then leave, whatever the training thread waits for.

    A Python handler would run only when that thread is back in Python, which it is not while gloo waits for a peer.
    """
    def wait() -> None:
        signal.sigwait({signal.SIGTERM})
        writer.close(2.0, is_final)
        os._exit(TERMINATED)

    threading.Thread(target=wait, name="sigterm", daemon=True).start()

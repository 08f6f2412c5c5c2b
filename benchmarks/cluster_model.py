"""A cost model: measurements of small passes over traces → time and bytes of large ones."""

import math
from dataclasses import dataclass

from large_logs import LENGTH, Log

from resolvent._util.parallel import TASKS_PER_SLOT
from resolvent._util.ray import FAN_IN
from resolvent.replay.corpus import POOL_STEPS
from resolvent.replay.counts import ANSWER, MOVE
from resolvent.replay.scan import LEAST_STEPS


@dataclass(frozen=True)
class Costs:
    """What was measured: seconds of processor, and bytes.

    Attributes:
        look: A step of the first pass: reading, coding, keys, digest.
        read: A step of a later pass, until it is replayed.
        replay: A step that is replayed, for a machine with one answer.
        replay_growth: What it costs more for each doubling of the answers.
        give: A step that a piece gives to the pool.
        piece: A piece, beside its steps.
        row: A row that is added to others.
        file: A file that is opened, by the driver.
        footers_a_second: Files whose ends the driver reads in a second of the clock.
        load: A piece that a task is told of with all others, when it takes its work in hand.
        piece_bytes: What is sent to tell of a piece.
        task: A task of Ray, for the driver.
        work_task: A task of Ray, for the worker.
        moved: A byte that a task of Ray returns, for who makes it and who takes it.
        wait: What the driver takes to see that one of a thousand tasks has ended.
        begin: To begin a Ray of one machine.
        ray_process: A worker of Ray, the first time it works: it imports what it needs.
        learn: To learn from the sample.
        stored: Bytes of a step as it is stored.
    """

    look: float
    read: float
    replay: float
    replay_growth: float
    give: float
    piece: float
    row: float
    file: float
    footers_a_second: float
    load: float
    piece_bytes: float
    task: float
    work_task: float
    moved: float
    wait: float
    begin: float
    ray_process: float
    learn: float
    stored: float


@dataclass(frozen=True)
class Job:
    """What is gone through, and by whom.

    `passes` are those after the first: one for each round of refinement, and one more where
    machines are made smaller after it.
    """

    steps: float
    pieces: int
    files: int
    world: Log
    slots: int
    passes: int = 1
    ray: bool = True
    length: int = LENGTH

    @property
    def tasks(self) -> int:
        """Tasks of a pass."""
        return min(self.pieces, TASKS_PER_SLOT * self.slots)

    @property
    def given(self) -> float:
        """Steps that a piece gives to the pool."""
        share = 2 * POOL_STEPS * (self.steps / self.pieces) / self.steps
        most = min(max(share, LEAST_STEPS), POOL_STEPS, self.steps / self.pieces)
        return math.ceil(most / self.length) * self.length


def replay_bytes(job: Job) -> float:
    """Return the bytes of a replay's result: of a piece, of a task, or of all."""
    return job.world.rows * (ANSWER.itemsize + MOVE.itemsize) + MOVE.itemsize + 1_500


def look_bytes(job: Job, pieces: float) -> float:
    """Return the bytes of what was found in so many pieces: four codes a step for the pool.

    A trace has one more observation and label than steps, and five numbers of its own. What does
    not belong into the pool any more is let go of once it is half.
    """
    steps = min(pieces * job.given, 2 * POOL_STEPS)
    values = job.world.inputs * 60
    return steps * 16 + steps / job.length * (8 + 5 * 8 + 2) + 8 * pieces + values + 2_000


def work_bytes(costs: Costs, job: Job) -> float:
    """Return the bytes of the work of a later pass: pieces, machines, values.

    Of each piece also its first trace, and how its rows stand: two numbers and a flag.
    """
    tables = job.world.states * (job.world.inputs + 1) * 4
    return job.pieces * (costs.piece_bytes + 8 + 17) + tables + job.world.inputs * 60 + 2_000


def predicted(costs: Costs, job: Job) -> dict[str, float]:
    """Return what a job takes: processor of workers and driver, the clock, bytes moved."""
    rows = 2 * job.world.rows
    replay = costs.replay + costs.replay_growth * math.log2(job.world.rows)
    loading = job.tasks * job.pieces * costs.load if job.ray else 0.0
    first = job.steps * costs.look + job.pieces * (costs.piece + job.given * costs.give) + loading
    later = job.steps * (costs.read + replay) + job.pieces * (costs.piece + rows * costs.row)
    later += loading
    passes = 1 + job.passes
    working = first + job.passes * later
    returned = look_bytes(job, job.pieces / job.tasks) + job.passes * replay_bytes(job)
    if job.ray:
        working += job.tasks * (passes * costs.work_task + returned * costs.moved)
    begin = (costs.begin + job.slots * costs.ray_process) if job.ray else 0.0
    sent = job.tasks * costs.task + job.tasks * costs.wait * min(2 * job.slots, 32) / 1_000
    driver = job.files * costs.file + (passes * sent if job.ray else 0.0)
    levels = math.ceil(math.log(max(job.tasks, 2), FAN_IN))
    # What tasks return is combined at the end, level by level: a gigabyte a second.
    tree = levels * FAN_IN * (rows * costs.row + replay_bytes(job) / 1e9) if job.ray else 0.0
    tree_look = levels * FAN_IN * look_bytes(job, job.pieces / job.tasks) * 2 / 1e9
    clock = (
        job.files / costs.footers_a_second
        + max(working / job.slots, driver - job.files * costs.file)
        + (tree_look + job.passes * tree if job.ray else 0.0)
        + job.passes * costs.learn
        + (costs.ray_process + costs.begin if job.ray else 0.0)
    )
    return {
        "begin": begin,
        "working": working,
        "driver": driver,
        "opening": job.files / costs.footers_a_second,
        "loading": loading * passes / job.slots,
        "clock": clock,
        "read": job.steps * costs.stored * passes,
        "to a node": work_bytes(costs, job) * passes,
        "back": job.tasks * returned * (1 + 1 / FAN_IN),
    }

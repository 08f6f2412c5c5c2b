"""One pass over traces → all that evidence and reports count, as sums over the pieces."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from resolvent.machines import Machines
from resolvent.replay import (
    CodedShard,
    Kinds,
    Replay,
    StepsAsked,
    Tables,
    replay_shard,
    steps_asked,
)
from resolvent.replay.replaying import WITHOUT_ALPHABETS
from resolvent.replay.taken import starts_taken, steps_taken
from resolvent.trust.holdout import Trials
from resolvent.trust.notable import Notable
from resolvent.trust.reaching import Reached


@dataclass(frozen=True, eq=False)
class Passed:
    """What traces show of machines, and what else is known of them after one pass.

    Attributes:
        shown: What a replay shows, with the earliest place of everything.
        steps: The different steps that traces take, whatever the states.
        starts: The different ways in which they begin.
        trials: How many traces the machines predict without a fault.
        reached: By kind of machine, which label histories lead where.
        notable: The traces worth looking at.
        known: Whether any machine knows any step.
    """

    shown: Replay
    steps: Kinds
    starts: Kinds
    trials: Trials
    reached: Mapping[str, Reached]
    notable: Notable
    known: bool

    @classmethod
    def of(cls, shard: CodedShard, shown: Replay, asked: Mapping[str, StepsAsked]) -> "Passed":
        """Put together what one shard shows, given what machines are asked there step by step."""
        traces = shard.traces
        return cls(
            replace(shown, states={}),
            steps_taken(shard, {}),
            starts_taken(shard, {}),
            Trials.of(asked.values(), traces),
            {kind: Reached.of(one, traces.offsets) for kind, one in asked.items()},
            Notable.of(shard, shown.states),
            any(np.any((one.states >= 0) & (one.questions >= 0)) for one in asked.values()),
        )

    def __add__(self, other: "Passed") -> "Passed":
        return Passed(
            self.shown + other.shown,
            self.steps + other.steps,
            self.starts + other.starts,
            self.trials + other.trials,
            {kind: one + other.reached[kind] for kind, one in self.reached.items()},
            self.notable + other.notable,
            self.known or other.known,
        )


@dataclass(frozen=True, eq=False)
class Passing:
    """Goes through one shard: to be run anywhere."""

    machines: Machines
    tables: Tables

    def __call__(self, shard: CodedShard) -> Passed:
        """Return what one shard shows, without the alphabets, which whoever asks has."""
        shown, asked = self.asked(shard)
        return Passed.of(shard, replace(shown, alphabets=WITHOUT_ALPHABETS), asked)

    def asked(self, shard: CodedShard) -> tuple[Replay, dict[str, StepsAsked]]:
        """Return what a replay of a shard shows, and what machines are asked step by step."""
        shown = replay_shard(
            self.tables, shard, shortest=False, unknown_states=True, earliest=True, states=True
        )
        return shown, steps_asked(self.machines, shard.traces, shown.states)

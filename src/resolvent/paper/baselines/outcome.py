"""The result of a method on some traces: a machine or a reason for its absence, and the cost."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from resolvent.machines import EdgeRewardMachine, MachinePair
from resolvent.paper.baselines.edge_machine import KeyedRewardMachine
from resolvent.traces.trace_set import TraceSet

Status: TypeAlias = Literal["found", "time limit", "no solution"]


@dataclass(frozen=True)
class Outcome:
    """The result of one method on some traces.

    Methods that learn a task return an `EdgeRewardMachine`, or a `KeyedRewardMachine` if
    it reads more than labels; a peer that learns both machines returns a `MachinePair`. A
    run that hit its limit has the status "time limit", and its best machine so far if
    any. `details` hold JSON values specific to the method, such as the number of variables.
    """

    method: str
    status: Status
    seconds: float
    machine: EdgeRewardMachine | KeyedRewardMachine | MachinePair | None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def states(self) -> int | None:
        """The number of nonterminal states; of a pair, those of the Reward Machine."""
        if self.machine is None:
            return None
        if isinstance(self.machine, MachinePair):
            return self.machine.reward.states
        if isinstance(self.machine, KeyedRewardMachine):
            return self.machine.states
        return len(self.machine.states - self.machine.terminal)


def wrong_rewards(machine: EdgeRewardMachine, traces: TraceSet) -> int:
    """Count the steps whose reward a machine gets wrong when it reads l_1, l_2 and so on.

    If it ends before the trace does, all later rewards count as wrong.
    """
    wrong = 0
    for trace in traces:
        state = machine.initial
        for label, reward in zip(trace.labels[1:], trace.step_columns["reward"], strict=True):
            paid = 0.0
            if not machine.has_ended(state):
                state, paid = machine.step(state, label)
            wrong += paid != reward
    return wrong

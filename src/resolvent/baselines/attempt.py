"""Fitted transitions → the automaton that explains the traces best, at which threshold."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from resolvent import _core
from resolvent.baselines.baum_welch import Fit
from resolvent.baselines.distillation import Distillation, distil
from resolvent.baselines.reach_task import ReachTask
from resolvent.machines.edge_rewards import EdgeRewardMachine
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet

PUBLISHED_THRESHOLD: Final = 1e-3
"""The published probability up to which a transition is taken for noise."""

_THRESHOLDS: Final = tuple(PUBLISHED_THRESHOLD * 2 ** (rung / 2) for rung in range(17))


@dataclass(frozen=True)
class Attempt:
    """What came of one first guess.

    `published` is the contradiction at the published threshold, if there is one;
    `wrong_rewards` is None where there is no machine.
    """

    fit: Fit
    seconds: float
    published: str | None
    threshold: float
    distillation: Distillation
    wrong_rewards: int | None

    @classmethod
    def of(
        cls,
        traces: TraceSet,
        task: ReachTask,
        fit: Fit,
        irrelevant: Collection[Label],
        seconds: float,
    ) -> "Attempt":
        """Distil at the lowest threshold whose automaton gets fewest rewards wrong."""
        attempts: list[Attempt] = []
        for threshold in _THRESHOLDS:
            one = distil(fit.transitions, task, threshold=threshold, irrelevant=irrelevant)
            wrong = None if one.machine is None else count_wrong_rewards(one.machine, traces)
            published = attempts[0].published if attempts else one.contradiction
            attempts.append(cls(fit, seconds, published, threshold, one, wrong))
            if wrong == 0:
                break
        return min(attempts, key=cls.rank)

    def rank(self) -> tuple[bool, int, float]:
        """Sort the best first: one that explains the traces, then one that is likely."""
        wrong = self.wrong_rewards
        return wrong is None, wrong or 0, -self.fit.log_likelihood

    def report(self) -> dict[str, Any]:
        """Return what to tell of it, as JSON values."""
        steps = asdict(self.distillation)
        del steps["machine"]
        return {
            "iterations": self.fit.iterations,
            "log_likelihood": self.fit.log_likelihood,
            "converged": self.fit.converged,
            "seconds_per_iteration": self.seconds / self.fit.iterations,
            "wrong_rewards": self.wrong_rewards,
            "threshold": self.threshold,
            "contradiction_at_published_threshold": self.published,
            "distillation": steps,
        }


def count_wrong_rewards(machine: EdgeRewardMachine, traces: TraceSet) -> int:
    """Count what `wrong_rewards` does, in compiled code, for a machine that `distil` made."""
    (end,) = machine.terminal
    table = np.full((end + 1, len(traces.labels)), -1, np.int32)
    reward = max((edge.reward for edge in machine.edges), default=0.0)
    for state in range(end):
        for code, label in enumerate(traces.labels):
            table[state, code], _ = machine.step(state, label)
    reached = _core.replay(
        table.ravel(), len(traces.labels), traces.after_step(traces.label_codes), traces.offsets
    )
    rewards = np.array(list(traces.rewards))[traces.reward_codes]
    return int(np.count_nonzero(np.where(reached == end, reward, 0.0) != rewards))

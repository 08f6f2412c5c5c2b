"""Fitted transitions → the automaton that explains the traces best, at which threshold."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from resolvent import _core
from resolvent.baselines.hidden_markov.baum_welch import Fit
from resolvent.baselines.hidden_markov.distillation import Distillation, distil
from resolvent.baselines.hidden_markov.expectation import Numbers
from resolvent.baselines.hidden_markov.reach_task import ReachTask
from resolvent.machines.exchange.edge_rewards import EdgeRewardMachine
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet

PUBLISHED_THRESHOLD: Final = 1e-3
"""The published probability up to which a transition is taken for noise."""

_THRESHOLDS: Final = tuple(PUBLISHED_THRESHOLD * 2 ** (rung / 2) for rung in range(17))


@dataclass(frozen=True)
class Attempt:
    """What came of one first guess.

    `published` is the contradiction at the published threshold, if there is one;
    `of_moves` says that the threshold was one of shares of moves, not of rows;
    `wrong_rewards` is None where there is no machine.
    """

    fit: Fit
    seconds: float
    published: str | None
    of_moves: bool
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
        """Distil at the first threshold whose automaton gets fewest rewards wrong.

        The published one comes first, then higher ones of the same probabilities. Then
        come thresholds of each transition's share in the move between its two
        places: a state that is left a few times only may have likely transitions
        that are wrong, but their share is small.
        """
        attempts: list[Attempt] = []
        for of_moves, threshold in product((False, True), _THRESHOLDS):
            weights = shares_of_moves(fit.counts, task) if of_moves else fit.transitions
            one = distil(weights, task, threshold=threshold, irrelevant=irrelevant)
            wrong = None if one.machine is None else count_wrong_rewards(one.machine, traces)
            published = attempts[0].published if attempts else one.contradiction
            attempts.append(cls(fit, seconds, published, of_moves, threshold, one, wrong))
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
            "threshold_of": "moves" if self.of_moves else "rows",
            "contradiction_at_published_threshold": self.published,
            "distillation": steps,
        }


def shares_of_moves(counts: Numbers, task: ReachTask) -> Numbers:
    """Return each expected count over that of all transitions between the same places."""
    places = len(task.labels)
    by_place = counts.reshape(len(counts) // places, places, -1, places)
    moves = by_place.sum(axis=(0, 2), keepdims=True)
    shares: Numbers = by_place / np.where(moves > 0, moves, 1.0)
    return shares.reshape(counts.shape)


def count_wrong_rewards(machine: EdgeRewardMachine, traces: TraceSet) -> int:
    """Count what `wrong_rewards` does, in compiled code, for a machine that `distil` made."""
    (end,) = machine.terminal
    table = np.full((end + 1, len(traces.labels)), -1, np.int32)
    reward = max((edge.reward for edge in machine.edges), default=0.0)
    for state in range(end):
        for code, label in enumerate(traces.labels):
            table[state, code], _ = machine.step(state, label)
    reached = _core.walk_states(
        table.ravel(), len(traces.labels), traces.after_step(traces.label_codes), traces.offsets
    )
    rewards = np.array(list(traces.rewards))[traces.reward_codes]
    return int(np.count_nonzero(np.where(reached == end, reward, 0.0) != rewards))

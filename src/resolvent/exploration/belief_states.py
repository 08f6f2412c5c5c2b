"""Machines whose states are beliefs, where these predict and plan better than inferred ones.

Input: the traces of a stochastic environment, and machines inferred from them. Output: a model
with hidden states if it predicts held-out traces better, and the smallest machines of beliefs whose
plan is nearly as good in that model as that of large ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from resolvent._util.math import log
from resolvent.machines import Machines
from resolvent.noise.belief_machines import belief_machines
from resolvent.noise.hidden_states import (
    REWARD_WEIGHT,
    HiddenStateModel,
    Numbers,
    fit_hidden_states,
    has_rare_steps,
    refit,
)
from resolvent.noise.outputs import MIN_GAIN
from resolvent.planning.plan import Plan
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces import TraceSet
from resolvent.traces.vocabulary import codes_of

DISTANCES: Final = (0.4, 0.2, 0.1, 0.05, 0.02)  # below which beliefs may count as equal
_COMPARED: Final = 0.05  # distance of the beliefs whose predictions are compared
_VALUE_LOSS: Final = 0.003  # share of the value of a plan that smaller machines may lose
_UNSEEN_LOSS: Final = float(log(100))  # of a step that a machine does not predict, in nats
_SWEEPS: Final = 500  # maximum number of sweeps of the evaluation of a plan


@dataclass(frozen=True, eq=False)
class HiddenStates:
    """A model with hidden states, fitted to the traces that are not held out.

    `traces` are all, with labels of actions and observations, as `preprocessor` makes them.
    """

    model: HiddenStateModel
    traces: TraceSet
    preprocessor: Preprocessor

    @classmethod
    def fit(cls, traces: TraceSet, preprocessor: Preprocessor, seed: int) -> "HiddenStates | None":
        """Return a model of recorded traces; None if observations hide no state."""
        traces = preprocessor.transform(traces)
        if has_rare_steps(traces):
            return None
        model = fit_hidden_states(traces, seed)
        return cls(model, traces, preprocessor) if model.variants > 1 else None

    def predicts_better(self, inferred: Machines, test: TraceSet) -> bool:
        """Return whether beliefs predict held-out traces better than inferred machines do."""
        return _loss(inferred, test) - _loss(self._machines(_COMPARED), test) > MIN_GAIN

    def _machines(self, distance: float) -> Machines:
        return belief_machines(self.model, self.traces, distance, self.preprocessor)

    def best_plan(self, make_plan: Callable[[Machines], Plan]) -> Plan:
        """Return the plan of the smallest machines of beliefs that lose hardly any value by that.

        The model is fitted to all traces before.
        """
        refitted = replace(self, model=refit(self.model, self.traces))
        plans = [make_plan(refitted._machines(distance)) for distance in DISTANCES]
        values = [plan_value(plan, refitted.model, self.traces) for plan in plans]
        best = max(values) - _VALUE_LOSS * max(map(abs, values))
        return next(plan for plan, value in zip(plans, values, strict=True) if value >= best)


def _loss(machines: Machines, traces: TraceSet) -> float:
    """Return the negative log likelihood of next observations and rewards, these with a weight."""
    total = 0.0
    for name, score in machines.score(traces).items():
        weight, predicted = REWARD_WEIGHT if name == "reward" else 1.0, score.steps - score.unseen
        total += weight * ((score.log_loss or 0.0) * predicted + _UNSEEN_LOSS * score.unseen)
    return total


def plan_value(plan: Plan, model: HiddenStateModel, traces: TraceSet) -> float:
    """Return the value of a plan of machines of beliefs in the model with hidden states itself.

    Episodes end without reward in situations that the plan does not know.
    """
    table, kinds = plan.model, model.kinds
    machine = plan.machines.transition
    observation = codes_of(table.observations, traces.observations, -1)[table.observation]
    action = codes_of(table.actions, traces.actions, -1)[plan.policy]
    state = table.states["transition"]
    places = zip(observation.tolist(), state.tolist(), strict=True)
    row_of = {place: row for row, place in enumerate(places)}
    source, kind, target = [], [], []
    for row, query in enumerate(zip(observation.tolist(), action.tolist(), strict=True)):
        for step in model.kinds_of.get(query, np.empty(0, int)).tolist():
            after = int(kinds.next_observation[step])
            label = plan.machines.preprocessor.labeling.after_step(
                traces.actions[query[1]], traces.observations[after]
            )
            following = machine.transitions[state[row], machine.labels.code(label)]
            source.append(row)
            kind.append(step)
            target.append(-1 if kinds.ended[step] else row_of.get((after, int(following)), -1))
    chance, reward = model.chance[kind], kinds.rewards[kinds.reward[kind]]
    value: Numbers = np.zeros((len(table) + 1, model.variants))  # the last row is an end
    for _ in range(_SWEEPS):
        ahead = (chance * (reward[:, None] + plan.gamma * value[target])[:, None, :]).sum(-1)
        updated = np.zeros_like(value)
        np.add.at(updated, source, ahead)
        change, value = np.abs(updated - value).max(), updated
        if change <= 1e-6 * np.abs(value).max():
            break
    first = observation[table.starts]
    share = table.start_counts / table.start_counts.sum()
    return float((share * (model.initial[first] * value[table.starts]).sum(-1)).sum())

"""Stochastic models as Markov decision processes, and the values of policies in them.

Input: outcomes of steps, and assumed values of unknown ones. Output: arrays whose backups are
sums by step, and the value of a policy as the solution of a sparse linear system.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from resolvent._util.math import powers
from resolvent.planning.confidence import Numbers, Rows
from resolvent.planning.deterministic import discounted_sum
from resolvent.planning.model import Model
from resolvent.planning.step_table import NOT_KNOWN, Flags
from resolvent.traces.vocabulary import Codes

_DIRECTIONS: Final = 40  # maximum number of Krylov vectors before a restart
_CHECK_EVERY: Final = 8  # number of Krylov vectors between two checks of the residual
_RESTARTS: Final = 50
_SWEEPS: Final = 100_000
_PRECISION: Final = 1e-13  # residual of solved equations, as a share of their largest number
_SURELY: Final = 1 - 1e-9  # probability from which on an outcome is certain


@dataclass(frozen=True, slots=True, eq=False)
class MarkovChain:
    """One step from each state: its reward, and the probabilities of the next states.

    Probabilities of a state may sum to less than 1: the rest ends, or is part of the reward.
    """

    state: Rows
    next_state: Rows
    probability: Numbers
    reward: Numbers

    def ahead(self, value: Numbers) -> Numbers:
        """Return the mean value of the next state, from each state."""
        ahead: Numbers = self.probability * value[self.next_state]
        return np.bincount(self.state, ahead, len(self.reward)).astype(float, copy=False)

    def plus(self, probability: Numbers, reward: float, next_state: Rows) -> "MarkovChain":
        """Return the chain with one more outcome of each step; −1 is an end."""
        more = np.flatnonzero((next_state >= 0) & (probability > 0))
        return MarkovChain(
            np.concatenate([self.state, more]),
            np.concatenate([self.next_state, next_state[more]]),
            np.concatenate([self.probability, probability[more]]),
            self.reward + probability * reward,
        )

    def within(self, states: Flags) -> "MarkovChain":
        """Return the chain that ends without reward outside of some states."""
        inside = states[self.state] & states[self.next_state]
        return MarkovChain(
            self.state[inside],
            self.next_state[inside],
            self.probability[inside],
            np.where(states, self.reward, 0.0),
        )

    def can_reach(self, targets: Flags) -> Flags:
        """Return the states from which one of the targets can be reached, these included."""
        reached = targets
        while True:
            closer = np.bincount(self.state, reached[self.next_state], len(reached)) > 0
            if not (closer & ~reached).any():
                return reached
            reached = reached | closer

    def value(self, gamma: float, guess: Numbers) -> Numbers:
        """Return the value of each state.

        The equations are solved by GMRES (Saad and Schultz 1986), and by value iteration if that
        does not converge, until they hold up to rounding.
        """
        value, scale = guess, float(np.abs(self.reward).max(initial=0.0))
        for _ in range(_RESTARTS):
            residual = self.reward + gamma * self.ahead(value) - value
            enough = _precision(scale + float(np.abs(value).max(initial=0.0)))
            if np.abs(residual).max(initial=0.0) <= enough:
                return value
            largest = float(np.abs(residual).max())  # squares of large numbers would overflow
            value = value + largest * self._correction(gamma, residual / largest, enough / largest)
        for _ in range(_SWEEPS):
            improved = self.reward + gamma * self.ahead(value)
            change = np.abs(improved - value).max(initial=0.0)
            value = improved
            if change <= _precision(scale + float(np.abs(value).max(initial=0.0))):
                break
        return value

    def _correction(self, gamma: float, residual: Numbers, enough: float) -> Numbers:
        """Return the correction that reduces the residual most, within a few directions."""
        length = float(np.linalg.norm(residual))
        basis = np.zeros((_DIRECTIONS + 1, len(residual)))
        images = np.zeros((_DIRECTIONS + 1, _DIRECTIONS))
        target = np.zeros(_DIRECTIONS + 1)
        basis[0], target[0] = residual / length, length
        for k in range(_DIRECTIONS):
            image = basis[k] - gamma * self.ahead(basis[k])
            images[: k + 1, k] = along = basis[: k + 1] @ image
            image -= along @ basis[: k + 1]
            images[k + 1, k] = size = float(np.linalg.norm(image))
            last = size <= 1e-14 * length or k + 1 == _DIRECTIONS
            if last or (k + 1) % _CHECK_EVERY == 0:
                hessenberg = images[: k + 2, : k + 1]
                weights = np.linalg.lstsq(hessenberg, target[: k + 2], rcond=None)[0]
                if last or np.linalg.norm(hessenberg @ weights - target[: k + 2]) <= enough:
                    break
            basis[k + 1] = image / size
        correction: Numbers = weights @ basis[: k + 1]
        return correction


def _precision(scale: float) -> float:
    """Return the largest residual of solved equations between numbers of this scale."""
    return _PRECISION * scale + float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class DecisionProcess:
    """All steps, numbered by state, then action, with their outcomes.

    A step has the reward `reward`, and `outcome_reward` for each outcome. `next_state` is the
    number of states for an end of the episode, and one more where it is not known: then the rest
    has the value `unknown_value`. The reward of a step that is not known is its whole value, and
    it has no outcomes. `unseen_reward` is that of an outcome that never occurred.
    """

    actions: int
    step: Rows
    next_state: Rows
    frequency: Numbers
    outcome_reward: Numbers
    reward: Numbers
    unknown_value: float
    unseen_reward: float

    @classmethod
    def of(
        cls,
        model: Model,
        mean: Numbers,
        outcome_mean: Numbers,
        unknown: float,
        gamma: float,
        bound: Callable[[float, float], float],
    ) -> "DecisionProcess":
        """Return the decision process of a stochastic model.

        For each step, `mean` is the reward if rewards do not follow from outcomes, and
        `outcome_mean` the reward of outcomes whose reward is not known. All other rewards are
        `unknown`, once or for ever, by the `bound`: `min` or `max`.
        """
        outcomes = model.outcomes
        if outcomes is None:
            raise ValueError("a deterministic model has no outcomes")
        forever, states = discounted_sum(unknown, gamma), len(model)
        next_state = outcomes.next_state.astype(np.int64)
        next_state[outcomes.next_state < 0] = states
        next_state[outcomes.next_state == NOT_KNOWN] = states + 1
        if outcomes.has_rewards:
            is_unknown = np.isnan(outcomes.reward)
            outcome_reward = np.where(is_unknown, outcome_mean[outcomes.step], outcomes.reward)
            reward, unseen_reward = np.zeros(model.known.size), unknown
        else:
            outcome_reward, reward, unseen_reward = np.zeros(len(next_state)), mean, 0.0
        return cls(
            len(model.actions),
            outcomes.step,
            next_state,
            outcomes.frequency,
            outcome_reward,
            np.where(model.known.ravel(), reward, bound(unknown, forever)),
            bound(0.0, forever),
            unseen_reward,
        )

    @classmethod
    def expected(cls, model: Model, low: float, gamma: float) -> "DecisionProcess":
        """Return the decision process by the mean rewards; unknown ones are `low`."""
        mean = np.where(model.known, model.reward, 0.0).ravel()
        return cls.of(model, mean, mean, low, gamma, min)

    @cached_property
    def states(self) -> int:
        """The number of states."""
        return len(self.reward) // self.actions

    def ahead(self, value: Numbers, gamma: float) -> Numbers:
        """Return the value of each outcome, its reward included."""
        after = np.append(value, [0.0, self.unknown_value])[self.next_state]
        return self.outcome_reward + gamma * after

    def backup(self, ahead: Numbers, probability: Numbers) -> Numbers:
        """Return the value of each step as [state, action], given that of its outcomes."""
        gain = np.bincount(self.step, probability * ahead, len(self.reward))
        return (self.reward + gain).reshape(-1, self.actions)

    def chain(self, policy: Rows, gamma: float, probability: Numbers | None = None) -> MarkovChain:
        """Return the chain of a policy; its probabilities are the frequencies unless given."""
        own = self.only(policy, probability)
        reward = own.outcome_reward + np.where(
            own.next_state == self.states + 1, gamma * self.unknown_value, 0.0
        )
        reward = own.reward + np.bincount(own.step, own.frequency * reward, self.states)
        inside = own.next_state < self.states
        return MarkovChain(own.step[inside], own.next_state[inside], own.frequency[inside], reward)

    def steps_of(self, policy: Rows) -> Rows:
        """Return the number of the step of a policy in each state."""
        return np.arange(self.states) * self.actions + policy

    def only(self, policy: Rows, probability: Numbers | None = None) -> "DecisionProcess":
        """Return the process with the action of a policy alone in each state."""
        steps = self.steps_of(policy)
        position = np.full(len(self.reward), -1)
        position[steps] = np.arange(len(steps))
        at = np.flatnonzero(position[self.step] >= 0)
        return replace(
            self,
            actions=1,
            step=position[self.step[at]],
            next_state=self.next_state[at],
            frequency=(self.frequency if probability is None else probability)[at],
            outcome_reward=self.outcome_reward[at],
            reward=self.reward[steps],
        )


def policy_value(process: DecisionProcess, policy: Rows, gamma: float) -> Numbers:
    """Return the value of a policy in every state.

    Without discount it is −inf where the policy does not surely end. Where it continues for ever
    without reward, the value is that of the rewards before.
    """
    chain = process.chain(policy, gamma)
    if gamma < 1:
        return chain.value(gamma, np.zeros(process.states))
    own = process.only(policy)
    has_reward = (own.reward != 0) | (chain.reward != 0)
    has_reward |= np.bincount(own.step, own.outcome_reward != 0, process.states) > 0
    is_over = ~chain.can_reach(has_reward)
    ends = np.bincount(chain.state, chain.probability, process.states) < _SURELY
    may_end = chain.can_reach(is_over | ends)
    surely_ends = ~chain.can_reach(~may_end | np.isneginf(chain.reward))
    remaining = chain.within(surely_ends & ~is_over)
    return np.where(surely_ends, remaining.value(1.0, np.zeros(process.states)), -np.inf)


def possible_returns(
    model: Model, policy: Codes, value: Numbers, gamma: float
) -> tuple[float, float]:
    """Return the lowest and the highest return that one unlikely event alone can bring.

    The event is a start, or an outcome of a step of the policy that differs from its expectation.
    """
    start = model.mean_at_starts(value)
    least, most = float(value[model.starts].min()), float(value[model.starts].max())
    if model.outcomes is None:
        return least, most
    outcomes, actions = model.outcomes, len(model.actions)
    at = np.flatnonzero(policy[outcomes.step // actions] == outcomes.step % actions)
    here, after = outcomes.step[at] // actions, outcomes.next_state[at]
    first_step = np.full(len(model), -1)
    front, depth = model.starts.astype(np.int64), 0
    while len(front):
        first_step[front], depth = depth, depth + 1
        front = after[(first_step[here] == depth - 1) & (after >= 0)]
        front = np.unique(front[first_step[front] < 0])
    reached = np.flatnonzero((first_step[here] >= 0) & np.isfinite(value[here]))
    at, here, after = at[reached], here[reached], after[reached]
    weight = powers(gamma, depth + 1)[first_step[here]]
    ahead = gamma * np.where(after >= 0, value[after], 0.0) - value[here]
    row, reward = outcomes.reward_row[outcomes.step[at]], outcomes.reward[at]
    lowest, highest = (
        start + weight * (np.where(np.isnan(reward), extreme[row], reward) + ahead)
        for extreme in outcomes.rewards.extremes
    )
    low, high = model.reward_range
    worst, best = min(low, discounted_sum(low, gamma)), max(high, discounted_sum(high, gamma))
    return max(min(least, *lowest.tolist()), worst), min(max(most, *highest.tolist()), best)

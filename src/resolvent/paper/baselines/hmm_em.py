"""Expectation-maximization: a task and transition probabilities → the likeliest transitions.

A hidden state is a layer, which is a state of the task's automaton, and an observation: layer q
with observation s has the number q · observations + s. Traces begin in layer 0, and are in the
last layer exactly when their last step had the reward. A hidden state emits its observation, and
whether the task is complete, with certainty: so emissions are known, and maximizing the likelihood
could not change them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import TimeLimitReached, TraceError
from resolvent.paper.baselines.outcome import Clock
from resolvent.traces.symbols import Label, label_text
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

Numbers = NDArray[np.float64]
_STEPS_AT_ONCE: Final = 200_000  # number of steps between two looks at the clock


@dataclass(frozen=True)
class FinalRewardTask:
    """Traces of a task whose only reward is at its end, as a hidden Markov model reads them.

    Trace `i` has `observations[offsets[i] + i : offsets[i + 1] + i + 1]`, one more than it has
    steps. Actions are omitted: under the policy that made the traces, observation and state of
    the task are a Markov chain.
    """

    observations: Codes
    offsets: NDArray[np.int64]
    completed: NDArray[np.bool_]
    labels: tuple[Label, ...]
    reward: float

    @classmethod
    def of(cls, traces: TraceSet) -> "FinalRewardTask":
        """Read traces of such a task; `TraceError` for those of another one."""
        completed, reward = _final_rewards(traces)
        labels = _labels_of_observations(traces)
        return cls(traces.observation_codes, traces.offsets, completed, labels, reward)

    @property
    def sources(self) -> Codes:
        """The observation before each step."""
        return np.delete(self.observations, self.offsets[1:] + np.arange(len(self.completed)))

    @property
    def targets(self) -> Codes:
        """The observation after each step."""
        return np.delete(self.observations, self.offsets[:-1] + np.arange(len(self.completed)))

    @property
    def starts(self) -> Codes:
        """The first observation of each trace."""
        starts: Codes = self.observations[self.offsets[:-1] + np.arange(len(self.completed))]
        return starts


def _final_rewards(traces: TraceSet) -> tuple[NDArray[np.bool_], float]:
    """Return the traces with a final reward, and that reward."""
    if not len(traces):
        raise TraceError("there are no traces: give some of a task with a reward at its end")
    rewards = np.array(list(traces.rewards))[traces.reward_codes]
    last = np.zeros(traces.steps, bool)
    last[traces.offsets[1:] - 1] = True
    completed = rewards[last] > 0
    for wrong, why in (
        (rewards < 0, "no reward may be negative"),
        ((rewards != 0) & ~last, "only the last step may have a reward"),
        (
            (rewards > 0) & (rewards != rewards.max()),
            f"all ends must have the same reward, here {rewards.max():g}",
        ),
    ):
        if np.any(wrong):
            row = int(np.argmax(wrong))
            trace, step = traces.locate(row)
            raise TraceError(
                f"trace {trace}, step {step} has reward {rewards[row]:g}: hidden Markov models "
                f"learn tasks whose only reward is at the end, so {why}"
            )
    failed = traces.terminated & ~completed
    if np.any(failed):
        raise TraceError(
            f"trace {int(np.argmax(failed))} terminates without a reward: hidden Markov models "
            f"learn tasks that end only when they are complete"
        )
    if not np.any(completed):
        raise TraceError("no trace has a reward: give some in which the task is completed")
    return completed, float(rewards.max())


def _labels_of_observations(traces: TraceSet) -> tuple[Label, ...]:
    """Return the one label of each observation."""
    label_of = np.empty(len(traces.observations), np.int32)
    label_of[traces.observation_codes] = traces.label_codes
    differs = label_of[traces.observation_codes] != traces.label_codes
    if np.any(differs):
        at = int(np.argmax(differs))
        code = int(traces.observation_codes[at])
        both = (traces.labels[int(label)] for label in (traces.label_codes[at], label_of[code]))
        texts = " and ".join(repr(label_text(label)) for label in both)
        raise TraceError(
            f"the observation {traces.observations[code]!r} has the labels {texts}: hidden Markov "
            f"models infer the label from the observation, so use one observation for each"
        )
    return tuple(traces.labels[int(code)] for code in label_of)


class Expectation:
    """The forward and backward passes over all traces, scaled.

    Only hidden states consistent with the emissions are considered, which takes steps · layers²
    for one pass instead of steps · states². Entry `e` of probabilities and counts is the
    transition from hidden state `source[e]` to `target[e]`.
    """

    def __init__(self, task: FinalRewardTask, states: int) -> None:
        n_observations, layers = len(task.labels), states - 1
        steps = task.sources.astype(np.int64) * n_observations + task.targets
        ends = np.zeros(len(steps), bool)
        ends[task.offsets[1:] - 1] = task.completed
        step_codes = np.empty(len(steps), np.int32)
        onward, step_codes[~ends] = np.unique(steps[~ends], return_inverse=True)
        ending, step_codes[ends] = np.unique(steps[ends], return_inverse=True)
        self._layers = layers
        self._onward = len(onward) * layers * layers
        self._parts = list(_parts(task, step_codes))

        before, after = np.divmod(np.arange(layers * layers), layers)
        last = np.full(layers, layers)
        sources = (
            (onward // n_observations, before),
            (ending // n_observations, np.arange(layers)),
        )
        targets = ((onward % n_observations, after), (ending % n_observations, last))
        self.source, self.target = (
            np.concatenate([np.add.outer(seen, q * n_observations).ravel() for seen, q in columns])
            for columns in (sources, targets)
        )

    def counts(self, probabilities: Numbers, clock: Clock) -> tuple[float, Numbers]:
        """Return the log-likelihood of all steps, and the expected count of each entry."""
        onward, ending = probabilities[: self._onward], probabilities[self._onward :]
        log_likelihood, counts = 0.0, np.zeros_like(probabilities)
        for step_codes, offsets, completed in self._parts:
            clock.check()
            part, *counted = _core.expected_layers(
                step_codes, offsets, completed, layers=self._layers, onward=onward, ending=ending
            )
            log_likelihood += part
            counts += np.concatenate(counted)
        return log_likelihood, counts

    def by_source(self, values: Numbers, size: int) -> Numbers:
        """Return the sum of values for each hidden state that transitions start in."""
        return np.bincount(self.source, values, size).astype(np.float64, copy=False)


def _parts(
    task: FinalRewardTask, step_codes: NDArray[np.int32]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]]:
    """Split traces into parts of limited size, so that the clock is checked between them."""
    first = 0
    while first < len(task.completed):
        limit = task.offsets[first] + _STEPS_AT_ONCE
        last = max(first + 1, int(np.searchsorted(task.offsets, limit, side="right")) - 1)
        offsets = task.offsets[first : last + 1]
        steps = step_codes[offsets[0] : offsets[-1]]
        yield steps, offsets - offsets[0], task.completed[first:last].astype(np.int32)
        first = last


@dataclass(frozen=True)
class Fit:
    """The result of expectation-maximization.

    `counts` is the expected number of each transition, by hidden state before and after. These and
    the log-likelihood are those of the probabilities before the last update.
    """

    counts: Numbers
    log_likelihood: float
    iterations: int
    converged: bool
    out_of_time: bool

    @property
    def transitions(self) -> Numbers:
        """The probabilities after the last update; zeros for a state that no trace can leave."""
        visits = self.counts.sum(axis=1, keepdims=True)
        transitions: Numbers = self.counts / np.where(visits > 0, visits, 1.0)
        return transitions


def baum_welch(
    expectation: Expectation, guess: Numbers, clock: Clock, *, tolerance: float, iterations: int
) -> Fit:
    """Improve the transitions of a hidden Markov model until they hardly change.

    It has converged when two numbers are below the tolerance: the largest change of a row of the
    transitions (in absolute value) over the number of states, and the relative change of the
    log-likelihood.
    """
    size, source = len(guess), expectation.source
    probabilities = guess[source, expectation.target]
    impossible = np.clip(guess.sum(axis=1) - expectation.by_source(probabilities, size), 0.0, None)
    visited = np.zeros(size, bool)
    counts = np.zeros_like(probabilities)
    log_likelihood, done, converged, out_of_time = -np.inf, 0, False, False
    while done < iterations and not converged:
        try:
            improved, counts = expectation.counts(probabilities, clock)
        except TimeLimitReached:
            out_of_time = True
            break
        visits = expectation.by_source(counts, size)
        is_visited = visits > 0
        shares = counts / np.where(is_visited, visits, 1.0)[source]
        updated = np.where(is_visited[source], shares, probabilities)
        # The first update of a row removes all that no step can have been.
        change = expectation.by_source(np.abs(updated - probabilities), size)
        change += np.where(is_visited & ~visited, impossible, 0.0)
        gain = abs(improved - log_likelihood) / (1 + abs(log_likelihood)) if done else np.inf
        converged = max(float(change.max()) / size, gain) < tolerance
        visited |= is_visited
        probabilities, log_likelihood, done = updated, improved, done + 1
    by_state = np.zeros_like(guess)
    by_state[source, expectation.target] = counts
    return Fit(by_state, log_likelihood, done, converged, out_of_time)

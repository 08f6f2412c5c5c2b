"""Replay: machines + traces → how many steps they predict right, wrong, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.machine import Machine, RewardMachine, TransitionMachine
from resolvent.samples import Histories, LabelTiming, rounded_rewards
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, codes_of, distinct_pairs


@dataclass(frozen=True)
class Mismatch:
    """A step that a machine predicts wrongly."""

    machine: str
    trace: int
    step: int
    observation: Symbol
    action: Symbol
    state: int
    predicted: Any
    actual: Any

    def __str__(self) -> str:
        return (
            f"{self.machine} machine, trace {self.trace}, step {self.step}: in state {self.state} "
            f"it predicts {self.predicted!r} for ({self.observation!r}, {self.action!r}), "
            f"the trace says {self.actual!r}"
        )


@dataclass(frozen=True)
class MachineScore:
    """Steps that one machine predicts right, predicts wrong, and was never shown."""

    right: int
    wrong: int
    unseen: int
    first_mismatch: Mismatch | None = None

    @property
    def steps(self) -> int:
        """All steps replayed."""
        return self.right + self.wrong + self.unseen

    def then(self, later: "MachineScore", first: int) -> "MachineScore":
        """Return this score and one of later traces together; the first of those has a number."""
        mismatch = self.first_mismatch
        if mismatch is None and later.first_mismatch is not None:
            mismatch = replace(later.first_mismatch, trace=later.first_mismatch.trace + first)
        return MachineScore(
            self.right + later.right,
            self.wrong + later.wrong,
            self.unseen + later.unseen,
            mismatch,
        )


@dataclass(frozen=True)
class Score:
    """The scores of both machines on the same traces."""

    transition: MachineScore
    reward: MachineScore

    @property
    def perfect(self) -> bool:
        """Whether every step is predicted, and right."""
        return all(one.right == one.steps for one in (self.transition, self.reward))

    @property
    def first_mismatch(self) -> Mismatch | None:
        """The earliest step that either machine predicts wrongly."""
        found = [self.transition.first_mismatch, self.reward.first_mismatch]
        return min(
            (one for one in found if one is not None),
            key=lambda one: (one.trace, one.step),
            default=None,
        )

    def then(self, later: "Score", first: int) -> "Score":
        """Return these scores and those of later traces together; the first of those has a number.

        >>> empty = Score(MachineScore(0, 0, 0), MachineScore(0, 0, 0))
        >>> print(empty.then(Score(MachineScore(5, 0, 1), MachineScore(6, 0, 0)), 0))
        transition right 5, wrong 0, unseen 1
        reward     right 6, wrong 0, unseen 0
        """
        return Score(
            self.transition.then(later.transition, first), self.reward.then(later.reward, first)
        )

    def __str__(self) -> str:
        lines = [
            f"{name:<10} right {one.right}, wrong {one.wrong}, unseen {one.unseen}"
            for name, one in (("transition", self.transition), ("reward", self.reward))
        ]
        if self.first_mismatch is not None:
            lines.append(f"first mismatch: {self.first_mismatch}")
        return "\n".join(lines)


def score(
    transition: TransitionMachine, reward: RewardMachine, timing: LabelTiming, traces: TraceSet
) -> Score:
    """Replay traces through both machines.

    An unseen label makes every later step of its trace unseen, unless the answer
    to the question does not depend on the state.
    """
    asked_transition, asked_reward = steps_asked(transition, reward, timing, traces)
    return Score(
        _score(
            asked_transition,
            traces,
            list(traces.observations),
            traces.after_step(traces.observation_codes),
        ),
        _score(
            asked_reward,
            traces,
            rounded_rewards(traces.rewards, reward.reward_digits),
            traces.reward_codes,
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class StepsAsked:
    """What one machine is asked at every step of some traces, in its own codes.

    `labels` are read before the step (−1 for none, anything at or above their
    number for one the machine does not know), `states` are −1 where not known,
    `questions` −1 where it never met the observation or action, and `outputs`,
    what the traces answer, the number of its outputs where it knows no such one.
    """

    machine: Machine
    labels: Codes
    states: Codes
    questions: NDArray[np.int64]
    outputs: Codes


def steps_asked(
    transition: TransitionMachine, reward: RewardMachine, timing: LabelTiming, traces: TraceSet
) -> tuple[StepsAsked, StepsAsked]:
    """Say what both machines are asked at every step, and what the traces answer."""
    histories = Histories.of(traces, timing)
    transition_states = states_at_steps(transition, histories)
    reward_states = states_at_steps(reward, histories)
    observed = traces.at_step(traces.observation_codes)
    if reward.supplemented:
        reward_observed = _paired(reward, traces, transition_states, transition.states)
    else:
        reward_observed = codes_of(traces.observations, reward.observations, -1)[observed]
    return (
        _asked(
            transition,
            traces,
            histories,
            transition_states,
            codes_of(traces.observations, transition.observations, -1)[observed],
            list(traces.observations),
            traces.after_step(traces.observation_codes),
        ),
        _asked(
            reward,
            traces,
            histories,
            reward_states,
            reward_observed,
            rounded_rewards(traces.rewards, reward.reward_digits),
            traces.reward_codes,
        ),
    )


def _asked(
    machine: Machine,
    traces: TraceSet,
    histories: Histories,
    states: Codes,
    observed: Codes,
    actual_values: Sequence[Any],
    actual_codes: Codes,
) -> StepsAsked:
    done = codes_of(traces.actions, machine.actions, -1)[traces.action_codes]
    questions = observed.astype(np.int64) * len(machine.actions) + done
    questions[(observed < 0) | (done < 0)] = -1
    outputs = codes_of(actual_values, machine.outputs, len(machine.outputs))[actual_codes]
    return StepsAsked(machine, labels_read_by(machine, histories), states, questions, outputs)


def states_at_steps(machine: Machine, histories: Histories) -> Codes:
    """Return the machine's state at every step of some traces; −1 where it is not known."""
    return machine.replay(labels_read_by(machine, histories), histories.offsets)


def labels_read_by(machine: Machine, histories: Histories) -> Codes:
    """Return the labels read at every step in the machine's codes, unknown ones above those."""
    if histories.labels == machine.labels:
        return histories.beta
    codes = codes_of(histories.labels, machine.labels, len(machine.labels))
    return np.append(codes, np.int32(-1))[histories.beta]


def _paired(
    reward: RewardMachine, traces: TraceSet, transition_states: Codes, states: int
) -> Codes:
    """Return for each step the reward machine's code of (observation, transition state)."""
    # One state more, for "not known": no observation is paired with that one.
    seen = traces.at_step(traces.observation_codes)
    count = len(traces.observations)
    kept, codes = distinct_pairs(seen, transition_states + np.int32(1), count, states + 1)
    pairs = (divmod(key, states + 1) for key in kept.tolist())
    named = ((traces.observations[code], state - 1) for code, state in pairs)
    return codes_of(named, reward.observations, -1)[codes]


def _score(
    asked: StepsAsked, traces: TraceSet, actual_values: Sequence[Any], actual_codes: Codes
) -> MachineScore:
    machine = asked.machine
    predicted = machine.answer_many(asked.states, asked.questions)
    wrong = np.flatnonzero((predicted >= 0) & (predicted != asked.outputs))
    unseen = int(np.count_nonzero(predicted < 0))
    first = None
    if len(wrong):
        row = int(wrong[0])
        trace, step = traces.place(row)
        seen = int(traces.at_step(traces.observation_codes)[row])
        first = Mismatch(
            machine=machine.kind,
            trace=trace,
            step=step,
            observation=traces.observations[seen],
            action=traces.actions[int(traces.action_codes[row])],
            state=int(asked.states[row]),
            predicted=machine.outputs[int(predicted[row])],
            actual=actual_values[int(actual_codes[row])],
        )
    return MachineScore(len(predicted) - len(wrong) - unseen, len(wrong), unseen, first)

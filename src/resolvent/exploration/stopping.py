"""Decide when exploration may stop, and state the guarantee.

Input: the `LearnerState`. Output: the reason to stop, or None to continue; and a `Guarantee`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from resolvent._util.text import amount, listed
from resolvent.evaluation.diagnosis.columns import has_fractions
from resolvent.exploration.buffer import TRUNCATED, Buffer
from resolvent.exploration.state import LearnerState
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.exploration.values import ValueBounds
from resolvent.machines.augmented_state import augmented_state_text
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction
from resolvent.traces.symbols import symbol_text

StopReason: TypeAlias = Literal[
    "optimal",  # no plan is better
    "target",  # no plan is better by more than the target
    "budget",
    "interrupted",
    "failed",  # the environment raised an error
    "equal rewards",
    "unreachable",  # the remaining tests cannot be reached
    "stochastic",
    "continuous",  # observations are measured numbers that do not recur
    "contradicted",  # by episodes of the plan
]

NO_BOUND: Final = "pass reward_range or increase the budget"
ENOUGH_NUMBERS: Final = 1_000  # number of steps after which measured numbers would have recurred
OFTEN_TRUNCATED: Final = 3  # minimum number of episodes that a step truncated every time


def is_done(state: LearnerState) -> bool:
    """Return whether no test is open, and machines inferred from scratch are the same."""
    return state.selection.exhausted and state.selection.verified


def stop_reason(
    state: LearnerState, max_steps: float, *, is_interrupted: bool = False
) -> StopReason | None:
    """Return why exploration should stop now, or None if it should continue.

    An optimal policy is only reported if all tests of the hypothesis have passed and it was
    verified (docs/decisions/exploration.md).
    """
    if state.conflict is not None:
        return "stochastic"
    is_spent = state.steps > max_steps
    if is_done(state):
        values = state.current_bounds()
        reason = _reason_when_done(state, values)
        # Elsewhere the search goes on; chance needs machines with probabilities.
        is_out_of_reach = state.selection.are_resets_useless or _varying_step(state, values)
        if is_spent or reason != "unreachable" or is_out_of_reach:
            return reason
    if is_spent:
        return "budget"
    if is_interrupted:
        return "interrupted"
    observations = state.buffer.observations.values
    are_many = len(observations) >= 0.9 * (state.steps + state.buffer.episodes)
    if state.steps >= ENOUGH_NUMBERS and are_many and has_fractions(observations[0]):
        return "continuous"
    return None


def _reason_when_done(state: LearnerState, values: ValueBounds) -> StopReason:
    """Return the guarantee by value bounds."""
    if state.all_rewards_equal:
        return "equal rewards"
    gap = state.gap(values)
    return "optimal" if gap == 0 else "target" if gap <= state.config.target else "unreachable"


@dataclass(frozen=True)
class Guarantee:
    """Why exploration stopped, and the guarantee that holds then.

    `states` are the sizes of the machines, `transitions` is the number of those tested,
    `open_steps` the number of unknown steps that could be better, and `gap` the largest possible
    improvement over the plan from any of the starts. `truncated` counts truncated episodes, and
    `truncated_after` names a step after which the environment truncated every episode.
    `contradiction` shows that the environment is stochastic, if it is; `failure` is its error, if
    there was one; `labels` describes labels that the environment does not give.

    `max_states` is the maximum number of states of a machine, if the user named one. Then `tests`
    is the number of tests of the W-method that rule out more states than were found; None where
    label sequences were only sampled. `undistinguished` is the number of other machines, no larger,
    that explain everything and that no known step distinguishes from those found.
    """

    reason: StopReason
    steps: int
    episodes: int
    states: dict[str, int]
    augmented_states: int
    transitions: int
    open_steps: int
    gap: float
    depth: int
    reward_range: tuple[float, float]
    truncated: int = 0
    confidence: float | None = None
    contradiction: str | None = None
    max_states: int | None = None
    tests: int | None = None
    undistinguished: int = 0
    labels: str = ""
    failure: str | None = None
    truncated_after: str | None = None

    @property
    def worlds(self) -> str:
        """Describe the environments for which the guarantee holds."""
        sizes = listed([f"{size} {name}" for name, size in self.states.items()])
        has = f"the machine states found ({sizes})"
        if self.max_states is not None and self.tests is not None:
            has = f"at most {amount(self.max_states, 'state')} in each machine ({sizes} found)"
        low, high = self.reward_range
        seen = amount(self.steps, "observed step")
        return (
            f"every environment that agrees with the {seen}, has {has} and gives rewards from "
            f"{low:g} to {high:g}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        gap = self.gap if self.gap < float("inf") else None
        reward_range = list(self.reward_range)
        return {**asdict(self), "reward_range": reward_range, "gap": gap, "text": str(self)}

    def __str__(self) -> str:
        parts = [self._reason()]
        if self.truncated:
            parts.append(f"{amount(self.truncated, 'episode')} truncated")
        if self.truncated_after:
            parts.append(
                f"the environment truncated every episode after {self.truncated_after}: the plan "
                f"assumes that they would have continued, so if this is an end, return "
                f"terminated=True"
            )
        return "; ".join([*parts, f"labels: {self.labels}"] if self.labels else parts)

    def _reason(self) -> str:
        seen, within = amount(self.steps, "step"), f"within {self.gap:.4g} of the optimum"
        if self.reason == "optimal":
            return f"optimal in {self.worlds}; {self._tested()}"
        if self.reason == "target":
            return f"{within} in {self.worlds}; {self._tested()}"
        if self.reason == "equal rewards":
            return f"every reward seen is the same, so no policy is better than another; {NO_BOUND}"
        if self.reason == "unreachable":
            remaining = "the remaining tests start from initial states that did not occur again"
            if self.contradiction is not None:
                remaining = f"the remaining tests depend on chance ({self.contradiction})"
            return f"{remaining}: {within} in {self.worlds}"
        if self.reason == "stochastic":
            if self.gap == float("inf"):
                within = "no bound on the optimum is known"
                if self.reward_range[0] == self.reward_range[1]:
                    within = f"no policy is known to be better than another; {NO_BOUND}"
            else:
                within += f" with {100 * (self.confidence or 0):.6g}% confidence"
            return f"the environment is stochastic ({self.contradiction}); after {seen} {within}"
        if self.reason == "contradicted":
            return (
                f"the plan does not hold in fresh episodes: {self.contradiction}; no machines were "
                f"found in {seen} that explain them"
            )
        if self.reason == "continuous":
            return (
                "observations are numbers that hardly ever recur ("
                f"{self.augmented_states:,} different augmented states in {seen}): discretize "
                "them, for example with "
                "observation_fn=lambda values: tuple(round(float(x), 1) for x in values)"
            )
        spent = {"budget": "the budget is spent", "failed": "the environment failed"}
        failure = f" ({self.failure})" if self.failure else ""
        remaining = f"; no bound on the optimum is known; {NO_BOUND}"
        if self.gap < float("inf"):
            steps = amount(self.open_steps, "untried step")
            remaining = f", {within}; {steps} could improve the plan"
            if not self.open_steps:
                remaining = f", {within}; no untried step could improve the plan, but tests remain"
        return f"{spent.get(self.reason, 'interrupted')} after {seen}{failure}{remaining}"

    def _tested(self) -> str:
        text = (
            f"{amount(self.transitions, 'transition')} tested, up to {self.depth} labels in a row"
        )
        if self.max_states is not None:
            states = amount(self.max_states, "state")
            text += f"; label sequences for up to {states} were only sampled"
            if self.tests is not None:
                text += (
                    f"; {amount(self.tests, 'test')} of the W-method rule out machines of up to "
                    f"{states}, as far as known steps can read their label sequences"
                )
        if self.undistinguished:
            text += (
                f"; no known step rules out {amount(self.undistinguished, 'alternative machine')}"
            )
        return text


def guarantee_of(
    state: LearnerState, reason: StopReason | None = None, failure: str | None = None
) -> Guarantee:
    """Return the present guarantee, by default that of the value bounds."""
    values, model, selection = state.current_bounds(), state.model, state.selection
    reason = reason or _reason_when_done(state, values)
    rewards = (0.0, 0.0) if model is None else (model.least, model.most)
    alternatives, w_method = selection.alternatives, selection.w_method
    return Guarantee(
        reason,
        steps=state.steps,
        episodes=state.buffer.episodes,
        states=state.sizes,
        augmented_states=0 if model is None else len(model),
        transitions=0 if model is None else len(model.queries_after),
        open_steps=0 if model is None else int(np.count_nonzero(values.importance)),
        gap=state.gap(values),
        depth=state.depth,
        reward_range=state.config.reward_range or rewards,
        truncated=state.truncated_episodes,
        contradiction=_varying_step(state, values) if reason == "unreachable" else None,
        max_states=state.config.max_states,
        tests=None if w_method is None else w_method.proven,
        undistinguished=0 if alternatives is None else alternatives.undistinguished,
        labels=describe_labeling(state.labels.labeling),
        failure=failure,
        truncated_after=always_truncated(state.hypothesis.present_tables(), state.buffer),
    )


def describe_labeling(labeling: LabelingFunction) -> str:
    """Describe the source of labels in a few words; empty if they are given.

    >>> describe_labeling(LabelingFunction("observation", {"attic": "key"}))
    '1 event, made of observations (key)'
    """
    if labeling == AS_RECORDED:
        return ""
    first, *rest = str(labeling).splitlines()
    names = [line.partition(": ")[0] for line in rest]
    return f"{first} ({', '.join(names)})" if names else first


def _varying_step(state: LearnerState, values: ValueBounds) -> str | None:
    """Describe a step that matters and whose outcome varies, if there is one."""
    model, buffer = state.present_model(), state.buffer
    for row, action in sorted(model.nondeterministic):
        if values.levels(row)[action]:
            step = _step_text(buffer, action, model.augmented_states[row])
            return f"the label or the termination after {step} varies"
    return None


def _step_text(buffer: Buffer, action: int, augmented_state: Sequence[int]) -> str:
    observation, *states = augmented_state
    where = augmented_state_text((buffer.observations.values[observation], *states))
    return f"{symbol_text(buffer.actions[action])} in {where}"


def always_truncated(tables: TransitionTables | None, buffer: Buffer) -> str | None:
    """Describe a step after which every episode was truncated, if there is one.

    A limit on the length of episodes truncates them after the same number of steps; that is no such
    step.
    """
    truncated = np.flatnonzero(np.frombuffer(buffer.ends, np.int8) == TRUNCATED)
    if tables is None or len(truncated) < OFTEN_TRUNCATED:
        return None
    columns = buffer.columns()
    states, situation = QueriedSteps(columns, tables).walk_all(tables)
    _, first, number = np.unique(situation, return_index=True, return_inverse=True)
    last = columns.offsets[1:][truncated] - 1
    lengths = np.diff(columns.offsets)[truncated]
    times, times_last = np.bincount(number), np.bincount(number[last], minlength=len(first))
    is_always = (times_last == times) & (times_last >= OFTEN_TRUNCATED)
    for candidate in np.flatnonzero(is_always).tolist():
        if len(np.unique(lengths[number[last] == candidate])) > 1:
            step = first[candidate]
            where = [int(column[step]) for column in (columns.observations_before, *states)]
            text = _step_text(buffer, int(columns.actions[step]), where)
            return f"{text} ({amount(int(times_last[candidate]), 'episode')})"
    return None

"""Fit the preprocessing of raw steps to traces: intervals, labels, and levels of rewards.

Input: options, and traces in shards. Output: a `Preprocessor`.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from resolvent._util.text import amount
from resolvent.errors import OptionError
from resolvent.inference.context import outputs_of
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machines
from resolvent.noise.model import Noise
from resolvent.noise.rewards import FEWEST_VALUES, find_reward_levels
from resolvent.preprocess.auto_discretize import auto_discretize
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor, RewardLevels
from resolvent.replay import states_at_steps
from resolvent.traces import TraceSet
from resolvent.traces.schema import ACTION, REWARD
from resolvent.traces.source import TraceSource

ACTION_OBSERVATION: Final = LabelingFunction("action+observation")
"""Labels that hold the whole step: the action and the observation."""


def fit_preprocessor(options: InferenceOptions, source: TraceSource) -> Preprocessor:
    """Return the preprocessing of raw steps, fitted to the first traces of a source."""
    intervals = _fitted_intervals(options, source)
    labeling = AS_RECORDED
    if not isinstance(options.labels, str):
        labeling = _labels_of_actions(options.labels, intervals, source)
    preprocessor = Preprocessor(labeling, intervals)
    return replace(preprocessor, rewards=fit_reward_levels(options, preprocessor, source))


def first_traces(source: TraceSource) -> TraceSet:
    """Return the traces of the first shard that has any; others may be damaged and skipped."""
    for number in range(len(source)):
        traces = source.scan(number).traces
        if len(traces):
            break
    return traces


def _fitted_intervals(options: InferenceOptions, source: TraceSource) -> Discretizer | None:
    """Return intervals for the numbers in observations."""
    discretize = options.discretize
    if discretize is None or (discretize != "auto" and discretize.is_fitted):
        return discretize
    traces = first_traces(source)
    if discretize == "auto":
        return auto_discretize(traces, outputs_of(options, traces))
    return discretize.fit(traces)


def _labels_of_actions(
    labeling: LabelingFunction, intervals: Discretizer | None, source: TraceSource
) -> LabelingFunction:
    """Return labels derived from actions if recorded labels equal actions that get intervals.

    Recorded labels, such as the inputs of a log, would still name the numbers.
    """
    if labeling.is_given and intervals is not None and intervals.of == ACTION:
        traces = first_traces(source)
        of_actions = LabelingFunction("action")
        if of_actions.transform(traces) == traces:
            return of_actions
    return labeling


def fit_reward_levels(
    options: InferenceOptions,
    preprocessor: Preprocessor,
    source: TraceSource,
    machines: Machines | None = None,
) -> RewardLevels | None:
    """Return the levels that rewards of the first traces vary around, if they do.

    The states of machines give sharper levels than label sequences.
    """
    noise, timing = options.noise, options.timing
    is_stated = isinstance(noise, Noise) and noise.rewards == "gaussian"
    is_output = options.outputs is None or REWARD in options.outputs
    if is_stated and options.reward_digits is not None:
        raise OptionError(
            "reward_digits rounds rewards, but rewards='gaussian' estimates the values that they "
            "vary around: leave out one"
        )
    if not (noise == "auto" or is_stated) or not is_output or options.reward_digits is not None:
        return None
    traces = replace(preprocessor, rewards=None).transform(first_traces(source))
    memory = None
    if machines is not None:
        memory = np.zeros(traces.steps, np.int64)
        for name, states in states_at_steps(machines, traces).items():
            memory = memory * (machines[name].states + 1) + states + 1
    if options.labels == "auto":  # equal pasts have equal events, whatever these are
        traces, timing = ACTION_OBSERVATION.transform(traces), LabelTiming.CURRENT_WITH_INITIAL
    levels = find_reward_levels(traces, timing, stated=is_stated, states=memory)
    if levels is None and is_stated and machines is None:
        raise _no_levels(traces)
    return levels


def _no_levels(traces: TraceSet) -> OptionError:
    """Return the error for rewards that do not vary as the user states."""
    why = "the traces have no rewards: leave it out"
    if REWARD in traces.columns:
        different_rewards = amount(len(traces.rewards), "different reward")
        why = f"{different_rewards} at {amount(traces.steps, 'step')}"
        if len(traces.rewards) < FEWEST_VALUES:
            why += " are too few to vary around values: pass rewards='flipped', or leave it out"
        else:
            why += " do not vary around few values: leave it out, or round them with reward_digits"
    return OptionError(f"Noise: rewards is 'gaussian', but {why}")

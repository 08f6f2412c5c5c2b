"""The settings of one inference, and the preprocessing fitted to its traces.

Input: options and traces in shards. Output: the preprocessor, and the corpus of all stages.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.cache import Store
from resolvent._util.parallel import Listener, Progress, Workers, executor_named
from resolvent._util.text import amount, listed, short
from resolvent.errors import OptionError, TimeLimitReached
from resolvent.inference.options import InferenceOptions
from resolvent.machines.machine_set import Machines, output_order
from resolvent.noise.model import Noise
from resolvent.noise.rewards import FEWEST_VALUES, find_reward_levels
from resolvent.preprocess.auto_discretize import auto_discretize
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor, RewardLevels
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.corpus import READING, Corpus
from resolvent.replay.replaying import states_at_steps
from resolvent.traces import TraceSet
from resolvent.traces.schema import ACTION, OBSERVATION, REWARD, TERMINATED, default_outputs
from resolvent.traces.source import InMemorySource, TraceSource

LEAST_SECONDS = 1e-9
"""Seconds that are left when time is over: limits must be above 0."""


def seconds_left(limit: float | None, started: float) -> float | None:
    """Return how much of a limit is left since a time of `time.perf_counter`, above 0."""
    return None if limit is None else max(limit - (time.perf_counter() - started), LEAST_SECONDS)


@dataclass(frozen=True)
class InferenceContext:
    """Options of one inference, with its clock and listener.

    `trace_numbers` are the user's numbers of the traces, if some were skipped before. With
    `without_noise`, no noise is tried, whatever the options allow for.
    """

    options: InferenceOptions
    preprocessor: Preprocessor
    progress: Listener | None = None
    started: float = field(default_factory=time.perf_counter)
    trace_numbers: NDArray[np.int64] | None = None
    without_noise: bool = False

    @cached_property
    def workers(self) -> Workers:
        """The workers that read and replay shards."""
        return executor_named(self.options.on)

    def time_left(self) -> float | None:
        """Return the number of seconds left; None without a time limit."""
        return seconds_left(self.options.time_limit, self.started)

    def in_time(self) -> bool:
        """Return whether any time is left."""
        left = self.time_left()
        return left is None or left > LEAST_SECONDS

    def corpus_of(self, shards: TraceSource) -> Corpus:
        """Scan traces once, and return them as the corpus of the inference."""
        digits, folder = self.options.reward_digits, self.options.cache_dir
        rounding = {} if digits is None else {REWARD: digits}
        cache = None if folder is None else Store(str(folder))
        report = self.shard_reporter(READING, shards, getattr(shards, "rows", None) or 0)
        return Corpus(shards, rounding, report, workers=self.workers, cache=cache)

    def shard_reporter(
        self, activity: str, shards: TraceSource, steps: int, round_number: int = 1
    ) -> Callable[[int], None] | None:
        """Return a function that reports progress shard by shard, and stops when time is over.

        Only files take long enough to be worth stopping. `steps` is about their number of steps.
        """
        count, in_files = len(shards), not isinstance(shards, InMemorySource)
        if count == 1:
            return None

        def report(done: int) -> None:
            if self.progress is not None:
                self.progress(activity, Progress(0, 0, done, count, round_number, steps))
            if in_files and done < count and not self.in_time():
                raise TimeLimitReached(
                    f"time ran out while {activity} traces, with {done} of {count} shards done: "
                    f"raise the time limit"
                )

        return report


def outputs_of(options: InferenceOptions, traces: TraceSet | Alphabets) -> list[str]:
    """Return the columns to predict, "observation" first: the others read its states."""
    columns = tuple(traces.columns)
    if options.outputs is None:
        return list(default_outputs(columns, observations=len(traces.observations)))
    predictable = (OBSERVATION, TERMINATED, *columns)
    for name in options.outputs:
        if name not in predictable:
            raise OptionError(
                f"outputs names '{short(name)}', which the traces do not have: they have "
                f"{listed(predictable)}"
            )
    return sorted(options.outputs, key=output_order)


# --- Preprocessing --------------------------------------------------------------------------------

ACTION_OBSERVATION: Final = LabelingFunction("action+observation")
"""Labels that hold the whole step: the action and the observation."""


def fit_preprocessor(options: InferenceOptions, source: TraceSource) -> Preprocessor:
    """Return the preprocessing of raw steps, fitted to the first traces of a source."""
    intervals = _fitted_intervals(options, source)
    labeling = AS_RECORDED if isinstance(options.labels, str) else options.labels
    # Labels that equal actions, such as the inputs of a log, would name the numbers in these.
    if labeling.is_given and intervals is not None and intervals.of == ACTION:
        traces, of_actions = first_traces(source), LabelingFunction("action")
        if of_actions.transform(traces) == traces:
            labeling = of_actions
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

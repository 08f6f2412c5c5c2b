"""The settings of one inference under way: options, preprocessing, clock and listener.

Input: options and traces in shards. Output: the corpus that all stages of the inference share.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from resolvent._util.cache import Store
from resolvent._util.parallel import Workers, executor_named
from resolvent._util.progress import Listener, Progress
from resolvent._util.text import listed, short
from resolvent.errors import OptionError, TimeLimitReached
from resolvent.inference.options import InferenceOptions
from resolvent.machines import output_order
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay import Corpus
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.corpus import READING
from resolvent.traces import TraceSet
from resolvent.traces.schema import OBSERVATION, REWARD, TERMINATED, default_outputs
from resolvent.traces.source import InMemorySource, TraceSource

LEAST_SECONDS = 1e-9
"""Seconds that are left when time is over: limits must be above 0."""


def seconds_left(limit: float | None, started: float) -> float | None:
    """Return how much of a limit is left since a time of `time.perf_counter`, above 0."""
    return None if limit is None else max(limit - (time.perf_counter() - started), LEAST_SECONDS)


@dataclass(frozen=True)
class InferenceContext:
    """Options of one inference, with its clock and listener.

    `trace_numbers` are the user's numbers of the traces, if some were skipped before. `replace`
    makes the context of a part of the same inference; the clock continues.
    """

    options: InferenceOptions
    preprocessor: Preprocessor
    progress: Listener | None = None
    started: float = field(default_factory=time.perf_counter)
    trace_numbers: NDArray[np.int64] | None = None

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

    def within(self, seconds: float | None) -> "InferenceContext":
        """Return the context of a part that has this number of seconds, and reports nothing."""
        options = self.options.replacing(time_limit=seconds)
        return replace(self, options=options, progress=None, started=time.perf_counter())

    def corpus_of(self, shards: TraceSource) -> Corpus:
        """Scan traces once, and return them as the corpus of the inference."""
        digits = self.options.reward_digits
        rounding = {} if digits is None else {REWARD: digits}
        rows = getattr(shards, "rows", None) or 0
        report = self.shard_reporter(READING, shards, rows)
        folder = self.options.cache_dir
        cache = None if folder is None else Store(str(folder))
        return Corpus(shards, rounding, report, workers=self.workers, cache=cache)

    def listener_for(self, name: str) -> Callable[[Progress], object] | None:
        """Return a listener for the progress of one machine."""
        return None if self.progress is None else partial(self.progress, name)

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

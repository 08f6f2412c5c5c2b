"""What one machine is to be learned from, and strategies run on it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.contradiction import Asking
from resolvent.machines import kind_of
from resolvent.merging import Automaton, Strategy, merge
from resolvent.options import Options
from resolvent.progress import Progress
from resolvent.samples import Histories, SampleSet, output_samples
from resolvent.traces import TraceSet
from resolvent.traces.column_names import REWARD

NO_TIME = 1e-9
"""What is left when no time is: limits must be above 0."""


@dataclass(frozen=True)
class Lesson:
    """What one machine is to be learned from: samples, and the traces behind them.

    `numbers` are those of the traces among all; `later` counts the machines that
    are still to be learned after this one. Machines of more than `most_states` are given up.
    `time_left` says how many seconds are left, `listener` is told how far the work is.
    """

    predicts: str
    samples: SampleSet
    traces: TraceSet
    numbers: NDArray[np.int64]
    supplemented: bool
    later: int
    most_states: int | None
    options: Options
    time_left: Callable[[], float | None]
    listener: Callable[[Progress], object] | None

    @property
    def kind(self) -> str:
        """What the machine is called."""
        return kind_of(self.predicts)

    @property
    def digits(self) -> int | None:
        """The decimals that answers are rounded to; None for all."""
        return digits_of(self.predicts, self.options)

    @property
    def asking(self) -> Asking:
        """What makes the samples of this output from other traces or other histories."""
        return asking_for(self.predicts, self.options)

    def share(self) -> float | None:
        """Return the seconds for this machine; an equal share of those left is for each later."""
        left = self.time_left()
        return None if left is None else left / (self.later + 1)

    def in_time(self) -> bool:
        """Whether any time is left."""
        return self.time_left() != NO_TIME

    def merged(
        self,
        samples: SampleSet,
        strategy: Strategy,
        time_limit: float | None = None,
        *,
        most_states: int | None = None,
        most_work: int | None = None,
    ) -> Automaton:
        """Run a strategy on samples, with the time that is left unless there is another limit."""
        return merge(
            samples,
            order=strategy,
            engine=self.options.engine,
            time_limit=time_limit or self.share(),
            listener=self.listener,
            seed=self.options.seed,
            effort=self.options.effort,
            most_states=most_states,
            most_work=most_work,
        )


def digits_of(predicts: str, options: Options) -> int | None:
    """Return the decimals that answers of an output are rounded to; None for all."""
    return options.reward_digits if predicts == REWARD else None


def asking_for(predicts: str, options: Options) -> Asking:
    """Return what makes the samples of an output, without supplement."""
    digits = digits_of(predicts, options)

    def ask(traces: TraceSet, histories: Histories) -> SampleSet:
        return output_samples(traces, histories, predicts, digits=digits)

    return ask

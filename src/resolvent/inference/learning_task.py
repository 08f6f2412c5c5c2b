"""The task of learning one machine, and its outcome.

A `LearningTask` holds the samples for one output and runs merging on them within its share of
the time. A `MachineFit` holds the machine and how it was found.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from resolvent._util.progress import Progress
from resolvent.inference.attempts import Attempt
from resolvent.inference.context import NO_SECONDS_LEFT
from resolvent.inference.engine import merge
from resolvent.inference.exact.certificate import MinimalityProof
from resolvent.inference.fit import Fit, MachineStatistics, MergeLog
from resolvent.inference.options import InferenceOptions
from resolvent.inference.strategy import Strategy
from resolvent.machines import Alternative, Machine, machine_name, machines_of
from resolvent.machines.automaton import RawAutomaton
from resolvent.preprocess.contradictions import SampleBuilder
from resolvent.preprocess.reduction import TrivialityTest
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import REWARD


@dataclass(frozen=True)
class MachineFit:
    """One machine and how it was found.

    `log_evidence` is the log likelihood of the machine and of the best of each other size, by
    number of states; `alternatives` are hardly less likely. Both are empty without noise.
    """

    machine: Machine
    statistics: MachineStatistics
    verdicts: tuple[TrivialityTest, ...]
    log: MergeLog
    finished: bool
    certificate: MinimalityProof[Machine] | None = None
    tried: tuple[Attempt, ...] = ()
    log_evidence: Mapping[int, float] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()


def found_of(
    fits: Mapping[str, MachineFit], timing: LabelTiming, steps: int, tried_ending: int
) -> Fit:
    """Return fits that were learned from this number of steps as the record that results hold."""
    return Fit(
        machines_of([fit.machine for fit in fits.values()], timing),
        steps,
        statistics={kind: fit.statistics for kind, fit in fits.items()},
        verdicts={kind: fit.verdicts for kind, fit in fits.items()},
        certificates={
            kind: fit.certificate for kind, fit in fits.items() if fit.certificate is not None
        },
        logs={kind: fit.log for kind, fit in fits.items()},
        tried_ending=tried_ending,
        log_evidence={
            kind: dict(fit.log_evidence) for kind, fit in fits.items() if fit.log_evidence
        },
        alternatives={kind: fit.alternatives for kind, fit in fits.items() if fit.alternatives},
        unfinished=frozenset(kind for kind, fit in fits.items() if not fit.finished),
        tried={kind: fit.tried for kind, fit in fits.items() if fit.tried},
    )


def fits_of(fit: Fit) -> dict[str, MachineFit]:
    """Return the fits of an earlier inference, which cost no time in this one."""
    return {
        kind: MachineFit(
            machine,
            replace(fit.statistics[kind], seconds=0.0),
            fit.verdicts[kind],
            fit.logs[kind],
            kind not in fit.unfinished,
            fit.certificates.get(kind),
            fit.tried.get(kind, ()),
        )
        for kind, machine in fit.machines.items()
    }


@dataclass(frozen=True)
class LearningTask:
    """The samples that one machine is learned from, and the limits of learning.

    `trace_numbers` are the numbers of the traces in the corpus, `later` is the number of machines
    still to be learned after this one. Machines of more than `most_states` are abandoned.
    """

    predicts: str
    samples: SampleSet
    traces: TraceSet
    trace_numbers: NDArray[np.int64]
    supplemented: bool
    later: int
    most_states: int | None
    options: InferenceOptions
    time_left: Callable[[], float | None]
    listener: Callable[[Progress], object] | None

    @property
    def kind(self) -> str:
        """Name of the machine."""
        return machine_name(self.predicts)

    @property
    def digits(self) -> int | None:
        """Number of decimals that outputs are rounded to; None for all."""
        return digits_of(self.predicts, self.options)

    @property
    def asking(self) -> SampleBuilder:
        """Function that returns the samples of this output for other traces or histories."""
        return sampler_for(self.predicts, self.options)

    def share(self) -> float | None:
        """Return the seconds for this machine; each later one gets an equal share."""
        left = self.time_left()
        return None if left is None else left / (self.later + 1)

    def in_time(self) -> bool:
        """Return whether any time is left."""
        return self.time_left() != NO_SECONDS_LEFT

    def merged(
        self,
        samples: SampleSet,
        strategy: Strategy,
        time_limit: float | None = None,
        *,
        most_states: int | None = None,
        most_work: int | None = None,
    ) -> RawAutomaton:
        """Merge the states of samples, by default within the share of this machine."""
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


def digits_of(predicts: str, options: InferenceOptions) -> int | None:
    """Return the number of decimals that an output is rounded to; None for all."""
    return options.reward_digits if predicts == REWARD else None


def sampler_for(predicts: str, options: InferenceOptions) -> SampleBuilder:
    """Return the function that returns the samples of an output, without supplement."""
    digits = digits_of(predicts, options)

    def sample(traces: TraceSet, histories: Histories) -> SampleSet:
        return output_samples(traces, histories, predicts, digits=digits)

    return sample

"""Infer latent true labels, if recorded ones are noisy, and hidden initial states.

Input: traces. Output: the most likely true labels and starts, as traces that machines read.
Labels that are a function of observations are corrected before, in `labels`, without states.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np

from resolvent import _core
from resolvent._util.progress import Listener
from resolvent.errors import OptionError
from resolvent.machines import Machine, Machines
from resolvent.machines.uncertainty import LabelNoise, StateUncertainty
from resolvent.noise.outputs import (
    LikelyMachine,
    ProgressForwarder,
    check_search_limits,
    marginal_likelihood,
)
from resolvent.preprocess.samples import Histories, ObservationColumn, SampleSet, output_samples
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import NO_EVENT, Label, Symbol
from resolvent.traces.vocabulary import Codes, Vocabulary

_PART = 100_000
"""Number of rows that machines of different sizes are compared on; the best are fitted to all."""

MOST_STATES = 16
"""Maximum number of states of a machine whose state is latent."""

_APART: Final = 3
"""Number of steps after which deviations are independent, if they occur by chance: an observation
that was read wrongly spoils two steps in a row."""

_PERSISTS: Final = 1.5
"""Factor by which deviations follow each other more often than by chance, if they depend on the
past, """

_DEVIATIONS: Final = 5.0
"""and the number of standard deviations by which they do."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LatentStateMachine(LikelyMachine):
    """The most likely machine with latent states, and the labels and states inferred.

    `label_noise` has the rates of wrong labels, `label_shares` the share of each true label, and
    `starts` the probability of each initial state. `true_labels` and `path` are the most likely
    labels and states at each row, jointly for all rows of a trace. `log_evidence` is that of the
    outputs and of the machine, given the recorded labels.
    """

    label_noise: LabelNoise
    label_shares: tuple[float, ...]
    starts: tuple[float, ...]
    true_labels: Codes
    path: Codes

    @property
    def has_several_starts(self) -> bool:
        """Whether episodes begin in more than one state."""
        return sum(share > 0 for share in self.starts) > 1


def fit_latent_machine(
    samples: SampleSet,
    *,
    labels: bool = True,
    starts: bool = False,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    most_states: int = MOST_STATES,
    listener: Listener | None = None,
) -> LatentStateMachine:
    """Return the most likely machine for samples that do not determine its state.

    With `labels`, recorded labels are noisy copies of those that the machine reads: events are
    missed or swapped, and steps without an event are recorded with one. With `starts`, each
    episode draws its initial state. "No event" changes no state. Latent labels and states are
    inferred from all outputs of a trace by expectation maximization; machines are compared by
    marginal likelihood, as in `fit_likely_machine`.

    >>> import gymnasium as gym, resolvent as rs
    >>> from resolvent.preprocess.samples import Histories, LabelTiming, output_samples
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> likely = fit_latent_machine(output_samples(traces, histories, "observation"))
    >>> likely.states, likely.label_noise.missed < 0.01
    (2, True)
    """
    check_search_limits(effort, time_limit)
    if not 1 <= most_states <= MOST_STATES:
        raise OptionError(f"most_states is {most_states}: choose a number from 1 to {MOST_STATES}")
    if not labels and not starts:
        raise OptionError("nothing is hidden: choose labels=True, starts=True or both")
    width = max(len(samples.labels), 1)
    silence = samples.labels.get(NO_EVENT)
    grown = _core.grow_hidden_machine(
        samples.alpha,
        samples.output,
        samples.beta,
        samples.offsets,
        labels=width,
        silence=NONE if silence is None else silence,
        labels_lie=labels,
        random_starts=starts,
        seed=seed,
        effort=effort,
        most_states=most_states,
        part=_PART,
        time_limit=time_limit or 0.0,
        progress=ProgressForwarder(listener),
    )
    return LatentStateMachine(
        transitions=grown["transitions"].reshape(-1, width)[:, : len(samples.labels)],
        log_evidence=grown["log_evidence"],
        sizes=dict(sorted(grown["sizes"].items())),
        noise=grown["noise"],
        finished=grown["finished"],
        label_noise=LabelNoise(*grown["label_noise"]) if labels else LabelNoise(0.0, 0.0, 0.0),
        label_shares=tuple(grown["shares"][: len(samples.labels)].tolist()),
        starts=tuple(grown["starts"].tolist()),
        true_labels=grown["labels"],
        path=grown["states"],
    )


@dataclass(frozen=True)
class LatentReading:
    """Traces with the most likely labels and starts, and the parameters to infer states from them.

    Attributes:
        traces: The traces with the most likely true labels. The first label of an episode names
            its initial state, unless that is state 0.
        timing: When machines read these labels.
        doubt: Rates of wrong labels, and probabilities of initial states.
        log_evidence: The log likelihood of the outputs given the recorded labels, less that given
            the most likely true ones.
    """

    traces: TraceSet
    timing: LabelTiming
    doubt: StateUncertainty
    log_evidence: float

    @property
    def noise_shares(self) -> dict[str, float]:
        """The noise by the names that `result.noise` has for it."""
        label_noise = self.doubt.label_noise
        shares = {} if label_noise is None else label_noise.shares()
        if self.doubt.starts:
            shares["other starts"] = 1 - max(self.doubt.starts.values())
        return shares


def start_label(number: int) -> Label:
    """Return the label that stands for the hidden initial state with this number.

    >>> start_label(0) == NO_EVENT, sorted(start_label(1))
    (True, ['start 1'])
    """
    return frozenset({f"start {number}"}) if number else NO_EVENT


def infer_latent(
    traces: TraceSet,
    timing: LabelTiming,
    outputs: Sequence[str],
    *,
    labels: bool = True,
    starts: bool = False,
    digits: int | None = None,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
) -> LatentReading | None:
    """Infer the true labels and initial states of traces, output by output.

    The machine for each output corrects labels; the next one also reads the state of the first.
    Return None if machines that read the recorded labels are as likely. Hidden starts are inferred
    only with the timing "current", which reads no label at the beginning of an episode.

    >>> import resolvent as rs
    >>> def episode(side, turn):
    ...     outcome = "cheese" if side == turn else "wall"
    ...     return rs.Trace(["hall", outcome] * 2, [None] * 4, [turn, "back", turn])
    >>> turns = [(side, turn) for side in ("left", "right") for turn in ("left", "right")]
    >>> traces = rs.TraceSet([episode(*turn) for turn in turns] * 30)
    >>> latent = infer_latent(
    ...     traces, LabelTiming.CURRENT, ["observation"], labels=False, starts=True
    ... )
    >>> print(latent.doubt)
    hidden starts: no event 0.5, start 1 0.5
    """
    infers_starts = starts and timing is LabelTiming.CURRENT
    if not labels and not infers_starts:
        return None
    reading = LatentReading(traces, timing, StateUncertainty(), 0.0)
    observed: ObservationColumn | None = None
    for predicts in outputs:
        samples = _samples(reading, predicts, observed, digits)
        random_starts = infers_starts and not reading.doubt.starts
        if not labels and not random_starts:
            break
        likely = fit_latent_machine(
            samples,
            labels=labels,
            starts=random_starts,
            seed=seed,
            effort=effort,
            time_limit=time_limit,
        )
        if likely.states == 1:
            continue
        if likely.has_several_starts or not np.array_equal(likely.true_labels, samples.beta):
            log_evidence = reading.log_evidence
            reading = _corrected(reading, samples, likely)
            corrected = _samples(reading, predicts, observed, digits)
            transitions = _transitions(likely, samples, corrected)
            gain = likely.log_evidence - marginal_likelihood(corrected, transitions).log_evidence
            reading = replace(reading, log_evidence=log_evidence + gain)
        if predicts == OBSERVATION:
            observed = _with_states(traces, likely)
    return reading if reading.doubt else None


def _samples(
    reading: LatentReading, predicts: str, observed: ObservationColumn | None, digits: int | None
) -> SampleSet:
    return output_samples(
        reading.traces,
        Histories.of(reading.traces, reading.timing),
        predicts,
        observed=observed,
        digits=digits if predicts == REWARD else None,
    )


def _with_states(traces: TraceSet, likely: LatentStateMachine) -> ObservationColumn:
    """Return the pairs of observation and state at all steps."""
    observations = traces.at_step(traces.observation_codes)
    pairs: Vocabulary[Symbol] = Vocabulary(
        (observation, state)
        for observation in traces.observations
        for state in range(likely.states)
    )
    return pairs, (observations * likely.states + likely.path).astype(np.int32)


def _corrected(
    reading: LatentReading, samples: SampleSet, likely: LatentStateMachine
) -> LatentReading:
    """Return the traces with the labels that were inferred, and the rates of noise."""
    traces, uncertainty, timing = reading.traces, reading.doubt, reading.timing
    steps = np.diff(traces.offsets)
    row = np.arange(len(samples.beta)) + np.repeat(np.arange(len(traces)), steps) - timing.lag
    read = samples.beta >= 0
    codes = traces.label_codes.copy()
    codes[row[read]] = likely.true_labels[read]
    labels = list(traces.labels)
    if not np.array_equal(likely.true_labels, samples.beta) and uncertainty.label_noise is None:
        shares = dict(zip(samples.labels, likely.label_shares, strict=True))
        uncertainty = replace(uncertainty, label_noise=likely.label_noise, label_shares=shares)
    if likely.has_several_starts:
        initial = likely.path[traces.offsets[:-1]]
        start_labels = [start_label(state) for state in range(int(initial.max()) + 1)]
        labels += [label for label in start_labels if label not in labels]
        numbers = np.array([labels.index(label) for label in start_labels])
        codes[traces.offsets[:-1] + np.arange(len(traces))] = numbers[initial]
        shares = {
            start_label(state): share for state, share in enumerate(likely.starts) if share > 0
        }
        uncertainty = replace(uncertainty, starts=shares)
        timing = LabelTiming.CURRENT_WITH_INITIAL
    columns = {name: (column.values, column.codes) for name, column in traces.all_columns.items()}
    corrected = TraceSet.taking_over(
        {**columns, LABEL: (labels, codes)},
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )
    return LatentReading(corrected, timing, uncertainty, reading.log_evidence)


def _transitions(likely: LatentStateMachine, before: SampleSet, after: SampleSet) -> Codes:
    """Return the transitions by the labels of the corrected samples; unread labels loop."""
    stays = np.arange(likely.states, dtype=np.int32)
    table = np.empty((likely.states, len(after.labels)), np.int32)
    for code, label in enumerate(after.labels):
        before_code = before.labels.get(label)
        column = stays if before_code is None else likely.transitions[:, before_code]
        table[:, code] = np.where(column < 0, stays, column)
    for state in range(1, likely.states):
        if (start := after.labels.get(start_label(state))) is not None:
            table[0, start] = state
    return table


def deviations_persist(traces: TraceSet, machines: Machines, timing: LabelTiming) -> bool:
    """Return whether deviating outputs are consecutive, as if the state were wrong.

    An output deviates if it is not the most frequent one of its query and state. By chance, a
    deviation follows a deviation no more often than any output. The first machine with deviations
    decides, since its errors recur in the machines that read its states.
    """
    histories = Histories.of(traces, timing)
    for machine in machines.values():
        persists = _machine_deviations_persist(traces, histories, machine)
        if persists is not None:
            return persists
    return False


def _machine_deviations_persist(
    traces: TraceSet, histories: Histories, machine: Machine
) -> bool | None:
    """Return whether deviations of one machine come in a row; None if there are none."""
    samples = output_samples(traces, histories, machine.predicts, digits=machine.digits)
    states = machine.replay(samples.beta, samples.offsets)
    outputs = max(len(samples.outputs), 1)
    query = samples.alpha.astype(np.int64)
    answers, place, count = np.unique(
        (query * machine.states + states) * outputs + samples.output,
        return_inverse=True,
        return_counts=True,
    )
    _, row = np.unique(answers // outputs, return_inverse=True)
    most = np.zeros(row.max() + 1, np.int64)
    np.maximum.at(most, row, count)
    deviates = (count < most[row])[place]
    if not deviates.any():
        return None
    varies = np.bincount(np.unique(query * outputs + samples.output) // outputs) > 1
    steps = np.flatnonzero(varies[samples.alpha] & (states >= 0))
    trace = np.searchsorted(samples.offsets, steps, side="right")
    later = np.searchsorted(steps, steps + _APART)
    pair = np.flatnonzero(later < len(steps))
    pair = pair[trace[later[pair]] == trace[pair]]
    before, after = deviates[steps[pair]], deviates[steps[later[pair]]]
    if not before.any() or not after.any():
        return False
    both, share = int((before & after).sum()), float(after.mean())
    by_chance = float(before.sum()) * share
    deviation = sqrt(by_chance * (1 - share))
    return both > max(_PERSISTS * by_chance, by_chance + _DEVIATIONS * deviation)

"""Infer latent true labels, if recorded ones are noisy, and hidden initial states.

Input: traces. Output: the most likely true labels and starts, as traces that machines read.
Labels that are a function of observations are denoised before, in `labels`, without states.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.machines.augmented_state import LabelNoise, StateUncertainty
from resolvent.machines.memory import FiniteMemory
from resolvent.noise.outputs import (
    UNLIMITED,
    LikelyMachine,
    SearchLimits,
    columns_of,
    marginal_likelihood,
)
from resolvent.preprocess.samples import (
    Histories,
    ObservationColumn,
    SampleSet,
    output_samples,
    supplement,
)
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.traces.trace_set import with_column
from resolvent.traces.vocabulary import Codes

_COMPARED_ROWS = 100_000
"""Number of rows that machines of different sizes are compared on; the best are fitted to all."""

MOST_STATES = 16
"""Maximum number of states of a machine whose state is latent."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LatentStateMachine(LikelyMachine):
    """The most likely machine with latent states, and the labels and states inferred.

    `label_shares` are the shares of true labels, and `starts` the probabilities of initial states.
    `true_labels` and `path` are the most likely labels and states at each row, jointly for all
    rows of a trace. `log_evidence` is that of the outputs and of the machine, given the recorded
    labels.
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
    limits: SearchLimits = UNLIMITED,
    *,
    labels: bool = True,
    starts: bool = False,
) -> LatentStateMachine:
    """Return the most likely machine for samples that do not determine its state.

    With `labels`, recorded labels are noisy copies of those that the machine reads. With `starts`,
    each episode draws its initial state. "No event" changes no state. Latent labels and states are
    inferred from all outputs of a trace by expectation maximization; machines are compared by
    marginal likelihood, as in `fit_likely_machine`.
    """
    if not labels and not starts:
        raise OptionError("nothing is latent: choose labels=True, starts=True or both")
    width = max(len(samples.labels), 1)
    silence = samples.labels.get(NO_EVENT)
    grown = _core.grow_latent_machine(
        *columns_of(samples),
        labels=width,
        no_event=NONE if silence is None else silence,
        noisy_labels=labels,
        random_starts=starts,
        seed=limits.seed,
        effort=limits.effort,
        most_states=min(limits.most_states, MOST_STATES),
        part=_COMPARED_ROWS,
        time_limit=limits.time_limit or 0.0,
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
class LatentFit:
    """Traces with the most likely true labels, and the parameters to infer states from them.

    The first label of an episode names its initial state, unless that is state 0. `timing` is that
    of these labels. `log_evidence` is the log likelihood of the outputs given the recorded labels,
    less that given the true ones.
    """

    traces: TraceSet
    timing: LabelTiming
    state_uncertainty: StateUncertainty = field(default_factory=StateUncertainty)
    log_evidence: float = 0.0

    @property
    def noise_shares(self) -> dict[str, float]:
        """The noise by the names that `result.noise` has for it."""
        label_noise = self.state_uncertainty.label_noise
        shares = {} if label_noise is None else label_noise.shares()
        if self.state_uncertainty.starts:
            shares["other starts"] = 1 - max(self.state_uncertainty.starts.values())
        return shares


def start_label(number: int) -> Label:
    """Return the label that stands for the hidden initial state with this number."""
    return frozenset({f"start {number}"}) if number else NO_EVENT


def infer_latent(
    traces: TraceSet,
    timing: LabelTiming,
    outputs: Sequence[str],
    limits: SearchLimits = UNLIMITED,
    *,
    labels: bool = True,
    starts: bool = False,
    digits: int | None = None,
) -> LatentFit | None:
    """Infer the true labels and initial states of traces, output by output.

    The machine for each output corrects labels; the next one also reads the state of the first.
    Return None if machines that read the recorded labels are as likely. Hidden starts are inferred
    only with the timing "current", which reads no label at the beginning of an episode.
    """
    fit = LatentFit(traces, timing)
    observed: ObservationColumn | None = None

    def samples_of(predicts: str) -> SampleSet:
        histories = Histories.of(fit.traces, fit.timing)
        rounding = digits if predicts == REWARD else None
        return output_samples(fit.traces, histories, predicts, observed=observed, digits=rounding)

    for predicts in outputs:
        starts_are_latent = starts and fit.timing is LabelTiming.CURRENT
        if not labels and not starts_are_latent:
            break
        samples = samples_of(predicts)
        likely = fit_latent_machine(samples, limits, labels=labels, starts=starts_are_latent)
        if likely.states == 1:
            continue
        if likely.has_several_starts or not np.array_equal(likely.true_labels, samples.beta):
            fit = _corrected(fit, samples, likely)
            corrected = samples_of(predicts)
            transitions = _transitions(likely, samples, corrected)
            gain = likely.log_evidence - marginal_likelihood(corrected, transitions).log_evidence
            fit = replace(fit, log_evidence=fit.log_evidence + gain)
        if predicts == OBSERVATION:
            observed = supplement(traces, likely.path)
    return fit if fit.state_uncertainty else None


def _corrected(fit: LatentFit, samples: SampleSet, likely: LatentStateMachine) -> LatentFit:
    """Return the traces with the labels that were inferred, and the rates of noise."""
    traces, uncertainty, timing = fit.traces, fit.state_uncertainty, fit.timing
    row = np.arange(traces.steps) + traces.trace_of_step - timing.lag
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
        starts = ((start_label(state), share) for state, share in enumerate(likely.starts))
        shares = {label: share for label, share in starts if share > 0}
        uncertainty = replace(uncertainty, starts=shares)
        timing = LabelTiming.CURRENT_WITH_INITIAL
    corrected = with_column(traces, LABEL, labels, codes)
    return LatentFit(corrected, timing, uncertainty, fit.log_evidence)


def _transitions(likely: LatentStateMachine, before: SampleSet, after: SampleSet) -> Codes:
    """Return the transitions by the labels of the corrected samples; unread labels loop."""
    memory = FiniteMemory(labels=before.labels, transitions=likely.transitions, trivial=())
    transitions = memory.transitions_for(after.labels, unseen="stay")
    for state in range(1, likely.states):
        if (start := after.labels.get(start_label(state))) is not None:
            transitions[0, start] = state
    return transitions

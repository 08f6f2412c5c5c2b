"""Bound how often machines fail on new traces, and check noisy machines for calibration.

Input: machines and traces that they were not inferred from. Output: a `Holdout`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp, log, log1p, log_gamma
from resolvent._util.records import to_builtins
from resolvent._util.text import amount, short
from resolvent.errors import OptionError, ResolventError
from resolvent.evaluation.observed import Numbers, SampledSteps
from resolvent.machines import Machine, Machines, MachineScore
from resolvent.machines.tables import GENERALIZED_CODE, OBSERVED_CODE
from resolvent.replay.counts import ReplayCounts
from resolvent.replay.replaying import replay_traces, states_at_steps
from resolvent.replay.score import score_of
from resolvent.replay.steps import StepQueries, query_numbers, step_queries
from resolvent.traces import TraceSet
from resolvent.traces.digest import sample_traces
from resolvent.traces.vocabulary import Codes, codes_of

TRAINING_SHARE: Final = 0.8  # share of traces to infer from when the rest is held out
MAX_DEVIATIONS: Final = 4.0  # maximum standard deviations between shares within noise


@dataclass(frozen=True)
class CalibrationCheck:
    """The number of most likely outputs that occurred, and the number expected.

    `steps` is the number of steps with a prediction, `unseen` that of the others. `expected` is
    the sum of the probabilities of the most likely outputs, and `deviation` the standard
    deviation of `right` if these are correct. `log_loss` is as in `MachineScore`.
    """

    steps: int
    unseen: int
    right: int
    expected: float
    deviation: float
    log_loss: float | None

    @classmethod
    def of(cls, score: MachineScore) -> "CalibrationCheck":
        """Compute the check from a score."""
        bins = score.calibration
        expected = sum(cell.steps * cell.predicted for cell in bins)
        variance = sum(cell.steps * cell.predicted * (1 - cell.predicted) for cell in bins)
        steps, unseen, right = score.forecasts.steps, score.unseen, score.all_right
        return cls(steps, unseen, right, expected, sqrt(variance), score.log_loss)

    @property
    def within_noise(self) -> bool:
        """Whether as many outputs were right as noise allows."""
        return self.expected - self.right <= MAX_DEVIATIONS * self.deviation + 1

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        names = ("steps", "unseen", "right", "expected", "deviation", "within_noise", "log_loss")
        return to_builtins(self, names)

    def __str__(self) -> str:
        if not self.steps:
            return f"nothing predicted, {amount(self.unseen, 'step')} unseen"
        assessment = "within noise" if self.within_noise else "fewer than noise explains"
        shares = f"{self.right / self.steps:.1%} of {amount(self.steps, 'output')}"
        return (
            f"{shares} are the most likely ones, {self.expected / self.steps:.1%} were expected: "
            f"{assessment}; log-loss {self.log_loss:.3f}, {amount(self.unseen, 'step')} unseen"
        )


Calibration: TypeAlias = dict[str, CalibrationCheck]  # the check of each machine


def calibration_of(machines: Machines, replay: ReplayCounts) -> Calibration | None:
    """Check the calibration of each machine on replayed traces; return None without noise."""
    if not any(machine.is_noisy for machine in machines.values()):
        return None
    return {name: CalibrationCheck.of(score) for name, score in score_of(machines, replay).items()}


def error_bound(failures: int, trials: int, delta: float = 0.05) -> float:
    """Return the upper confidence limit of the failure rate, at confidence 1 − `delta`.

    Without failures it is ln(1/δ)/m, but never above that of one failure; with some, the exact
    one-sided limit of Clopper and Pearson: the rate at which at most `failures` failures have
    probability δ.

    >>> round(error_bound(0, 100), 4), round(error_bound(1, 100), 4), error_bound(0, 1)
    (0.03, 0.0466, 1.0)
    """
    if not 0 < delta < 1:
        raise OptionError(f"delta is {delta:g}: it must lie between 0 and 1")
    if failures == trials:
        return 1.0
    if failures == 0:
        return min(log(1 / delta) / trials, error_bound(1, trials, delta))
    low, high = failures / trials, 1.0
    while high - low > 1e-12:
        rate = (low + high) / 2
        if _probability_of_at_most(failures, trials, rate) > delta:
            low = rate
        else:
            high = rate
    return high


def _probability_of_at_most(failures: int, trials: int, rate: float) -> float:
    """Return the binomial probability of at most `failures` failures."""
    return sum(
        exp(
            log_gamma(trials + 1)
            - log_gamma(k + 1)
            - log_gamma(trials - k + 1)
            + k * log(rate)
            + (trials - k) * log1p(-rate)
        )
        for k in range(failures + 1)
    )


@dataclass(frozen=True)
class Holdout:
    """The failures of machines on traces that they were not inferred from.

    Of the `traces`, `failures` have a step that some machine does not predict right, `wrong` have a
    wrong observed prediction, and `assumed_wrong` a wrong generalized one.

    If the traces are held out of those that the machines were inferred from, the failures are
    those of machines inferred without them; `carries_over` is whether the given machines
    contain these, so that they fail no more often. It is None if the traces are new.

    `calibration` compares the number of right predictions of noisy machines with the number
    expected. `part` is the sample of steps for inference and testing, if any.
    """

    traces: int
    failures: int
    wrong: int
    assumed_wrong: int = 0
    delta: float = 0.05
    carries_over: bool | None = None
    calibration: Calibration | None = field(default=None, hash=False)
    part: SampledSteps | None = None

    @classmethod
    def of(cls, steps_by_machine: Iterable[StepQueries], traces: TraceSet) -> "Holdout":
        """Count traces by the predictions of each machine at their steps."""
        failing, wrong, assumed_wrong = (np.zeros(len(traces), bool) for _ in range(3))

        def in_trace(steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
            return np.logical_or.reduceat(steps, traces.offsets[:-1])

        for steps in steps_by_machine:
            basis = steps.machine.basis_many(steps.states, steps.queries)
            differs = steps.predicted != steps.outputs
            failing |= in_trace(differs)
            wrong |= in_trace(differs & (basis == OBSERVED_CODE))
            assumed_wrong |= in_trace(differs & (basis == GENERALIZED_CODE))
        return cls(len(traces), int(failing.sum()), int(wrong.sum()), int(assumed_wrong.sum()))

    def __add__(self, other: "Holdout") -> "Holdout":
        """Return the counts of both sets of traces."""
        counts = ("traces", "failures", "wrong", "assumed_wrong")
        return Holdout(*(getattr(self, name) + getattr(other, name) for name in counts))

    @property
    def is_new(self) -> bool:
        """Whether the traces are new to the machines, and not held out of theirs."""
        return self.carries_over is None

    @property
    def within_noise(self) -> bool | None:
        """Whether all machines are right up to noise; None without noise."""
        if self.calibration is None:
            return None
        return all(check.within_noise for check in self.calibration.values())

    @property
    def bound(self) -> float:
        """The upper limit of the rate of failing traces, with confidence 1 − δ."""
        return error_bound(self.failures, self.traces, self.delta)

    @property
    def wrong_bound(self) -> float:
        """The upper limit of the rate of traces with a wrong observed prediction."""
        return error_bound(self.wrong, self.traces, self.delta)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        counts = ("traces", "failures", "wrong", "assumed_wrong", "delta", "bound", "wrong_bound")
        more = ("is_new", "carries_over", "calibration", "part")
        names = {"is_new": "new_traces"}
        return to_builtins(self, (*counts, *more), names=names, optional=("calibration", "part"))

    def __str__(self) -> str:
        part = "" if self.part is None else f"; {self.part}"
        kind = "traces assumed to be new to the machines" if self.is_new else "held-out traces"
        traces = f"{self.traces:,} {kind}"
        if self.calibration is not None:
            checks = (f"{short(name)} machine: {check}" for name, check in self.calibration.items())
            return f"on {traces}: {'; '.join(checks)}{part}"
        text = f"{self.failures:,} of {traces} fail, {self.wrong:,} with a wrong step"
        if self.assumed_wrong:
            text += f", {self.assumed_wrong:,} with a wrong generalized one"
        text += (
            f": with {1 - self.delta:.0%} confidence at most {self.bound:.2%} of all traces fail, "
            f"and {self.wrong_bound:.2%} have a wrong step"
        )
        if self.carries_over:
            text += " (the machines inferred without these traces are part of those here)"
        elif not self.is_new:
            text += " (this holds for machines inferred without these traces, which differ)"
        return text + part


def split(
    machines: Machines, traces: TraceSet, infer: Callable[[TraceSet], Machines], delta: float = 0.05
) -> Holdout | None:
    """Infer machines from a share of the traces and test them on the rest.

    The split depends on the content of the traces, not on their order. Return None if nothing
    is left to test, or nothing can be inferred from the share.
    """
    is_training = sample_traces(traces, TRAINING_SHARE)
    if is_training.all():
        return None
    try:
        trained = infer(traces.take(np.flatnonzero(is_training)))
    except ResolventError:
        return None
    test = traces.take(np.flatnonzero(~is_training))
    steps = step_queries(trained, test, states_at_steps(trained, test))
    calibration = None
    if any(machine.is_noisy for machine in trained.values()):
        calibration = calibration_of(trained, replay_traces(trained, test))
    return replace(
        Holdout.of(steps.values(), test),
        delta=delta,
        calibration=calibration,
        carries_over=is_part(trained, machines),
    )


def is_part(part: Machines, full: Machines) -> bool:
    """Return whether `full` knows every output and transition of `part`, with the same values."""
    if part.timing is not full.timing or [*part] != [*full]:
        return False
    transition_states: Codes | None = None
    for name, machine in part.items():
        states = _matching_states(machine, full[name])
        if states is None or machine.supplemented != full[name].supplemented:
            return False
        if not _has_same_outputs(machine, full[name], states, transition_states):
            return False
        if name == "transition":
            transition_states = states
    return True


def _matching_states(part: Machine, full: Machine) -> Codes | None:
    """Return for each state of `part` the state of `full` that the same labels reach, or None.

    It is −1 for an unreachable state of `part`.
    """
    full_targets = full.transitions_for(part.labels)
    match = np.full(part.states, -1, np.int32)
    match[0] = 0
    for state, (source, code) in part.shortest_paths.items():
        if code >= 0:
            match[state] = full_targets[match[source], code]
            if match[state] < 0:
                return None
    states = part.reachable()
    targets, matches = part.transitions[states], full_targets[match[states]]
    agrees = (matches >= 0) & (match[targets] == matches)
    return match if agrees[targets >= 0].all() else None


def _has_same_outputs(part: Machine, full: Machine, match: Codes, paired: Codes | None) -> bool:
    """Return whether the states of `full` give all outputs that the matching ones in `part` do.

    `paired` maps the Transition Machine's states, with which observations may be paired.
    """
    observations: Sequence[Any] = part.observations
    if part.supplemented and paired is not None:
        observations = [(symbol, int(paired[state])) for symbol, state in observations]
    outputs = codes_of(part.outputs, full.outputs, -2)  # −1 stands for an unseen output

    def numbers(queries: Numbers) -> Numbers:
        codes = np.divmod(queries, max(len(part.actions), 1))
        return query_numbers(full, (observations, part.actions), codes)

    predicted = full.predict(match[part.output_state], numbers(part.output_query))
    if not np.array_equal(predicted, outputs[part.output_value]):
        return False
    queries, expected = numbers(part.constant_query), outputs[part.constant_value]
    # State −1 stands for the output that is the same in every state.
    varies = full.predict(np.full(len(queries), -1, np.int32), queries) != expected
    queries, expected = queries[varies], expected[varies]
    return len(queries) == 0 or all(
        np.array_equal(full.predict(np.full(len(queries), state, np.int32), queries), expected)
        for state in np.unique(match[match >= 0]).tolist()
    )

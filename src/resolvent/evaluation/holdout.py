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
from resolvent.machines.tables import GENERALIZED_CODE, OBSERVED_CODE, pair_keys
from resolvent.replay.counts import ReplayCounts
from resolvent.replay.replaying import replay_traces, states_at_steps
from resolvent.replay.score import score_of
from resolvent.replay.steps import StepQueries, query_numbers, step_queries
from resolvent.traces import TraceSet
from resolvent.traces.digest import trace_hashes
from resolvent.traces.vocabulary import Codes, codes_of

HELD_SHARE: Final = 0.2  # share of traces to hold out
RARE: Final = 0.1  # maximum share of the outputs of a query for one of them to be rare
_EPSILON: Final = 1e-9  # of rounding, in positions
MAX_DEVIATIONS: Final = 4.0  # maximum standard deviations between shares within noise


# --- Rare outcomes and the choice of traces -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StepKinds:
    """Whether the output of each step depends on the past, and whether it is rare.

    It depends on the past if the machine has several outputs for the query. It is rare if it is at
    most a tenth of these outputs, by their counts. `may_be_rare` is whether any output is.
    """

    varies: NDArray[np.bool_]
    rare: NDArray[np.bool_]
    may_be_rare: bool

    @classmethod
    def of(cls, steps: StepQueries) -> "StepKinds":
        """Classify steps by the counts of their machine."""
        machine, width = steps.machine, len(steps.machine.outputs) + 1  # one for an unknown output
        keys, row = np.unique(
            pair_keys(machine.output_query, machine.output_value, width), return_inverse=True
        )
        count = np.bincount(row, machine.query_counts()[0], len(keys))
        _, query, values = np.unique(keys // width, return_inverse=True, return_counts=True)
        varies = values[query] > 1
        total = np.bincount(query, count)
        is_rare = varies & (count <= RARE * total[query])
        outcomes = pair_keys(steps.queries, steps.outputs, width)
        return cls(
            np.isin(steps.queries, keys[varies] // width),
            np.isin(outcomes, keys[is_rare]),
            bool(is_rare.any()),
        )


def holdout_order(steps_by_machine: Iterable[StepQueries], traces: TraceSet) -> Numbers:
    """Return the position of each trace in an order that spreads rare outcomes evenly.

    Traces are in the order of the number of traces with their rarest outcome, and of their content.
    They must be distinct.
    """
    rarest = np.full(len(traces), len(traces) + 1)
    for steps in steps_by_machine:
        rows = np.flatnonzero(StepKinds.of(steps).rare)
        outcomes = pair_keys(steps.outputs[rows], traces.trace_of_step[rows], len(traces))
        output, trace = np.divmod(np.unique(outcomes), len(traces))
        np.minimum.at(rarest, trace, np.bincount(output)[output] if len(output) else output)
    position = np.empty(len(traces), np.int64)
    position[np.lexsort((trace_hashes(traces), rarest))] = np.arange(len(traces))
    return position


def is_held_out(position: Numbers, share: float, fold: int = 0) -> NDArray[np.bool_]:
    """Return whether each trace is held out: with a share of a fifth, every fifth of the order.

    The first one stays in training, in the first fold: an outcome that was recorded once cannot be
    predicted without it.

    >>> is_held_out(np.arange(8), 0.25).tolist()
    [False, True, False, False, False, True, False, False]
    """
    number = position - fold + max(1 / share - 2, 0)
    held: NDArray[np.bool_] = np.floor((number + 1) * share + _EPSILON) > np.floor(
        number * share + _EPSILON
    )
    return held


# --- Calibration ----------------------------------------------------------------------------------


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


# --- Failures of traces ---------------------------------------------------------------------------


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
    wrong observed prediction, and `assumed_wrong` a wrong generalized one. Of the `rare` traces
    with a rare outcome (see `StepKinds`), `rare_failures` fail; `rare` is None if no outcome is.

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
    rare: int | None = None
    rare_failures: int = 0

    @classmethod
    def of(
        cls,
        steps_by_machine: Iterable[StepQueries],
        traces: TraceSet,
        known: Iterable[StepQueries] | None = None,
    ) -> "Holdout":
        """Count traces by the predictions of each machine at their steps.

        Which outcomes are rare is decided by the counts of the machines of the `known` steps, by
        default the same.
        """
        steps_by_machine = [*steps_by_machine]
        failing, wrong, assumed_wrong, rare = (np.zeros(len(traces), bool) for _ in range(4))
        kinds = [StepKinds.of(steps) for steps in known or steps_by_machine]

        def in_trace(steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
            return np.logical_or.reduceat(steps, traces.offsets[:-1])

        for steps in steps_by_machine:
            basis = steps.machine.basis_many(steps.states, steps.queries)
            differs = steps.predicted != steps.outputs
            failing |= in_trace(differs)
            wrong |= in_trace(differs & (basis == OBSERVED_CODE))
            assumed_wrong |= in_trace(differs & (basis == GENERALIZED_CODE))
        for kind in kinds:
            rare |= in_trace(kind.rare)
        return cls(
            len(traces),
            int(failing.sum()),
            int(wrong.sum()),
            int(assumed_wrong.sum()),
            rare=int(rare.sum()) if any(kind.may_be_rare for kind in kinds) else None,
            rare_failures=int((rare & failing).sum()),
        )

    def __add__(self, other: "Holdout") -> "Holdout":
        """Return the counts of both sets of traces."""
        counts = ("traces", "failures", "wrong", "assumed_wrong", "rare_failures")
        sums = {name: getattr(self, name) + getattr(other, name) for name in counts}
        rare = None if self.rare is None or other.rare is None else self.rare + other.rare
        return Holdout(**sums, rare=rare)

    @property
    def is_new(self) -> bool:
        """Whether the traces are new to the machines, and not held out of theirs."""
        return self.carries_over is None

    @property
    def is_right(self) -> bool:
        """Whether no trace fails, and some have a rare outcome, if there are any."""
        return self.failures == 0 and self.rare != 0

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
        more = ("rare", "rare_failures", "is_new", "carries_over", "calibration", "part")
        names = {"is_new": "new_traces"}
        return to_builtins(self, (*counts, *more), names=names, optional=("calibration", "part"))

    @property
    def rare_text(self) -> str:
        """The failures among traces with a rare outcome, as text; empty if no outcome is rare."""
        if self.rare is None:
            return ""
        if self.rare == 0:
            return "; none has a rare outcome"
        verb = "fails" if self.rare_failures == 1 else "fail"
        return f"; of {self.rare:,} with a rare outcome {self.rare_failures:,} {verb}"

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
        text += self.rare_text
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
    _, first, index = np.unique(trace_hashes(traces), return_index=True, return_inverse=True)
    distinct = traces.take(first)
    known = step_queries(machines, distinct, states_at_steps(machines, distinct))
    is_held = is_held_out(holdout_order(known.values(), distinct), HELD_SHARE)[index]
    if not is_held.any():
        return None
    try:
        trained = infer(traces.take(np.flatnonzero(~is_held)))
    except ResolventError:
        return None
    test = traces.take(np.flatnonzero(is_held))
    steps = step_queries(trained, test, states_at_steps(trained, test))
    known = step_queries(machines, test, states_at_steps(machines, test))
    calibration = None
    if any(machine.is_noisy for machine in trained.values()):
        calibration = calibration_of(trained, replay_traces(trained, test))
    return replace(
        Holdout.of(steps.values(), test, known.values()),
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

"""Explain contradictions between traces, so that the user can act.

Input: two rows of samples that no machine can explain together. Output: a `Conflict`, and from it
the error `ContradictoryTraces`.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import amount, listed, short
from resolvent.errors import ContradictoryTraces, StepLocation
from resolvent.machines.compare import label_sequence_text
from resolvent.preprocess.reduction import fitting_timing, remove_trivial
from resolvent.preprocess.samples import (
    ContradictoryRows,
    Histories,
    SampleBuilder,
    SampleSet,
    find_contradiction,
)
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.traces import Label, Symbol, TraceSet, symbol_text
from resolvent.traces.schema import REWARD
from resolvent.traces.symbols import difference_text

RARE: Final = 10
"""An output that fewer than one step in this number has is rare, and may be noise."""

_ROUNDING: Final = 1e-6
"""Largest difference of two rewards, absolute or relative, that rounding may explain."""

_MAX_LABELS: Final = 6
"""Number of labels that a message shows, the last ones."""

_MAX_CHARACTERS: Final = 60
"""Number of characters of a symbol that a message shows."""

_KEEP_TRIVIAL: Final = "pass remove_trivial=False (--keep-trivial)"

Locate: TypeAlias = Callable[[int, int], StepLocation]
"""Returns the location of a step, given the numbers of its trace and of the step."""


@dataclass(frozen=True)
class Conflict:
    """Two steps that no deterministic machine over these labels can explain together.

    Its text is the message of the error. The fields are those of `ContradictoryTraces`.
    """

    output: str
    locations: tuple[StepLocation, StepLocation]
    values: tuple[Hashable, Hashable]
    query: tuple[Hashable, Hashable]
    outcomes: tuple[tuple[Hashable, int], ...]
    label_sequence: tuple[Label, ...]
    labels_read: bool
    advice: str
    timing: LabelTiming | None = None
    exact_remedy: bool = False

    @property
    def traces(self) -> tuple[int, int]:
        """The numbers of the two traces."""
        first, second = self.locations
        return first.trace, second.trace

    def error(self) -> ContradictoryTraces:
        """Return the error for a user who did not allow noise."""
        return ContradictoryTraces(str(self), self)

    def __str__(self) -> str:
        first, second = self.locations
        plurals = {"observation": "next observations", "reward": "rewards"}
        plural = plurals.get(self.output, f"values of {short(self.output)}")
        differ = f"different {plural} for ({', '.join(map(_shortened, self.query))})"
        if self.labels_read:
            end = label_sequence_text(self.label_sequence[-_MAX_LABELS:])
            more = "… " if len(self.label_sequence) > _MAX_LABELS else ""
            differ = f"read the same labels ({more}{end}) but have {differ}"
        else:
            differ = f"have {differ} before any label is read"
        return f"{first} and {second} {differ}: {self._outcomes_text()}; {self.advice}"

    def _outcomes_text(self) -> str:
        """Write the two outputs, and how often each occurs if there are more than two steps."""
        difference, count = difference_text(*self.values), dict(self.outcomes)
        first, second = map(_shortened, self.values)
        if not difference:
            first, second = _around_difference(*map(symbol_text, self.values))
        if sum(count.values()) == 2:
            return f"{first} and {second}{f', which {difference}' if difference else ''}"
        times = [amount(count.pop(value), "time") for value in self.values]
        text = f"{first} ({times[0]}) and {second} ({times[1]})"
        if count:
            text += f", and {amount(len(count), 'other')} ({amount(sum(count.values()), 'time')})"
        return f"{text}; the first two {difference}" if difference else text


@dataclass(frozen=True)
class Sampling:
    """Traces, and how the samples for one output are taken from them.

    `trivial` are the codes of the labels that are not read. Labels that are not those of the user
    are derived from observations and actions, so that the user cannot improve them.
    """

    traces: TraceSet
    build: SampleBuilder
    output: str
    timing: LabelTiming
    trivial: tuple[int, ...] = ()
    is_labeled_by_user: bool = True

    def samples(self, timing: LabelTiming, trivial: tuple[int, ...]) -> SampleSet:
        """Return samples with another timing, or without other labels."""
        return self.build(self.traces, remove_trivial(Histories.of(self.traces, timing), trivial))


def explain_conflict(
    rows: ContradictoryRows,
    sampling: Sampling,
    locate: Locate = StepLocation,
    predictable: Sequence[str] = (),
) -> Conflict:
    """Return both steps of a contradiction, what they have in common, and what to try.

    `rows` are those of the samples that contradict each other; `predictable` are other columns,
    whose samples do not.
    """
    traces, timing, trivial = sampling.traces, sampling.timing, sampling.trivial
    steps = _ConflictingSteps(sampling.samples(timing, trivial), rows.first)
    (first, first_step), (second, second_step) = map(traces.locate, steps.rows)
    fitting = fitting_timing(traces, sampling.build, timing, trivial)
    trivial_matter = bool(trivial) and not find_contradiction(sampling.samples(timing, ()))
    rounding = sampling.output == REWARD and _differ_by_rounding(*steps.values)
    needed = "a label treated as trivial is needed:"
    if fitting is not None:
        advice = [f"another label timing explains all traces: pass {_timing_option(fitting)}"]
        if trivial_matter:
            advice.append(f"or {needed} {_KEEP_TRIVIAL}")
    elif trivial_matter:
        advice = [f"{needed} name fewer labels as trivial, or {_KEEP_TRIVIAL}"]
    else:
        advice = [_advice(steps, sampling)]
        if sampling.output == REWARD:
            advice[0] += ", or round noisy rewards with reward_digits=N (--reward-digits N)"
        if steps.rare and not rounding:
            advice.append(
                f"the outcome is rare at {steps.rare:,} of these {len(steps.equal_rows):,} "
                f"steps: to treat it as noise, pass noise='auto' (--noise auto)"
            )
    if predictable:
        names = ", ".join(map(repr, predictable))
        advice.append(
            f"to predict only {listed(predictable)}, pass outputs=[{names}] "
            f"(--outputs {','.join(predictable)})"
        )
    return Conflict(
        output=sampling.output,
        locations=(locate(first, first_step), locate(second, second_step)),
        values=steps.values,
        query=(
            traces.observations[int(traces.observation_codes[steps.rows[0] + first])],
            traces.actions[int(traces.action_codes[steps.rows[0]])],
        ),
        outcomes=steps.outcomes,
        label_sequence=steps.label_sequence,
        # Whatever the timing, each step but the first reads a label.
        labels_read=timing.reads_at_reset or not steps.at_reset,
        advice="; ".join(advice),
        timing=fitting,
        exact_remedy=fitting is not None or trivial_matter or rounding,
    )


@dataclass(frozen=True, eq=False)
class _ConflictingSteps:
    """All steps with the label history and the query of one row."""

    samples: SampleSet
    row: int

    @cached_property
    def equal_rows(self) -> NDArray[np.int64]:
        node = _history_of_row(self.samples.histories)
        alpha = self.samples.alpha
        return np.flatnonzero((node == node[self.row]) & (alpha == alpha[self.row]))

    @cached_property
    def at_reset(self) -> bool:
        """Whether first steps of traces differ already, so that no later label can explain it."""
        return len(np.unique(self.samples.output[self._first_steps])) > 1

    @cached_property
    def rows(self) -> tuple[int, int]:
        """The first row and the first with another output; both at reset if possible."""
        rows = self._first_steps if self.at_reset else self.equal_rows
        output = self.samples.output[rows]
        return int(rows[0]), int(rows[np.argmax(output != output[0])])

    @cached_property
    def _first_steps(self) -> NDArray[np.int64]:
        return self.equal_rows[np.isin(self.equal_rows, self.samples.offsets[:-1])]

    @property
    def values(self) -> tuple[Hashable, Hashable]:
        first, second = (self.samples.outputs[int(self.samples.output[row])] for row in self.rows)
        return first, second

    @cached_property
    def outcomes(self) -> tuple[tuple[Hashable, int], ...]:
        """All outputs with their numbers of steps, most frequent first."""
        codes, counts = np.unique(self.samples.output[self.equal_rows], return_counts=True)
        by_count = np.argsort(-counts, kind="stable").tolist()
        return tuple((self.samples.outputs[int(codes[at])], int(counts[at])) for at in by_count)

    @property
    def rare(self) -> int:
        """Number of steps with a rare output."""
        return sum(count for _, count in self.outcomes if RARE * count < len(self.equal_rows))

    @cached_property
    def label_sequence(self) -> tuple[Label, ...]:
        """The labels read before, without trivial ones."""
        samples, row = self.samples, self.rows[0]
        start = samples.offsets[np.searchsorted(samples.offsets, row, side="right") - 1]
        read = samples.beta[int(start) : row + 1].tolist()
        return tuple(samples.labels[code] for code in read if code != NONE)


def _history_of_row(histories: Histories) -> NDArray[np.int32]:
    """Return for each row the number of its label history."""
    return _core.history_columns(histories.tree)[0]


def _advice(steps: _ConflictingSteps, sampling: Sampling) -> str:
    """Return what to try when no single option makes the traces fit."""
    if not steps.at_reset:
        discover = ", or pass labels='auto' (--labels auto) to discover it"
        return (
            "the environment is not deterministic under these labels: label the event that makes "
            f"the difference{discover if sampling.is_labeled_by_user else ''}"
        )
    cause = "no later label can help, since initial states differ or the environment is random"
    remedy = "include the difference in the first observation or its label"
    if sampling.timing.reads_at_reset:
        return f"{cause}: {remedy}"
    initial = LabelTiming.CURRENT_WITH_INITIAL
    histories = sampling.samples(initial, sampling.trivial).histories
    node = _history_of_row(histories)[steps.equal_rows].tolist()
    output = steps.samples.output[steps.equal_rows].tolist()
    if len({*zip(node, output, strict=True)}) == len({*node}):
        return (
            f"{cause}: pass {_timing_option(initial)} to read the first labels, which distinguish "
            f"these steps; other steps then contradict each other"
        )
    return f"{cause}: {remedy}, and pass {_timing_option(initial)}"


def _timing_option(timing: LabelTiming) -> str:
    return f"timing='{timing}' (--timing {timing})"


def _shortened(symbol: Symbol) -> str:
    text = symbol_text(symbol)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"


def _around_difference(first: str, second: str) -> tuple[str, str]:
    """Return two texts, or of long ones the part where they begin to differ.

    >>> _around_difference("0" * 100 + "A" + "0" * 100, "0" * 100 + "B" + "0" * 100)[0][:24]
    '…00000000000000000000A00'
    """
    if max(len(first), len(second)) <= _MAX_CHARACTERS:
        return first, second
    pairs = enumerate(zip(first, second, strict=False))
    begin = max(0, next((at for at, (left, right) in pairs if left != right), 0) - 20)
    window = slice(begin, begin + _MAX_CHARACTERS)
    return f"{'…' * (begin > 0)}{first[window]}…", f"{'…' * (begin > 0)}{second[window]}…"


def _differ_by_rounding(first: Hashable, second: Hashable) -> bool:
    if not isinstance(first, float) or not isinstance(second, float):
        return False
    return isclose(first, second, rel_tol=_ROUNDING, abs_tol=_ROUNDING)

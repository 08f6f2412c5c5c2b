"""Why no machine can explain some traces, said so that one can act on it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import ContradictoryTraces, TracePlace
from resolvent.machines.ways import history_text
from resolvent.merging import Contradiction, find_contradiction
from resolvent.reduction import remove_trivial
from resolvent.samples import NONE, Histories, LabelTiming, SampleSet
from resolvent.traces import Label, Symbol, TraceSet, symbol_text
from resolvent.traces.column_names import REWARD
from resolvent.traces.differences import difference_text
from resolvent.wording import amount, listed, short

RARE: Final = 10
"""An outcome of fewer than one step in so many is rare, and may be noise."""

_ROUNDING: Final = 1e-6
"""Rewards that differ by no more, or by no more than this share of them, differ by rounding."""

_LABELS_SHOWN = 6
_LETTERS_SHOWN = 60

Locating: TypeAlias = Callable[[int, int], TracePlace]
"""Says where a step is, given the numbers of its trace and of itself."""

Asking: TypeAlias = Callable[[TraceSet, Histories], SampleSet]
"""Makes the samples of one kind of machine, without supplement.

The supplement tells nothing that the history does not, so the samples with it
contradict each other exactly where those without it do.
"""


def explain(
    rows: Contradiction,
    traces: TraceSet,
    ask: Asking,
    machine: str,
    timing: LabelTiming,
    trivial: tuple[int, ...],
    locate: Locating = TracePlace,
    *,
    labels_made: bool = False,
    alone: Sequence[str] = (),
) -> ContradictoryTraces:
    """Return the error that names both steps, what they have in common, and what to try.

    `machine` is the kind of machine that cannot exist: "transition", or else the
    name of the column it would predict. `labels_made` says that labels are made of what
    is seen and done, so that there is no better way to make them. `alone` are other columns
    that machines were to predict, which contradict themselves nowhere.
    """
    samples = ask(traces, remove_trivial(Histories.of(traces, timing), trivial))
    output = "observation" if machine == "transition" else machine
    clash = _Clash(samples, rows.first)
    (first, first_step), (second, second_step) = map(traces.place, clash.rows)
    places = locate(first, first_step), locate(second, second_step)
    question = (
        traces.observations[int(traces.observation_codes[clash.rows[0] + first])],
        traces.actions[int(traces.action_codes[clash.rows[0]])],
    )
    # Whatever the timing, each step but the first reads a label.
    labels_read = timing.reads_at_reset or not clash.at_reset
    fitting = fitting_timing(traces, ask, timing, trivial)
    matters = (
        bool(trivial) and find_contradiction(ask(traces, Histories.of(traces, timing))) is None
    )
    rounding = output == REWARD and _differ_by_rounding(*clash.values)
    if fitting is not None:
        advice = f"with another label timing they fit: {_option(fitting)}"
        if matters:
            advice += "; or a label taken as trivial matters: remove_trivial=False (--keep-trivial)"
    elif matters:
        advice = (
            "a label taken as trivial matters here: name fewer as trivial, "
            "or remove_trivial=False (--keep-trivial)"
        )
    else:
        advice = _advice(clash, traces, timing, trivial, labels_made)
        if output == REWARD:
            advice += ", or round noisy rewards: reward_digits=N (--reward-digits N)"
        if clash.rare and not rounding:
            advice += (
                f"; it may be noise, which noise='auto' (--noise auto) allows for: "
                f"the outcome is rare at {clash.rare:,} of these "
                f"{len(clash.alike):,} steps"
            )

    if alone:
        listed_names = ", ".join(map(repr, alone))
        advice += (
            f"; without it, {listed(alone)} can be predicted: outputs=[{listed_names}] "
            f"(--outputs {','.join(alone)})"
        )
    differ = f"different {_plural(output)} for ({', '.join(map(_beginning, question))})"
    if labels_read:
        differ = f"read the same labels ({_end(clash.history)}) but have {differ}"
    else:
        differ = f"have {differ} before any label is read"
    return ContradictoryTraces(
        f"{places[0]} and {places[1]} {differ}: {_outcomes_text(clash)}; {advice}",
        output=output,
        places=places,
        values=clash.values,
        question=question,
        outcomes=clash.outcomes,
        history=clash.history,
        labels_read=labels_read,
        advice=advice,
        timing=fitting,
        exact_remedy=fitting is not None or matters or rounding,
    )


@dataclass(frozen=True, eq=False)
class _Clash:
    """The steps that read the same labels and are asked the same, one of which is given."""

    samples: SampleSet
    row: int

    @cached_property
    def alike(self) -> NDArray[np.int64]:
        """The rows of all these steps, rising."""
        node = _history_of_row(self.samples.histories)
        alpha = self.samples.alpha
        return np.flatnonzero((node == node[self.row]) & (alpha == alpha[self.row]))

    @cached_property
    def at_reset(self) -> bool:
        """Whether first steps of traces differ already: then nothing that happened explains it."""
        return len(np.unique(self.samples.output[self._first_steps])) > 1

    @cached_property
    def rows(self) -> tuple[int, int]:
        """The first row, and the first that is answered in another way; at reset if they can be."""
        among = self._first_steps if self.at_reset else self.alike
        output = self.samples.output[among]
        return int(among[0]), int(among[np.argmax(output != output[0])])

    @property
    def _first_steps(self) -> NDArray[np.int64]:
        return self.alike[np.isin(self.alike, self.samples.offsets[:-1])]

    @property
    def values(self) -> tuple[Any, Any]:
        """The answers of both rows."""
        one, other = (self.samples.outputs[int(self.samples.output[row])] for row in self.rows)
        return one, other

    @cached_property
    def outcomes(self) -> tuple[tuple[Any, int], ...]:
        """All answers and how often they come, most frequent first."""
        codes, counts = np.unique(self.samples.output[self.alike], return_counts=True)
        by_count = np.argsort(-counts, kind="stable").tolist()
        return tuple((self.samples.outputs[int(codes[at])], int(counts[at])) for at in by_count)

    @property
    def rare(self) -> int:
        """How many of the steps have an answer that few have."""
        return sum(count for _, count in self.outcomes if RARE * count < len(self.alike))

    @cached_property
    def history(self) -> tuple[Label, ...]:
        """The labels that were read before, but for trivial ones."""
        samples, row = self.samples, self.rows[0]
        start = samples.offsets[np.searchsorted(samples.offsets, row, side="right") - 1]
        read = samples.beta[int(start) : row + 1].tolist()
        return tuple(samples.labels[code] for code in read if code != NONE)

    def resolved_by(self, histories: Histories) -> bool:
        """Whether other histories tell all of these steps apart that differ."""
        node, output = _history_of_row(histories)[self.alike], self.samples.output[self.alike]
        answers = set(zip(node.tolist(), output.tolist(), strict=True))
        return len(answers) == len({history for history, _ in answers})


def _history_of_row(histories: Histories) -> NDArray[np.int32]:
    """Return for each row a number that stands for all the labels read up to it."""
    number, _, _ = _core.history_columns(histories.tree)
    return number


def _advice(
    clash: _Clash,
    traces: TraceSet,
    timing: LabelTiming,
    trivial: tuple[int, ...],
    labels_made: bool,
) -> str:
    """Say what to try when no option alone makes the traces fit."""
    if not clash.at_reset:
        found = "the world is not deterministic under these labels: label what makes the difference"
        return found if labels_made else f"{found}, or have it found: labels='auto' (--labels auto)"
    futile = "no later label can help, for the world starts differently or is random"
    remedy = "show the difference in the first observation, or in its label"
    if timing.reads_at_reset:
        return f"{futile}: {remedy}"
    initial = LabelTiming.CURRENT_WITH_INITIAL
    if clash.resolved_by(remove_trivial(Histories.of(traces, initial), trivial)):
        return (
            f"{futile}: read the first labels, which tell these steps apart, with "
            f"{_option(initial)}, though other steps contradict each other then"
        )
    return f"{futile}: {remedy} with {_option(initial)}"


def _option(timing: LabelTiming) -> str:
    return f"timing='{timing}' (--timing {timing})"


def _plural(output: str) -> str:
    named = {"observation": "next observations", "reward": "rewards"}
    return named.get(output, f"values of {short(output)}")


def _end(history: tuple[Label, ...]) -> str:
    end = history_text(history[-_LABELS_SHOWN:])
    return f"… {end}" if len(history) > _LABELS_SHOWN else end


def _outcomes_text(clash: _Clash) -> str:
    """Write the two answers, and how many there are of each kind if there are more."""
    where = difference_text(*clash.values)
    if where:
        one, other = map(_beginning, clash.values)
    else:
        one, other = _around_difference(*map(symbol_text, clash.values))
    if len(clash.alike) == 2:
        return f"{one} and {other}{f', which {where}' if where else ''}"
    count = dict(clash.outcomes)
    first, second = (count.pop(value) for value in clash.values)
    text = f"{one} ({amount(first, 'time')}) and {other} ({amount(second, 'time')})"
    if count:
        text += f", and {amount(len(count), 'other')} ({amount(sum(count.values()), 'time')})"
    return f"{text}; the first two {where}" if where else text


def _beginning(symbol: Symbol) -> str:
    text = symbol_text(symbol)
    return text if len(text) <= _LETTERS_SHOWN else f"{text[:_LETTERS_SHOWN]}…"


def _around_difference(one: str, other: str) -> tuple[str, str]:
    """Return two texts, or of long ones the part where they begin to differ.

    >>> _around_difference("0" * 100 + "A" + "0" * 100, "0" * 100 + "B" + "0" * 100)[0][:24]
    '…00000000000000000000A00'
    """
    if max(len(one), len(other)) <= _LETTERS_SHOWN:
        return one, other
    same = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), 0
    )
    begin = max(0, same - 20)
    window = slice(begin, begin + _LETTERS_SHOWN)
    return f"{'…' * (begin > 0)}{one[window]}…", f"{'…' * (begin > 0)}{other[window]}…"


def fitting_timing(
    traces: TraceSet, ask: Asking, timing: LabelTiming, trivial: tuple[int, ...]
) -> LabelTiming | None:
    """Return another timing under which the traces do not contradict each other."""
    for other in LabelTiming:
        histories = remove_trivial(Histories.of(traces, other), trivial)
        if other is not timing and find_contradiction(ask(traces, histories)) is None:
            return other
    return None


def _differ_by_rounding(one: Hashable, other: Hashable) -> bool:
    return (
        isinstance(one, float)
        and isinstance(other, float)
        and isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    )

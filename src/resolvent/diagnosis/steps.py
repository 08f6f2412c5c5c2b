"""Traces → the columns that findings are counted from, each made once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.diagnosis.tallies import Tally, tallied
from resolvent.reduction import remove_trivial, trivial_codes
from resolvent.samples import Histories, LabelTiming, SampleSet, output_samples
from resolvent.traces import Symbol, TraceSet, symbol_text
from resolvent.traces.column_names import OBSERVATION

ENOUGH_STEPS = 500_000
"""Steps, from the first on, that are looked at for what has to be sorted by trace or by time."""

_LETTERS_SHOWN = 60
_OUTCOMES_SHOWN = 4
_OUTCOMES_KEPT = 20


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of traces in order: what each was asked and answered, and what was read before.

    A question is an observation and the action taken there. Of the labels read before a step
    its `history` has all but "no event", its `full_history` that too. `outputs` are the columns
    that machines are wanted for.
    """

    traces: TraceSet
    timing: LabelTiming
    outputs: tuple[str, ...]

    @cached_property
    def samples(self) -> dict[str, SampleSet]:
        """Questions and answers, by the column that answers are from."""
        histories = remove_trivial(self._histories, trivial_codes(self.traces.labels))
        names = dict.fromkeys((OBSERVATION, *self.outputs))
        return {name: output_samples(self.traces, histories, name) for name in names}

    @cached_property
    def _histories(self) -> Histories:
        return Histories.of(self.traces, self.timing)

    @property
    def question(self) -> NDArray[np.int32]:
        """The number of each step's question."""
        return self.samples[OBSERVATION].alpha

    @property
    def questions(self) -> int:
        """One more than the largest number that a question may have."""
        return len(self.samples[OBSERVATION].alpha_keys)

    @cached_property
    def history(self) -> NDArray[np.int32]:
        """A number for each step that stands for the labels read before, but for "no event"."""
        return _number_of_history(self.samples[OBSERVATION].histories)

    @cached_property
    def full_history(self) -> NDArray[np.int32]:
        """A number for each step that stands for all the labels read before."""
        return _number_of_history(self._histories)

    @cached_property
    def trace(self) -> NDArray[np.int64]:
        """The number of each step's trace."""
        return np.repeat(np.arange(len(self.traces)), np.diff(self.traces.offsets))

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """How many steps of its trace come before each step."""
        return np.arange(self.traces.steps) - self.traces.offsets[self.trace]

    def asked_after(self, history: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return a number for each step that stands for a history and the question."""
        return history.astype(np.int64) * self.questions + self.question

    def tally(
        self, output: str, asked: NDArray[np.int64], rows: NDArray[np.int64] | None = None
    ) -> Tally:
        """Count the answers to what was asked, of all steps or of some."""
        samples = self.samples[output]
        answer = samples.output if rows is None else samples.output[rows]
        return tallied(asked if rows is None else asked[rows], answer, len(samples.outputs))

    def question_text(self, question: int) -> str:
        """Write a question: the observation and the action.

        `question` may be what `asked_after` returns.
        """
        samples = self.samples[OBSERVATION]
        key = int(samples.alpha_keys[question % self.questions])
        observation, action = divmod(key, len(samples.actions))
        asked = samples.observations[observation], samples.actions[action]
        return f"({', '.join(map(beginning, asked))})"

    def outcomes(self, output: str, counted: Sequence[tuple[int, int]]) -> dict[str, int]:
        """Return answers as texts, the first of many, each with how often it was given."""
        values = self.samples[output].outputs
        return {beginning(values[code]): count for code, count in counted[:_OUTCOMES_KEPT]}


def outcomes_text(outcomes: dict[str, int], of: int) -> str:
    """Write answers and how often each was given, the first few if there are many.

    `of` is how many different answers there are, if not all of them are given.

    >>> outcomes_text({"attic": 3, "hall": 1}, 2)
    'attic (3×) or hall (1×)'
    >>> outcomes_text(dict.fromkeys("abcdefg", 1), 9)
    'a (1×), b (1×), c (1×), d (1×) or 5 others'
    """
    told = [f"{value} ({count:,}×)" for value, count in outcomes.items()]
    if of > _OUTCOMES_SHOWN + 1:
        told[_OUTCOMES_SHOWN:] = [f"{of - _OUTCOMES_SHOWN:,} others"]
    return " or ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)


def beginning(symbol: Symbol) -> str:
    """Write a symbol, or the beginning of a long one.

    >>> beginning("hall"), len(beginning("a" * 1000))
    ('hall', 61)
    """
    text = symbol_text(symbol)
    return text if len(text) <= _LETTERS_SHOWN else f"{text[:_LETTERS_SHOWN]}…"


def _number_of_history(histories: Histories) -> NDArray[np.int32]:
    number, _, _ = _core.history_columns(histories.tree)
    return number

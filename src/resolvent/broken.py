"""Traces + machines that explain most of them → which traces are broken: of no use at all.

A broken trace comes from another world, has its columns shuffled, or was cut and put together
again. Its answers are odd much more often than the noise of the other traces explains.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import log, log1p, log_gamma
from resolvent.machines import Machines, machines_of
from resolvent.replay import StepsAsked, states_at_steps, steps_asked
from resolvent.traces import TraceSet

_RISK: Final = 0.01
"""How likely it may be that any trace at all is left out though nothing is wrong with it."""

_OTHER_TRACES: Final = 2
"""So many other traces must have answered a question before an answer can be odd."""

_BORROWED: Final = 50.0
"""So many answers a question borrows from all others, to say how often its answers are odd."""

_USUAL: Final = 0.9
"""The share of traces, those that differ least from others, that say how much traces differ."""

_ROUNDS: Final = 10


@dataclass(frozen=True, eq=False)
class Oddness:
    """How odd the answers of each trace are.

    `asked` counts the answers that could be odd, `odd` those that are, in the machine for
    which that tells most. `nats` is the logarithm of how many times as likely the answers are
    if the trace is odd in a way of its own, instead of as others are; `needed` is what it
    takes to be beyond doubt. `surprise` is how unlikely the answers of all machines are that
    most other traces contradict, be it only one.
    """

    asked: NDArray[np.int64]
    odd: NDArray[np.int64]
    nats: NDArray[np.float64]
    surprise: NDArray[np.float64]
    needed: float

    @property
    def broken(self) -> NDArray[np.bool_]:
        """For each trace, whether it is broken beyond doubt."""
        return self.nats > self.needed


def oddness(machines: Machines, traces: TraceSet, *, by_state: bool = True) -> Oddness:
    """Say how odd the answers of each trace are, beside what others answer in the same states.

    An answer is odd if most other traces answer otherwise; a question that no two others were
    asked tells nothing. How often answers are odd may differ from question to question. A
    trace that is broken has some share of odd answers, any one being as likely as any other.
    With `by_state` off, states make no difference: for machines that cannot be relied on.
    """
    if by_state:
        asked = steps_asked(machines, traces, states_at_steps(machines, traces))
    else:  # later machines are asked about states of the first
        first = machines_of([next(iter(machines.values()))], machines.timing)
        nowhere = {kind: np.zeros(traces.steps, np.int32) for kind in first}
        asked = steps_asked(first, traces, nowhere)
    needed = log(max(len(traces), 1) * len(asked) / _RISK)
    each = [_of_one_machine(steps, traces, needed) for steps in asked.values()]
    most = np.argmax([one.nats for one in each], axis=0)
    trace = np.arange(len(traces))
    return Oddness(
        np.array([one.asked for one in each])[most, trace],
        np.array([one.odd for one in each])[most, trace],
        np.array([one.nats for one in each])[most, trace],
        np.sum([one.surprise for one in each], axis=0),
        needed,
    )


def _of_one_machine(steps: StepsAsked, traces: TraceSet, needed: float) -> Oddness:
    trace = np.repeat(np.arange(len(traces)), np.diff(traces.offsets))
    questions = int(steps.questions.max(initial=0)) + 1
    row, times = _numbered(steps.states.astype(np.int64) * questions + steps.questions)
    answer, answered = _numbered(row * (len(steps.machine.outputs) + 1) + steps.outputs)
    own_row, own_times = _numbered(trace * len(times) + row)
    own_answer, own_answered = _numbered(trace * len(answered) + answer)
    others = times[row] - own_times[own_row]
    alike = answered[answer] - own_answered[own_answer]
    told = _traces_of(row, trace, len(times))[row] > _OTHER_TRACES
    against = 2 * alike < others  # where just one other trace knows a row, either may be wrong
    odd = told & against
    # What other traces show of a row, without this one.
    odd_of_row = np.bincount(row, odd, len(times))[row] - np.bincount(own_row, odd)[own_row]
    asked_of = np.bincount(trace, told, len(traces)).astype(np.int64)
    odd_of = np.bincount(trace, odd, len(traces)).astype(np.int64)
    own_share = np.array([*map(_log_of_share, asked_of.tolist(), odd_of.tolist())])
    broken = np.zeros(len(traces), bool)
    for _ in range(_ROUNDS):
        overall = (odd_of[~broken].sum() + 0.5) / (asked_of[~broken].sum() + 1.0)
        chance = (odd_of_row + _BORROWED * overall) / (others + _BORROWED)
        chance = np.clip(chance, 1e-9, 0.5)
        as_others = np.bincount(
            trace, np.where(told, np.where(odd, log(chance), log1p(-chance)), 0.0)
        )
        expected = np.bincount(trace, np.where(told, chance, 0.0))
        varied = np.bincount(trace, np.where(told, chance * (1 - chance), 0.0))
        # Where traces differ more than chance has it anyway, it takes more to stand out.
        far = np.sort((odd_of - expected) ** 2 / np.maximum(varied, 1e-9))
        spread = far[: max(int(_USUAL * len(far)), 1)].mean()
        nats = np.where(odd_of > expected, (own_share - as_others) / max(spread, 1.0), 0.0)
        now = nats > needed
        if np.array_equal(now, broken):
            break
        broken = now
    surprise: NDArray[np.float64] = np.bincount(
        trace, np.where(against, -log(chance), 0.0), len(traces)
    ).astype(np.float64)
    return Oddness(asked_of, odd_of, nats, surprise, needed)


@dataclass(frozen=True, eq=False)
class Failing:
    """The traces that machines without noise do not explain.

    `numbers` are theirs, `asked` and `wrong` count their answers, and `first` is the step at
    which each fails first. `nats` is the logarithm of how many times as likely it is that
    these are broken and all others exact, as that all are subject to the same rare noise.
    """

    numbers: NDArray[np.int64]
    asked: NDArray[np.int64]
    wrong: NDArray[np.int64]
    first: NDArray[np.int64]
    nats: float


def failing(machines: Machines, traces: TraceSet) -> Failing:
    """Say which traces machines without noise do not explain, and whether those are broken."""
    asked = steps_asked(machines, traces, states_at_steps(machines, traces))
    trace = np.repeat(np.arange(len(traces)), np.diff(traces.offsets))
    answered = np.zeros(len(trace), bool)
    wrong = np.zeros(len(trace), bool)
    for steps in asked.values():
        # What no other trace has shown in a state is no reason to mistrust one that shows it.
        predicted = steps.machine.answer_many(steps.states, steps.questions, assumed=False)
        answered |= predicted >= 0
        wrong |= (predicted >= 0) & (predicted != steps.outputs)
    asked_of = np.bincount(trace, answered, len(traces)).astype(np.int64)
    wrong_of = np.bincount(trace, wrong, len(traces)).astype(np.int64)
    numbers = np.flatnonzero(wrong_of)
    at = np.flatnonzero(wrong)
    first = at[np.unique(trace[at], return_index=True)[1]] - traces.offsets[numbers]
    all_asked, all_wrong = int(asked_of.sum()), int(wrong_of.sum())
    by_noise = _log_of_share(all_asked, all_wrong)
    by_breaking = sum(
        map(_log_of_share, asked_of[numbers].tolist(), wrong_of[numbers].tolist())
    ) + _log_of_share(len(traces), len(numbers))
    return Failing(numbers, asked_of[numbers], wrong_of[numbers], first, by_breaking - by_noise)


def _log_of_share(times: int, odd: int) -> float:
    """Return how likely it is that just these of so many are odd, any share being as likely."""
    return log_gamma(odd + 1) + log_gamma(times - odd + 1) - log_gamma(times + 2)


def _traces_of(
    value: NDArray[np.int64], trace: NDArray[np.int64], values: int
) -> NDArray[np.int64]:
    """Return in how many traces each value comes."""
    pairs = np.unique(trace * values + value)
    return np.bincount(pairs % values, minlength=values)


def _numbered(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the place of each value among the distinct ones, and how often these come."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return place, count

"""Traces that machines were not inferred from → a bound on how often they fail."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import exp, log, log1p, log_gamma
from resolvent.errors import OptionError, ResolventError
from resolvent.machines import Machine, Machines
from resolvent.machines.knowledge import ASSUMED_CODE, WITNESSED_CODE
from resolvent.replay import StepsAsked, replay_traces, states_at_steps, steps_asked
from resolvent.traces import TraceSet
from resolvent.traces.choosing import choose_traces
from resolvent.traces.vocabulary import Codes, codes_of
from resolvent.trust.foretold import Foretold, foretold
from resolvent.trust.part import Part
from resolvent.wording import short

SHARE = 0.8
"""The share of the traces that machines are inferred from, when the rest is held out."""


def error_bound(failures: int, trials: int, delta: float = 0.05) -> float:
    """Return the failure rate that so few failures rule out, but for a chance of `delta`.

    Without failures it is ln(1/δ)/m, but never above that of one failure; with some,
    Clopper and Pearson's exact one-sided limit: the rate at which so few failures have a
    chance of δ.

    >>> round(error_bound(0, 100), 4), round(error_bound(1, 100), 4), error_bound(0, 1)
    (0.03, 0.0466, 1.0)
    """
    if not 0 < delta < 1:
        raise OptionError(f"delta is {delta:g}: it must lie between 0 and 1")
    if not 0 <= failures <= trials:
        raise OptionError(f"{failures} failures in {trials} trials are not possible")
    if failures == trials:
        return 1.0
    if failures == 0:
        one = error_bound(1, trials, delta) if trials > 1 else 1.0
        return min(log(1 / delta) / trials, one)
    low, high = failures / trials, 1.0
    while high - low > 1e-12:
        rate = (low + high) / 2
        low, high = (rate, high) if _at_most(failures, trials, rate) > delta else (low, rate)
    return high


def _at_most(failures: int, trials: int, rate: float) -> float:
    """Return the chance of so many failures or fewer."""
    if rate >= 1:
        return 0.0
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
    """How machines did on traces they had not seen.

    A trace fails when any of its steps is predicted wrong by some machine, or not at
    all. `wrong` counts those with a step that is wrong although its machine was shown the
    answer in that state; `assumed_wrong` those with a wrong step where the answer was only
    assumed. When the traces are some of those the machines were inferred from, others
    were inferred without them; `carries_over` says whether all that those know is known
    to the machines in question and the same, so that these fail no more often. It is None
    when the traces were new to begin with.

    Noisy machines are wrong now and then, and so are most traces: `foretold` says instead, for
    each machine, how often its most likely answers came, and how often they should have.

    `part` says from how many of all steps the others were inferred and what was held out, where
    traces are in files and too many to infer from most of them.
    """

    traces: int
    failures: int
    wrong: int
    assumed_wrong: int = 0
    delta: float = 0.05
    carries_over: bool | None = None
    foretold: dict[str, Foretold] | None = field(default=None, hash=False)
    part: Part | None = None

    @property
    def within_noise(self) -> bool | None:
        """Whether all machines are right but for noise; None where there is none."""
        if self.foretold is None:
            return None
        return all(one.within_noise for one in self.foretold.values())

    @property
    def bound(self) -> float:
        """The rate of failing traces is at most this, with confidence 1 − δ."""
        return error_bound(self.failures, self.traces, self.delta)

    @property
    def wrong_bound(self) -> float:
        """The rate of traces with a wrong witnessed answer is at most this, likewise."""
        return error_bound(self.wrong, self.traces, self.delta)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "traces": self.traces,
            "failures": self.failures,
            "wrong": self.wrong,
            "assumed_wrong": self.assumed_wrong,
            "delta": self.delta,
            "bound": self.bound,
            "wrong_bound": self.wrong_bound,
            "new_traces": self.carries_over is None,
            "carries_over": self.carries_over,
            **(
                {}
                if self.foretold is None
                else {"foretold": {kind: one.as_dict() for kind, one in self.foretold.items()}}
            ),
            **({} if self.part is None else {"part": self.part.as_dict()}),
        }

    def __str__(self) -> str:
        told = self._told()
        return told if self.part is None else f"{told}; {self.part}"

    def _told(self) -> str:
        what = (
            "held-out traces"
            if self.carries_over is not None
            else "traces taken to be new to the machines"
        )
        if self.foretold is not None:
            told = "; ".join(f"{short(kind)} machine: {one}" for kind, one in self.foretold.items())
            return f"on {self.traces:,} {what}: {told}"
        assumed = f", {self.assumed_wrong:,} with a wrong assumed one" if self.assumed_wrong else ""
        text = (
            f"{self.failures:,} of {self.traces:,} {what} fail, {self.wrong:,} with a wrong "
            f"step{assumed}: with {1 - self.delta:.0%} confidence at most {self.bound:.2%} of all "
            f"traces fail, and {self.wrong_bound:.2%} have a wrong step"
        )
        if self.carries_over is None:
            return text
        if self.carries_over:
            return f"{text} (the machines inferred without these traces are part of those here)"
        return f"{text} (said of machines inferred without these traces, which differ)"


def hold_out(trials: "Trials", delta: float = 0.05) -> Holdout:
    """Say how often machines may fail, by traces that are new to them."""
    return Holdout(trials.traces, trials.failing, trials.wrong, trials.assumed_wrong, delta)


def split(
    machines: Machines,
    traces: TraceSet,
    infer: Callable[[TraceSet], Machines],
    delta: float = 0.05,
) -> Holdout | None:
    """Infer machines from a share of the traces and test them on the rest.

    Which traces are held out follows from what they hold, not from their order.
    None where there is no rest, or nothing can be inferred from the share.
    """
    chosen = choose_traces(traces, SHARE)
    if chosen.all():
        return None
    try:
        other = infer(traces.take(np.flatnonzero(chosen)))
    except ResolventError:
        return None
    others = traces.take(np.flatnonzero(~chosen))
    asked = steps_asked(other, others, states_at_steps(other, others))
    rest = hold_out(Trials.of(asked.values(), others), delta)
    if any(one.is_noisy for one in other.values()):
        rest = replace(rest, foretold=foretold(other, replay_traces(other, others)))
    return replace(rest, carries_over=is_part(other, machines))


@dataclass(frozen=True)
class Trials:
    """How many traces fail, and how many have a wrong witnessed step, or a wrong assumed one."""

    traces: int
    failing: int
    wrong: int
    assumed_wrong: int

    @classmethod
    def of(cls, asked: Iterable[StepsAsked], traces: TraceSet) -> "Trials":
        """Count traces, by what machines are asked there step by step."""
        failing, wrong, assumed_wrong = (np.zeros(len(traces), bool) for _ in range(3))

        def somewhere(steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
            return np.logical_or.reduceat(steps, traces.offsets[:-1])

        for one in asked:
            level = one.machine.knowledge_many(one.states, one.questions)
            differs = one.predicted != one.outputs
            failing |= somewhere(differs)
            wrong |= somewhere(differs & (level == WITNESSED_CODE))
            assumed_wrong |= somewhere(differs & (level == ASSUMED_CODE))
        counts = (int(which.sum()) for which in (failing, wrong, assumed_wrong))
        return cls(len(traces), *counts)

    def __add__(self, other: "Trials") -> "Trials":
        return Trials(
            self.traces + other.traces,
            self.failing + other.failing,
            self.wrong + other.wrong,
            self.assumed_wrong + other.assumed_wrong,
        )


def is_part(part: Machines, whole: Machines) -> bool:
    """Whether `whole` knows all that `part` knows, and answers it in the same way."""
    if part.timing is not whole.timing or [*part] != [*whole]:
        return False
    paired: Codes | None = None
    for kind, machine in part.items():
        states = _partners(machine, whole[kind])
        if (
            states is None
            or machine.supplemented != whole[kind].supplemented
            or not _answers_alike(
                machine, whole[kind], states, paired if machine.supplemented else None
            )
        ):
            return False
        if kind == "transition":
            paired = states
    return True


def _partners(part: Machine, whole: Machine) -> Codes | None:
    """Walk both machines; return the state of `whole` for each of `part`, if there is one.

    It is −1 for a state of `part` that no labels lead to.
    """
    codes = codes_of(part.labels, whole.labels, -1)
    # The last column is of the labels that `whole` does not know, and leads nowhere.
    leads = np.pad(whole.transitions, ((0, 0), (0, 1)), constant_values=-1)[:, codes]
    partner = np.full(part.states, -1, np.int32)
    partner[0] = 0
    queue = [0]
    for state in queue:
        known = part.transitions[state] >= 0
        targets, twins = part.transitions[state][known], leads[partner[state]][known]
        new = partner[targets] < 0
        partner[targets[new]] = twins[new]
        if (twins < 0).any() or (partner[targets] != twins).any():
            return None
        queue += dict.fromkeys(targets[new].tolist())
    return partner


def _answers_alike(part: Machine, whole: Machine, partner: Codes, paired: Codes | None) -> bool:
    """Whether the states of `whole` answer all that their partners do, and alike.

    `paired` are the partners of the Transition Machine's states, where
    observations are paired with those.
    """
    outputs = codes_of(part.outputs, whole.outputs, -2)  # −1 stands for what was never seen
    asked = _questions_in(part, whole, paired, part.output_question)
    answers = whole.answer_many(partner[part.output_state], asked)
    if not np.array_equal(answers, outputs[part.output_value]):
        return False
    asked = _questions_in(part, whole, paired, part.constant_question)
    wanted = outputs[part.constant_value]
    # In no state at all, what `whole` answers is what it answers in every state.
    others = whole.answer_many(np.full(len(asked), -1, np.int32), asked) != wanted
    asked, wanted = asked[others], wanted[others]
    return len(asked) == 0 or all(
        np.array_equal(whole.answer_many(np.full(len(asked), state, np.int32), asked), wanted)
        for state in np.unique(partner[partner >= 0]).tolist()
    )


def _questions_in(
    part: Machine, whole: Machine, paired: Codes | None, questions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the numbers in `whole` of some questions of `part`; −1 where it never met them."""
    seen: Iterable[Any] = part.observations
    if paired is not None:
        pairs: Iterable[Any] = part.observations
        seen = ((one, int(paired[state])) for one, state in pairs)
    place, done = np.divmod(questions, max(len(part.actions), 1))
    observation = codes_of(seen, whole.observations, -1).astype(np.int64)[place]
    action = codes_of(part.actions, whole.actions, -1)[done]
    return np.where((observation < 0) | (action < 0), -1, observation * len(whole.actions) + action)

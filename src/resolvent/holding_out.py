"""Traces and what was inferred from them → the share of steps predicted that were held out.

A part of the traces is chosen by what they hold, so that their order and repeats make no
difference; machines are inferred from the others, with the same options, and tested on it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent.arguments import check_arguments
from resolvent.errors import OptionError, TimeLimitReached, TraceError
from resolvent.machines import Machines, MachineScore, Score
from resolvent.merging.tried import OUT_OF_TIME
from resolvent.options import Options
from resolvent.pipeline import infer_with
from resolvent.progress import Listener
from resolvent.replay import score, states_at_steps, steps_asked, whole
from resolvent.result import InferenceResult
from resolvent.traces import Trace, TraceFolder, TraceSet
from resolvent.traces.choosing import beginnings, trace_keys
from resolvent.traces.column_names import SEEN
from resolvent.traces.given import as_traces
from resolvent.traces.labelling import GIVEN
from resolvent.trust import Foretold, Part, part_of
from resolvent.trust.histories import history_keys
from resolvent.trust.weakness import sinks
from resolvent.wording import amount, short
from resolvent.workers import Workers, at_work

SHARE: Final = 0.2
"""The share of the traces that is held out, unless a user names another."""

FEWEST_TRACES: Final = 5
"""Of fewer traces that differ, the last steps of each are held out instead of whole traces."""

_NORMAL_95 = 1.959964
"""Within so many standard deviations lie 95% of a normal distribution."""


@dataclass(frozen=True)
class HeldOutSteps:
    """How one machine did on the steps that were held out.

    `states` are those of the machine that was inferred without them, and `traces` how many
    were tested. Where it is `noisy`, the most likely answer is right. `stuck` are steps in states
    that nothing leads out of, which are easy: `stuck_right` of them were predicted right.
    """

    states: int
    traces: int
    score: MachineScore
    noisy: bool = False
    whole_traces: bool = True
    stuck: int = 0
    stuck_right: int = 0

    @property
    def steps(self) -> int:
        """How many steps were held out."""
        return self.score.steps

    @property
    def right(self) -> int:
        """How many were predicted right."""
        return self.score.all_right

    @property
    def wrong(self) -> int:
        """How many were predicted wrong."""
        return self.score.all_wrong

    @property
    def unseen(self) -> int:
        """For how many there was no prediction."""
        return self.score.unseen

    @property
    def share(self) -> float:
        """The share of the steps that were predicted right."""
        return self.right / self.steps

    @property
    def share_before_stuck(self) -> float | None:
        """The share predicted right of the steps that are not stuck; None if all are.

        >>> HeldOutSteps(3, 9, MachineScore(90, 10), stuck=80, stuck_right=80).share_before_stuck
        0.5
        """
        steps = self.steps - self.stuck
        return (self.right - self.stuck_right) / steps if steps else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the share of all traces lies with 95% confidence; None for ends of traces.

        Steps of one trace depend on each other: after a wrong state all may be wrong. So each
        trace counts once, which is on the safe side (Wilson's interval).

        >>> low, high = HeldOutSteps(2, 40, MachineScore(right=390, wrong=10)).interval
        >>> round(low, 3), round(high, 3)
        (0.871, 0.996)
        """
        if not self.whole_traces:
            return None
        spread = _NORMAL_95**2 / self.traces
        middle = (self.share + spread / 2) / (1 + spread)
        half = _NORMAL_95 / (1 + spread)
        half *= sqrt(self.share * (1 - self.share) / self.traces + spread / (4 * self.traces))
        return max(middle - half, 0.0), min(middle + half, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        low, high = self.interval or (None, None)
        return {
            "steps": self.steps,
            "traces": self.traces,
            "right": self.right,
            "wrong": self.wrong,
            "unseen": self.unseen,
            "share": self.share,
            "low": low,
            "high": high,
            "stuck": self.stuck,
            "share_before_stuck": self.share_before_stuck,
            "log_loss": self.score.log_loss if self.noisy else None,
            "states": self.states,
        }

    def __str__(self) -> str:
        if self.noisy:
            return str(Foretold.of(self.score))
        text = f"{_share(self.right, self.steps)} predicted right"
        if self.interval is not None:
            low, high = self.interval
            between = (
                f"{low:.1%} to {high:.1%}" if self.right < self.steps else f"{low:.1%} or more"
            )
            text += f" (95% confidence: {between})"
        text += f", {_share(self.wrong, self.steps)} wrong"
        if self.unseen:
            text += f", {_share(self.unseen, self.steps)} unseen"
        if self.stuck and self.right < self.steps:
            before = _share(self.right - self.stuck_right, max(self.steps - self.stuck, 1))
            text += f"; {before} right before states that nothing leads out of"
        return text


def _share(part: int, whole: int) -> str:
    """Write a share in percent, so that not quite all does not read as all.

    >>> _share(9_999, 10_000), _share(99_999, 100_000), _share(1, 100_000), _share(0, 7)
    ('99.99%', '99.999%', '0.001%', '0%')
    """
    if part in (0, whole):
        return f"{100 * part // whole}%"
    for digits in range(1, 4):
        if 0 < round(100 * part / whole, digits) < 100:
            break
    return f"{100 * part / whole:.{digits}f}%"


@dataclass(frozen=True)
class HeldOut(Mapping[str, HeldOutSteps]):
    """How well machines predict traces that were held out when they were inferred, by kind.

    Of the traces that differ `traces` were held out; `new` of those were tested, for the
    others are but the beginning of one that was learned from. Where `whole_traces` is false,
    the traces are so few that the last steps of each were held out. `part` says from how many
    of all steps machines were inferred and tested, where traces in files are too many.
    """

    traces: int
    new: int
    steps: int
    whole_traces: bool
    machines: dict[str, HeldOutSteps] = field(hash=False)
    part: Part | None = None

    def __getitem__(self, kind: str) -> HeldOutSteps:
        return self.machines[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, by machine."""
        return {kind: one.as_dict() for kind, one in self.machines.items()}

    def __str__(self) -> str:
        if self.whole_traces:
            part = amount(self.traces, "trace")
            if self.new < self.traces:
                part += f", {self.new:,} of them new"
        else:
            part = f"the end of {amount(self.traces, 'trace')}"
        rest = "the others" if self.whole_traces else "what comes before"
        if self.part is not None:
            rest += f", {self.part}"
        said = f"{part} ({amount(self.steps, 'step')}), predicted by machines inferred from {rest}:"
        told = [f"  {short(kind)}: {one}" for kind, one in self.machines.items()]
        return "\n".join([said, *told])


def held_out(
    result: InferenceResult,
    traces: TraceSet | TraceFolder | Iterable[Trace],
    *,
    share: float = SHARE,
    time_limit: float | None = None,
    on: str | Workers = "threads",
    progress: Listener | None = None,
) -> HeldOut:
    """Say how well machines that are inferred from most of the traces predict the others.

    About this share of the traces is held out, machines are inferred from the others with the
    options of `result`, and predict the steps held out. Traces are chosen by what they hold:
    neither their order nor repeats make a difference, and what is known already is not
    tested. Of one long trace, and of a few, the end is held out. Of a scanned place with more
    than a million steps, about as many are taken, to infer from and to hold out; and nothing
    has to be read if the result is that of its own inference.

    Args:
        result: What `infer` made of the traces; it stays as it is.
        traces: The traces that were given to `infer`.
        share: How much is held out, between 0 and 1.
        time_limit: Seconds for inferring once more; `TimeLimitReached` after that.
        on: Who reads traces of a scanned place that nobody has read yet, as for `infer`.
        progress: Told how far that is, as by `infer`.

    Raises:
        TraceError: when there is too little to hold anything out.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> print(held_out(rs.infer(house), house)["reward"])
    100% predicted right (95% confidence: 90.8% or more), 0% wrong
    """
    check_arguments(held_out, locals(), leaving=["traces"])
    if not 0 < share < 1:
        raise OptionError(f"share is {share:g}: it must lie between 0 and 1")
    options = _as_before(result, time_limit)
    given = as_traces(traces)
    if isinstance(given, TraceSet):
        return _held_out(result, given, share, options, progress)
    # The pool holds traces as the machines see them: only these are held to the test.
    options = replace(options, labels=GIVEN, discretise=None)
    known = result.standing.corpus
    with at_work(on) as workers:
        corpus = whole(result.machines, given, workers, known=known, progress=progress)
        some, part = part_of(corpus)
    return replace(_held_out(result, some, share, options, progress), part=part)


def _held_out(
    result: InferenceResult,
    traces: TraceSet,
    share: float,
    options: Options,
    progress: Listener | None,
) -> HeldOut:
    keys, first, place = np.unique(trace_keys(traces), return_index=True, return_inverse=True)
    if len(keys) < FEWEST_TRACES:
        return _ends(result, traces, np.sort(first), share, options, progress)
    held = min(max(round(share * len(keys)), 1), len(keys) - 1)
    learned = place < len(keys) - held
    chosen = np.sort(first[len(keys) - held :])
    new = _new(traces, learned, chosen)
    if not len(new):
        raise TraceError(
            f"all {held:,} traces chosen to be held out are the beginning of others: collect "
            f"traces that differ more"
        )
    machines = _inferred(options, traces.take(learned), progress)
    tested = traces.take(new)
    found = score(machines, tested)
    steps = _tested(result, machines, tested, found, np.ones(tested.steps, bool))
    return HeldOut(held, len(new), tested.steps, True, steps)


def _inferred(options: Options, traces: TraceSet, progress: Listener | None) -> Machines:
    """Infer machines in time; those that were cut short say nothing about the ones to test."""
    found = infer_with(options, traces, progress)
    limit = options.time_limit
    cut = found.unfinished or any(
        one.outcome == OUT_OF_TIME for tried in found.tried.values() for one in tried
    )
    if limit is not None and (cut or found.seconds["total"] >= limit):
        raise TimeLimitReached(
            f"inferring without what is held out takes longer than {limit:g} s: raise the time "
            f"limit"
        )
    return found.machines


def _new(
    traces: TraceSet, learned: NDArray[np.bool_], chosen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return those of the chosen traces that are not the beginning of one learned from."""
    columns = (
        traces.after_step(codes) if name in SEEN else codes for name, codes in traces.codes.items()
    )
    keys = history_keys([traces.at_step(traces.observation_codes), *columns], traces.offsets)
    known = keys[np.repeat(learned, np.diff(traces.offsets))]
    return chosen[~np.isin(keys[traces.offsets[chosen + 1] - 1], known)]


def _ends(
    result: InferenceResult,
    traces: TraceSet,
    first: NDArray[np.int64],
    share: float,
    options: Options,
    progress: Listener | None,
) -> HeldOut:
    """Infer machines without the last steps of each trace, and test them on those."""
    lengths = np.diff(traces.offsets)
    kept = np.maximum(np.ceil((1 - share) * lengths).astype(np.int64), 1)
    cut = beginnings(traces, np.where(lengths > 1, np.minimum(kept, lengths - 1), lengths))
    whole, begun = traces.take(first), cut.take(first)
    if whole.steps == begun.steps:
        raise TraceError(
            "the traces have one step each: to hold out steps, collect longer ones, or more"
        )
    machines = _inferred(options, cut, progress)
    found, before = score(machines, whole), score(machines, begun)
    left = Score({kind: one.without(before[kind]) for kind, one in found.items()})
    place = np.arange(whole.steps) - np.repeat(whole.offsets[:-1], np.diff(whole.offsets))
    last = place >= np.repeat(np.diff(begun.offsets), np.diff(whole.offsets))
    steps = _tested(result, machines, whole, left, last, whole_traces=False)
    return HeldOut(len(first), len(first), whole.steps - begun.steps, False, steps)


def _tested(
    result: InferenceResult,
    machines: Machines,
    traces: TraceSet,
    scores: Score,
    steps: NDArray[np.bool_],
    *,
    whole_traces: bool = True,
) -> dict[str, HeldOutSteps]:
    """Put together how machines did on the marked steps of some traces."""
    seen = machines.senses.on(traces)
    asked = {}
    if not machines.doubt:  # otherwise nobody knows which state it is
        asked = steps_asked(machines, seen, states_at_steps(machines, seen))
    tested = {}
    for kind in result.machines:
        if kind not in scores:
            continue
        machine, stuck, right = machines[kind], 0, 0
        # A mismatch would be named by its place among the traces held out, which nobody knows.
        counts = replace(scores[kind], first_mismatch=None)
        if kind in asked:
            one = asked[kind]
            there = steps & np.isin(one.states, sinks(machine))
            stuck = int(there.sum())
            right = int((one.predicted == one.outputs)[there].sum())
        tested[kind] = HeldOutSteps(
            machine.states, len(traces), counts, machine.is_noisy, whole_traces, stuck, right
        )
    return tested


def _as_before(result: InferenceResult, time_limit: float | None) -> Options:
    """Return the options of an inference, without noise where it found none.

    What explains all traces explains some of them; that they are fewer makes none of it noise.
    """
    options = replace(result.options, time_limit=time_limit)
    is_exact = not (
        result.is_noisy
        or result.broken
        or result.more_noise
        or result.machines.doubt
        or result.senses.rewards
    )
    return replace(options, noise="none") if is_exact and options.noise == "auto" else options

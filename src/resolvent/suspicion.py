"""Signs of noise: contradictions, and what a replay counted → whether noise may explain them."""

from collections.abc import Sequence
from math import isclose
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis import Finding, Severity
from resolvent.diagnosis.after_inference import rare_moves
from resolvent.errors import ContradictoryTraces
from resolvent.machines import kind_of
from resolvent.noise import Noise, NoisyQuestions, noisy_questions
from resolvent.options import Options
from resolvent.replay import Replay, Rows
from resolvent.result import InferenceResult
from resolvent.traces.column_names import OBSERVATION, REWARD
from resolvent.wording import amount, listed, short

AUTO: Final = Noise(outcomes=True, labels=True, rewards="gaussian", starts=True, broken=0.05)
"""What noise="auto" allows for."""

_ROUNDING: Final = 1e-6
"""Rewards that differ by no more, or by no more than this share of them, differ by rounding."""

_NAMED: Final = 5
"""So many broken traces are named one by one."""


def allowed(options: Options) -> Noise:
    """Return what may be noisy."""
    if isinstance(options.noise, Noise):
        return options.noise
    return AUTO if options.noise == "auto" else Noise()


def may_vary(output: str, noise: Noise) -> bool:
    """Whether a column may have now one value, now another in the same situation."""
    return noise.outcomes or (noise.rewards == "flipped" and output == REWARD)


def has_exact_remedy(contradiction: ContradictoryTraces, options: Options) -> bool:
    """Whether traces contradict each other for a reason other than noise, which the error names.

    So it is where labels read at another time explain all traces, where the user called
    labels trivial, and where rewards differ in their last digits.
    """
    if contradiction.timing is not None or options.trivial not in ("auto", ()):
        return True
    one, other = contradiction.values
    return (
        contradiction.output == REWARD
        and isinstance(one, float)
        and isinstance(other, float)
        and isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    )


def lists_accidents(shown: Replay) -> bool:
    """Whether the first machine moves by what was hardly ever seen, as where there is noise.

    Where traces are few, too: that alone says nothing.
    """
    first = next(iter(shown.machines))
    return any(finding.figures["machine"] == first for finding in rare_moves(shown))


def is_chance(shown: Replay, *, by_state: bool) -> bool:
    """Whether answers of the first machine vary everywhere and rarely, as by chance.

    Where memory is missing some questions vary, and often. `by_state` takes only answers in
    the same state to vary, otherwise all answers to a question.
    """
    return _noisy_questions(shown, by_state).everywhere


def _noisy_questions(shown: Replay, by_state: bool, kind: str | None = None) -> NoisyQuestions:
    """Return in how many questions to a machine, by default the first, answers vary."""
    seen = shown.machines[kind] if kind else next(iter(shown.machines.values()))
    return noisy_questions(*_odd_answers(seen.known, by_state))


def _odd_answers(answers: Rows, by_state: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return by question how many answers could have been odd, and how many were.

    The first answer of a row, which is a question or one in a state, cannot be.
    """
    _, question = np.unique(answers["question"], return_inverse=True)
    state = answers["state"].astype(np.int64) if by_state else np.zeros(len(answers), np.int64)
    width = int(answers["output"].max(initial=0)) + 1
    row = state * (int(question.max(initial=0)) + 1) + question
    kept, place = np.unique(row * width + answers["output"], return_inverse=True)
    count = np.bincount(place, answers["count"]).astype(np.int64)
    starts = np.flatnonzero(np.diff(kept // width, prepend=-1))
    total, most = np.add.reduceat(count, starts), np.maximum.reduceat(count, starts)
    of_row = (kept // width)[starts] % (int(question.max(initial=0)) + 1)
    asked = np.bincount(of_row, total - 1).astype(np.int64)
    return asked, np.bincount(of_row, total - most).astype(np.int64)


def noise_warnings(
    likely: InferenceResult, contradiction: ContradictoryTraces | None
) -> list[Finding]:
    """Say why noise was taken to be there, how to have it refused, and what labels are worth."""
    found = [_reason(likely, contradiction)]
    labels = likely.standing.shown.alphabets.labels
    if len(labels) > 1 and all(machine.states == 1 for machine in likely.machines.values()):
        found.append(
            Finding(
                "labels-tell-nothing",
                Severity.NOTE,
                f"None of the {amount(len(labels), 'label')} changes what comes next: the most "
                f"likely machines have one state. Either no memory is needed here, or the "
                f"labels do not show what should be remembered.",
                {"labels": len(labels)},
            )
        )
    return found


def _reason(likely: InferenceResult, contradiction: ContradictoryTraces | None) -> Finding:
    refuse = "noise='none' (--noise none)"
    if contradiction is not None:
        one, other = map(str, contradiction.places)
        output = contradiction.output
        differ = "next observations" if output == OBSERVATION else f"values of {short(output)}"
        varying = _noisy_questions(likely.standing.shown, by_state=True, kind=kind_of(output))
        advice = f"If the world is not random, {refuse} says what to try."
        if varying.in_few:
            advice = (
                f"But only about {varying.share:.0%} of what can be done anywhere comes out "
                f"differently, and there in {varying.chance:.0%} of the cases: rather than chance "
                f"it may be something to remember that no label shows. rs.diagnose(traces) says on "
                f"what it depends, as far as that can be told, and {refuse} what to try."
            )
        return Finding(
            "noise",
            Severity.WARNING,
            f"{one} and {other} read the same labels but have different {differ}, and that was "
            f"taken for chance: the machines are the most likely ones. {advice}",
            {"output": output, "places": [one, other], "in_few": varying.in_few},
        )
    if (levels := likely.senses.rewards) is not None:
        return Finding(
            "noisy-rewards",
            Severity.NOTE,
            f"No two steps pay quite the same: {levels}. Each reward was taken for the nearest of "
            f"these; {refuse} takes rewards as they are.",
            levels.as_dict(),
        )
    stated = isinstance(likely.options.noise, Noise)
    if any(machine.is_noisy for machine in likely.machines.values()):
        if stated:
            text = "Outcomes were said to be noisy: the machines are the most likely ones."
            return Finding("noise", Severity.NOTE, text, {})
        return Finding(
            "noise",
            Severity.WARNING,
            f"Machines that explain every step would mostly list accidents, so that these, the "
            f"most likely ones with noise, are better, though no two steps contradict each "
            f"other. {refuse} gives machines that explain every step.",
            {},
        )
    return Finding(
        "no-noise",
        Severity.WARNING,
        "Outcomes were said to be noisy, but the traces show no noise in them: noise='auto' "
        "(--noise auto) finds machines without noise where there is none.",
        {},
    )


def broken_warning(
    found: InferenceResult,
    wrong: NDArray[np.int64],
    asked: NDArray[np.int64],
    first: NDArray[np.int64] | None = None,
    nats: float | None = None,
) -> Finding:
    """Say which traces were left out as broken, and why."""
    numbers: Sequence[int] = found.broken
    named = [
        f"trace {number}{'' if first is None else f' from step {int(first[at])} on'} "
        f"({int(wrong[at]):,} of {int(asked[at]):,} answers odd)"
        for at, number in enumerate(numbers[:_NAMED])
    ]
    if len(numbers) > _NAMED:
        named.append(f"{len(numbers) - _NAMED:,} more")
    odds = "" if nats is None else f" That it is rare noise is {_times(-nats)} as likely."
    was, them = ("was", "it") if len(numbers) == 1 else ("were", "them")
    return Finding(
        "broken-traces",
        Severity.WARNING,
        f"{amount(len(numbers), 'trace')} of {found.traces:,} {was} left out as broken, for the "
        f"others contradict {them}: {listed(named)}.{odds} Look at {them}: a trace that does not "
        f"fit may show what the others do not.",
        {"traces": list(numbers), "odd": wrong.tolist(), "asked": asked.tolist()},
    )


def too_many_broken(broken: int, traces: int, share: float) -> Finding:
    """Say that more traces look broken than may be left out."""
    return Finding(
        "too-many-broken",
        Severity.WARNING,
        f"{broken:,} of {amount(traces, 'trace')} look broken, more than the {share:.0%} that "
        f"may be left out, so all were kept. Split the traces by where they come from, or allow "
        f"for more: noise=rs.Noise(outcomes=True, broken={broken / traces + 0.005:.2f}).",
        {"broken": broken, "traces": traces},
    )


def _times(nats: float) -> str:
    """Write the exponential of a number, however small, such as "1e-120 times".

    >>> _times(-276.3)
    '1e-120 times'
    """
    exponent = nats / np.log(10)
    return f"1e{round(exponent)} times"

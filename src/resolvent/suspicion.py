"""Signs of noise: contradictions, and what a replay counted → whether noise may explain them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.diagnosis import Finding, Severity
from resolvent.diagnosis.after_inference import rare_moves
from resolvent.errors import ContradictoryTraces
from resolvent.machines import kind_of
from resolvent.noise import Noise
from resolvent.noise.outputs import NoisyQuestions, noisy_questions
from resolvent.options import Options
from resolvent.replay import Replay, Rows
from resolvent.result import InferenceResult
from resolvent.samples import Histories, output_samples
from resolvent.traces.column_names import OBSERVATION, REWARD
from resolvent.wording import amount, listed, odds_text, short

AUTO: Final = Noise(outcomes=True, labels=True, rewards="gaussian", starts=True, broken=0.05)
"""What noise="auto" allows for."""

NOISE: Final = "noise"
"""The kind of the finding that says why noise was taken to be there."""

BROKEN: Final = "broken-traces"
"""The kind of the finding that says which traces were left out."""

LYING: Final = "lying-labels"
"""The kind of the finding that says that labels were corrected."""

_REFUSE: Final = "noise='none' (--noise none)"

CONTRADICTIONS: Final = 10.0
"""Where so many contradictions are to be expected by chance, that there is none is no chance."""

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


def needs_memory(shown: Replay, often: float) -> bool:
    """Whether most answers to the first machine's questions may depend on the past.

    Then traces cannot be compared without memory: in a log of a protocol those that come to a
    rare state, or not into a sink, differ from all others. Broken traces, no more than a share
    of `often`, make answers vary no oftener than that.
    """
    return _noisy_questions(shown, by_state=False).in_most(often)


def would_contradict(found: InferenceResult) -> bool:
    """Whether answers that vary by chance would have contradicted each other, which none do.

    A question that is asked again after the same labels has the same answer each time, though
    each would vary by chance as often as answers to all questions vary without memory.
    """
    standing = found.standing
    machine = next(iter(found.machines.values()))
    traces = standing.corpus.fetch(standing.chosen)
    histories = Histories.of(traces, found.options.timing)
    samples = output_samples(traces, histories, machine.predicts)
    node = _core.history_columns(histories.tree)[0].astype(np.int64)
    asked = node * len(samples.alpha_keys) + samples.alpha
    repeated = len(asked) - len(np.unique(asked))
    noisy = _noisy_questions(standing.shown, by_state=False)
    return repeated * noisy.share * noisy.chance > CONTRADICTIONS


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
    if unfinished := likely.standing.found.unfinished:
        kinds = [kind for kind in likely.machines if kind in unfinished]
        found.append(
            Finding(
                "time-ran-out",
                Severity.WARNING,
                f"Time ran out in the search for the most likely machine ({listed(kinds)}): what "
                f"was met by then may have too many states, or too few. Raise time_limit "
                f"(--time-limit).",
                {"machines": kinds},
            )
        )
    varying = [kind for kind, one in likely.machines.items() if one.is_noisy and kind != REWARD]
    if likely.senses.rewards is not None and contradiction is None and varying:
        found.append(
            Finding(
                NOISE,
                Severity.WARNING,
                f"Besides rewards other answers vary ({listed(varying)}), and that was taken for "
                f"chance: the machines are the most likely ones. {_REFUSE} says what to try.",
                {},
            )
        )
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


def stated_in_vain(found: InferenceResult) -> list[Finding]:
    """Say which noise the user spoke of, but the traces do not show; outcomes excepted."""
    noise = found.options.noise
    if not isinstance(noise, Noise):
        return []
    lies = found.label_noise
    right = lies is None and found.senses.labelling == found.options.labels
    said = []
    if noise.labels and (right or (lies is not None and not any(lies.as_dict().values()))):
        said.append("Labels were said to lie, but the traces show nothing that true ones do not")
    if noise.rewards == "flipped" and REWARD in found.machines and not found.noise[REWARD]:
        said.append("Rewards were said to be flipped, but the traces show none that is")
    if noise.starts and not found.machines.doubt.starts:
        said.append("Starts were said to be hidden, but the traces do not show more than one")
    return [
        Finding(
            "no-noise",
            Severity.WARNING,
            f"{text}: it was not taken into account. noise='auto' (--noise auto) finds out what "
            f"is noisy.",
            {},
        )
        for text in said
    ]


def corrected_labels(found: InferenceResult) -> Finding:
    """Say that machines do without the labels that were recorded, and why."""
    instead = found.senses.labelling.reads.replace("+", " and ")
    if found.label_noise is None:
        return Finding(
            "labels-tell-nothing",
            Severity.WARNING,
            f"The labels tell nothing of what comes next, as if drawn at random, so that the "
            f"machines do without them. {_REFUSE} takes labels as they are.",
            {},
        )
    return Finding(
        LYING,
        Severity.WARNING,
        f"Labels follow from what is seen, but not always ({found.label_noise}): the machines "
        f"read them off the {instead} instead. {_REFUSE} takes labels as they are.",
        found.label_noise.as_dict(),
    )


def _inferred_states(likely: InferenceResult, contradiction: ContradictoryTraces | None) -> Finding:
    """Say why states were inferred and not read off the labels."""
    why, figures = "The traces were taken to mean", {}
    if contradiction is not None:
        one, other = map(str, contradiction.places)
        differ = _differing(contradiction.output)
        why = f"{one} and {other} read the same labels but have different {differ}: taken to mean"
        figures = {"output": contradiction.output, "places": [one, other]}
    left = ""
    varying = [one for one in likely.machines.values() if one.is_noisy]
    if any(not may_vary(one.predicts, allowed(likely.options)) for one in varying):
        left = (
            f" Even so up to {max(one.noise for one in varying):.1%} of the answers of a "
            f"machine vary, which was not said: Noise(outcomes=True) allows for it."
        )
    advice = f"If that cannot be, {_REFUSE} says what to try."
    if contradiction is not None:
        advice = _where_few(likely, contradiction.output) or advice
    return Finding(
        NOISE,
        Severity.WARNING,
        f"{why} that labels do not tell the states ({likely.machines.doubt}), which were inferred "
        f"from all that came.{left} {advice}",
        figures,
    )


def _where_few(likely: InferenceResult, output: str) -> str:
    """Say in how few questions answers vary, where that speaks against chance; else nothing."""
    varying = _noisy_questions(likely.standing.shown, by_state=True, kind=kind_of(output))
    if not varying.in_few or not likely.machines[kind_of(output)].is_noisy:
        return ""
    return (
        f"But only about {varying.share:.0%} of what can be done anywhere comes out "
        f"differently, and there in {varying.chance:.0%} of the cases: rather than chance "
        f"it may be something to remember that no label shows. rs.diagnose(traces) says on what it "
        f"depends, as far as that can be told, and {_REFUSE} what to try."
    )


def _differing(output: str) -> str:
    return "next observations" if output == OBSERVATION else f"values of {short(output)}"


def _reason(likely: InferenceResult, contradiction: ContradictoryTraces | None) -> Finding:
    refuse = _REFUSE
    if likely.machines.doubt:
        return _inferred_states(likely, contradiction)
    if contradiction is not None:
        one, other = map(str, contradiction.places)
        output = contradiction.output
        differ = _differing(output)
        few = _where_few(likely, output)
        advice = few or f"If the world is not random, {refuse} says what to try."
        return Finding(
            NOISE,
            Severity.WARNING,
            f"{one} and {other} read the same labels but have different {differ}, and that was "
            f"taken for chance: the machines are the most likely ones. {advice}",
            {"output": output, "places": [one, other], "in_few": bool(few)},
        )
    if (levels := likely.senses.rewards) is not None:
        return Finding(
            "noisy-rewards",
            Severity.NOTE,
            f"The same situation hardly ever pays the same: {levels}. Each reward was taken for "
            f"the nearest of these; {refuse} takes rewards as they are.",
            levels.as_dict(),
        )
    stated = isinstance(likely.options.noise, Noise)
    if any(machine.is_noisy for machine in likely.machines.values()):
        if stated:
            text = "Outcomes were said to be noisy: the machines are the most likely ones."
            return Finding(NOISE, Severity.NOTE, text, {})
        return Finding(
            NOISE,
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
    odds = "" if nats is None else f" That it is rare noise is {odds_text(-nats)}."
    was, them = ("was", "it") if len(numbers) == 1 else ("were", "them")
    return Finding(
        BROKEN,
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

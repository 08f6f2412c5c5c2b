"""The warnings that say which noise was assumed, why, and how to refuse it."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount, listed, odds_text, short
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.inference.conflict import Conflict
from resolvent.inference.noise_screening import query_noise
from resolvent.inference.result import InferenceResult
from resolvent.machines import machine_name
from resolvent.noise.model import Noise, allowed_noise
from resolvent.traces.schema import OBSERVATION, REWARD

NOISE: Final = "noise"
"""Kind of the finding that says why noise was assumed."""

BROKEN: Final = "broken-traces"
"""Kind of the finding that names outliers."""

LYING: Final = "lying-labels"
"""Kind of the finding that says that labels were denoised."""

_REFUSE: Final = "noise='none' (--noise none)"

_NAMED: Final = 5
"""Maximum number of outliers that are named one by one."""


def noise_warnings(likely: InferenceResult, conflict: Conflict | None) -> list[Finding]:
    """Return why noise was assumed, how to refuse it, and whether labels are informative."""
    findings = [_reason(likely, conflict)]
    if unfinished := likely.standing.found.unfinished:
        kinds = [kind for kind in likely.machines if kind in unfinished]
        findings.append(
            _warning(
                "time-ran-out",
                f"Time ran out in the search for the most likely machine ({listed(kinds)}): what "
                f"was met by then may have too many states, or too few. Raise time_limit "
                f"(--time-limit).",
                machines=kinds,
            )
        )
    varying = [
        kind for kind, machine in likely.machines.items() if machine.is_noisy and kind != REWARD
    ]
    if likely.senses.rewards is not None and conflict is None and varying:
        findings.append(
            _warning(
                NOISE,
                f"Besides rewards other answers vary ({listed(varying)}), and that was taken for "
                f"chance: the machines are the most likely ones. {_REFUSE} says what to try.",
            )
        )
    labels = likely.standing.shown.alphabets.labels
    if len(labels) > 1 and all(machine.states == 1 for machine in likely.machines.values()):
        findings.append(
            Finding(
                "labels-tell-nothing",
                Severity.NOTE,
                f"None of the {amount(len(labels), 'label')} changes what comes next: the most "
                f"likely machines have one state. Either no memory is needed here, or the "
                f"labels do not show what should be remembered.",
                {"labels": len(labels)},
            )
        )
    return findings


def stated_in_vain(result: InferenceResult) -> list[Finding]:
    """Return the noise that the user stated and the traces do not show, except for outcomes."""
    noise = result.options.noise
    if not isinstance(noise, Noise):
        return []
    label_noise = result.label_noise
    has_no_errors = label_noise is None and result.senses.labelling == result.options.labels
    if label_noise is not None:
        has_no_errors = not any(label_noise.as_dict().values())
    texts = []
    if noise.labels and has_no_errors:
        texts.append("Labels were said to lie, but the traces show nothing that true ones do not")
    if noise.rewards == "flipped" and REWARD in result.machines and not result.noise[REWARD]:
        texts.append("Rewards were said to be flipped, but the traces show none that is")
    if noise.starts and not result.machines.doubt.starts:
        texts.append("Starts were said to be hidden, but the traces do not show more than one")
    return [
        _warning(
            "no-noise",
            f"{text}: it was not taken into account. noise='auto' (--noise auto) finds out what "
            f"is noisy.",
        )
        for text in texts
    ]


def corrected_labels(result: InferenceResult) -> Finding:
    """Return why machines do not read the recorded labels."""
    source = result.senses.labelling.reads.replace("+", " and ")
    if result.label_noise is None:
        return _warning(
            "labels-tell-nothing",
            f"The labels tell nothing of what comes next, as if drawn at random, so that the "
            f"machines do without them. {_REFUSE} takes labels as they are.",
        )
    return _warning(
        LYING,
        f"Labels follow from what is seen, but not always ({result.label_noise}): the machines "
        f"read them off the {source} instead. {_REFUSE} takes labels as they are.",
        **result.label_noise.as_dict(),
    )


def broken_warning(
    result: InferenceResult,
    wrong: NDArray[np.int64],
    answered: NDArray[np.int64],
    first: NDArray[np.int64] | None = None,
    nats: float | None = None,
) -> Finding:
    """Return which traces were left out as outliers, and why."""
    numbers: Sequence[int] = result.broken
    named = [
        f"trace {number}{'' if first is None else f' from step {int(first[at])} on'} "
        f"({int(wrong[at]):,} of {int(answered[at]):,} answers odd)"
        for at, number in enumerate(numbers[:_NAMED])
    ]
    if len(numbers) > _NAMED:
        named.append(f"{len(numbers) - _NAMED:,} more")
    odds = "" if nats is None else f" That it is rare noise is {odds_text(-nats)}."
    was, them = ("was", "it") if len(numbers) == 1 else ("were", "them")
    return _warning(
        BROKEN,
        f"{amount(len(numbers), 'trace')} of {result.traces:,} {was} left out as broken, for the "
        f"others contradict {them}: {listed(named)}.{odds} Look at {them}: a trace that does not "
        f"fit may show what the others do not.",
        traces=list(numbers),
        odd=wrong.tolist(),
        asked=answered.tolist(),
    )


def too_many_broken(outliers: int, traces: int, share: float) -> Finding:
    """Return that more traces look like outliers than may be left out."""
    return _warning(
        "too-many-broken",
        f"{outliers:,} of {amount(traces, 'trace')} look broken, more than the {share:.0%} that "
        f"may be left out, so all were kept. Split the traces by where they come from, or allow "
        f"for more: noise=rs.Noise(outcomes=True, broken={outliers / traces + 0.005:.2f}).",
        broken=outliers,
        traces=traces,
    )


def _reason(likely: InferenceResult, conflict: Conflict | None) -> Finding:
    """Return why noise was assumed."""
    if likely.machines.doubt:
        return _latent_states(likely, conflict)
    if conflict is not None:
        first, second = map(str, conflict.places)
        localized = _where_few(likely, conflict.output)
        advice = localized or f"If the world is not random, {_REFUSE} says what to try."
        return _warning(
            NOISE,
            f"{first} and {second} read the same labels but have different "
            f"{_plural(conflict.output)}, and that was taken for chance: the machines are the most "
            f"likely ones. {advice}",
            output=conflict.output,
            places=[first, second],
            in_few=bool(localized),
        )
    if (levels := likely.senses.rewards) is not None:
        return Finding(
            "noisy-rewards",
            Severity.NOTE,
            f"The same situation hardly ever pays the same: {levels}. Each reward was taken for "
            f"the nearest of these; {_REFUSE} takes rewards as they are.",
            levels.as_dict(),
        )
    if not any(machine.is_noisy for machine in likely.machines.values()):
        return _warning(
            "no-noise",
            "Outcomes were said to be noisy, but the traces show no noise in them: noise='auto' "
            "(--noise auto) finds machines without noise where there is none.",
        )
    if isinstance(likely.options.noise, Noise):
        text = "Outcomes were said to be noisy: the machines are the most likely ones."
        return Finding(NOISE, Severity.NOTE, text, {})
    return _warning(
        NOISE,
        f"Machines that explain every step would mostly list accidents, so that these, the "
        f"most likely ones with noise, are better, though no two steps contradict each "
        f"other. {_REFUSE} gives machines that explain every step.",
    )


def _latent_states(likely: InferenceResult, conflict: Conflict | None) -> Finding:
    """Return why states were inferred and not read off the labels."""
    why, figures = "The traces were taken to mean", {}
    advice = f"If that cannot be, {_REFUSE} says what to try."
    if conflict is not None:
        first, second = map(str, conflict.places)
        why = (
            f"{first} and {second} read the same labels but have different "
            f"{_plural(conflict.output)}: taken to mean"
        )
        figures = {"output": conflict.output, "places": [first, second]}
        advice = _where_few(likely, conflict.output) or advice
    rest = ""
    noise = allowed_noise(likely.options.noise)
    varying = [machine for machine in likely.machines.values() if machine.is_noisy]
    if any(not noise.may_vary(machine.predicts) for machine in varying):
        rest = (
            f" Even so up to {max(machine.noise for machine in varying):.1%} of the answers of a "
            f"machine vary, which was not said: Noise(outcomes=True) allows for it."
        )
    return _warning(
        NOISE,
        f"{why} that labels do not tell the states ({likely.machines.doubt}), which were inferred "
        f"from all that came.{rest} {advice}",
        **figures,
    )


def _where_few(likely: InferenceResult, output: str) -> str:
    """Return in how few queries outputs vary, if that speaks against chance; else nothing."""
    varying = query_noise(likely.standing.shown, by_state=True, kind=machine_name(output))
    if not varying.in_few or not likely.machines[machine_name(output)].is_noisy:
        return ""
    return (
        f"But only about {varying.share:.0%} of what can be done anywhere comes out "
        f"differently, and there in {varying.chance:.0%} of the cases: rather than chance "
        f"it may be something to remember that no label shows. rs.diagnose(traces) says on what it "
        f"depends, as far as that can be told, and {_REFUSE} what to try."
    )


def _plural(output: str) -> str:
    return "next observations" if output == OBSERVATION else f"values of {short(output)}"


def _warning(kind: str, text: str, **figures: Any) -> Finding:
    return Finding(kind, Severity.WARNING, text, figures)

"""The text of a result, in lines and in a notebook, and the warnings about noise and time.

Input: a result, and for warnings the conflict between traces that it explains. Output: text, or
`Finding`s: what was assumed, why, and how to refuse it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from numpy import int64
from numpy.typing import NDArray

from resolvent._util import html as notebook
from resolvent._util.text import amount, listed, odds_text, short
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.inference.conflict import Conflict
from resolvent.inference.fit import CHOSEN
from resolvent.machines.machine import machine_name
from resolvent.noise.model import Noise, allowed_noise
from resolvent.noise.outliers import UnexplainedTraces
from resolvent.noise.screening import query_noise
from resolvent.preprocess.labeling import AS_RECORDED
from resolvent.preprocess.reduction import Triviality
from resolvent.traces import label_text
from resolvent.traces.schema import OBSERVATION, REWARD

if TYPE_CHECKING:
    from resolvent.inference.result import InferenceResult

_MAX_ALTERNATIVES: Final = 3
"""Maximum number of alternatives of a machine that are written out."""

MACHINE_COLUMNS: Final = ("machine", "states", "proven", "prefix tree", "merges", "seconds")
"""Columns of a table of the inferred machines; `proven` is the number of necessary states."""


def text_of(result: "InferenceResult") -> str:
    """Return a line for each machine and each fact."""
    lines = [f"{result.traces} traces, {result.steps} steps"]
    for name, statistics in result.statistics.items():
        merges = amount(statistics.merges, "merge")
        origin = f"from {statistics.prefix_tree_nodes} prefix-tree nodes by {merges}"
        if not statistics.prefix_tree_nodes:  # it was grown, not merged
            origin = "the most likely machine found"
        lines.append(
            f"{result.machines[name].title:<19} {amount(statistics.states, 'state')}, {origin}, "
            f"in {statistics.seconds:.3f} s"
        )
    lines += [f"{name:<19} {text}" for name, text in (*facts_of(result), *_outcome(result))]
    return "\n".join(lines)


def html_of(result: "InferenceResult") -> str:
    """Return the figures for a notebook: a row for each machine, and the facts."""
    rows = machine_rows(result)
    return notebook.panel(
        f"{amount(result.traces, 'trace')}, {amount(result.steps, 'step')}",
        notebook.table(MACHINE_COLUMNS, rows, len(rows)),
        notebook.figures((*facts_of(result), *_outcome(result))),
    )


def machine_rows(result: "InferenceResult") -> list[list[str]]:
    """Return a row of `MACHINE_COLUMNS` for each machine."""
    rows = []
    for name, statistics in result.statistics.items():
        least = result.lower_bounds.get(name)
        proven = "" if least is None else f"at least {least:,}"
        proven = "all" if least == statistics.states else proven
        nodes, merges = f"{statistics.prefix_tree_nodes:,}", f"{statistics.merges:,}"
        title, seconds = result.machines[name].title, f"{statistics.seconds:.3f}"
        rows.append([title, f"{statistics.states:,}", proven, nodes, merges, seconds])
    return rows


def facts_of(result: "InferenceResult") -> list[tuple[str, str]]:
    """Return what else is known about the machines, as names and texts."""
    return [
        *(("labels", line) for line in trivial_lines(result)),
        *((f"{short(name)} machine", str(proof)) for name, proof in result.certificates.items()),
        *(("tried", line) for line in tried_lines(result)),
        *(("noise", line) for line in noise_lines(result)),
        ("learned from", result.learned_from),
        ("termination", str(result.machines.termination)),
    ]


def _outcome(result: "InferenceResult") -> list[tuple[str, str]]:
    """Return the duration and the warnings, as names and texts."""
    warnings = ((str(note.severity), f"{note.text} [{note.kind}]") for note in result.warnings)
    return [("total", f"{result.seconds['total']:.3f} s"), *warnings]


def trivial_lines(result: "InferenceResult") -> list[str]:
    """Return the labels that change no state, in one line unless the machines differ."""
    trivial = {}
    for name, tests in result.trivial.items():
        labels = (test.label for test in tests if test.triviality is Triviality.TRIVIAL)
        trivial[name] = ", ".join(map(label_text, labels))
    if len(set(trivial.values())) == 1:
        return [f"assumed to change no state: {labels}" for labels in {*trivial.values()} - {""}]
    return [
        f"assumed to change no state of the {name} machine: {labels or 'none'}"
        for name, labels in trivial.items()
    ]


def tried_lines(result: "InferenceResult") -> list[str]:
    """Return the attempts at each machine with several, and why one was chosen."""
    lines = []
    for name, attempts in result.tried.items():
        machine = f"{short(name)} machine"
        strategies = [attempt for attempt in attempts if attempt.workers is None]
        if len(strategies) > 1:
            chosen = next(attempt for attempt in strategies if attempt.outcome == CHOSEN)
            rest = "; ".join(str(attempt) for attempt in strategies if attempt is not chosen)
            best = "fewest wrong" if name in result.unfinished else "the shortest description"
            lines.append(f"{machine}: {chosen}, {best}; {rest}")
        parallel = (attempt for attempt in attempts if attempt.workers is not None)
        lines += [f"{machine}, {attempt.workers}: {attempt}" for attempt in parallel]
    return lines


def noise_lines(result: "InferenceResult") -> list[str]:
    """Return lines about the noise, and about the certainty of the numbers of states."""
    levels = result.preprocessor.rewards
    lines = [] if levels is None else [str(levels)]
    lines += _uncertainty_lines(result)
    if result.is_noisy and all(machine.states == 1 for machine in result.machines.values()):
        line = "no memory is needed: these labels do not improve predictions"
        if any(warning.figures.get("localized") for warning in result.warnings):
            line = (
                "memory of these labels does not improve predictions; but outputs vary for so few "
                "queries that they may depend on memory of something else"
            )
        lines.append(line)
    for name, machine in result.machines.items():
        if machine.is_noisy and (result.is_noisy or name not in result.unfinished):
            lines += _machine_lines(result, name)
    return lines


def _uncertainty_lines(result: "InferenceResult") -> Iterator[str]:
    """Yield the uncertainty of labels and initial states."""
    uncertainty = result.machines.state_uncertainty
    if uncertainty.label_noise is not None:
        yield f"labels: {uncertainty.label_noise}; states are estimated from the whole history"
    elif result.label_noise is not None:
        source = result.preprocessor.labeling.reads.replace("+", " and ")
        yield f"labels: {result.label_noise}; computed from the {source} instead"
    elif result.options.labels == AS_RECORDED and result.preprocessor.labeling.events == {}:
        yield "labels: they do not help to predict outputs; the machines ignore them"
    if uncertainty.starts:
        starts = replace(uncertainty, label_noise=None)
        yield f"{starts}; states are estimated from the whole history"


def _machine_lines(result: "InferenceResult", name: str) -> Iterator[str]:
    """Yield the share of deviating outputs of a machine, and the machines as likely as it."""
    machine, title = result.machines[name], f"{short(name)} machine"
    share = _percent(machine.noise)
    line = f"{share} of the outputs of the {title} deviate"
    if name == REWARD:
        has_levels = result.preprocessor.rewards is not None
        deviate = "are assigned to another level" if has_levels else "have another value"
        line = f"{share} of rewards {deviate}"
    odds = {size: odds for size, odds in result.log_odds(name).items() if size != machine.states}
    if odds:
        size = max(odds, key=odds.__getitem__)
        line += f"; {amount(size, 'state')} instead of {machine.states}: {odds_text(odds[size])}"
    yield line
    alternatives = result.alternatives[name]
    for alternative in alternatives[:_MAX_ALTERNATIVES]:
        yield f"{title}, open: {alternative}"
    if (more := len(alternatives) - _MAX_ALTERNATIVES) > 0:
        yield f"{title}, open: {more:,} more, in result.alternatives"


def time_ran_out_warning(result: "InferenceResult") -> Finding:
    """Return the warning that machines are the best found until time ran out."""
    shares = result.unfinished
    wrong = listed(f"{_percent(share)} ({short(name)})" for name, share in shares.items())
    return _warning(
        "time-ran-out",
        f"Time ran out before all states were distinguished. The machines are the best found so "
        f"far; they predict {wrong} of the outputs that they were learned from wrong. Raise "
        f"time_limit (--time-limit), give more traces, or declare labels that change nothing as "
        f"trivial.",
        machines=list(shares),
        wrong=list(shares.values()),
    )


def _percent(share: float) -> str:
    """Write a share so that a small one does not read as none.

    >>> _percent(0.0507), _percent(0.00023)
    ('5.1%', '0.02%')
    """
    return f"{share:.1%}" if share >= 0.0005 else f"{100 * share:.1g}%"


# ---- warnings ----------------------------------------------------------------

# Kinds of findings.
NOISE: Final = "noise"
OUTLIERS: Final = "outliers"
LABEL_NOISE: Final = "label-noise"
NO_NOISE: Final = "no-noise"
UNINFORMATIVE_LABELS: Final = "uninformative-labels"

_REFUSE: Final = "noise='none' (--noise none)"
_DETECT: Final = "noise='auto' (--noise auto)"
_OTHER_REMEDIES: Final = f"{_REFUSE} lists other remedies."

_MAX_NAMED: Final = 5
"""Maximum number of outliers that are named one by one."""


def noise_warnings(likely: "InferenceResult", conflict: Conflict | None) -> list[Finding]:
    """Return why noise was assumed, how to refuse it, and whether labels are informative."""
    findings = [_reason(likely, conflict)]
    if names := [*likely.unfinished]:
        text = (
            f"Time ran out in the search for the most likely machine ({listed(names)}): the best "
            f"one found so far may have too many or too few states. Raise time_limit "
            f"(--time-limit)."
        )
        findings.append(_warning("time-ran-out", text, machines=names))
    noisy = [name for name, fit in likely.machines.items() if fit.is_noisy and name != REWARD]
    if likely.preprocessor.rewards is not None and conflict is None and noisy:
        text = (
            f"Besides rewards, other outputs vary ({listed(noisy)}), which is assumed to be "
            f"random: the machines are the most likely ones. {_OTHER_REMEDIES}"
        )
        findings.append(_warning(NOISE, text))
    labels = len(likely.inference_state.counts.alphabets.labels)
    if labels > 1 and all(machine.states == 1 for machine in likely.machines.values()):
        text = (
            f"None of the {amount(labels, 'label')} changes the predictions: the most likely "
            f"machines have one state. Either no memory is needed, or the labels do not show what "
            f"to remember."
        )
        findings.append(Finding(UNINFORMATIVE_LABELS, Severity.NOTE, text, {"labels": labels}))
    return findings


def noise_not_found(result: "InferenceResult") -> list[Finding]:
    """Return the noise that the user stated and the traces do not show, except for outcomes."""
    noise = result.options.noise
    if not isinstance(noise, Noise):
        return []
    labels_are_true = result.preprocessor.labeling == result.options.labels
    if result.label_noise is not None:
        labels_are_true = not any(result.label_noise.as_dict().values())
    texts = []
    if noise.labels and labels_are_true:
        texts.append("Labels were stated to be noisy, but no label in the traces appears wrong")
    if noise.rewards == "flipped" and REWARD in result.machines and not result.noise[REWARD]:
        texts.append("Rewards were stated to be flipped, but no reward in the traces appears wrong")
    if noise.starts and not result.machines.state_uncertainty.starts:
        texts.append("Starts were stated to be hidden, but the traces show only one initial state")
    return [
        _warning(NO_NOISE, f"{text}: it was ignored. {_DETECT} detects which noise there is.")
        for text in texts
    ]


def denoised_labels_warning(result: "InferenceResult") -> Finding:
    """Return why machines do not read the recorded labels."""
    source = result.preprocessor.labeling.reads.replace("+", " and ")
    if result.label_noise is None:
        return _warning(
            UNINFORMATIVE_LABELS,
            f"The labels do not help to predict anything, as if they were random, so the machines "
            f"ignore them. {_REFUSE} keeps them.",
        )
    return _warning(
        LABEL_NOISE,
        f"Labels follow from observations, but not always ({result.label_noise}): the machines "
        f"compute them from the {source} instead. {_REFUSE} keeps the recorded labels.",
        **result.label_noise.as_dict(),
    )


def outliers_warning(
    result: "InferenceResult",
    deviating: NDArray[int64],
    outputs: NDArray[int64],
    exact: UnexplainedTraces | None = None,
) -> Finding:
    """Return which traces were excluded as outliers, and why.

    `deviating` of the `outputs` of each outlier deviate; `exact` says more if the other traces are
    explained without noise.
    """
    numbers = result.outliers
    named = [
        f"trace {number}{'' if exact is None else f' from step {int(exact.first[at])} on'} "
        f"({int(deviating[at]):,} of {int(outputs[at]):,} outputs deviate)"
        for at, number in enumerate(numbers[:_MAX_NAMED])
    ]
    if len(numbers) > _MAX_NAMED:
        named.append(f"{len(numbers) - _MAX_NAMED:,} more")
    odds = "" if exact is None else f" Rare noise in all traces is {odds_text(-exact.nats)}."
    was, them = ("was", "it") if len(numbers) == 1 else ("were", "them")
    return _warning(
        OUTLIERS,
        f"{amount(len(numbers), 'trace')} of {result.traces:,} {was} excluded as outliers, since "
        f"the others contradict {them}: {listed(named)}.{odds} Inspect {them}: an outlier may show "
        f"behavior that the other traces do not.",
        traces=list(numbers),
        deviating=deviating.tolist(),
        outputs=outputs.tolist(),
    )


def too_many_outliers(outliers: int, traces: int, share: float) -> Finding:
    """Return that more traces look like outliers than may be excluded."""
    return _warning(
        "too-many-outliers",
        f"{outliers:,} of {amount(traces, 'trace')} look like outliers, more than the "
        f"{share:.0%} that may be excluded, so all were kept. Split the traces by their origin, "
        f"or allow for more: "
        f"noise=rs.Noise(outcomes=True, outliers={outliers / traces + 0.005:.2f}).",
        outliers=outliers,
        traces=traces,
    )


def _reason(likely: "InferenceResult", conflict: Conflict | None) -> Finding:
    """Return why noise was assumed."""
    if likely.machines.state_uncertainty:
        return _latent_states(likely, conflict)
    if conflict is not None:
        localized = _localized(likely, conflict.output)
        return _warning(
            NOISE,
            f"{_contradiction(conflict)}, which is assumed to be random: the machines are the most "
            f"likely ones. {localized or f'If the world is not random, {_OTHER_REMEDIES}'}",
            **_figures(conflict),
            localized=bool(localized),
        )
    if (levels := likely.preprocessor.rewards) is not None:
        return Finding(
            "noisy-rewards",
            Severity.NOTE,
            f"Steps in the same state hardly ever have equal rewards: {levels}. Each reward was "
            f"replaced by the nearest level; {_REFUSE} keeps the recorded rewards.",
            levels.as_dict(),
        )
    if not any(machine.is_noisy for machine in likely.machines.values()):
        return _warning(
            NO_NOISE,
            f"Outcomes were stated to be noisy, but no output in the traces appears noisy: "
            f"{_DETECT} infers machines without noise if the traces have none.",
        )
    if isinstance(likely.options.noise, Noise):
        text = "Outcomes were stated to be noisy: the machines are the most likely ones."
        return Finding(NOISE, Severity.NOTE, text, {})
    return _warning(
        NOISE,
        f"No two steps contradict each other, but machines that explain every step would mostly "
        f"memorize noise: these are the most likely machines with noise. {_REFUSE} gives machines "
        f"that explain every step.",
    )


def _latent_states(likely: "InferenceResult", conflict: Conflict | None) -> Finding:
    """Return why states were inferred and not determined by the labels."""
    why, rest = "The most likely reason is", ""
    advice = f"If that is impossible, {_OTHER_REMEDIES}"
    if conflict is not None:
        why = f"{_contradiction(conflict)}; the most likely reason is"
        advice = _localized(likely, conflict.output) or advice
    allowed = allowed_noise(likely.options.noise)
    noisy = [machine for machine in likely.machines.values() if machine.is_noisy]
    if not all(allowed.may_vary(machine.predicts) for machine in noisy):
        rest = (
            f" Up to {max(machine.noise for machine in noisy):.1%} of the outputs of a machine "
            f"still vary, which was not stated: Noise(outcomes=True) allows for it."
        )
    return _warning(
        NOISE,
        f"{why} that labels do not determine the states ({likely.machines.state_uncertainty}), "
        f"which were estimated from the whole history.{rest} {advice}",
        **({} if conflict is None else _figures(conflict)),
    )


def _localized(likely: "InferenceResult", output: str) -> str:
    """Return how few queries have varying outputs, if that makes chance unlikely; or nothing."""
    name = machine_name(output)
    noise = query_noise(likely.inference_state.counts, by_state=True, name=name)
    if not noise.is_localized or not likely.machines[name].is_noisy:
        return ""
    return (
        f"However, only about {noise.share:.0%} of the queries have varying outputs, in "
        f"{noise.rate:.0%} of the cases. This suggests missing memory, which no label shows, "
        f"rather than chance: rs.diagnose(traces) reports what the outputs depend on, and "
        f"{_OTHER_REMEDIES}"
    )


def _contradiction(conflict: Conflict) -> str:
    first, second = conflict.locations
    values = f"values of {short(conflict.output)}"
    values = "next observations" if conflict.output == OBSERVATION else values
    return f"{first} and {second} read the same labels but have different {values}"


def _figures(conflict: Conflict) -> dict[str, Any]:
    return {"output": conflict.output, "locations": [*map(str, conflict.locations)]}


def _warning(kind: str, text: str, **figures: Any) -> Finding:
    return Finding(kind, Severity.WARNING, text, figures)

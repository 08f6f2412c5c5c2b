"""The text of a result: in lines, in a notebook, and the warning that time ran out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from resolvent._util import html as notebook
from resolvent._util.text import amount, listed, odds_text, short
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.inference.fit import CHOSEN
from resolvent.preprocess.labeling import AS_RECORDED
from resolvent.preprocess.reduction import Triviality
from resolvent.traces import label_text
from resolvent.traces.schema import REWARD

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
    return Finding(
        "time-ran-out",
        Severity.WARNING,
        f"Time ran out before all states were distinguished. The machines are the best found so "
        f"far; they predict {wrong} of the outputs that they were learned from wrong. Raise "
        f"time_limit (--time-limit), give more traces, or declare labels that change nothing as "
        f"trivial.",
        {"machines": list(shares), "wrong": list(shares.values())},
    )


def _percent(share: float) -> str:
    """Write a share so that a small one does not read as none.

    >>> _percent(0.0507), _percent(0.00023)
    ('5.1%', '0.02%')
    """
    return f"{share:.1%}" if share >= 0.0005 else f"{100 * share:.1g}%"

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

_ALTERNATIVES_SHOWN: Final = 3
"""Number of alternatives of a machine that are written out; `alternatives` has all."""


def text_of(result: "InferenceResult") -> str:
    """Return a line for each machine and each fact."""
    lines = [f"{result.traces} traces, {result.steps} steps"]
    for name, statistics in result.statistics.items():
        merges = amount(statistics.merges, "merge")
        origin = f"from {statistics.prefix_tree_nodes} prefix-tree nodes by {merges}"
        if not statistics.prefix_tree_nodes:  # it was grown, not merged
            origin = "the most likely machine met"
        lines.append(
            f"{result.machines[name].title:<19} {amount(statistics.states, 'state')}, {origin}, "
            f"in {statistics.seconds:.3f} s"
        )
    lines += [f"{name:<19} {text}" for name, text in _facts(result)]
    return "\n".join(lines)


def html_of(result: "InferenceResult") -> str:
    """Return the figures for a notebook: a row for each machine, and the facts."""
    header = ["machine", "states", "proven", "prefix-tree nodes", "merges", "seconds"]
    rows = (
        [
            result.machines[name].title,
            statistics.states,
            result.lower_bounds.get(name, ""),
            f"{statistics.prefix_tree_nodes:,}",
            f"{statistics.merges:,}",
            f"{statistics.seconds:.3f}",
        ]
        for name, statistics in result.statistics.items()
    )
    return notebook.panel(
        f"{amount(result.traces, 'trace')}, {amount(result.steps, 'step')}",
        notebook.table(header, rows, len(result.statistics)),
        notebook.figures(_facts(result)),
    )


def _facts(result: "InferenceResult") -> list[tuple[str, str]]:
    """Return the other facts, as names and texts."""
    return [
        *(("labels", line) for line in trivial_lines(result)),
        *((f"{short(name)} machine", str(proof)) for name, proof in result.certificates.items()),
        *(("tried", line) for line in tried_lines(result)),
        *(("noise", line) for line in noise_lines(result)),
        ("learned from", result.learned_from),
        ("termination", str(result.machines.termination)),
        ("total", f"{result.seconds['total']:.3f} s"),
        *(
            (str(finding.severity), f"{finding.text} [{finding.kind}]")
            for finding in result.warnings
        ),
    ]


def trivial_lines(result: "InferenceResult") -> list[str]:
    """Return the labels taken to change nothing, in one line unless the machines differ."""
    trivial = {
        name: ", ".join(
            label_text(test.label) for test in tests if test.triviality is Triviality.TRIVIAL
        )
        for name, tests in result.trivial.items()
    }
    if len(set(trivial.values())) == 1:
        return [f"taken to change nothing: {labels}" for labels in set(trivial.values()) - {""}]
    return [
        f"taken to change nothing in the {name} machine: {labels or 'none'}"
        for name, labels in trivial.items()
    ]


def tried_lines(result: "InferenceResult") -> list[str]:
    """Return the attempts at each machine with several, and why one won."""
    lines = []
    for name, attempts in result.tried.items():
        alone = [attempt for attempt in attempts if attempt.workers is None]
        if len(alone) > 1:
            chosen = next(attempt for attempt in alone if attempt.outcome == CHOSEN)
            rest = "; ".join(str(attempt) for attempt in alone if attempt is not chosen)
            best = "fewest wrong" if name in result.unfinished else "the shortest description"
            lines.append(f"{short(name)} machine: {chosen}, {best}; {rest}")
        lines += [
            f"{short(name)} machine, {attempt.workers}: {attempt}"
            for attempt in attempts
            if attempt.workers is not None
        ]
    return lines


def noise_lines(result: "InferenceResult") -> list[str]:
    """Return lines about the noise, and about the certainty of the numbers of states."""
    levels = result.preprocessor.rewards
    lines = [] if levels is None else [str(levels)]
    lines += _uncertainty_lines(result)
    if result.is_noisy and all(machine.states == 1 for machine in result.machines.values()):
        lines.append(_no_memory_line(result))
    for name, machine in result.machines.items():
        if machine.is_noisy and (result.is_noisy or name not in result.unfinished):
            lines.append(_outputs_line(result, name))
            lines += _alternative_lines(result, name)
    return lines


def _uncertainty_lines(result: "InferenceResult") -> Iterator[str]:
    """Yield the uncertainty of labels and initial states."""
    uncertainty = result.machines.state_uncertainty
    if uncertainty.label_noise is not None:
        yield f"labels: {uncertainty.label_noise}; states are inferred from all that came"
    elif result.label_noise is not None:
        source = result.preprocessor.labeling.reads.replace("+", " and ")
        yield f"labels: {result.label_noise}; computed from the {source} instead"
    elif result.options.labels == AS_RECORDED and result.preprocessor.labeling.events == {}:
        yield "labels: they tell nothing of the outputs; the machines do without them"
    if uncertainty.starts:
        yield f"{replace(uncertainty, label_noise=None)}; states are inferred from all that came"


def _outputs_line(result: "InferenceResult", name: str) -> str:
    """Return the share of deviating outputs of a noisy machine, and the odds of another size."""
    machine = result.machines[name]
    share = _percent(machine.noise)
    line = f"{share} of the outputs of the {short(name)} machine"
    if name == REWARD:
        deviation = (
            "another value" if result.preprocessor.rewards is None else "taken for another level"
        )
        line = f"{share} of rewards are {deviation}"
    odds = {size: odds for size, odds in result.log_odds(name).items() if size != machine.states}
    if odds:
        size = max(odds, key=odds.__getitem__)
        line += f"; {amount(size, 'state')} instead of {machine.states}: {odds_text(odds[size])}"
    return line


def _alternative_lines(result: "InferenceResult", name: str) -> Iterator[str]:
    """Yield the first machines that are nearly as likely."""
    alternatives = result.alternatives[name]
    for alternative in alternatives[:_ALTERNATIVES_SHOWN]:
        yield f"{short(name)} machine, open: {alternative}"
    if len(alternatives) > _ALTERNATIVES_SHOWN:
        more = len(alternatives) - _ALTERNATIVES_SHOWN
        yield f"{short(name)} machine, open: {more:,} more, which result.alternatives has"


def _no_memory_line(result: "InferenceResult") -> str:
    """Return the meaning of noisy machines without memory."""
    if any(warning.figures.get("localized") for warning in result.warnings):
        return (
            "memory of these labels tells nothing; but too little varies for a world that is "
            "random, so that something else may have to be remembered"
        )
    return "no memory is needed: with it, these labels tell no more than without"


def time_ran_out_warning(result: "InferenceResult") -> Finding:
    """Return the warning that machines are the best found until time ran out."""
    shares = result.unfinished
    wrong = listed(f"{_percent(share)} ({short(name)})" for name, share in shares.items())
    return Finding(
        "time-ran-out",
        Severity.WARNING,
        f"Time ran out before all states were told apart. The machines are the best found by "
        f"then; of the outputs that they were learned from they get wrong {wrong}. Raise "
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

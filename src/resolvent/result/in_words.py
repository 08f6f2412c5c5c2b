"""A result → what is said of it: in lines, in a notebook, and as a warning where time ran out."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from resolvent import notebook
from resolvent.diagnosis import Finding, Severity
from resolvent.inference.attempts import CHOSEN
from resolvent.reduction import Verdict
from resolvent.traces import label_text
from resolvent.traces.column_names import REWARD
from resolvent.traces.labelling import GIVEN
from resolvent.wording import amount, listed, odds_text, short

if TYPE_CHECKING:
    from resolvent.result.inference_result import InferenceResult

_OPEN_SHOWN: Final = 3
"""So many of what is open in a machine are said; `alternatives` has all."""


def text_of(result: "InferenceResult") -> str:
    """Say what was found, a line for each machine and each fact."""
    lines = [f"{result.traces} traces, {result.steps} steps"]
    for kind, one in result.statistics.items():
        found = f"from {one.prefix_tree_nodes} prefix-tree nodes by {amount(one.merges, 'merge')}"
        if not one.prefix_tree_nodes:  # it was grown, not merged
            found = "the most likely machine met"
        lines.append(
            f"{result.machines[kind].title:<19} {amount(one.states, 'state')}, {found}, "
            f"in {one.seconds:.3f} s"
        )
    lines += [f"{name:<19} {text}" for name, text in _facts(result)]
    return "\n".join(lines)


def html_of(result: "InferenceResult") -> str:
    """Show the figures in a notebook: a row for each machine, and the facts."""
    header = ["machine", "states", "proven", "prefix-tree nodes", "merges", "seconds"]
    rows = (
        [
            result.machines[kind].title,
            one.states,
            result.lower_bounds.get(kind, ""),
            f"{one.prefix_tree_nodes:,}",
            f"{one.merges:,}",
            f"{one.seconds:.3f}",
        ]
        for kind, one in result.statistics.items()
    )
    return notebook.panel(
        f"{amount(result.traces, 'trace')}, {amount(result.steps, 'step')}",
        notebook.table(header, rows, len(result.statistics)),
        notebook.figures(_facts(result)),
    )


def _facts(result: "InferenceResult") -> list[tuple[str, str]]:
    """Say what else was found, as names and texts."""
    return [
        *(("labels", line) for line in result.trivial_labels()),
        *((f"{short(name)} machine", str(one)) for name, one in result.certificates.items()),
        *(("tried", line) for line in result.tried_text()),
        *(("side by side", line) for line in result.ran_text()),
        *(("noise", line) for line in result.noise_text()),
        ("learned from", result.learned_from),
        ("termination", str(result.machines.termination)),
        ("total", f"{result.seconds['total']:.3f} s"),
        *((str(one.severity), f"{one.text} [{one.kind}]") for one in result.warnings),
    ]


def trivial_lines(result: "InferenceResult") -> list[str]:
    """Say which labels were taken to change nothing, one line unless the machines differ."""
    taken = {
        name: ", ".join(label_text(one.label) for one in verdicts if one.verdict is Verdict.TRIVIAL)
        for name, verdicts in result.trivial.items()
    }
    if len(set(taken.values())) == 1:
        names = set(taken.values()) - {""}
        return [f"taken to change nothing: {name}" for name in names]
    return [
        f"taken to change nothing in the {machine} machine: {names or 'none'}"
        for machine, names in taken.items()
    ]


def tried_lines(result: "InferenceResult") -> list[str]:
    """Say which strategies were tried where there were several, and why one won."""
    lines = []
    for kind, tried in result.tried.items():
        if len(tried) > 1:
            won = next(one for one in tried if one.outcome == CHOSEN)
            others = "; ".join(str(one) for one in tried if one is not won)
            best = "fewest wrong" if kind in result.unfinished else "the shortest description"
            lines.append(f"{short(kind)} machine: {won}, {best}; {others}")
    return lines


def noise_lines(result: "InferenceResult") -> list[str]:
    """Say how much noise there is, and how sure the numbers of states are."""
    levels = result.senses.rewards
    lines = [] if levels is None else [str(levels)]
    lines += _doubt_lines(result)
    if result.is_noisy and all(machine.states == 1 for machine in result.machines.values()):
        lines.append(_without_memory(result.warnings))
    for kind, machine in result.machines.items():
        if machine.is_noisy and (result.is_noisy or kind not in result.unfinished):
            lines.append(_answers_line(result, kind))
            lines += _open_lines(result, kind)
    return lines


def _doubt_lines(result: "InferenceResult") -> Iterator[str]:
    """Say what is not taken for granted: labels, and where episodes begin."""
    doubt = result.machines.doubt
    if doubt.label_noise is not None:
        yield f"labels: {doubt.label_noise}; states are inferred from all that came"
    elif result.label_noise is not None:
        instead = result.senses.labelling.reads.replace("+", " and ")
        yield f"labels: {result.label_noise}; read off the {instead} instead"
    elif result.options.labels == GIVEN and result.senses.labelling.events == {}:
        yield "labels: they tell nothing of the answers; the machines do without them"
    if doubt.starts:
        yield f"{replace(doubt, label_noise=None)}; states are inferred from all that came"


def _answers_line(result: "InferenceResult", kind: str) -> str:
    """Say how many answers of a noisy machine are odd, and what speaks for another size."""
    machine = result.machines[kind]
    share = _percent(machine.noise)
    line = f"{share} of the answers of the {short(kind)} machine"
    if kind == REWARD:
        paid = "another value" if result.senses.rewards is None else "taken for another level"
        line = f"{share} of rewards are {paid}"
    others = {size: odds for size, odds in result.log_odds(kind).items() if size != machine.states}
    if others:
        size = max(others, key=others.__getitem__)
        line += f"; {amount(size, 'state')} instead of {machine.states}: {odds_text(others[size])}"
    return line


def _open_lines(result: "InferenceResult", kind: str) -> Iterator[str]:
    """Say which other machines are hardly less likely, the first of them."""
    opened = result.alternatives[kind]
    for one in opened[:_OPEN_SHOWN]:
        yield f"{short(kind)} machine, open: {one}"
    if len(opened) > _OPEN_SHOWN:
        more = len(opened) - _OPEN_SHOWN
        yield f"{short(kind)} machine, open: {more:,} more, which result.alternatives has"


def _without_memory(warnings: Iterable[Finding]) -> str:
    """Say what it means that no machine has memory, though its answers vary."""
    if any(warning.figures.get("in_few") for warning in warnings):
        return (
            "memory of these labels tells nothing; but too little varies for a world that is "
            "random, so that something else may have to be remembered"
        )
    return "no memory is needed: with it, these labels tell no more than without"


def cut_short(result: "InferenceResult") -> Finding:
    """Say which machines are the best found until time ran out, and how wrong they are."""
    shares = result.unfinished
    told = listed(f"{_percent(share)} ({short(kind)})" for kind, share in shares.items())
    return Finding(
        "time-ran-out",
        Severity.WARNING,
        f"Time ran out before all states were told apart. The machines are the best found by "
        f"then; of the answers that they were learned from they get wrong {told}. Raise "
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

"""Write the log of merges as lines of text, one per decision."""

from collections.abc import Iterator

from resolvent._util.text import amount
from resolvent.inference.fit import CHOSEN
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.inference.summary import tried_lines
from resolvent.machines import Machine, MergeDecision
from resolvent.traces import label_text
from resolvent.viz.text import short_name

_WIDEST = 24
"""Maximum width of a label that the arrows of all lines are aligned to."""


def log_lines(result: InferenceResult) -> Iterator[str]:
    """Describe how each machine was inferred, decision by decision."""
    when = " in the last round" if result.refinement.rounds > 1 else ""
    yield f"how states were merged{when}, learned from {result.learned_from}"
    yield from tried_lines(result)
    for name, machine in result.machines.items():
        yield f"{machine.title}: {summary(machine)}"
        for attempt in result.tried[name]:
            strategy = STRATEGIES.get(attempt.name)
            if attempt.outcome == CHOSEN and strategy is not None and not strategy.merges:
                yield merges_note(strategy)
        for line in decision_lines(machine):
            yield f"{short_name(name)}  {line}"


def merges_note(strategy: Strategy) -> str:
    """Return the meaning of the log of a strategy that merges no states."""
    return (
        f"strategy {strategy.name} does not merge states: these are the merges that the machines "
        f"it found amount to"
    )


def summary(machine: Machine) -> str:
    """Return the number of states and of decisions that led to a machine.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> summary(rs.infer(house).machines.transition)
    '2 states: the first and 1 new; 4 merges'
    """
    states = amount(machine.states, "state")
    if machine.decisions is None:
        return f"{states}; how it was found is not known"
    if not machine.decisions:
        return f"{states}; there was nothing to decide"
    new = sum(decision.new for decision in machine.decisions)
    promoted = f": the first and {new:,} new" if new else ""
    return f"{states}{promoted}; {amount(len(machine.decisions) - new, 'merge')}"


def decision_lines(machine: Machine) -> list[str]:
    """Write each decision on a line, arrows and counts aligned.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> for line in decision_lines(rs.infer(house).machines.transition)[:2]:
    ...     print(line)
    0 --key-----> new state 1
    1 --key-----> 1            32 answers agree, 388 tree nodes folded
    """
    from rich.cells import cell_len

    decisions = machine.decisions or ()
    names = [label_text(decision.label) for decision in decisions]
    widest = max((min(cell_len(name), _WIDEST) for name in names), default=0)
    digits = len(str(machine.states - 1))
    agreeing = max((len(f"{decision.agreeing:,}") for decision in decisions), default=0)
    folded = max((len(f"{decision.folded:,}") for decision in decisions), default=0)
    lines = []
    for decision, name in zip(decisions, names, strict=True):
        arrow = f"--{name}{'-' * (widest - cell_len(name))}-->"
        target = f"new state {decision.target}" if decision.new else str(decision.target)
        basis = "" if decision.new else basis_text(decision, agreeing, folded)
        line = f"{decision.source:>{digits}} {arrow} {target:<{10 + digits}}  {basis}"
        lines.append(line.rstrip())
    return lines


def basis_text(decision: MergeDecision, agreeing: int = 0, folded: int = 0) -> str:
    """Return the evidence of a merge, its numbers padded to `agreeing` and `folded` places.

    >>> basis_text(MergeDecision(0, frozenset({"sofa"}), 0, False, agreeing=1, folded=2400))
    '1 answer agrees, 2,400 tree nodes folded'
    """
    agree = "answer agrees" if decision.agreeing == 1 else "answers agree"
    nodes = "tree node" if decision.folded == 1 else "tree nodes"
    return f"{decision.agreeing:>{agreeing},} {agree}, {decision.folded:>{folded},} {nodes} folded"

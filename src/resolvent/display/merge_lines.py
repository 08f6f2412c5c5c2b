"""The log of merges → lines for people, one a decision."""

from collections.abc import Iterator

from resolvent._util.text import amount
from resolvent.display.machine_names import short_name
from resolvent.inference.attempts import CHOSEN
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.machines import Machine, MergeDecision
from resolvent.traces import label_text

_WIDEST = 24


def log_lines(result: InferenceResult) -> Iterator[str]:
    """Tell how each machine was found, decision by decision."""
    when = " in the last round" if result.refinement.rounds > 1 else ""
    yield f"how states were merged{when}, learned from {result.learned_from}"
    yield from result.tried_text()
    for kind, machine in result.machines.items():
        found_by = [one for one in result.tried[kind] if one.outcome == CHOSEN]
        yield f"{machine.title}: {summary(machine)}"
        for strategy in (STRATEGIES.get(one.strategy) for one in found_by):
            if strategy is not None and not strategy.merges:
                yield retold(strategy)
        for line in decision_lines(machine):
            yield f"{short_name(kind)}  {line}"


def retold(strategy: Strategy) -> str:
    """Say of a strategy that merges no states what its log is."""
    return (
        f"strategy {strategy.name} does not merge states: these are the merges that the machines "
        f"it found amount to"
    )


def summary(machine: Machine) -> str:
    """Say how many decisions led to a machine.

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
    new = sum(one.new for one in machine.decisions)
    found = f": the first and {new:,} new" if new else ""
    merges = len(machine.decisions) - new
    return f"{states}{found}; {merges:,} {'merge' if merges == 1 else 'merges'}"


def decision_lines(machine: Machine) -> list[str]:
    """Write each decision on a line, arrows and counts below each other.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> for line in decision_lines(rs.infer(house).machines.transition)[:2]:
    ...     print(line)
    0 --key-----> new state 1
    1 --key-----> 1            32 answers agree, 388 tree nodes folded
    """
    from rich.cells import cell_len

    decisions = machine.decisions or ()
    names = [label_text(one.label) for one in decisions]
    widths = [min(cell_len(name), _WIDEST) for name in names]
    widest, digits = max(widths, default=0), len(str(machine.states - 1))
    agreeing, folded = (
        max((len(f"{one[column]:,}") for one in decisions), default=0) for column in (-2, -1)
    )
    lines = []
    for one, name in zip(decisions, names, strict=True):
        arrow = f"--{name}{'-' * (widest - cell_len(name))}-->"
        target = f"new state {one.target}" if one.new else str(one.target)
        basis = "" if one.new else basis_text(one, agreeing, folded)
        lines.append(f"{one.source:>{digits}} {arrow} {target:<{10 + digits}}  {basis}".rstrip())
    return lines


def basis_text(decision: MergeDecision, agreeing: int = 0, folded: int = 0) -> str:
    """Say what a merge rests on, with so many places for each number.

    >>> basis_text(MergeDecision(0, frozenset({"sofa"}), 0, False, agreeing=1, folded=2400))
    '1 answer agrees, 2,400 tree nodes folded'
    """
    agree = "answer agrees" if decision.agreeing == 1 else "answers agree"
    nodes = "tree node" if decision.folded == 1 else "tree nodes"
    return f"{decision.agreeing:>{agreeing},} {agree}, {decision.folded:>{folded},} {nodes} folded"

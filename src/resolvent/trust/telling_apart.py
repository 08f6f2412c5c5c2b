"""Two sets of machines → the shortest experiment on which they differ."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from resolvent.machines import UNSEEN, Machines
from resolvent.traces import Label, Symbol
from resolvent.traces.symbols import symbol_text
from resolvent.trust.experiment import Experiment

States = tuple[int, ...]


def telling_apart(one: Machines, other: Machines) -> Experiment | None:
    """Return the fewest labels, and a question then, that two sets of machines answer differently.

    Only answers count that both were shown in the state that they are in then. None if there
    are none: then no traces that both explain tell them apart.

    >>> import resolvent as rs
    >>> def one_trace(label):
    ...     return rs.Trace(["hall"] * 3, [None, label, None], ["look", "go"], [0, label == "key"])
    >>> first = rs.infer(rs.TraceSet([one_trace("key"), one_trace("bell")])).machines
    >>> moves = first.reward.transitions[:, ::-1].copy()
    >>> import dataclasses
    >>> swapped = first.replacing(dataclasses.replace(first.reward, transitions=moves))
    >>> print(telling_apart(first, first), telling_apart(first, swapped).question)
    None ('hall', 'go')
    """
    kinds = [kind for kind in one if kind in other]
    labels = list(dict.fromkeys(label for kind in kinds for label in one[kind].labels))
    start = (0,) * len(kinds), (0,) * len(kinds)
    came: dict[tuple[States, States], tuple[tuple[States, States], Label] | None] = {start: None}
    waiting = deque([start])
    questions = {kind: list(_questions(one, other, kind)) for kind in kinds}
    while waiting:
        both = waiting.popleft()
        for place, kind in enumerate(kinds):
            for observation, action in questions[kind]:
                mine = _answer(one, kinds, both[0], place, observation, action)
                theirs = _answer(other, kinds, both[1], place, observation, action)
                if mine is not UNSEEN and theirs is not UNSEEN and mine != theirs:
                    why = (
                        f"the {kind} of one machine is {symbol_text(mine)} then, that of another "
                        f"{symbol_text(theirs)}"
                    )
                    history = _history(came, both)
                    return Experiment(history, (observation, action), why, kind, exact=True)
        for label in labels:
            mine = _led(one, kinds, both[0], label)
            theirs = _led(other, kinds, both[1], label)
            if mine is not None and theirs is not None and (mine, theirs) not in came:
                came[mine, theirs] = both, label
                waiting.append((mine, theirs))
    return None


def _questions(one: Machines, other: Machines, kind: str) -> Iterator[tuple[Symbol, Symbol]]:
    """Go through what either is asked, each once; without the states of a Transition Machine."""
    met = set()
    for machine in (one[kind], other[kind]):
        for answer in machine.answers():
            seen: Any = answer.observation
            asked = (seen[0] if machine.supplemented else seen), answer.action
            if asked not in met:
                met.add(asked)
                yield asked


def _answer(
    machines: Machines,
    kinds: list[str],
    states: States,
    place: int,
    observation: Symbol,
    action: Symbol,
) -> Any:
    machine = machines[kinds[place]]
    asked: Any = observation
    if machine.supplemented:
        if "transition" not in kinds:
            return UNSEEN
        asked = observation, states[kinds.index("transition")]
    return machine.output(states[place], asked, action, assumed=False)


def _led(machines: Machines, kinds: list[str], states: States, label: Label) -> States | None:
    led = [machines[kind].step(state, label) for kind, state in zip(kinds, states, strict=True)]
    return None if UNSEEN in led else tuple(led)  # type: ignore[arg-type]


def _history(
    came: dict[tuple[States, States], tuple[tuple[States, States], Label] | None],
    both: tuple[States, States],
) -> tuple[Label, ...]:
    labels = []
    while (before := came[both]) is not None:
        both, label = before
        labels.append(label)
    return tuple(reversed(labels))

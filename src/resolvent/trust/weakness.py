"""What machines are asked step by step → which of their states and moves rest on little."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Machine, Machines
from resolvent.machines.ways import history_text
from resolvent.replay import states_at_steps, steps_asked
from resolvent.traces import Label, TraceSet, label_text
from resolvent.trust.on_demand import OnDemand
from resolvent.trust.reaching import FEW, Reached
from resolvent.wording import amount, short

Counts = NDArray[np.int64]

_MOSTLY: Final = 0.5
"""Where more than this share of the steps is stuck, that is worth saying."""

_MOST_WAY = 160
"""Characters of an input word that are shown."""


@dataclass(frozen=True)
class WeakState:
    """A state that few label histories reach, and the shortest labels that lead there.

    `histories` are different ones that enter it from another state: the same session repeated
    counts once. `steps` are all that traces spent there.
    """

    state: int
    histories: int
    steps: int
    by: tuple[Label, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "state": self.state,
            "histories": self.histories,
            "steps": self.steps,
            "by": [sorted(label) for label in self.by],
        }

    def __str__(self) -> str:
        times = "once" if self.histories == 1 else f"in {self.histories:,} ways"
        return f"state {self.state}, reached {times}, by: {short(history_text(self.by), _MOST_WAY)}"


class WeakStates(OnDemand[WeakState]):
    """Some states in order; each with its labels is made when it is asked for.

    The labels that lead to all states of a long chain are together as long as its square.
    """

    def __init__(
        self, machine: Machine, states: list[int], histories: Counts, spent: Counts
    ) -> None:
        super().__init__(len(states))
        self._machine, self._states = machine, states
        self._histories, self._spent = histories, spent

    def _made(self, number: int) -> WeakState:
        state = self._states[number]
        reached, spent = int(self._histories[state]), int(self._spent[state])
        return WeakState(state, reached, spent, self._machine.history(state))


@dataclass(frozen=True)
class RareMove:
    """A move that one label history alone has taken."""

    state: int
    label: Label
    target: int

    def __str__(self) -> str:
        return f"{short(label_text(self.label))} in state {self.state} (→ {self.target})"


@dataclass(frozen=True)
class Weakness:
    """What of a machine rests on little: states that few histories reach, and rare moves.

    `weak` are the states that fewer than 5 histories reach, the weakest first. Of the `moves`
    that traces take, `rare` ones were taken by a single history, such as `rare_move`. Of all
    `steps` that many are `stuck` in `sinks`, the states that nothing leads out of.
    """

    states: int = 0
    weak: Sequence[WeakState] = ()
    moves: int = 0
    rare: int = 0
    rare_move: RareMove | None = None
    steps: int = 0
    stuck: int = 0
    sinks: tuple[int, ...] = ()

    def as_dict(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return the weak states as JSON values, at most so many."""
        return [one.as_dict() for one in self.weak[:most]]

    def lines(self, most: int = 5) -> list[str]:
        """Say it in a few lines, with at most so many states; nothing where nothing is weak."""
        lines = []
        if self.weak:
            lines.append(
                f"{len(self.weak):,} of {amount(self.states, 'state')} {_were(len(self.weak))} "
                f"reached in fewer than {FEW} different ways; go there again to test them:"
            )
            lines += [f"  {one}" for one in self.weak[:most]]
            if len(self.weak) > most:
                lines.append(f"  and {len(self.weak) - most:,} more")
        if self.rare_move is not None:
            lines.append(
                f"{self.rare:,} of {amount(self.moves, 'move')} {_were(self.rare)} taken after one "
                f"history alone, such as {self.rare_move}"
            )
        if self.stuck > _MOSTLY * self.steps:
            lines.append(
                f"{self.stuck / self.steps:.1%} of all steps are in {_listed(self.sinks)}, which "
                f"nothing leads out of: sessions that end sooner would tell more"
            )
        return lines


def _listed(states: tuple[int, ...], most: int = 3) -> str:
    """Name a few states.

    >>> _listed((1,)), _listed((1, 4)), _listed((1, 4, 5, 9, 12))
    ('state 1', 'states 1, 4', 'states 1, 4, 5 and 2 more')
    """
    named = ", ".join(map(str, states[:most]))
    more = f" and {len(states) - most} more" if len(states) > most else ""
    return f"state{'s' if len(states) > 1 else ''} {named}{more}"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def weakness_of(machine: Machine, reached: Reached) -> Weakness:
    """Say what rests on little, by the different label histories that reach it.

    What came before does not matter here, so histories of traces that are repeated count once.
    """
    histories = np.zeros(machine.states, np.int64)
    entered, ways = reached.entered.counts()
    histories[entered] = ways
    histories[0] += 1  # that of no labels
    spent = reached.spent
    known = set(machine.reachable())
    ends = sinks(machine)
    weak = sorted(
        (state for state in np.flatnonzero(histories < FEW).tolist() if state in known and state),
        key=lambda state: (histories[state], spent[state], state),
    )
    width = len(machine.labels)
    taken, count = reached.moved.counts()
    once = taken[count == 1]
    rare = None
    if len(once):
        targets = machine.transitions.ravel()[once]
        # Where a move leads to a state that is well known otherwise, only it is in doubt.
        first = int(once[np.lexsort((once, -np.minimum(histories[targets], FEW)))[0]])
        state, code = divmod(first, width)
        rare = RareMove(state, machine.labels[code], int(machine.transitions[state, code]))
    return Weakness(
        machine.states,
        WeakStates(machine, weak, histories, spent),
        len(taken),
        len(once),
        rare,
        reached.steps,
        int(spent[ends].sum()),
        tuple(ends.tolist()),
    )


def sinks(machine: Machine) -> NDArray[np.int64]:
    """Return the states of a log's machine that no label is known to lead out of.

    Where there is something to see, steps differ in any state, so that none is a sink.

    >>> from resolvent.environments import House
    >>> sinks(House().machines().transition).tolist()  # who has the key keeps it, and sees on
    []
    """
    if machine.states == 1 or len(machine.observations) != 1:
        return np.empty(0, np.int64)
    leads = machine.transitions.copy()
    leads[:, list(machine.trivial)] = -1
    stays = leads == np.arange(machine.states)[:, None]
    kept: NDArray[np.int64] = np.flatnonzero((stays | (leads < 0)).all(axis=1) & stays.any(axis=1))
    return kept


def weaknesses(machines: Machines, traces: TraceSet) -> dict[str, Weakness]:
    """Say of each machine which of its states and moves rest on little in some traces."""
    seen = machines.senses.on(traces)
    asked = steps_asked(machines, seen, states_at_steps(machines, seen))
    return {
        kind: weakness_of(one.machine, Reached.of(one, seen.offsets)) for kind, one in asked.items()
    }

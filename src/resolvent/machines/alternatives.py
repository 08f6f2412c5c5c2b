"""Noisy samples + the most likely machine → others that they hardly tell from it, with odds."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from resolvent.arithmetic import exp, log
from resolvent.machines.answering import answering
from resolvent.machines.building import machine_of_tables
from resolvent.machines.machine import Machine
from resolvent.noise import Likely, Rivals
from resolvent.samples import SampleSet
from resolvent.traces.symbols import Label, label_text
from resolvent.traces.vocabulary import Codes
from resolvent.wording import amount, odds_text

LEAST_LOG_ODDS: Final = log(100)
"""Odds of 100 to 1: what is less sure than that is said to be open."""

MOST_MOVES: Final = 10
"""So many open moves become machines of their own, the likeliest; with hundreds of labels
there may be hundreds, which `Machine.confidence` tells one by one."""


@dataclass(frozen=True)
class Alternative:
    """Another machine that traces hardly tell from the one that was found.

    `log_odds` is the logarithm of how many times as likely it is as that one: below 0 in
    general. `move` is (state, label, target) where it is the same machine but for this move,
    in the numbers of that one; otherwise it has another number of states.
    """

    machine: Machine
    log_odds: float
    move: tuple[int, Label, int] | None = None

    @property
    def odds(self) -> float:
        """How many times as likely it is as the machine that was found."""
        return exp(self.log_odds)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        move = None
        if self.move is not None:
            state, label, target = self.move
            move = {"state": state, "label": sorted(label), "target": target}
        return {"states": self.machine.states, "log_odds": self.log_odds, "move": move}

    def __str__(self) -> str:
        what = amount(self.machine.states, "state")
        if self.move is not None:
            state, label, target = self.move
            what = f"state {state} reads {label_text(label)} → {target}"
        return f"{what}: {odds_text(self.log_odds)}"


def alternatives(
    machine: Machine, samples: SampleSet, likely: Likely, rivals: Rivals
) -> tuple[Alternative, ...]:
    """Return the machines that are not 100 times less likely than the one found, likeliest first.

    They are the best that was met of each other number of states, and the same machine with
    one move that leads elsewhere, for the ten moves that are least sure. `rivals` are those of
    the machine's moves.
    """
    found = [
        Alternative(_made(machine, samples, likely.by_size[states]), log_odds)
        for states, log_odds in likely.log_odds.items()
        if states != likely.states and log_odds > -LEAST_LOG_ODDS
    ]
    open_moves = (rivals.target >= 0) & (rivals.log_odds < LEAST_LOG_ODDS)
    places = np.argwhere(open_moves)
    least_sure = np.argsort(rivals.log_odds[open_moves], kind="stable")[:MOST_MOVES]
    for state, code in places[least_sure].tolist():
        moves, target = machine.transitions.copy(), int(rivals.target[state, code])
        moves[state, code] = target
        stays = np.arange(len(moves), dtype=np.int32)[:, None]
        other = _made(machine, samples, np.where(moves < 0, stays, moves))
        move = (state, machine.labels[code], target)
        found.append(Alternative(other, -float(rivals.log_odds[state, code]), move))
    return tuple(sorted(found, key=lambda one: -one.log_odds))


def _made(machine: Machine, samples: SampleSet, transitions: Codes) -> Machine:
    """Return a machine of the same kind with other moves, and the answers that go with them."""
    nothing = np.empty(0, np.int64)
    loops = np.arange(len(transitions), dtype=np.int32)[:, None]
    idle = ((transitions == loops) | (transitions < 0)).all(0)
    other, _ = machine_of_tables(
        type(machine),
        labels=samples.labels,
        observations=samples.observations,
        actions=samples.actions,
        outputs=samples.outputs,
        transitions=transitions,
        initial=0,
        answers=(nothing, nothing, np.empty(0, np.int32)),
        trivial=tuple(np.flatnonzero(idle).tolist()),
        predicts=machine.predicts,
        supplemented=machine.supplemented,
        digits=machine.digits,
    )
    return answering(other, samples)

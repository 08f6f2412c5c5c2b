"""Machines → the tables that the core replays, in the codes of the traces."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from resolvent.machines import Machine, Machines
from resolvent.replay.coded import Alphabets
from resolvent.samples import LabelTiming
from resolvent.traces import Codes, Label
from resolvent.traces.vocabulary import codes_of


@dataclass(frozen=True, eq=False)
class MachineTable:
    """Next states by state and common label code, and what the machine answers with."""

    kind: str
    transitions: Codes
    states: int
    column: int
    supplemented: bool


@dataclass(frozen=True, eq=False)
class Tables:
    """Some machines as the core replays them."""

    machines: tuple[MachineTable, ...]
    timing: LabelTiming

    @classmethod
    def of(
        cls, machines: Machines, alphabets: Alphabets, trivial: Collection[Label] = ()
    ) -> "Tables":
        """Return the tables of machines, in the codes of the alphabets.

        Trivial labels loop on every state, also where the machines do not know them.
        """
        return cls(
            tuple(
                MachineTable(
                    kind,
                    _table(machine, alphabets, trivial),
                    machine.states,
                    alphabets.column_number(machine.predicts),
                    machine.supplemented,
                )
                for kind, machine in machines.items()
            ),
            machines.timing,
        )

    def transitions(self, kind: str) -> Codes:
        """Return the next states of one machine, a row for each state."""
        one = next(table for table in self.machines if table.kind == kind)
        return one.transitions.reshape(one.states, -1)


def _table(machine: Machine, alphabets: Alphabets, trivial: Collection[Label]) -> Codes:
    codes = codes_of(alphabets.labels, machine.labels, len(machine.labels))
    unseen = np.full((machine.states, 1), -1, np.int32)
    table = np.hstack([machine.transitions, unseen])[:, codes]
    loops = [alphabets.labels.code(label) for label in trivial]
    table[:, loops] = np.arange(machine.states, dtype=np.int32)[:, None]
    return np.ascontiguousarray(table.ravel())

"""Steps of traces → whether a step ends the episode, also one that was never taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.situations import KINDS
from resolvent.control.planning.steps import Keys, Lookup, Space, Steps, are_known
from resolvent.machines import Machines
from resolvent.traces.vocabulary import Codes, distinct_numbers

GOES_ON: Final = 0
ENDS: Final = 1
SOMETIMES: Final = 2
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """Tells whether a step ends the episode.

    A step that was taken ended always, never, or sometimes. One that was not is
    taken to do what its observation and action did wherever they were met; where
    that differs, it is unknown.
    """

    of_step: Lookup
    of_action: Lookup
    space: Space

    @classmethod
    def of(cls, machines: Machines, steps: Steps, space: Space) -> "Ending":
        """Put together what is stored with all machines and what these traces show."""
        o, *states, a, ended = (
            np.concatenate([column, more])
            for column, more in zip(
                (steps.observation, *steps.states, steps.action, steps.ended),
                _stored(machines, space),
                strict=True,
            )
        )
        on_action = np.int64(o) * len(space.actions) + a
        on_step = space.situation(o, states) * len(space.actions) + a
        told, ended = are_known(states), ended.astype(bool)
        size = len(space.observations) * len(space.actions)
        return cls(
            _verdicts(on_step[told], ended[told], space.situations * len(space.actions)),
            _verdicts(on_action, ended, size),
            space,
        )

    def __call__(self, observation: Codes, states: Sequence[Codes], action: Codes) -> Codes:
        """Return `ENDS`, `GOES_ON`, `SOMETIMES` or `UNKNOWN` for each step."""
        actions = len(self.space.actions)
        found = self.of_step(self.space.situation(observation, states) * actions + action)
        elsewhere = self.of_action(np.int64(observation) * actions + action)
        # Not met in these traces, nor among the endings that are stored.
        elsewhere[elsewhere == UNKNOWN] = GOES_ON
        elsewhere[elsewhere == SOMETIMES] = UNKNOWN
        return np.where(found == UNKNOWN, elsewhere, found)


def _stored(machines: Machines, space: Space) -> NDArray[np.int32]:
    """Return columns (observation, states, action, ended) of what is known to end.

    Situations are stored with the states of all machines; those that do not matter
    for acting are left out.
    """
    places = [place for place, kind in enumerate(machines, 1) if kind in KINDS]
    known = machines.termination
    rows = [(one, True) for one in known.ends]
    rows += [(one, ended) for one in known.ambiguous for ended in (True, False)]
    coded = [
        (
            space.observations.code(one[0]),
            *(one[place] for place in places),
            space.actions.code(one[-1]),
            ended,
        )
        for one, ended in rows
    ]
    return np.array(coded, np.int32).reshape(len(coded), len(places) + 3).T


def _verdicts(keys: Keys, ended: NDArray[np.bool_], size: int) -> Lookup:
    distinct, place = distinct_numbers(keys, size)
    count = np.bincount(place, minlength=len(distinct))
    ends = np.bincount(place, ended, len(distinct))
    verdict = np.where(ends == 0, GOES_ON, np.where(ends == count, ENDS, SOMETIMES))
    return Lookup(distinct, verdict.astype(np.int32))

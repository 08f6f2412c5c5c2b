"""Steps of traces → whether a step ends the episode, also one that was never taken."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.steps import Keys, Lookup, Space, Steps, distinct_keys
from resolvent.machines import MachinePair
from resolvent.traces.vocabulary import Codes

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
    def of(cls, pair: MachinePair, steps: Steps, space: Space) -> "Ending":
        """Put together what the pair has stored and what these traces show."""
        stored = _stored(pair, space)
        o, q, u, a = (
            np.concatenate([column, more])
            for column, more in zip(
                (steps.observation, steps.transition_state, steps.reward_state, steps.action),
                stored[:4].astype(np.int32),
                strict=True,
            )
        )
        ended = np.concatenate([steps.ended, stored[4].astype(bool)])
        on_action = np.int64(o) * len(space.actions) + a
        on_step = space.situation(o, q, u) * len(space.actions) + a
        told = (q >= 0) & (u >= 0)
        size = len(space.observations) * len(space.actions)
        return cls(
            _verdicts(on_step[told], ended[told], space.situations * len(space.actions)),
            _verdicts(on_action, ended, size),
            space,
        )

    def __call__(
        self, observation: Codes, transition_state: Codes, reward_state: Codes, action: Codes
    ) -> Codes:
        """Return `ENDS`, `GOES_ON`, `SOMETIMES` or `UNKNOWN` for each step."""
        actions = len(self.space.actions)
        situation = self.space.situation(observation, transition_state, reward_state)
        found = self.of_step(situation * actions + action)
        elsewhere = self.of_action(np.int64(observation) * actions + action)
        # Not met in these traces, nor among the endings the pair has stored.
        elsewhere[elsewhere == UNKNOWN] = GOES_ON
        elsewhere[elsewhere == SOMETIMES] = UNKNOWN
        return np.where(found == UNKNOWN, elsewhere, found)


def _stored(pair: MachinePair, space: Space) -> NDArray[np.int64]:
    """Return rows (observation, states, action, ended) of what the pair knows to end."""
    known = pair.termination
    rows = [(*situation, True) for situation in known.ends]
    rows += [(*situation, ended) for situation in known.ambiguous for ended in (True, False)]
    coded = [
        (space.observations.code(o), q, u, space.actions.code(a), ended)
        for o, q, u, a, ended in rows
    ]
    return np.array(coded, np.int64).reshape(len(coded), 5).T


def _verdicts(keys: Keys, ended: NDArray[np.bool_], size: int) -> Lookup:
    distinct, place = distinct_keys(keys, size)
    count = np.bincount(place, minlength=len(distinct))
    ends = np.bincount(place, ended, len(distinct))
    verdict = np.where(ends == 0, GOES_ON, np.where(ends == count, ENDS, SOMETIMES))
    return Lookup(distinct, verdict.astype(np.int32))

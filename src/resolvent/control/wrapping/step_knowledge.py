"""A step of an environment + the states of machines → what their answers to it rest on."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Knowledge, Machines
from resolvent.machines.knowledge import LEVELS
from resolvent.senses.live import LiveSenses
from resolvent.traces.live.vector_naming import Mask, split
from resolvent.traces.symbols import Symbol
from resolvent.traces.vocabulary import DENSE, codes_of

Numbers = NDArray[np.int64]
Levels = dict[str, NDArray[np.int8]]
"""For each machine a code of `LEVELS` for every environment."""

_WORDS = np.array([*LEVELS, None], object)  # −1 is the last one


class StepKnowledge:
    """Says of each machine whether its answer to a step is witnessed, assumed or unseen.

    The spaces are those of one environment. Where both are Discrete, levels are looked up.

    >>> from resolvent.environments import House
    >>> house = House()
    >>> machines, live = house.machines(), LiveSenses(house, house.machines().senses)
    >>> spaces = house.observation_space, house.action_space
    >>> print(StepKnowledge(machines, live, *spaces).one(0, 2, (0, 0))["transition"])
    witnessed
    """

    def __init__(
        self,
        machines: Machines,
        live: LiveSenses,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
    ) -> None:
        self._machines = machines
        self._observations, self._actions = live.observations, live.actions
        self._tables: Levels | None = None
        self._first = 0, 0
        self._met: dict[tuple[int, int, tuple[int, ...]], dict[str, Knowledge]] = {}
        if isinstance(observation_space, gym.spaces.Discrete) and isinstance(
            action_space, gym.spaces.Discrete
        ):
            self._first = int(observation_space.start), int(action_space.start)
            seen = self._observations.of_space(observation_space) or ()
            done = self._actions.of_space(action_space) or ()
            size = prod(machine.states for machine in machines.values())
            if len(seen) * len(done) * size <= DENSE:
                self._tables = {kind: self._table(kind, seen, done) for kind in machines}

    def one(self, observation: Any, action: Any, states: Sequence[int]) -> dict[str, Knowledge]:
        """Return the level of each machine's answer, asked in these states."""
        if self._tables is None:
            return self._asked(observation, action, states)
        step = int(observation), int(action), tuple(states)
        found = self._met.get(step)
        if found is None:
            found = self._met[step] = self._asked(observation, action, states)
        return found.copy()

    def many(
        self,
        observation_space: gym.Space[Any],
        observations: Any,
        action_space: gym.Space[Any],
        actions: Any,
        states: Sequence[Numbers],
    ) -> Levels:
        """Return the codes of the levels in many environments, whose spaces are given."""
        if self._tables is None:
            each = zip(
                split(observation_space, observations),
                split(action_space, actions),
                *(column.tolist() for column in states),
                strict=True,
            )
            told = [self._asked(one[0], one[1], one[2:]) for one in each]
            return {
                kind: np.array([LEVELS.index(one[kind]) for one in told], np.int8)
                for kind in self._machines
            }
        seen = np.asarray(observations, np.int64) - self._first[0]
        done = np.asarray(actions, np.int64) - self._first[1]
        return {
            kind: table[seen, done, states[0] if table.shape[2] > 1 else 0, column]
            for (kind, table), column in zip(self._tables.items(), states, strict=True)
        }

    def _asked(self, observation: Any, action: Any, states: Sequence[int]) -> dict[str, Knowledge]:
        seen, done = self._observations(observation), self._actions(action)
        return {
            kind: machine.knowledge(
                state, (seen, states[0]) if machine.supplemented else seen, done
            )
            for (kind, machine), state in zip(self._machines.items(), states, strict=True)
        }

    def _table(self, kind: str, seen: Sequence[Symbol], done: Sequence[Symbol]) -> NDArray[np.int8]:
        """Return the level for each observation, action, transition state and own state.

        Of transition states there is one, 0, for machines that are not supplemented.
        """
        machine = self._machines[kind]
        paired = self._machines.transition.states if machine.supplemented else 1
        named = product(seen, range(paired)) if machine.supplemented else seen
        observed = codes_of(named, machine.observations, -1).reshape(len(seen), 1, paired, 1)
        acted = codes_of(done, machine.actions, -1).reshape(1, len(done), 1, 1)
        questions = observed.astype(np.int64) * len(machine.actions) + acted
        questions[(observed < 0) | (acted < 0)] = -1
        states = np.arange(machine.states, dtype=np.int32).reshape(1, 1, 1, -1)
        shape = np.broadcast_shapes(questions.shape, states.shape)
        asked = np.broadcast_to(states, shape).ravel(), np.broadcast_to(questions, shape).ravel()
        return machine.knowledge_many(*asked).reshape(shape)


def knowledge_infos(levels: Levels, mask: Mask) -> dict[str, Any]:
    """Return levels as Gymnasium spells infos of many environments.

    That is for each machine an array, with None outside of the mask, and the mask.

    >>> knowledge_infos({"reward": np.int8([2, 0])}, np.array([True, False]))["reward"].tolist()
    [<Knowledge.WITNESSED: 'witnessed'>, None]
    """
    told: dict[str, Any] = {}
    for kind, codes in levels.items():
        told[kind] = _WORDS[np.where(mask, codes, -1)]
        told[f"_{kind}"] = mask.copy()
    return told

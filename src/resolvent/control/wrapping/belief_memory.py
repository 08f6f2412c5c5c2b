"""The memory of live episodes in which labels may lie: how likely each machine is in each state."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.control.wrapping.memory import OnUnseen, check_on_unseen
from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.machines.belief import Belief
from resolvent.senses.live import LiveSenses
from resolvent.traces.column_names import OBSERVATION, REWARD, TERMINATED
from resolvent.traces.live.naming import finite_reward
from resolvent.traces.live.vector_naming import Mask, split
from resolvent.traces.symbols import as_label, label_text

Numbers = NDArray[np.int64]


class BeliefMemory:
    """The states of all machines in a live episode, inferred instead of read: see `Belief`.

    It is used as `Memory` is; besides, `took` is called with each step before its label is.
    `values` are the states that are the most likely together, `shown` how likely each state of
    each machine is. A label counts as unseen if no machine knows it at all.

    >>> from resolvent.environments import House
    >>> house = House()
    >>> memory = BeliefMemory(house.machines(), LiveSenses(house, house.machines().senses))
    >>> memory.reset(None)
    >>> memory.took(0, 2, 0.0, 1, False)
    >>> memory.step({"key"})
    >>> memory.values, memory.shown[0].tolist()
    ((1, 0), [0.0, 1.0])
    """

    def __init__(
        self,
        machines: Machines,
        live: LiveSenses,
        *,
        on_unseen: OnUnseen = "stay",
        belief: Belief | None = None,
    ) -> None:
        check_on_unseen(on_unseen)
        self.machines = machines
        self._live = live
        self._raises = on_unseen == "raise"
        self._belief = Belief(machines) if belief is None else belief.another()

    @property
    def belief(self) -> Belief:
        """What is believed now."""
        return self._belief

    @property
    def values(self) -> tuple[int, ...]:
        """The states that are the most likely together, in the order of the machines."""
        return self._belief.likeliest

    @property
    def unseen(self) -> int:
        """How many labels of this episode no machine knows."""
        return self._belief.unseen

    @property
    def shown(self) -> list[NDArray[np.float32]]:
        """How likely each state of each machine is, in the order of the machines."""
        return [one.astype(np.float32) for one in self._belief.probabilities.values()]

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self._belief.reset(label)
        self._check(label, 0)

    def took(
        self, observation: Any, action: Any, reward: Any, following: Any, terminated: bool
    ) -> None:
        """Take a step as the environment tells it: what was seen, done, paid and seen then."""
        seen = self._live.observations
        outcomes = {
            OBSERVATION: seen(following),
            REWARD: finite_reward(reward),
            TERMINATED: bool(terminated),
        }
        self._belief.weigh(seen(observation), self._live.actions(action), outcomes)

    def step(self, label: Any, terminated: bool = False) -> None:
        """Take the label of the observation that a step led to."""
        before = self._belief.unseen
        self._belief.read(label)
        if not terminated:
            self._check(label, before)

    def _check(self, label: Any, before: int) -> None:
        if self._raises and self._belief.unseen > before:
            raise ModelError(
                f"label '{label_text(as_label(label))}' was never seen at all: collect traces "
                'that show it and infer again, or go on with on_unseen="stay"'
            )


class VectorBeliefMemory:
    """A `BeliefMemory` for each of many environments, used as `VectorMemory` is."""

    def __init__(
        self,
        machines: Machines,
        environments: int,
        live: LiveSenses,
        *,
        on_unseen: OnUnseen = "stay",
    ) -> None:
        belief = Belief(machines)
        self._each = [
            BeliefMemory(machines, live, on_unseen=on_unseen, belief=belief)
            for _ in range(environments)
        ]

    @property
    def values(self) -> tuple[Numbers, ...]:
        """For each machine a column of its most likely states."""
        rows = np.array([one.values for one in self._each], np.int64)
        return tuple(np.ascontiguousarray(column) for column in rows.T)

    @property
    def unseen(self) -> Numbers:
        """How many labels no machine knows, in each environment's episode."""
        return np.array([one.unseen for one in self._each], np.int64)

    @property
    def shown(self) -> list[NDArray[np.float32]]:
        """For each machine how likely its states are, with a row for each environment."""
        rows = [one.shown for one in self._each]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def of(self, number: int) -> BeliefMemory:
        """Return the memory of one environment."""
        return self._each[number]

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        for number in np.flatnonzero(mask).tolist():
            self._each[number].reset(labels[number])

    def took(
        self,
        spaces: tuple[gym.Space[Any], gym.Space[Any]],
        observations: Any,
        actions: Any,
        rewards: Any,
        following: Sequence[Any],
        terminated: Mask,
        mask: Mask,
    ) -> None:
        """Take the steps of the masked environments; `spaces` are of observations and actions."""
        seen, done = split(spaces[0], observations), split(spaces[1], actions)
        for number in np.flatnonzero(mask).tolist():
            self._each[number].took(
                seen[number], done[number], rewards[number], following[number], terminated[number]
            )

    def step(self, labels: Sequence[Any], mask: Mask | None, terminated: Mask) -> None:
        """Take the labels that steps led to, in the masked environments or in all."""
        chosen = range(len(self._each)) if mask is None else np.flatnonzero(mask).tolist()
        for number in chosen:
            self._each[number].step(labels[number], bool(terminated[number]))

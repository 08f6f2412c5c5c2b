"""Steps of one environment among many → its episode so far, and what machines read in it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from resolvent.senses.senses import Senses
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.columns import CodedEpisodes, ColumnCoder
from resolvent.traces.symbols import Label, Symbol
from resolvent.traces.trace_set import TraceSet


@dataclass
class Episode:
    """What one environment did since its last reset, in symbols.

    `environment` is its number, and `first` counts the steps that all environments had
    taken together when it began.
    """

    environment: int
    first: int
    observations: list[Symbol]
    labels: list[Label]
    actions: list[Symbol] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def step(self, action: Symbol, reward: float, following: Symbol, label: Label) -> None:
        """Take a step."""
        self.actions.append(action)
        self.rewards.append(reward)
        self.observations.append(following)
        self.labels.append(label)

    def __len__(self) -> int:
        return len(self.actions)


class Finished:
    """Episodes that have ended, until machines are inferred from them."""

    def __init__(self) -> None:
        self._coder, self._played = ColumnCoder(), CodedEpisodes()
        self.episodes = 0

    def add(self, episode: Episode, *, terminated: bool) -> None:
        """Take an episode that has terminated, or was cut."""
        columns: Mapping[str, list[Any]] = {
            OBSERVATION: episode.observations,
            LABEL: episode.labels,
            ACTION: episode.actions,
            REWARD: episode.rewards,
        }
        self._played.add(self._coder.code(columns), terminated=terminated, truncated=not terminated)
        self.episodes += 1

    def trace_set(self) -> TraceSet:
        """Return all of them as traces."""
        return self._played.trace_set(self._coder.values())


class Reads:
    """What machines read of a step: its label as recorded, or one made of what is seen and done.

    >>> from resolvent.traces.labelling import Labelling
    >>> Reads(Senses(Labelling("observation"))).after_step("up", "attic", frozenset())
    frozenset({'attic'})
    """

    def __init__(self, senses: Senses) -> None:
        self._labelling = senses.labelling
        of = None if senses.discretise is None else senses.discretise.of
        self._seen: Callable[[Symbol], Symbol] | None = (
            senses.discretise if of == "observation" else None
        )
        self._done: Callable[[Symbol], Symbol] | None = (
            senses.discretise if of == "action" else None
        )

    def at_reset(self, observation: Symbol, label: Label) -> Label:
        """Return the label of an episode's first observation."""
        if self._labelling.is_given:
            return label
        return self._labelling.at_reset(_through(self._seen, observation))

    def after_step(self, action: Symbol, observation: Symbol, label: Label) -> Label:
        """Return the label of what a step led to."""
        if self._labelling.is_given:
            return label
        done, seen = _through(self._done, action), _through(self._seen, observation)
        return self._labelling.after_step(done, seen)

    def all_of(self, episode: Episode) -> Iterator[Label]:
        """Go through the labels of an episode, that of its first observation first."""
        yield self.at_reset(episode.observations[0], episode.labels[0])
        yield from map(
            self.after_step, episode.actions, episode.observations[1:], episode.labels[1:]
        )


class StandIn(gym.Env[Any, Any]):
    """The spaces and names of environments that live elsewhere, for whoever looks them up."""

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        names: Mapping[str, Any],
    ) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        for name, value in names.items():
            setattr(self, name, value)


def _through(sense: Callable[[Symbol], Symbol] | None, symbol: Symbol) -> Symbol:
    return symbol if sense is None else sense(symbol)

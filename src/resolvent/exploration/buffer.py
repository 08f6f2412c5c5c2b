"""Everything recorded during exploration, as columns of codes that only grow.

Closed episodes are concatenated. Open ones are recorded separately, and count as truncated when
machines are inferred from all of them.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.traces import Label, Symbol, TraceSet
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_pairs

TRUNCATED, TERMINATED, ABANDONED = 0, 1, 2
"""Ends of episodes: by a limit, by the environment, or because no test was left in it."""


class ForgottenSymbol:
    """Stands for a symbol that no trace has any more; instances are distinct."""


class SymbolIndex:
    """Symbols or labels, numbered in the order of their first occurrence."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values: list[Any] = []
        self.codes: dict[Any, int] = {}
        for value in values:
            self(value)

    def __call__(self, value: Any) -> int:
        """Return the number of a value, a new one at its first occurrence."""
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.values)
            self.values.append(value)
        return code

    def __len__(self) -> int:
        return len(self.values)

    def keep_only(self, codes: Iterable[int]) -> None:
        """Forget the values of all other codes; they get new codes if they occur again."""
        for code in set(range(len(self.values))).difference(codes):
            value, self.values[code] = self.values[code], ForgottenSymbol()
            del self.codes[value]
            self.codes[self.values[code]] = code

    def codes_in(self, vocabulary: Vocabulary[Any], count: int | None = None) -> list[int]:
        """Return the codes that the first values have in a vocabulary; -1 for forgotten ones."""
        return [
            -1 if isinstance(value, ForgottenSymbol) else vocabulary.code(value)
            for value in self.values[:count]
        ]

    @classmethod
    def from_codes(cls, vocabulary: Vocabulary[Any], codes: Iterable[int]) -> "SymbolIndex":
        """Return the index of the values with these codes in a vocabulary."""
        return cls(ForgottenSymbol() if code < 0 else vocabulary[code] for code in codes)


@dataclass
class Episode:
    """One episode in codes: observations and labels, and between them actions and rewards."""

    observations: "array[int]" = field(default_factory=lambda: array("i"))
    labels: "array[int]" = field(default_factory=lambda: array("i"))
    actions: "array[int]" = field(default_factory=lambda: array("i"))
    rewards: "array[float]" = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.actions)

    def begin(self, observation: int, label: int) -> None:
        """Record a reset."""
        self.observations.append(observation)
        self.labels.append(label)

    def step(self, action: int, reward: float, observation: int, label: int) -> None:
        """Record a step."""
        self.actions.append(action)
        self.rewards.append(reward)
        self.observations.append(observation)
        self.labels.append(label)


@dataclass(frozen=True, eq=False)
class Columns:
    """Traces as arrays; `observations` and `labels` have one entry more for each trace."""

    observations: Codes
    labels: Codes
    actions: Codes
    rewards: NDArray[np.float64]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    n_actions: int

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.actions)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """The position in `observations` of the observation before each step."""
        lengths = np.diff(self.offsets)
        return np.arange(self.steps) + np.repeat(np.arange(len(lengths)), lengths)

    @cached_property
    def observations_before(self) -> Codes:
        """The observation before each step."""
        return self.observations[self.positions]

    @cached_property
    def observations_after(self) -> Codes:
        """The observation after each step."""
        return self.observations[self.positions + 1]

    @cached_property
    def queries(self) -> tuple[NDArray[np.int64], Codes]:
        """The queries in the order of observations, and the number of each step's query.

        A query is an observation times `n_actions` plus an action.
        """
        count = int(self.observations.max()) + 1
        return distinct_pairs(self.observations_before, self.actions, count, self.n_actions)

    @cached_property
    def reward_levels(self) -> tuple[NDArray[np.float64], Codes]:
        """The distinct rewards in increasing order, and the number of each step's reward."""
        first, number = _core.numbered((self.rewards + 0.0).view(np.int64))  # -0 is 0
        order = np.argsort(self.rewards[first])
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return self.rewards[first[order]] + 0.0, rank[number]

    @cached_property
    def terminal_steps(self) -> NDArray[np.bool_]:
        """Whether each step terminated an episode."""
        terminal = np.zeros(self.steps, bool)
        terminal[self.offsets[1:] - 1] = self.terminated
        return terminal


class Buffer:
    """All steps so far, and the codes of their symbols."""

    def __init__(self, actions: Sequence[Symbol]) -> None:
        self.observations, self.labels = SymbolIndex(), SymbolIndex()
        self.actions = list(actions)
        order = sorted(range(len(self.actions)), key=lambda code: symbol_order(self.actions[code]))
        self.actions_by_name: Codes = np.array(order, np.int32)
        self.closed = Episode()
        """All closed episodes, concatenated."""
        self.lengths, self.ends, self.environments = array("i"), array("b"), array("i")
        """The length, the kind of end and the environment of each closed episode."""
        self._columns: tuple[object, Columns] | None = None

    @property
    def episodes(self) -> int:
        """Number of closed episodes."""
        return len(self.lengths)

    @property
    def steps(self) -> int:
        """Number of steps of the closed episodes."""
        return len(self.closed)

    def close(self, episode: Episode, end: int, environment: int = 0) -> None:
        """Close an episode; one without a step is dropped."""
        if not len(episode):
            return
        closed = self.closed
        closed.observations.extend(episode.observations)
        closed.labels.extend(episode.labels)
        closed.actions.extend(episode.actions)
        closed.rewards.extend(episode.rewards)
        self.lengths.append(len(episode))
        self.ends.append(end)
        self.environments.append(environment)

    def has_episode(self, start: tuple[int, int], actions: Sequence[int]) -> bool:
        """Return whether an episode began with this observation and label and took these actions.

        One that terminated or was truncated may have taken fewer of them.
        """
        closed, wanted, step = self.closed, array("i", actions), 0
        for number, (length, end) in enumerate(zip(self.lengths, self.ends, strict=True)):
            position, count = step + number, len(wanted)
            if (
                (length >= count or end != ABANDONED)
                and (closed.observations[position], closed.labels[position]) == start
                and closed.actions[step : step + min(length, count)] == wanted[:length]
            ):
                return True
            step += length
        return False

    def columns(self, since: int = 0, open_episodes: Iterable[Episode] = ()) -> Columns:
        """Return the episodes from number `since` on, and then the open ones, as arrays."""
        more = [episode for episode in open_episodes if len(episode)]
        key = since, self.episodes, [(id(episode), len(episode)) for episode in more]
        if self._columns is None or self._columns[0] != key:
            self._columns = key, self._new_columns(since, more)
        return self._columns[1]

    def _new_columns(self, since: int, more: list[Episode]) -> Columns:
        skipped = int(np.frombuffer(self.lengths, np.int32)[:since].sum()) if since else 0
        lengths = [*self.lengths[since:], *map(len, more)]
        episodes = (self.closed, *more)

        def column(name: str, dtype: Any, first: int) -> Any:
            arrays = [np.frombuffer(getattr(episode, name), dtype) for episode in episodes]
            return np.concatenate([arrays[0][first:], *arrays[1:]])

        ends = [*(end == TERMINATED for end in self.ends[since:]), *(False for _ in more)]
        return Columns(
            column("observations", np.int32, skipped + since),
            column("labels", np.int32, skipped + since),
            column("actions", np.int32, skipped),
            column("rewards", np.float64, skipped),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            np.array(ends, bool),
            len(self.actions),
        )

    def traces(self, since: int = 0, open_episodes: Iterable[Episode] = ()) -> TraceSet:
        """Return the same as `columns` as traces."""
        columns = self.columns(since, open_episodes)
        rewards, codes = columns.reward_levels
        return TraceSet.from_columns(
            (self.observations.values, columns.observations),
            (self.labels.values, columns.labels),
            (self.actions, columns.actions),
            (rewards.tolist(), codes),
            offsets=columns.offsets,
            terminated=columns.terminated,
            truncated=~columns.terminated,
        )

    def forget_skipped_starts(self, open_episodes: Sequence[Episode]) -> None:
        """Forget symbols of episodes without a step, which a resumed run does not know."""
        episodes = (self.closed, *open_episodes)
        self.observations.keep_only(code for episode in episodes for code in episode.observations)
        self.labels.keep_only(code for episode in episodes for code in episode.labels)

    def relabel(self, labelling: LabelingFunction, open_episodes: Iterable[Episode]) -> None:
        """Replace the labels of all steps by those of a labeling function."""
        self.labels, self._columns = SymbolIndex(), None
        step = 0
        for number, length in enumerate(self.lengths):
            self._relabel(labelling, self.closed, step, step + number, length)
            step += length
        for episode in open_episodes:
            self._relabel(labelling, episode, 0, 0, len(episode))

    def _relabel(
        self, labelling: LabelingFunction, episode: Episode, step: int, position: int, length: int
    ) -> None:
        symbols = self.observations.values
        first = labelling.at_reset(symbols[episode.observations[position]])
        episode.labels[position] = self.labels(first)
        for number in range(length):
            action = self.actions[episode.actions[step + number]]
            observation = symbols[episode.observations[position + number + 1]]
            label: Label = labelling.after_step(action, observation)
            episode.labels[position + number + 1] = self.labels(label)

"""Everything recorded during exploration, in codes that only grow.

Input: resets and steps of episodes, several of them side by side. Output: all steps as arrays or
as traces, those of open episodes last; open episodes count as truncated.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.traces import Symbol, TraceSet
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_pairs

TRUNCATED, TERMINATED, ABANDONED = 0, 1, 2  # how episodes end; abandoned: no test is left
FORGOTTEN = None  # takes the place of a symbol that no trace has any more


class SymbolIndex:
    """Symbols or labels, numbered in the order of their first occurrence."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values: list[Any] = list(values)
        self.codes: dict[Any, int] = {
            value: code for code, value in enumerate(self.values) if value is not FORGOTTEN
        }

    def code(self, value: Any) -> int:
        """Return the number of a value, a new one at its first occurrence."""
        code = self.codes.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code

    def __len__(self) -> int:
        return len(self.values)

    def keep_only(self, codes: Iterable[int]) -> None:
        """Forget the values of all other codes; they get new codes if they occur again."""
        for code in set(self.codes.values()).difference(codes):
            del self.codes[self.values[code]]
            self.values[code] = FORGOTTEN

    def codes_in(self, vocabulary: Vocabulary[Any], count: int | None = None) -> list[int]:
        """Return the codes that the first values have in a vocabulary; -1 for forgotten ones."""
        return [
            -1 if value is FORGOTTEN else vocabulary.code(value) for value in self.values[:count]
        ]

    @classmethod
    def from_codes(cls, vocabulary: Vocabulary[Any], codes: Iterable[int]) -> "SymbolIndex":
        """Return the index of the values with these codes in a vocabulary."""
        return cls(FORGOTTEN if code < 0 else vocabulary[code] for code in codes)


@dataclass
class Episode:
    """One episode in codes: observations and labels, and between them actions and rewards."""

    observations: "array[int]" = field(default_factory=lambda: array("i"))
    labels: "array[int]" = field(default_factory=lambda: array("i"))
    actions: "array[int]" = field(default_factory=lambda: array("i"))
    rewards: "array[float]" = field(default_factory=lambda: array("d"))

    @classmethod
    def begun(cls, observation: int, label: int) -> "Episode":
        """Return an episode after its reset."""
        return cls(array("i", [observation]), array("i", [label]))

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def start(self) -> tuple[int, int]:
        """The first observation and label."""
        return self.observations[0], self.labels[0]

    def step(self, action: int, reward: float, observation: int, label: int) -> None:
        """Record a step."""
        self.actions.append(action)
        self.rewards.append(reward)
        self.observations.append(observation)
        self.labels.append(label)


class Columns:
    """Episodes as arrays; `observations` and `labels` have one entry more for each episode.

    `positions` are those of the entries before each step, and `starts` of each episode's first one.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        lengths: Sequence[int],
        terminated: NDArray[np.bool_],
        n_actions: int,
    ) -> None:
        """Concatenate episodes, each of which may be several with these lengths in all."""

        def column(name: str, dtype: Any = np.int32) -> Any:
            parts = [np.frombuffer(getattr(episode, name), dtype) for episode in episodes]
            return np.concatenate(parts)

        self.observations: Codes = column("observations")
        self.labels: Codes = column("labels")
        self.actions: Codes = column("actions")
        self.rewards: NDArray[np.float64] = column("rewards", np.float64)
        self.terminated, self.n_actions, self.steps = terminated, n_actions, len(self.actions)
        self.offsets = np.cumsum([0, *lengths], dtype=np.int64)
        numbers = np.arange(len(lengths))
        self.starts = self.offsets[:-1] + numbers
        self.positions = np.arange(self.steps) + np.repeat(numbers, lengths)
        self.observations_before = self.observations[self.positions]
        self.observations_after = self.observations[self.positions + 1]
        self.terminal_steps = np.zeros(self.steps, bool)
        self.terminal_steps[self.offsets[1:] - 1] = terminated

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
        return self.rewards[first[order]] + 0.0, np.argsort(order).astype(np.int32)[number]


class Buffer:
    """All steps so far, and the codes of their symbols."""

    def __init__(self, actions: Sequence[Symbol]) -> None:
        self.observations, self.labels = SymbolIndex(), SymbolIndex()
        self.actions = list(actions)
        order = sorted(range(len(self.actions)), key=lambda code: symbol_order(self.actions[code]))
        self.actions_by_name: Codes = np.array(order, np.int32)
        self.closed = Episode()  # all closed episodes, concatenated
        self.open: dict[int, Episode] = {}  # the open episode of each environment
        # The length, the kind of end and the environment of each closed episode.
        self.lengths, self.ends, self.environments = array("i"), array("b"), array("i")
        self._columns: tuple[object, Columns] | None = None

    @property
    def episodes(self) -> int:
        """Number of closed episodes."""
        return len(self.lengths)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.closed) + sum(map(len, self.open.values()))

    def open_episodes(self) -> dict[int, Episode]:
        """Return the open episodes with a step, by environment and in this order."""
        return {index: self.open[index] for index in sorted(self.open) if len(self.open[index])}

    def begin(self, environment: int, observation: int, label: int) -> Episode:
        """Begin an episode."""
        self.open[environment] = Episode.begun(observation, label)
        return self.open[environment]

    def close(self, environment: int, end: int) -> None:
        """Close an episode; one without a step is dropped."""
        episode = self.open.pop(environment)
        if not len(episode):
            return
        for name, values in vars(episode).items():
            getattr(self.closed, name).extend(values)
        self.lengths.append(len(episode))
        self.ends.append(end)
        self.environments.append(environment)

    def closed_episodes(self, since: int = 0) -> Iterator[Episode]:
        """Yield the closed episodes from number `since` on."""
        closed, first = self.closed, sum(self.lengths[:since])
        for number, length in enumerate(self.lengths[since:], since):
            last = first + length
            yield Episode(
                closed.observations[first + number : last + number + 1],
                closed.labels[first + number : last + number + 1],
                closed.actions[first:last],
                closed.rewards[first:last],
            )
            first = last

    def has_episode(self, start: tuple[int, int], actions: Sequence[int]) -> bool:
        """Return whether a closed episode began with this start and took these actions.

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

    def columns(self) -> Columns:
        """Return the closed episodes and then the open ones as arrays."""
        episodes = self.open_episodes().values()
        key = self.episodes, *map(len, episodes)  # episodes only grow
        if self._columns is None or self._columns[0] != key:
            lengths = [*self.lengths, *map(len, episodes)]
            terminated = np.zeros(len(lengths), bool)
            terminated[: len(self.ends)] = np.frombuffer(self.ends, np.int8) == TERMINATED
            parts = [self.closed, *episodes]
            self._columns = key, Columns(parts, lengths, terminated, len(self.actions))
        return self._columns[1]

    def traces(self) -> TraceSet:
        """Return the same as `columns` as traces."""
        columns = self.columns()
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

    def forget_skipped_starts(self) -> None:
        """Forget symbols of episodes without a step, which a resumed run does not know."""
        episodes = (self.closed, *self.open.values())
        self.observations.keep_only(code for episode in episodes for code in episode.observations)
        self.labels.keep_only(code for episode in episodes for code in episode.labels)

    def relabel(self, labeling: LabelingFunction) -> None:
        """Replace the labels of all steps by those of a labeling function."""
        self.labels, self._columns = SymbolIndex(), None
        closed = array("i")
        for episode in self.closed_episodes():
            closed.extend(self._labels_by(labeling, episode))
        self.closed.labels = closed
        for _, episode in sorted(self.open.items()):
            episode.labels = self._labels_by(labeling, episode)

    def _labels_by(self, labeling: LabelingFunction, episode: Episode) -> "array[int]":
        first, *later = (self.observations.values[code] for code in episode.observations)
        actions = (self.actions[code] for code in episode.actions)
        labels = [labeling.at_reset(first), *map(labeling.after_step, actions, later)]
        return array("i", map(self.labels.code, labels))

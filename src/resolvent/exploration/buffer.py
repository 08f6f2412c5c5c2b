"""All that was seen and done while exploring, as columns of codes that only grow.

Episodes that are over stand one after another; those under way are written down apart,
and count as traces that were cut short whenever machines learn from all of them.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.traces import Label, Symbol, TraceSet
from resolvent.traces.labelling import Labelling
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_pairs

CUT, ENDED, STOPPED = 0, 1, 2
"""How an episode may end: by a limit, by itself, or because exploring had no use for more."""


class ForgottenSymbol:
    """Stands in the place of a value that nothing has any more; each is a value of its own."""


class SymbolIndex:
    """Symbols or labels and the numbers they have here, in the order in which they came up."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values: list[Any] = []
        self.codes: dict[Any, int] = {}
        for value in values:
            self(value)

    def __call__(self, value: Any) -> int:
        """Return the number of a value, a new one if it never came up."""
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.values)
            self.values.append(value)
        return code

    def __len__(self) -> int:
        return len(self.values)

    def forget(self, kept: Iterable[int]) -> None:
        """Forget the values of all other numbers; one that comes up again gets a new number."""
        for code in set(range(len(self.values))).difference(kept):
            value, self.values[code] = self.values[code], ForgottenSymbol()
            del self.codes[value]
            self.codes[self.values[code]] = code

    def numbers_in(self, vocabulary: Vocabulary[Any], count: int | None = None) -> list[int]:
        """Return the numbers that the first values have in a vocabulary, −1 for forgotten ones."""
        return [
            -1 if isinstance(value, ForgottenSymbol) else vocabulary.code(value)
            for value in self.values[:count]
        ]

    @classmethod
    def out_of(cls, vocabulary: Vocabulary[Any], numbers: Iterable[int]) -> "SymbolIndex":
        """Return the coding whose values have these numbers in a vocabulary."""
        return cls(ForgottenSymbol() if number < 0 else vocabulary[number] for number in numbers)


@dataclass
class Episode:
    """One episode, in codes: what was seen and which label, and between those what was done."""

    observations: "array[int]" = field(default_factory=lambda: array("i"))
    labels: "array[int]" = field(default_factory=lambda: array("i"))
    actions: "array[int]" = field(default_factory=lambda: array("i"))
    rewards: "array[float]" = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.actions)

    def begin(self, seen: int, label: int) -> None:
        """Take what a reset showed."""
        self.observations.append(seen)
        self.labels.append(label)

    def step(self, action: int, reward: float, seen: int, label: int) -> None:
        """Take a step and what came of it."""
        self.actions.append(action)
        self.rewards.append(reward)
        self.observations.append(seen)
        self.labels.append(label)


@dataclass(frozen=True, eq=False)
class Columns:
    """Traces as arrays: `seen` and `labels` have an entry more for each trace than the others."""

    observations: Codes
    labels: Codes
    actions: Codes
    rewards: NDArray[np.float64]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    n_actions: int
    """How many actions there are."""

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.actions)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """For each step the place of what was seen before it."""
        lengths = np.diff(self.offsets)
        return np.arange(self.steps) + np.repeat(np.arange(len(lengths)), lengths)

    @cached_property
    def observations_before(self) -> Codes:
        """What was seen before each step."""
        return self.observations[self.positions]

    @cached_property
    def observations_after(self) -> Codes:
        """What each step led to."""
        return self.observations[self.positions + 1]

    @cached_property
    def queries(self) -> tuple[NDArray[np.int64], Codes]:
        """The questions, each an observation and an action, and which one each step asks.

        They come in the order of observations, and are told apart by `divmod` with `choices`.
        """
        return distinct_pairs(
            self.observations_before, self.actions, int(self.observations.max()) + 1, self.n_actions
        )

    @cached_property
    def reward_levels(self) -> tuple[NDArray[np.float64], Codes]:
        """The rewards in their order, and which of them each step was paid."""
        first, number = _core.numbered((self.rewards + 0.0).view(np.int64))  # −0 is 0
        order = np.argsort(self.rewards[first])
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return self.rewards[first[order]] + 0.0, place[number]

    @cached_property
    def terminal_steps(self) -> NDArray[np.bool_]:
        """Which steps ended an episode."""
        ended = np.zeros(self.steps, bool)
        ended[self.offsets[1:] - 1] = self.terminated
        return ended


class Buffer:
    """What was seen and done so far."""

    def __init__(self, actions: Sequence[Symbol]) -> None:
        self.observations, self.labels = SymbolIndex(), SymbolIndex()
        self.actions = list(actions)
        names = sorted(range(len(self.actions)), key=lambda one: symbol_order(self.actions[one]))
        self.by_name: Codes = np.array(names, np.int32)
        self.done = Episode()
        self.lengths, self.ends, self.places = array("i"), array("b"), array("i")
        self._columns: tuple[object, Columns] | None = None

    @property
    def episodes(self) -> int:
        """How many episodes are over."""
        return len(self.lengths)

    @property
    def steps(self) -> int:
        """How many steps the episodes that are over have."""
        return len(self.done)

    def observation(self, symbol: Symbol) -> int:
        """Return the number of an observation."""
        return self.observations(symbol)

    def label(self, label: Label) -> int:
        """Return the number of a label."""
        return self.labels(label)

    def close(self, episode: Episode, end: int, place: int = 0) -> None:
        """Put an episode with those that are over; one without a step leaves nothing.

        `place` is the number of the environment that it was played in, of several side by side.
        """
        if not len(episode):
            return
        done = self.done
        done.observations.extend(episode.observations)
        done.labels.extend(episode.labels)
        done.actions.extend(episode.actions)
        done.rewards.extend(episode.rewards)
        self.lengths.append(len(episode))
        self.ends.append(end)
        self.places.append(place)

    def has(self, begun: tuple[int, int], actions: Sequence[int]) -> bool:
        """Whether an episode that is over began with this observation and label, and did these.

        One that ended, or that a limit cut, did as many of them as it could.
        """
        done, wanted, step = self.done, array("i", actions), 0
        for number, (length, end) in enumerate(zip(self.lengths, self.ends, strict=True)):
            place, most = step + number, len(wanted)
            if (
                (length >= most or end != STOPPED)
                and (done.observations[place], done.labels[place]) == begun
                and done.actions[step : step + min(length, most)] == wanted[:length]
            ):
                return True
            step += length
        return False

    def columns(self, since: int = 0, under_way: Iterable[Episode] = ()) -> Columns:
        """Return the episodes from a number on, and those under way, as arrays."""
        more = [one for one in under_way if len(one)]
        wanted = since, self.episodes, [(id(one), len(one)) for one in more]
        if self._columns is None or self._columns[0] != wanted:
            self._columns = wanted, self._made_columns(since, more)
        return self._columns[1]

    def _made_columns(self, since: int, more: list[Episode]) -> Columns:
        skipped = int(np.frombuffer(self.lengths, np.int32)[:since].sum()) if since else 0
        lengths = [*self.lengths[since:], *map(len, more)]
        parts = (self.done, *more)

        def column(name: str, dtype: Any, first: int) -> Any:
            arrays = [np.frombuffer(getattr(one, name), dtype) for one in parts]
            return np.concatenate([arrays[0][first:], *arrays[1:]])

        return Columns(
            column("observations", np.int32, skipped + since),
            column("labels", np.int32, skipped + since),
            column("actions", np.int32, skipped),
            column("rewards", np.float64, skipped),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            np.array([*(end == ENDED for end in self.ends[since:]), *(False for _ in more)], bool),
            len(self.actions),
        )

    def traces(self, since: int = 0, under_way: Iterable[Episode] = ()) -> TraceSet:
        """Return the episodes from a number on, and those under way, as traces."""
        columns = self.columns(since, under_way)
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

    def forget_left_starts(self, under_way: Sequence[Episode]) -> None:
        """Forget what only starts have shown that were left before a first step: no trace has it.

        So nobody knows more of them than whoever goes on from the traces alone.
        """
        episodes = (self.done, *under_way)
        self.observations.forget(code for one in episodes for code in one.observations)
        self.labels.forget(code for one in episodes for code in one.labels)

    def relabel(self, labelling: Labelling, under_way: Iterable[Episode]) -> None:
        """Make the labels anew of what was seen and done."""
        self.labels, self._columns = SymbolIndex(), None
        step = 0
        for number, length in enumerate(self.lengths):
            self._relabel(labelling, self.done, step, step + number, length)
            step += length
        for episode in under_way:
            self._relabel(labelling, episode, 0, 0, len(episode))

    def _relabel(
        self, labelling: Labelling, episode: Episode, step: int, place: int, length: int
    ) -> None:
        named = self.observations.values
        episode.labels[place] = self.labels(labelling.at_reset(named[episode.observations[place]]))
        for number in range(length):
            action = self.actions[episode.actions[step + number]]
            led_to = named[episode.observations[place + number + 1]]
            episode.labels[place + number + 1] = self.labels(labelling.after_step(action, led_to))

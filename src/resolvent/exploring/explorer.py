"""Acting step by step so that as much as possible is learned that is worth knowing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from resolvent.exploring.beliefs import Beliefs
from resolvent.exploring.choosing import Hopes, Way, nearest, promised, untested, within
from resolvent.exploring.knowledge import UNKNOWN, Context, Knowledge
from resolvent.exploring.log import CUT, ENDED, STOPPED, Episode, Log

FIRST_STEPS: Final = 8
RESET_GAIN: Final = 4.0
TESTS: Final = 6


@dataclass
class Cursor:
    """Where one of several episodes side by side is."""

    episode: Episode = field(default_factory=Episode)
    row: int = UNKNOWN
    way: list[tuple[int, int]] = field(default_factory=list)
    why: str = ""
    goes_on: bool = False
    confirming: bool = False
    start: int = UNKNOWN
    context: Context = ()


class Mind:
    """One knowledge of a world, for any number of episodes side by side. In codes throughout."""

    def __init__(self, log: Log, beliefs: Beliefs, gamma: float, seed: int, reward_range: Any) -> None:
        self.log, self.beliefs, self.seed = log, beliefs, seed
        self.reward_range = reward_range
        self.knowledge: Knowledge | None = None
        self.hopes = Hopes(gamma)
        self.weighed_at = -1
        self.cursors: list[Cursor] = []
        self.surprises = 0
        self.rounds = 0
        self.settled = False
        self.confirmed: set[int] = set()
        self.tested = 0
        self.thorough_at = 64
        self.given_up: set[Context] = set()

    @property
    def steps(self) -> int:
        return self.log.steps + sum(len(one.episode) for one in self.cursors)

    def begin(self, cursor: Cursor, seen: int, label: int) -> None:
        cursor.episode = Episode()
        cursor.episode.begin(seen, label)
        cursor.goes_on, cursor.way, cursor.confirming = True, [], False
        cursor.row = UNKNOWN if self.knowledge is None else self.knowledge.begin(seen, label)
        cursor.start = cursor.row
        if self.knowledge is not None:
            cursor.context = self.knowledge.first_context(seen, label)

    def act(self, cursor: Cursor) -> int | None:
        """Return an action, or None to begin a new episode."""
        if self.knowledge is None or cursor.row == UNKNOWN:
            return self._probe(cursor)
        if cursor.way:
            return cursor.way[0][1]
        cursor.confirming = False
        self._weigh()
        way = self._choose(cursor)
        if way is None and self.weighed_at != self.knowledge.known:
            self._weigh(fully=True)
            way = self._choose(cursor)
        if way is None:
            way = self._test(cursor)
        if way is None:
            return self._confirm(cursor)
        if way.start != cursor.row:
            return None
        cursor.way, cursor.why = list(way.steps), way.why
        self.rounds += 1
        return cursor.way[0][1]

    def _choose(self, cursor: Cursor) -> Way | None:
        here = nearest(self.knowledge, self.hopes, [cursor.row])
        floor = 0.0 if here is None else here.rate
        test = within(self.knowledge, cursor.row, cursor.context, TESTS, floor)
        if test is not None:
            return test
        if not len(cursor.episode):
            if here is None:
                return nearest(self.knowledge, self.hopes, self.knowledge.starts)
            return here
        gain = 1.5 if len(self.knowledge.starts) == 1 else RESET_GAIN
        floor = 0.0 if here is None else here.rate * gain
        there = nearest(self.knowledge, self.hopes, self.knowledge.starts, floor)
        return there or here

    def _test(self, cursor: Cursor) -> Way | None:
        here = untested(self.knowledge, [cursor.row], TESTS, self.given_up)
        if here is None and len(cursor.episode):
            return untested(self.knowledge, self.knowledge.starts, TESTS, self.given_up)
        return here

    def _confirm(self, cursor: Cursor) -> int | None:
        """Act by the plan where it has not been carried out since machines changed last."""
        knowledge = self.knowledge
        self.settled = True
        if len(cursor.episode):
            return None
        path, row, met = [], cursor.row, set()
        while row >= 0 and row not in met:
            met.add(row)
            action = int(self.hopes.policy[row])
            if knowledge.following[row][action] == UNKNOWN:
                break
            path.append((row, action))
            row = knowledge.following[row][action]
        if not path:
            return None
        cursor.way, cursor.why, cursor.confirming = path, "whether the plan holds", True
        return path[0][1]

    def _weigh(self, fully: bool = False) -> None:
        known = self.knowledge.known
        if fully or self.weighed_at < 0 or known - self.weighed_at >= max(4, known // 20):
            self.hopes.weigh(self.knowledge, self.reward_range, self.knowledge.least == self.knowledge.most)
            self.weighed_at = known

    def _probe(self, cursor: Cursor) -> int:
        """Do anything, another thing each time: nothing is known here."""
        rng = np.random.default_rng((self.seed, self.steps))
        return int(rng.integers(len(self.log.actions)))

    def learn(self, cursor: Cursor, action: int, reward: float, seen: int, label: int, ended: bool, cut: bool) -> None:
        before = cursor.episode.labels[-1]
        cursor.episode.step(action, reward, seen, label)
        knowledge, row = self.knowledge, cursor.row
        repair = False
        if knowledge is None:
            repair = self.steps >= FIRST_STEPS or ended
        elif row == UNKNOWN:
            repair = True
        else:
            knowledge.ask(cursor.context, row, action)
            states = knowledge.situations[row][1:]
            cursor.context = knowledge.context(
                cursor.context, states, before if knowledge.lag else label
            )
            taken = knowledge.take(row, action, reward, seen, label, before, ended)
            if cursor.way:
                expected = cursor.way.pop(0)
                if taken.following != (cursor.way[0][0] if cursor.way else taken.following):
                    cursor.way = []
                if cursor.confirming and not cursor.way and not taken.surprise:
                    self.confirmed.add(cursor.start)
            cursor.row = taken.following if taken.following >= 0 else UNKNOWN
            if taken.surprise:
                self.surprises += 1
                repair = True
            if taken.news:
                self.settled = False
                self.given_up.clear()
        if ended or cut:
            self.log.close(cursor.episode, ENDED if ended else CUT)
            cursor.episode, cursor.goes_on, cursor.way = Episode(), False, []
        if repair:
            self._repair()

    def stop(self, cursor: Cursor) -> None:
        """End an episode that is of no more use."""
        self.log.close(cursor.episode, STOPPED)
        cursor.episode, cursor.goes_on, cursor.way = Episode(), False, []

    def _repair(self) -> None:
        under_way = [one.episode for one in self.cursors]
        self.beliefs.repair(under_way)
        self.rebuild()

    def rebuild(self) -> None:
        under_way = [one.episode for one in self.cursors]
        columns = self.log.columns(0, under_way)
        self.knowledge = Knowledge(
            self.beliefs.tables.for_labels(len(self.log.labels)), self.log, columns
        )
        self.weighed_at, self.settled = -1, False
        self.confirmed.clear()
        self.given_up.clear()
        for cursor in self.cursors:
            cursor.way = []
            cursor.confirming = False
            if cursor.goes_on:
                cursor.row = self.locate(cursor.episode)
                cursor.start = UNKNOWN if len(cursor.episode) else cursor.row
                cursor.context = self.context_of(cursor.episode)

    def locate(self, episode: Episode) -> int:
        """Return the situation that an episode has come to; −2 where it is not known."""
        knowledge = self.knowledge
        states: Any = [0] * len(knowledge.sizes)
        labels = episode.labels
        stop = len(labels) - knowledge.lag
        for place in range(knowledge.first, stop):
            states = knowledge.led(states, labels[place])
            if states is None:
                return UNKNOWN
        return knowledge.row((episode.seen[-1], *states))

    def context_of(self, episode: Episode) -> Context:
        """Return how the states that an episode has come to came about."""
        knowledge, labels = self.knowledge, episode.labels
        context = knowledge.first_context(episode.seen[0], labels[0])
        states: Any = [0] * len(knowledge.sizes)
        for place in range(knowledge.first, len(labels) - knowledge.lag):
            led = knowledge.led(states, labels[place])
            if place > 0:
                context = knowledge.context(context, states, labels[place])
            if led is None:
                return context
            states = led
        return context

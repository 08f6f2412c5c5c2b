"""Published ways to learn a machine while acting with it: the loops of LRM and of JIRP.

Toro Icarte et al., "Learning Reward Machines for Partially Observable Reinforcement Learning"
(2019): from random episodes the machine that predicts the next label best; Q-learning on
observation and machine state; a new search once a label follows that never followed there.

Xu et al., "Joint Inference of Reward Machines and Policies for Reinforcement Learning" (2020):
Q-learning for every state of the present machine; an episode whose rewards contradict it is added
to the examples, and the smallest machine that explains them all is inferred.

Both are given the label timing, which Resolvent infers itself.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np
from evaluating import UNKNOWN, Acting, Codes, Curve, Setting

import resolvent as rs
from resolvent.preprocess.timing import LabelTiming

EPSILON = 0.1
RATE = 0.5
"""How far a value moves to what a step says of it."""
WARM_UP = 1_000
"""Random steps before LRM searches for the first time."""
GROWTH = 1.5
"""How many times more steps LRM has before it searches again."""
MOST_STATES, MOVES = 10, 100
"""Of the machines that LRM looks at, and how often its search moves on."""
SECONDS = 8.0
"""Of the processor for one run; after that nothing is inferred any more."""
START = "start of an episode"


@dataclass
class Episode:
    """What was seen and done, as codes of the world's tables."""

    states: list[int]
    actions: list[int] = field(default_factory=list)
    ended: bool = False


class Belief(ABC):
    """A machine that is believed at the moment, and when it is given up."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.seed = setting, seed
        self.tables = setting.tables
        self.timing = LabelTiming(setting.world.timing)
        self.label_of = self.tables.label_of.tolist()
        self.moves = [[0] * len(self.tables.labels)]
        """By state and label: the state that follows."""
        self.inferred = 0
        self._began = time.process_time()

    @property
    def states(self) -> int:
        """How many states the machine has."""
        return len(self.moves)

    @property
    def may_infer(self) -> bool:
        """Whether there is time to infer again."""
        return time.process_time() - self._began < SECONDS

    def first(self, label: int) -> int:
        """Return the state in which an episode begins."""
        return self.moves[0][label] if self.timing.reads_at_reset else 0

    def explores(self, steps: int) -> bool:
        """Say whether episodes are random so far."""
        return False

    @abstractmethod
    def step(self, memory: int, state: int, action: int, following: int, reward: float) -> None:
        """Take in one step."""

    @abstractmethod
    def rethinks(self, episode: Episode, steps: int) -> bool:
        """Take in an episode that is over; say whether another machine is believed now."""

    def imagined(self, seen: int, action: int) -> list[tuple[int, float]]:
        """Return states other than the present one for which a step tells what would be paid."""
        return []

    def traces(self, episodes: list[Episode], before: bool = False) -> rs.TraceSet:
        """Return episodes as traces; with a step before each, if asked, that leads to its start."""
        tables = self.tables
        states = np.array(
            [code for episode in episodes for code in ([-1] * before + episode.states)]
        )
        actions = np.array(
            [code for episode in episodes for code in ([-1] * before + episode.actions)]
        )
        live, acted = states >= 0, actions >= 0
        into = np.concatenate([np.arange(len(episode.actions) + before) for episode in episodes])
        first = np.cumsum([0, *(len(episode.states) + before for episode in episodes)])[:-1]
        at = np.repeat(first, [len(episode.actions) + before for episode in episodes]) + into
        paid = np.where(acted, tables.reward[states[at], actions], 0.0)
        rewards, codes = np.unique(paid, return_inverse=True)
        return rs.TraceSet.from_columns(
            (
                [*tables.observations, START],
                np.where(live, tables.observation_of[states], len(tables.observations)),
            ),
            (
                [*tables.labels, frozenset({START})],
                np.where(live, tables.label_of[states], len(tables.labels)),
            ),
            ([*tables.actions, START], np.where(acted, actions, len(tables.actions))),
            (rewards.tolist(), codes),
            offsets=np.cumsum([0, *(len(episode.actions) + before for episode in episodes)]),
            terminated=[episode.ended for episode in episodes],
            truncated=[not episode.ended for episode in episodes],
        )


class Lrm(Belief):
    """A machine whose state tells most about the label that comes next."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting, seed)
        self.episodes: list[Episode] = []
        self.followed: set[tuple[int, int, int]] = set()
        self.surprised, self.due = True, WARM_UP

    def explores(self, steps: int) -> bool:
        return not self.inferred

    def step(self, memory: int, state: int, action: int, following: int, reward: float) -> None:
        now, after = self.label_of[state], self.label_of[following]
        if now != after and (memory, now, after) not in self.followed:
            self.followed.add((memory, now, after))
            self.surprised = True

    def rethinks(self, episode: Episode, steps: int) -> bool:
        self.episodes.append(episode)
        if not self.surprised or steps < self.due or not self.may_infer:
            return False
        self.due, self.surprised = math.ceil(GROWTH * steps), False
        reads_first = self.timing.reads_at_reset
        outcome = rs.paper.baselines.lrm(
            self.traces(self.episodes, before=reads_first),
            most_states=MOST_STATES,
            steps=MOVES,
            first_counts=reads_first,
            seed=self.seed,
        )
        self.inferred += 1
        machine = outcome.machine
        assert isinstance(machine, rs.machines.EdgeRewardMachine)
        # Only steps that end an episode lead to a terminal state: there the last one stays.
        live = machine.states - machine.terminal
        moves = [[state] * len(self.tables.labels) for state in range(max(live) + 1)]
        for state in live:
            led = [machine.step(state, label)[0] for label in self.tables.labels]
            moves[state] = [state if machine.has_ended(one) else one for one in led]
        changed = moves != self.moves
        self.moves = moves
        self.followed = set()
        for one in self.episodes:
            memory = self.first(self.label_of[one.states[0]])
            for state, following in zip(one.states, one.states[1:], strict=False):
                self.followed.add((memory, self.label_of[state], self.label_of[following]))
                memory = self.moves[memory][self.label_of[following]]
        return changed


class Jirp(Belief):
    """The smallest machine that explains what was paid in the episodes that surprised others."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting, seed)
        self.examples: list[Episode] = []
        self.surprised = False
        self.pays: dict[tuple[int, int, int], float] = {}
        """What the machine says is paid, by state, observation and action; else nothing is."""
        self.seen_of = self.tables.observation_of.tolist()
        self.observations = {symbol: code for code, symbol in enumerate(self.tables.observations)}
        self.actions = {symbol: code for code, symbol in enumerate(self.tables.actions)}

    def step(self, memory: int, state: int, action: int, following: int, reward: float) -> None:
        if self.pays.get((memory, self.seen_of[state], action), 0.0) != reward:
            self.surprised = True

    def imagined(self, seen: int, action: int) -> list[tuple[int, float]]:
        return [
            (state, self.pays[state, seen, action])
            for state in range(self.states)
            if (state, seen, action) in self.pays
        ]

    def rethinks(self, episode: Episode, steps: int) -> bool:
        if not self.surprised:
            return False
        self.surprised = False
        self.examples.append(episode)
        if not self.may_infer:
            return False
        self.inferred += 1
        self.believe(self.traces(self.examples))
        return True

    def believe(self, traces: rs.TraceSet) -> None:
        """Infer the smallest Reward Machine, which is proven to be the smallest."""
        options = {"timing": self.timing, "noise": "none"}
        found = rs.infer(
            traces, options=rs.InferenceOptions(outputs=["reward"], strategy="exact", **options)
        )
        machine = found.machines["reward"]
        self.moves = self.led(machine)
        self.pays = {
            (state, self.observations[one.observation], self.actions[one.action]): one.output
            for one in machine.entries()
            for state in (range(self.states) if one.state is None else [one.state])
        }

    def led(self, machine: rs.Machine) -> list[list[int]]:
        """Return where labels lead; those that were never seen in a state do not."""
        codes = [machine.labels.get(label) for label in self.tables.labels]
        return [
            [state if code is None or row[code] < 0 else row[code] for code in codes]
            for state, row in enumerate(machine.transitions.tolist())
        ]


class JirpWithBoth(Jirp):
    """The same loop with both machines of Resolvent: what is seen next may surprise as well."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting, seed)
        self.shows: dict[tuple[int, int, int], int] = {}
        """What the machines say is seen next."""

    def step(self, memory: int, state: int, action: int, following: int, reward: float) -> None:
        super().step(memory, state, action, following, reward)
        there = self.seen_of[following]
        if self.shows.get((memory, self.seen_of[state], action), there) != there:
            self.surprised = True

    def believe(self, traces: rs.TraceSet) -> None:
        """Infer both machines; a state is one of each."""
        found = rs.infer(traces, timing=self.timing, noise="none").machines
        of_next, of_reward = self.led(found.transition), self.led(found.reward)
        many = len(of_reward)
        self.moves = [
            [one * many + other for one, other in zip(row, column, strict=True)]
            for row in of_next
            for column in of_reward
        ]
        self.shows, self.pays = {}, {}
        for one in found.transition.entries():
            key = self.observations[one.observation], self.actions[one.action]
            for first in range(len(of_next)) if one.state is None else [one.state]:
                for second in range(many):
                    self.shows[first * many + second, *key] = self.observations[one.output]
        for one in found.reward.entries():
            seen, first = one.observation
            key = self.observations[seen], self.actions[one.action]
            for second in range(many) if one.state is None else [one.state]:
                self.pays[first * many + second, *key] = one.output


class Values:
    """What actions are worth, by the state of a machine and what is seen."""

    def __init__(self, belief: Belief, gamma: float, random: Random) -> None:
        seen, actions = len(belief.tables.observations), len(belief.tables.actions)
        self.worth = [[[0.0] * actions for _ in range(seen)] for _ in belief.moves]
        self.actions, self.gamma, self.random = actions, gamma, random

    def choose(self, memory: int, seen: int, epsilon: float) -> int:
        """Return the best action, any of those equally good; now and then just any."""
        if self.random.random() < epsilon:
            return self.random.randrange(self.actions)
        row = self.worth[memory][seen]
        best = max(row)
        return self.random.choice([action for action, one in enumerate(row) if one == best])

    def learn(self, memory: int, seen: int, action: int, reward: float, ahead: float) -> None:
        """Move a value towards what a step paid and promises."""
        row = self.worth[memory][seen]
        row[action] += RATE * (reward + self.gamma * ahead - row[action])


def loop(kind: type[Belief], setting: Setting, seed: int, most: int) -> tuple[Curve, Belief]:
    """Learn values by a machine that is believed, and another one whenever it is given up."""
    random, belief, curve = Random(seed), kind(setting, seed), Curve(setting, most)
    tables = setting.tables
    following, reward_of = tables.next_state.tolist(), tables.reward.tolist()
    ends, starts = tables.ends.tolist(), setting.starts.tolist()
    seen_of, label_of = tables.observation_of.tolist(), tables.label_of.tolist()
    values = Values(belief, setting.gamma, random)
    steps = 0
    while True:
        state = random.choice(starts)
        episode = Episode([state])
        memory = belief.first(label_of[state])
        while not episode.ended and len(episode.actions) < setting.limit:
            epsilon = 1.0 if belief.explores(steps) else EPSILON
            seen = seen_of[state]
            action = values.choose(memory, seen, epsilon)
            after, reward = following[state][action], reward_of[state][action]
            ended = ends[state][action]
            belief.step(memory, state, action, after, reward)
            label, there = label_of[after], seen_of[after]
            told = dict(belief.imagined(seen, action))
            told[memory] = reward
            for one, paid in told.items():
                ahead = 0.0 if ended else max(values.worth[belief.moves[one][label]][there])
                values.learn(one, seen, action, paid, ahead)
            memory, state = belief.moves[memory][label], after
            episode.states.append(state)
            episode.actions.append(action)
            episode.ended = ended
            steps += 1
            if curve.look(steps, _greedy(values, belief)):
                return curve, belief
        if belief.rethinks(episode, steps):
            values = Values(belief, setting.gamma, random)


def _greedy(values: Values, belief: Belief) -> Callable[[int], Acting]:
    """Return how the values act where nothing is left to chance, the first of the best."""

    def begin(count: int) -> Acting:
        memory = [0] * count

        def act(seen: Codes, labels: Codes, before: Codes) -> Codes:
            chosen = []
            for place, (one, label, last) in enumerate(
                zip(seen.tolist(), labels.tolist(), before.tolist(), strict=True)
            ):
                if last == UNKNOWN:
                    memory[place] = belief.first(label)
                else:
                    memory[place] = belief.moves[memory[place]][label]
                row = values.worth[memory[place]][one]
                chosen.append(row.index(max(row)))
            return np.array(chosen)

        return act

    return begin

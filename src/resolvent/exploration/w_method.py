"""How many states there may be → words of labels to read, and what to ask after each.

After the shortest history to each state, every word is read of as many labels as there may be
more states, and everything is asked that is known then. One label further, some question tells
where it led from every other state. A world with no more states than that, which answers all
of it as the machines do, is theirs: that is the W-method of testing, over such words as known
steps can read.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from resolvent.exploration.alternatives import Alternative, States, differ
from resolvent.exploration.buffer import Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.values import Path

TESTING: Final = "whether there are more states"

MAX_NODES: Final = 20_000
"""So many situations, with the labels read before, are looked through at most."""

MOST_TESTS: Final = 5_000
"""Where there were more tests than these, none is made: then words are only sampled."""

LOOK_BACK: Final = 40
"""A test counts as made if one of so many episodes, the latest, made it."""

NOTHING: Final = -1
"""What is read before the first step, where first labels are not."""

ASK: Final = -1
"""Stands for no machine: a question is asked, whatever tells states apart."""

Word = tuple[int, ...]

_Steps = list[tuple[int, int, int]]
"""The label read before each step, the observation and the action."""


class Test(NamedTuple):
    """After a history, a machine is not in this other state; or else, what is asked then.

    For a question, `place` is `ASK`, and `other` the question's number.
    """

    history: Word
    place: int
    other: int


class _Node(NamedTuple):
    """A situation, how many labels of a history were read, and then what a rival is in."""

    row: int
    read: int
    theirs: States | None


class WMethodTests:
    """The tests that are left to make, one after another.

    `whole` says whether they are all that the method asks for; `untold` counts those for which
    no known step tells the two states apart.
    """

    def __init__(self, model: EmpiricalModel, states: int) -> None:
        self.model, self.states = model, states
        self.rival = Alternative(model.transitions, model.outputs)
        self.whole = max(model.sizes) <= states
        self.untold = 0
        self._left = deque(self._tests())
        self.tests = len(self._left)
        longest = max((len(one.history) for one in self._left), default=0)
        self._histories = _Histories(model, longest)

    def way(self, row: int, episode: Episode) -> Path | None:
        """Return the way on from here that makes the next test; empty to begin anew for it."""
        histories = self._histories
        histories.take_in()
        read = histories.after(episode)
        while self._left:
            test = self._left[0]
            if not histories.has_made(test, self.rival, episode):
                way = self._way(test, row, read) or self._anew(test, row, episode)
                if way is not None:
                    return way
                self.untold += 1
            self._left.popleft()
        return None

    def _anew(self, test: Test, row: int, episode: Episode) -> Path | None:
        model = self.model
        for start in model.starts:
            is_here = start == row and not len(episode)
            if not is_here and self._way(test, start, self._begun(start)) is not None:
                return Path((), 0.0, "", UNKNOWN)
        return None

    def _begun(self, start: int) -> Word:
        """Return what was read at a start."""
        model = self.model
        label = model.start_symbols[start][1]
        reads = model.first + model.lag == 0 and label not in model.neutral_labels
        return (label,) if reads else ()

    def _way(self, test: Test, row: int, read: Word) -> Path | None:
        """Return the shortest way over known steps that reads a history, and then tells."""
        model, history = self.model, test.history
        if history[: len(read)] != read:
            return None
        first = _Node(row, len(read), self._theirs(test, row, len(read)))
        came: dict[_Node, tuple[_Node, int] | None] = {first: None}
        waiting = deque([first])
        while waiting and len(came) < MAX_NODES:
            node = waiting.popleft()
            here, _, theirs = node
            for action, led in enumerate(model.next_row[here]):
                if theirs is not None and self._makes(test, here, theirs, action):
                    return _way(came, node, action)
                if led < 0:
                    continue
                after = self._after(test, node, led, model.label_read[here][action])
                if after is not None and after not in came:
                    came[after] = node, action
                    waiting.append(after)
        return None

    def _makes(self, test: Test, row: int, theirs: States, action: int) -> bool:
        """Whether a step makes a test."""
        model = self.model
        observation, *own = model.augmented_states[row]
        if test.place == ASK:
            return _number(model, observation, action) == test.other
        return differ(model, self.rival, observation, tuple(own), theirs, action)

    def _after(self, test: Test, node: _Node, led: int, label: int) -> _Node | None:
        if node.theirs is not None:
            if test.place == ASK and label >= 0 and label not in self.model.neutral_labels:
                return None
            theirs = self.rival.led(node.theirs, label)
            return None if theirs is None else _Node(led, node.read, theirs)
        if label in self.model.neutral_labels or label < 0:
            return _Node(led, node.read, None)
        if test.history[node.read] != label:
            return None
        return _Node(led, node.read + 1, self._theirs(test, led, node.read + 1))

    def _theirs(self, test: Test, row: int, read: int) -> States | None:
        """Return the states of the rival once the history is read; None before."""
        if read < len(test.history):
            return None
        return replaced(self.model.augmented_states[row][1:], test)

    def _tests(self) -> list[Test]:
        model = self.model
        accesses = self._accesses()
        longest = [max(self.states - size, 0) + 1 for size in model.sizes]

        def beyond(history: Word, place: int) -> int | None:
            """Return by how many labels it is longer than the history to some state."""
            return min(
                (
                    len(history) - len(known)
                    for known in accesses[place].values()
                    if history[: len(known)] == known
                ),
                default=None,
            )

        prefixes = {
            known[:length]
            for one in accesses
            for known in one.values()
            for length in range(len(known) + 1)
        }
        places = range(len(model.sizes))
        nodes = {(start, self._begun(start)) for start in model.starts}
        waiting, tests = deque(sorted(nodes)), dict[Test, None]()
        while waiting:
            row, history = waiting.popleft()
            for place in places:
                far, state = beyond(history, place), model.augmented_states[row][1 + place]
                if far is not None and far <= longest[place]:
                    for other in range(model.sizes[place]):
                        if other != state:
                            tests[Test(history, place, other)] = None
            asks = any(
                (far := beyond(history, place)) is not None and far < longest[place]
                for place in places
            )
            for action, led in enumerate(model.next_row[row]):
                label = model.label_read[row][action]
                if asks and led != UNKNOWN:
                    asked = _number(model, model.augmented_states[row][0], action)
                    tests[Test(history, ASK, asked)] = None
                if led < 0:
                    continue
                after = history if label < 0 or label in model.neutral_labels else (*history, label)
                fits = after in prefixes or any(
                    (far := beyond(after, place)) is not None and far <= longest[place]
                    for place in places
                )
                if fits and (led, after) not in nodes:
                    nodes.add((led, after))
                    waiting.append((led, after))
            if len(nodes) > MAX_NODES or len(tests) > MOST_TESTS:
                self.whole = False
                return []
        return sorted(tests, key=lambda one: (len(one.history), one))

    def _accesses(self) -> list[dict[int, Word]]:
        """Return for each machine a history to each of its states that can be reached."""
        model = self.model
        came = {start: self._begun(start) for start in model.starts}
        waiting = deque(came)
        found: list[dict[int, Word]] = [{} for _ in model.sizes]
        while waiting:
            row = waiting.popleft()
            for one, state in zip(found, model.augmented_states[row][1:], strict=True):
                one.setdefault(state, came[row])
            for action, led in enumerate(model.next_row[row]):
                if led >= 0 and led not in came:
                    label = model.label_read[row][action]
                    more = () if label < 0 or label in model.neutral_labels else (label,)
                    came[led] = came[row] + more
                    waiting.append(led)
        return found


class _Histories:
    """The episodes that began with each history of labels, the latest of them."""

    def __init__(self, model: EmpiricalModel, longest: int) -> None:
        self.model, self.longest = model, longest
        self._begun_with: dict[Word, deque[tuple[_Steps, int]]] = {}
        self._asked: dict[Word, set[int]] = {}
        self._taken_in = 0

    def take_in(self) -> None:
        """Take in the episodes that are over since it was done last."""
        log = self.model.log
        columns = log.columns(self._taken_in)
        labels, seen, actions = (
            one.tolist() for one in (columns.labels, columns.observations, columns.actions)
        )
        for number, (first, stop) in enumerate(pairwise(columns.offsets.tolist())):
            places = slice(first + number, stop + number)
            steps = self._steps(labels[places], seen[places], actions[first:stop])
            for history, step in self._read(steps):
                latest = self._begun_with.setdefault(history, deque(maxlen=LOOK_BACK))
                latest.appendleft((steps, step))
            for history, question in self._questions(steps):
                self._asked.setdefault(history, set()).add(question)
        self._taken_in = log.episodes

    def after(self, episode: Episode) -> Word:
        """Return what an episode has read so far, as it is asked about the next step."""
        steps = self._steps(episode.labels, episode.observations, [*episode.actions, 0])
        plain = self.model.neutral_labels
        return tuple(label for label, *_ in steps if label >= 0 and label not in plain)

    def has_made(self, test: Test, rival: Alternative, now: Episode) -> bool:
        """Whether a test was made: answers ruled out the other state, or the question was asked."""
        under_way = self._steps(now.labels, now.observations, now.actions)
        if test.place == ASK:
            asked = test.other in self._asked.get(test.history, ())
            return asked or (test.history, test.other) in self._questions(under_way)
        found = [(under_way, step) for history, step in self._read(under_way) if history == test[0]]
        return any(
            self._tells(steps, step, test, rival)
            for steps, step in (*found, *self._begun_with.get(test.history, ()))
        )

    def _steps(self, labels: Sequence[int], seen: Sequence[int], actions: Sequence[int]) -> _Steps:
        """Return for each step the label read just before it, −1 for none, and the question."""
        first, lag = self.model.first, self.model.lag
        return [
            (labels[step - lag] if step - lag >= first else NOTHING, seen[step], action)
            for step, action in enumerate(actions)
        ]

    def _read(self, steps: _Steps) -> Iterator[tuple[Word, int]]:
        """Go through the histories that were read, and the step before which each was."""
        history, plain = list[int](), self.model.neutral_labels
        for step, (label, *_) in enumerate(steps):
            if label >= 0 and label not in plain:
                history.append(label)
            elif step:
                continue
            if len(history) > self.longest:
                return
            yield tuple(history), step

    def _questions(self, steps: _Steps) -> Iterator[tuple[Word, int]]:
        """Go through what was asked, by number, and the histories after which it was."""
        history, model = list[int](), self.model
        for label, observation, action in steps:
            if label >= 0 and label not in model.neutral_labels:
                history.append(label)
            if len(history) > self.longest:
                return
            yield tuple(history), _number(model, observation, action)

    def _tells(self, steps: _Steps, first: int, test: Test, rival: Alternative) -> bool:
        states: States | None = (0,) * len(rival.moves)
        theirs: States | None = None
        for step, (label, observation, action) in enumerate(steps):
            states = None if states is None else rival.led(states, label)
            if states is None:
                return False
            if step == first:
                theirs = replaced(states, test)
            elif theirs is not None:
                theirs = rival.led(theirs, label)
                if theirs is None:
                    return False
            if theirs is not None and differ(
                self.model, rival, observation, states, theirs, action
            ):
                return True
        return False


def replaced(states: Sequence[int], test: Test) -> States:
    """Return the states with one of them replaced by that of a test."""
    if test.place == ASK:
        return tuple(states)
    return (*states[: test.place], test.other, *states[test.place + 1 :])


def _number(model: EmpiricalModel, observation: int, action: int) -> int:
    return observation * len(model.log.actions) + action


def _way(came: dict[_Node, tuple[_Node, int] | None], node: _Node, action: int) -> Path:
    steps = [(node.row, action)]
    while (before := came[node]) is not None:
        node, action = before
        steps.append((node.row, action))
    return Path(tuple(reversed(steps)), 1.0, TESTING, node.row)

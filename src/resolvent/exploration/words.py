"""Labels that were never read one after another → the shortest way to do so, over known steps.

What pays may ask for several things in their order, of which none shows by itself. So where
nothing was ever paid, all words of labels are read: those of two labels, then of three, and
so on, the nearest first. What is known of states is of no help then: there seems to be one. So
everything is also asked again after each of the shortest histories.
"""

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from resolvent.exploration.buffer import Columns, Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel, Query
from resolvent.exploration.values import Path

MAX_WORD_LENGTH: Final = 6
MAX_NODES: Final = 20_000
"""So many situations, with the labels read before each, are looked through at most."""

AGAIN: Final = "what comes after labels read otherwise"

RECENT: Final = 2
"""What was tried least often is counted after so many labels."""

Word = tuple[int, ...]


def unread_word(model: EmpiricalModel, row: int, episode: Episode, length: int) -> Path | None:
    """Return the nearest way on which so many labels are read in a row as never before."""
    recent = recent_labels(model, episode, length - 1)
    return _nearest(model, row, recent, length, model.words(length))


def recent_labels(model: EmpiricalModel, episode: Episode, count: int = MAX_WORD_LENGTH) -> Word:
    """Return the last labels that an episode read, but for plain ones, each once in a row."""
    recent: list[int] = []
    for label in reversed(episode.labels[1:]):
        if label not in model.neutral_labels and (not recent or recent[-1] != label):
            recent.append(label)
            if len(recent) == count:
                break
    return tuple(reversed(recent))


def _nearest(
    model: EmpiricalModel, row: int, recent: Word, length: int, read: set[Word]
) -> Path | None:
    came: dict[tuple[int, Word], tuple[tuple[int, Word], int] | None] = {(row, recent): None}
    waiting = deque(came)
    while waiting and len(came) < MAX_NODES:
        node = waiting.popleft()
        here, word = node
        for action, led in enumerate(model.next_row[here]):
            if led < 0:
                continue
            label = model.label_read[here][action]
            after = word
            if label >= 0 and label not in model.neutral_labels and (not word or word[-1] != label):
                after = (*word, label)
                if len(after) >= length and after[-length:] not in read:
                    return _way(
                        came, node, action, f"{length} labels in a row that never were read so"
                    )
                after = after[-(length - 1) :]
            if (led, after) not in came:
                came[led, after] = node, action
                waiting.append((led, after))
    return None


def without_neutral(model: EmpiricalModel, labels: Iterable[int]) -> Word:
    """Return the labels that were read since an episode began, but for plain ones."""
    return tuple(label for label in labels if label not in model.neutral_labels)


class QueryLog:
    """What was asked after each of the shortest histories of labels."""

    def __init__(self, model: EmpiricalModel, columns: Columns) -> None:
        self.model = model
        self.after: dict[Word, set[Query]] = {}
        self.times: dict[tuple[Word, int], dict[int, int]] = {}
        labels, seen, actions = (
            column.tolist() for column in (columns.labels, columns.observations, columns.actions)
        )
        for number, (first, stop) in enumerate(pairwise(columns.offsets.tolist())):
            history: Word = ()
            for step in range(first, stop):
                place = step + number
                if step > first and labels[place] not in model.neutral_labels:
                    history = (*history, labels[place])
                self.add(history, seen[place], actions[step])

    def add(self, history: Word, observation: int, action: int) -> None:
        """Note what was asked."""
        if len(history) <= MAX_WORD_LENGTH:
            self.after.setdefault(history, set()).add((observation, action))
        self._count(history, observation, action)

    def _count(self, history: Word, observation: int, action: int) -> None:
        tried = self.times.setdefault((history[-RECENT:], observation), {})
        tried[action] = tried.get(action, 0) + 1

    def least_tried(self, history: Word, observation: int, actions: int) -> list[int]:
        """Return the actions that were tried least often here, after these last labels."""
        tried = self.times.get((history[-RECENT:], observation), {})
        fewest = min(tried.get(action, 0) for action in range(actions))
        return [action for action in range(actions) if tried.get(action, 0) == fewest]

    def way(self, row: int, history: Word, length: int) -> Path | None:
        """Return the nearest way to ask what never was after a history of up to so many labels."""
        if len(history) > length:
            return None
        model = self.model
        came: dict[tuple[int, Word], tuple[tuple[int, Word], int] | None] = {(row, history): None}
        waiting = deque(came)
        while waiting and len(came) < MAX_NODES:
            node = waiting.popleft()
            here, word = node
            asked, observation = self.after.get(word, set()), model.augmented_states[here][0]
            for action, led in enumerate(model.next_row[here]):
                if led == UNKNOWN:
                    continue
                if (observation, action) not in asked:
                    return _way(came, node, action, AGAIN)
                label = model.label_read[here][action]
                after = word if label in model.neutral_labels else (*word, label)
                if led >= 0 and len(after) <= length and (led, after) not in came:
                    came[led, after] = node, action
                    waiting.append((led, after))
        return None


def _way(
    came: dict[tuple[int, Word], tuple[tuple[int, Word], int] | None],
    node: tuple[int, Word],
    action: int,
    why: str,
) -> Path:
    steps = [(node[0], action)]
    while (before := came[node]) is not None:
        node, action = before
        steps.append((node[0], action))
    return Path(tuple(reversed(steps)), 1.0, why, node[0])

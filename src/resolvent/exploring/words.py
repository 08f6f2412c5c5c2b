"""Labels that were never read one after another → the shortest way to do so, over known steps.

What pays may ask for several things in their order, of which none shows by itself. So where
nothing was ever paid, all words of labels are read: those of two labels, then of three, and
so on, the nearest first.
"""

from collections import deque
from typing import Final

from resolvent.exploring.choosing import Way
from resolvent.exploring.knowledge import Knowledge
from resolvent.exploring.log import Episode

LONGEST: Final = 6
MOST_SEARCHED: Final = 20_000
"""So many situations, with the labels read before each, are looked through at most."""

Word = tuple[int, ...]


def unread_word(knowledge: Knowledge, row: int, episode: Episode, length: int) -> Way | None:
    """Return the nearest way on which so many labels are read in a row as never before."""
    recent = recent_labels(knowledge, episode, length - 1)
    return _nearest(knowledge, row, recent, length, knowledge.words(length))


def recent_labels(knowledge: Knowledge, episode: Episode, count: int = LONGEST) -> Word:
    """Return the last labels that an episode read, each once in a row, but for those that never matter."""
    recent: list[int] = []
    for label in reversed(episode.labels[1:]):
        if label not in knowledge.plain and (not recent or recent[-1] != label):
            recent.append(label)
            if len(recent) == count:
                break
    return tuple(reversed(recent))


def _nearest(
    knowledge: Knowledge, row: int, recent: Word, length: int, read: set[Word]
) -> Way | None:
    came: dict[tuple[int, Word], tuple[tuple[int, Word], int] | None] = {(row, recent): None}
    waiting = deque(came)
    while waiting and len(came) < MOST_SEARCHED:
        node = waiting.popleft()
        here, word = node
        for action, led in enumerate(knowledge.following[here]):
            if led < 0:
                continue
            label = knowledge.read[here][action]
            after = word
            if label >= 0 and label not in knowledge.plain and (not word or word[-1] != label):
                after = (*word, label)
                if len(after) >= length and after[-length:] not in read:
                    return _way(came, node, action, length)
                after = after[-(length - 1) :]
            if (led, after) not in came:
                came[led, after] = node, action
                waiting.append((led, after))
    return None


def _way(
    came: dict[tuple[int, Word], tuple[tuple[int, Word], int] | None],
    node: tuple[int, Word],
    action: int,
    length: int,
) -> Way:
    steps = [(node[0], action)]
    while (before := came[node]) is not None:
        node, action = before
        steps.append((node[0], action))
    why = f"{length} labels in a row that never were read so"
    return Way(tuple(reversed(steps)), 1.0, why, node[0])


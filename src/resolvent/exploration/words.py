"""Propose label sequences that were never read, and queries that were never asked after them.

A reward may need several labels in order, while none alone has an effect. So words of two labels,
of three, and so on are read, the nearest first, and every query is asked again after each of the
shortest label sequences.
"""

from typing import Final

from resolvent.exploration.buffer import Buffer, Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.search import RESET, Path, StepSearch
from resolvent.exploration.state import MAX_WORD_LENGTH, EpisodeState, LearnerState
from resolvent.exploration.tables import Query

MAX_NODES: Final = 20_000
"""Maximum number of nodes of a search, each an augmented state with the labels read before it."""

UNREAD_SEQUENCE: Final = "unread label sequence"

REPEAT: Final = "repeated query"

RECENT: Final = 2
"""Number of last labels by which the trials of actions are counted."""

MAX_WANDERING: Final = 64
"""Maximum number of steps of an episode that takes the actions tried least often."""

REPEAT_AFTER: Final = 2
"""Length of the label sequences after which every query is asked again."""

MIN_REPEATED, REPEATED_SHARE = 150, 0.1
"""Minimum number, and share of all steps, that repeat known queries."""

Word = tuple[int, ...]


def search_reward(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Search for a step with another reward: ever longer words, and all queries after each.

    Every other episode takes the actions tried least often, since such a step may be near.
    """
    if state.buffer.episodes % 2:
        return _least_tried(state, episode, "search for another reward")
    lengths = range(2, MAX_WORD_LENGTH + 1)
    paths = (
        _unread_word(state, episode, length) or _unasked_query(state, episode, length - 1)
        for length in lengths
    )
    return next(filter(None, paths), None)


def read_words(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path to an unread word of three labels or more, if there may be more states."""
    paths = (_unread_word(state, episode, length) for length in range(3, state.depth + 1))
    return next(filter(None, paths), None)


def repeat_queries(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Ask every query again after one or two labels, within a share of all steps.

    A state whose outputs have not differed so far looks like another.
    """
    model = state.present_model()
    if state.validation.repeated_steps >= max(MIN_REPEATED, REPEATED_SHARE * state.steps):
        return None
    paths = (_unasked_query(state, episode, length) for length in range(REPEAT_AFTER + 1))
    path = next(filter(None, paths), None)
    if path is not None or model.nondeterministic:  # walks would only show again that labels vary
        return path
    return _least_tried(state, episode, REPEAT)


def _least_tried(state: LearnerState, episode: EpisodeState, purpose: str) -> Path:
    """Return a step taken least often after the last labels; a reset after a while."""
    model = state.present_model()
    if episode.length >= MAX_WANDERING:
        return RESET
    word = model.without_neutral(episode.recorded.labels[1:])
    observation = model.augmented_states[episode.row][0]
    actions = _query_log(state).least_tried(word, observation, len(state.buffer.actions))
    action = actions[state.random_action(episode) % len(actions)]
    return Path(((episode.row, action),), 1.0, purpose)


def _query_log(state: LearnerState) -> "QueryLog":
    if state.selection.queries is None:
        state.selection.queries = QueryLog(state.present_model(), state.buffer)
    return state.selection.queries


def _unasked_query(state: LearnerState, episode: EpisodeState, length: int) -> Path | None:
    """Return the path to a query never asked after a sequence of at most `length` labels."""
    model, log = state.present_model(), _query_log(state)
    word = model.without_neutral(episode.recorded.labels[1:])
    path = log.unasked(episode.row, word, length)
    if path is None and episode.length:
        is_elsewhere = any(log.unasked(start, (), length) for start in model.starts)
        return RESET if is_elsewhere else None
    return path


def _unread_word(state: LearnerState, episode: EpisodeState, length: int) -> Path | None:
    """Return the path that reads a new word of `length` labels, from here or from a start."""
    model = state.present_model()
    path = unread_word(model, episode.row, episode.recorded, length)
    if path is None and episode.length and not state.selection.are_resets_useless:
        is_elsewhere = any(unread_word(model, start, Episode(), length) for start in model.starts)
        return RESET if is_elsewhere else None
    return path


def unread_word(model: EmpiricalModel, row: int, episode: Episode, length: int) -> Path | None:
    """Return the shortest path that reads a new sequence of `length` labels."""
    recent, read = recent_labels(model, episode, length - 1), model.words(length)
    search = StepSearch[tuple[int, Word]]([(row, recent)], MAX_NODES)
    for node in search:
        here, word = node
        for action, target in enumerate(model.next_row[here]):
            if target < 0:
                continue
            label = model.label_read[here][action]
            after = word
            if label >= 0 and label not in model.neutral_labels and (not word or word[-1] != label):
                after = (*word, label)
                if len(after) >= length and after[-length:] not in read:
                    return Path(search.steps_to(node, action), 1.0, UNREAD_SEQUENCE)
                after = after[-(length - 1) :]
            search.add((target, after), node, action)
    return None


def recent_labels(model: EmpiricalModel, episode: Episode, count: int = MAX_WORD_LENGTH) -> Word:
    """Return the last labels that an episode read, without neutral ones and repetitions."""
    recent: list[int] = []
    for label in reversed(episode.labels[1:]):
        if label not in model.neutral_labels and (not recent or recent[-1] != label):
            recent.append(label)
            if len(recent) == count:
                break
    return tuple(reversed(recent))


class QueryLog:
    """The queries observed after each of the shortest label sequences, and their numbers."""

    def __init__(self, model: EmpiricalModel, buffer: Buffer) -> None:
        self.model = model
        self._observed: dict[Word, set[Query]] = {}
        self._times: dict[tuple[Word, int], dict[int, int]] = {}
        for episode in (*buffer.closed_episodes(), *buffer.open_episodes().values()):
            word: Word = ()
            for step, action in enumerate(episode.actions):
                if step:
                    word = model.next_word(word, episode.labels[step])
                self.add(word, episode.observations[step], action)

    def add(self, word: Word, observation: int, action: int) -> None:
        """Note a query asked after these labels."""
        if len(word) <= MAX_WORD_LENGTH:
            self._observed.setdefault(word, set()).add((observation, action))
        times = self._times.setdefault((word[-RECENT:], observation), {})
        times[action] = times.get(action, 0) + 1

    def least_tried(self, word: Word, observation: int, n_actions: int) -> list[int]:
        """Return the actions tried least often with this observation, after the last labels."""
        times = self._times.get((word[-RECENT:], observation), {})
        fewest = min(times.get(action, 0) for action in range(n_actions))
        return [action for action in range(n_actions) if times.get(action, 0) == fewest]

    def unasked(self, row: int, word: Word, length: int) -> Path | None:
        """Return the shortest path to a query never asked after the at most `length` labels."""
        if len(word) > length:
            return None
        model = self.model
        search = StepSearch[tuple[int, Word]]([(row, word)], MAX_NODES)
        for node in search:
            here, before = node
            queries = self._observed.get(before, set())
            observation = model.augmented_states[here][0]
            for action, target in enumerate(model.next_row[here]):
                if target == UNKNOWN:
                    continue
                if (observation, action) not in queries:
                    return Path(search.steps_to(node, action), 1.0, REPEAT)
                after = model.next_word(before, model.label_read[here][action])
                if target >= 0 and len(after) <= length:
                    search.add((target, after), node, action)
        return None

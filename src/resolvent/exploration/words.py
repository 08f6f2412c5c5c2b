"""Propose label sequences that were never read, and queries that were never asked after them.

A reward may need several labels in order, while none alone has an effect. So words of two labels,
of three, and so on are read, the nearest first, and every query is asked again after each of the
shortest label sequences.
"""

from collections.abc import Callable, Iterable
from typing import Final

from resolvent.exploration.buffer import Episode
from resolvent.exploration.empirical_model import RESET, UNKNOWN, EmpiricalModel, Path, StepSearch
from resolvent.exploration.state import MAX_WORD_LENGTH, EpisodeState, LearnerState
from resolvent.exploration.tables import Query

MAX_NODES: Final = 20_000  # maximum number of nodes of a search
UNREAD_SEQUENCE: Final = "unread label sequence"
REPEAT: Final = "repeated query"
RECENT: Final = 2  # number of last labels by which the trials of actions are counted
MAX_WANDERING: Final = 64  # maximum number of steps of an episode that takes actions least tried
REPEAT_AFTER: Final = 2  # length of the label sequences after which every query is asked again
MIN_REPEATED, REPEATED_SHARE = 150, 0.1  # repeated queries: at least, and share of all steps
MIN_WITHOUT_MEMORY: Final = 600  # the same for machines of one state and one start
Word = tuple[int, ...]


def read_and_repeat(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Search for a step with another reward: ever longer words, and all queries after each.

    Every other episode takes the actions tried least often, since such a step may be near.
    """
    if state.buffer.episodes % 2:
        return _least_tried(state, episode, "search for another reward")
    paths = (
        _unread_word(state, episode, length) or _unasked_query(state, episode, length - 1)
        for length in range(2, MAX_WORD_LENGTH + 1)
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
    is_simple = max(state.sizes.values()) == 1 and len(state.present_model().starts) == 1
    least = MIN_WITHOUT_MEMORY if is_simple else MIN_REPEATED
    if state.validation.repeated_steps >= max(least, REPEATED_SHARE * state.steps):
        return None
    paths = (_unasked_query(state, episode, length) for length in range(REPEAT_AFTER + 1))
    path = next(filter(None, paths), None) or _without_label(state, episode)
    # Walks would only show again that labels vary.
    if path is not None or state.present_model().nondeterministic:
        return path
    return _least_tried(state, episode, REPEAT)


def _least_tried(state: LearnerState, episode: EpisodeState, purpose: str) -> Path:
    """Return a step taken least often after the last labels; a reset after a while."""
    if episode.length >= MAX_WANDERING:
        return RESET
    observation = state.present_model().augmented_states[episode.row][0]
    actions = _query_log(state).least_tried(_word_of(state, episode), observation)
    action = actions[state.random_action(episode) % len(actions)]
    return Path(((episode.row, action),), purpose)


def _query_log(state: LearnerState) -> "QueryLog":
    if state.selection.queries is None:
        state.selection.queries = QueryLog(state.present_model())
    return state.selection.queries


def _word_of(state: LearnerState, episode: EpisodeState) -> Word:
    return state.present_model().without_neutral(episode.recorded.labels[1:])


def _unasked_query(state: LearnerState, episode: EpisodeState, length: int) -> Path | None:
    """Return the path to a query never asked after a sequence of at most `length` labels."""
    log = _query_log(state)
    path = log.unasked(episode.row, _word_of(state, episode), length)
    return path or _elsewhere(state, episode, lambda start: log.unasked(start, (), length))


def _without_label(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path to an informative query that was never asked without some label before it.

    Shortest paths may all read the same label, so that no query is asked in the states without it.
    """
    model, log = state.present_model(), _query_log(state)
    if len(model.starts) > 1:  # the one that is needed may not come up again
        return None
    read = set(model.labels_read(episode.recorded))
    for label in {*range(len(state.buffer.labels))} - model.neutral_labels:
        missing = model.informative - log.asked_without(label)
        starts = [row for row in model.starts if label not in model.first_word(row)]
        if missing and label not in read:
            path = _path_without(model, [episode.row], label, missing)
            if path is not None:
                return path
        if missing and episode.length and _path_without(model, starts, label, missing):
            return RESET
    return None


def _path_without(
    model: EmpiricalModel, rows: Iterable[int], label: int, queries: set[Query]
) -> Path | None:
    search = StepSearch[int](rows, MAX_NODES)
    for here in search:
        observation = model.augmented_states[here][0]
        for action, target in enumerate(model.next_row[here]):
            if target != UNKNOWN and (observation, action) in queries:
                return search.path(here, action, REPEAT)
            if target >= 0 and model.label_read[here][action] != label:
                search.add(target, here, action)
    return None


def _unread_word(state: LearnerState, episode: EpisodeState, length: int) -> Path | None:
    """Return the path that reads a new word of `length` labels, from here or from a start."""
    model = state.present_model()
    recent = recent_labels(model, episode.recorded, length - 1)
    path = unread_word(model, episode.row, recent, length)
    if path is not None or state.selection.are_resets_useless:
        return path
    return _elsewhere(state, episode, lambda start: unread_word(model, start, (), length))


def _elsewhere(
    state: LearnerState, episode: EpisodeState, find: Callable[[int], Path | None]
) -> Path | None:
    """Return a reset if there is a path from any start, unless the episode has just begun."""
    return RESET if episode.length and any(map(find, state.present_model().starts)) else None


def unread_word(model: EmpiricalModel, row: int, recent: Word, length: int) -> Path | None:
    """Return the shortest path that reads a new sequence of `length` labels after recent ones."""
    search, read = StepSearch[tuple[int, Word]]([(row, recent)], MAX_NODES), model.words(length)
    for node in search:
        here, word = node
        for action, target, label in model.steps_from(here):
            after = word
            if label not in model.neutral_labels and word[-1:] != (label,):
                after = (*word, label)
                if len(after) >= length and after[-length:] not in read:
                    return search.path(node, action, UNREAD_SEQUENCE)
                after = after[-(length - 1) :]
            search.add((target, after), node, action)
    return None


def recent_labels(model: EmpiricalModel, episode: Episode, count: int = MAX_WORD_LENGTH) -> Word:
    """Return the last labels that an episode read, without neutral ones and repetitions."""
    recent: list[int] = []
    for label in reversed(episode.labels[1:]):
        if label not in model.neutral_labels and recent[-1:] != [label]:
            recent.append(label)
            if len(recent) == count:
                break
    return tuple(reversed(recent))


class QueryLog:
    """The queries observed after each of the shortest label sequences, and their numbers."""

    def __init__(self, model: EmpiricalModel) -> None:
        self.model, buffer = model, model.buffer
        self._observed: dict[Word, set[Query]] = {}
        self._times: dict[tuple[Word, int], list[int]] = {}
        self._words_of: dict[Query, set[frozenset[int]]] = {}
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
        self._words_of.setdefault((observation, action), set()).add(frozenset(word))
        self._times_of(word, observation)[action] += 1

    def asked_without(self, label: int) -> set[Query]:
        """Return the queries asked in some episode before it read a label."""
        sets_of = self._words_of.items()
        return {query for query, sets in sets_of if any(label not in read for read in sets)}

    def least_tried(self, word: Word, observation: int) -> list[int]:
        """Return the actions tried least often with this observation, after the last labels."""
        times = self._times_of(word, observation)
        return [action for action, count in enumerate(times) if count == min(times)]

    def _times_of(self, word: Word, observation: int) -> list[int]:
        """Return how often each action was taken with an observation, after the last labels."""
        return self._times.setdefault((word[-RECENT:], observation), [0] * self.model.n_actions)

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
                    return search.path(node, action, REPEAT)
                after = model.next_word(before, model.label_read[here][action])
                if target >= 0 and len(after) <= length:
                    search.add((target, after), node, action)
        return None

"""Search for a reward that a long sequence of events may lead to, for as long as steps remain.

Input: the `LearnerState` and the state of an episode. Output: the next path, over known steps.

What changes a hidden state may be visible nowhere. So queries and observations that stand out are
*candidates* for events, in groups: the effects of an action that hardly ever has one, the queries
of an action without visible effect, steps without effect of other actions, visits of observations,
and all queries. Tours pass through a group several times: k passes contain every order of k of its
candidates. Sequences without another candidate in between are read one after another, the nearest
first, where another candidate may undo what was done. The rest of the steps are walks to random
candidates or to rare observations, and random actions. Every draw halves the probability from one
group, number of passes or length to the next, so that none is excluded and the shortest are first.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from resolvent.exploration.empirical_model import (
    ENDS,
    RESET,
    UNKNOWN,
    EmpiricalModel,
    Path,
    Step,
    StepSearch,
)
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import Query
from resolvent.exploration.words import read_and_repeat

SEARCH: Final = "search for another reward"
ANY_ACTION: Final = -1  # in the place of the action of a query: the observation is a candidate
HARDLY_EVER: Final = 0.1  # largest share of visible effects of an action that has hardly any
MAX_TOUR: Final = 128  # maximum number of candidates of a tour
MAX_TOUR_STEPS: Final = 1_000  # maximum number of steps of a tour
FIRST_STEPS: Final = 2_000  # number of steps that search by given labels only
MAX_EPISODE: Final = 256  # number of steps of an episode that reads words of labels made
SEQUENCE_STEPS: Final = 256  # number of steps of sequences
BLOCK: Final = 64  # number of steps of any other path
N_COMPARED: Final = 8  # number of observations of which the least frequent one is visited
MAX_LEVEL: Final = 5  # maximum number of passes of a tour, and length of a sequence
SHARES: Final = (0.1, 0.7, 0.1, 0.1)  # of tours, sequences, random candidates, random actions
Candidates: TypeAlias = dict[Query, int]  # numbers of the candidates of a group


@dataclass
class CandidateGroups:
    """The groups of candidates, and the sequences of each length read in each.

    `exhausted` are groups and lengths without an unread sequence in reach, and `queries_that_end`
    are those that terminate an episode. The groups hold for a model with `n_known` known steps.
    """

    n_known: int
    groups: list[Candidates]
    queries_that_end: set[Query]
    read: dict[tuple[int, int], set[tuple[int, ...]]] = field(default_factory=dict)
    exhausted: set[tuple[int, int]] = field(default_factory=set)


def search_reward(state: LearnerState, episode: EpisodeState) -> Path:
    """Return the next path of a search for a step with another reward, which never ends.

    Words of labels and actions least tried have the first steps to themselves if labels are given,
    and later half of all episodes; a quarter of them if the learner makes labels.
    """
    is_given, turn = not state.labels.are_made, state.buffer.episodes % 8
    if turn < 2 or (is_given and (state.steps < FIRST_STEPS or turn < 4)):
        path = None
        if is_given or episode.length < MAX_EPISODE:
            path = read_and_repeat(state, episode)
        if path is not None:
            return path
    return search_on(state, episode)


def search_on(state: LearnerState, episode: EpisodeState) -> Path:
    """Return the next path of a search for a reward that goes on for ever."""
    rng = np.random.default_rng((state.config.seed, state.steps, episode.index, 1))
    if episode.length and rng.random() < 0.5:
        return RESET
    model = state.present_model()
    walk = _Walk(model, episode.row, rng)
    groups = _groups_of(state, model)
    kind = int(rng.choice(len(SHARES), p=SHARES))
    if kind == 0:
        _tour(walk, groups, rng)
    elif kind == 1:
        _read_sequences(state, episode, walk, groups, rng)
    elif kind == 2:
        _visit_candidates(state, walk, groups, rng)
    if len(walk.steps) < BLOCK // 4:
        walk.take_random_actions(BLOCK)
    if groups.queries_that_end and rng.random() < 0.5:
        walk.go_to(groups.queries_that_end)
    if not walk.steps:  # no step is known from here
        return Path(((episode.row, state.random_action(episode)),), SEARCH)
    return Path(tuple(walk.steps), SEARCH)


class _Walk:
    """Steps over known ones from a row; shortest paths are drawn by chance."""

    def __init__(self, model: EmpiricalModel, row: int, rng: np.random.Generator) -> None:
        self.model, self.row, self.rng, self.steps = model, row, rng, list[Step]()

    def go_to(self, candidates: Iterable[Query]) -> Query | None:
        """Take the steps to the nearest of some candidates, and return it if it is in reach."""
        if self.row == ENDS:
            return None
        model, wanted = self.model, set(candidates)
        search = StepSearch[int]([self.row])
        actions = self.rng.permutation(model.n_actions).tolist()
        for row in search:
            observation, next_row = model.augmented_states[row][0], model.next_row[row]
            if (observation, ANY_ACTION) in wanted and (row != self.row or not self.steps):
                self._take(search.path_to(row), row)
                return observation, ANY_ACTION
            for action in actions:
                target = next_row[action]
                if target == UNKNOWN:
                    continue
                if (observation, action) in wanted:
                    self._take(search.steps_to(row, action), target)
                    return observation, action
                if target != ENDS:
                    search.add(target, row, action)
        return None

    def _take(self, steps: Iterable[Step], row: int) -> None:
        self.steps += steps
        self.row = row

    def take_random_actions(self, count: int) -> None:
        """Take known steps at random until an episode ends or a step is not known."""
        for action in self.rng.integers(self.model.n_actions, size=count).tolist():
            if self.row == ENDS or self.model.next_row[self.row][action] == UNKNOWN:
                return
            self._take([(self.row, action)], self.model.next_row[self.row][action])


def _level(rng: np.random.Generator, least: int, most: int, base: int = 2) -> int:
    """Draw a number; each one is less probable by a factor than the one before."""
    return least + min(int(rng.geometric(1 - 1 / base)) - 1, most - least)


def _tour(walk: _Walk, groups: CandidateGroups, rng: np.random.Generator) -> None:
    """Go through a group several times, from one candidate to the nearest other one."""
    group = list(groups.groups[_level(rng, 0, len(groups.groups) - 1)])
    chosen = rng.permutation(len(group))[:MAX_TOUR]
    for _ in range(_level(rng, 1, MAX_LEVEL)):
        remaining = {group[number] for number in chosen}
        walk.go_to([group[int(rng.choice(chosen))]])
        while remaining and len(walk.steps) < MAX_TOUR_STEPS:
            reached = walk.go_to(remaining)
            if reached is None:
                break
            remaining.discard(reached)


def _read_sequences(
    state: LearnerState,
    episode: EpisodeState,
    walk: _Walk,
    groups: CandidateGroups,
    rng: np.random.Generator,
) -> None:
    """Read sequences of candidates that were never read without another one in between."""
    # The fewest sequences come first, and those of the groups that stand out most.
    kinds = [
        (4**number * len(group) ** length, number, length)
        for number, group in enumerate(groups.groups)
        for length in range(2, MAX_LEVEL + 1)
        if (number, length) not in groups.exhausted and ANY_ACTION not in next(iter(group))
    ]
    if not kinds:
        return
    _, number, length = sorted(kinds)[_level(rng, 0, len(kinds) - 1, 4)]
    group = groups.groups[number]
    read = groups.read.get((number, length))
    if read is None:
        read = groups.read[number, length] = _sequences_read(state, group, length)
    recorded = episode.recorded
    queries = zip(recorded.observations, recorded.actions, strict=False)
    recent = [group[query] for query in queries if query in group][-(length - 1) :]
    while len(walk.steps) < SEQUENCE_STEPS:
        n_steps, unread = len(walk.steps), group
        if len(recent) == length - 1:
            unread = {query: code for query, code in group.items() if (*recent, code) not in read}
        if rng.random() < 0.5:  # distant ones would come last
            unread = dict([list(unread.items())[int(rng.integers(len(unread)))]]) if unread else {}
        if walk.go_to(unread) is None:
            if not walk.steps:
                groups.exhausted.add((number, length))
            return
        for row, action in walk.steps[n_steps:]:  # others of the group may be on the way
            code = group.get((walk.model.augmented_states[row][0], action))
            if code is not None:
                recent.append(code)
                read.add(tuple(recent[-length:]))
        recent = recent[-(length - 1) :]


def _sequences_read(state: LearnerState, group: Candidates, length: int) -> set[tuple[int, ...]]:
    """Return the sequences of candidates read so far."""
    columns = state.buffer.columns()
    queries, query_of = columns.queries
    code_of = np.array(
        [group.get(divmod(query, columns.n_actions), -1) for query in queries.tolist()]
    )
    codes = code_of[query_of]
    steps = np.flatnonzero(codes >= 0)
    if len(steps) < length:
        return set()
    number = np.searchsorted(columns.offsets, steps, side="right")
    windows = np.lib.stride_tricks.sliding_window_view(codes[steps], length)
    is_one_episode = number[: len(windows)] == number[length - 1 :]
    return set(map(tuple, windows[is_one_episode].tolist()))


def _visit_candidates(
    state: LearnerState, walk: _Walk, groups: CandidateGroups, rng: np.random.Generator
) -> None:
    """Go to random candidates, or to observations that are rare among some."""
    columns = state.buffer.columns()
    times = np.bincount(columns.observations)
    observations = np.unique(columns.observations)
    while len(walk.steps) < BLOCK:
        if rng.random() < 0.25:
            some = rng.choice(observations, N_COMPARED)
            target: Query = int(some[times[some].argmin()]), ANY_ACTION
        else:
            group = list(groups.groups[_level(rng, 0, len(groups.groups) - 1)])
            target = group[int(rng.integers(len(group)))]
        if walk.go_to([target]) is None and rng.random() < 0.5:
            return


def _groups_of(state: LearnerState, model: EmpiricalModel) -> CandidateGroups:
    groups = state.selection.candidates
    if groups is None or groups.n_known != model.n_known:
        groups = state.selection.candidates = candidate_groups(model)
    return groups


def candidate_groups(model: EmpiricalModel) -> CandidateGroups:
    """Return the groups of candidates by the effects of all queries."""
    known = model.last_outcome
    open_queries = sorted(known.keys() - model.terminating)
    is_silent = {query: known[query] == query[0] for query in open_queries}
    by_action: dict[int, list[Query]] = {}
    for query in open_queries:
        by_action.setdefault(query[1], []).append(query)
    invisible: list[list[Query]] = []
    effects, bumps = list[Query](), list[Query]()
    for _, queries in sorted(by_action.items()):
        silent = [query for query in queries if is_silent[query]]
        if len(silent) >= (1 - HARDLY_EVER) * len(queries):
            invisible.append(silent)
            effects += [query for query in queries if not is_silent[query]]
        else:
            bumps += silent
    union = [query for queries in invisible for query in queries]
    visits = [(observation, ANY_ACTION) for observation in sorted({query[0] for query in known})]
    groups = [effects, *invisible, union if len(invisible) > 1 else [], bumps, visits, open_queries]
    numbered = [{query: code for code, query in enumerate(group)} for group in groups if group]
    return CandidateGroups(model.n_known, numbered, set(model.terminating))

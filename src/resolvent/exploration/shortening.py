"""Shorten rewarded episodes, to see which of their steps the reward depends on.

Input: the `LearnerState` and the state of an episode. Output: the next action of a trial, or None.

After a long search, any step before a reward may have been the one that mattered. So parts of the
shortest episode with the reward are replaced by shortest paths, the largest parts first (delta
debugging). What still leads to the reward is shorter; what does not shows that the part matters.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from resolvent.exploration.empirical_model import RESET, EmpiricalModel, Path
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import Query
from resolvent.inference.context import ACTION_OBSERVATION
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.traces.symbols import Label, Symbol

SHORTEN: Final = "shortened episode"
MAX_TARGETS: Final = (
    4  # maximum number of queries with several rewards whose episodes are shortened
)
MAX_LENGTH: Final = 2_000  # maximum length of an episode that is shortened


# A start, and actions to take from there.
Trial: TypeAlias = tuple[tuple[int, int], tuple[int, ...]]


@dataclass(frozen=True)
class Script:
    """The observations of an episode, and its actions; `start` has its first symbols."""

    start: tuple[int, int]
    observations: tuple[int, ...]
    actions: tuple[int, ...]


@dataclass
class Shortening:
    """The shortest rewarded episodes, the trials left of them, and the trial of each environment.

    `n_rewarded` is the number of unusual rewards for which the episodes are the shortest.
    """

    n_rewarded: int = -1
    scripts: list[Script] = field(default_factory=list)
    trials: Iterator[Trial] = field(default_factory=lambda: iter(()))
    current: dict[int, tuple[int, ...]] = field(default_factory=dict)
    is_done: bool = False


def shorten(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the next step of a trial to shorten an episode, a reset after it, or None."""
    if not state.labels.are_made or state.all_rewards_equal:
        return None
    if state.selection.shortening is None:
        state.selection.shortening = Shortening()
    shortening = state.selection.shortening
    if not episode.length:
        shortening.current.pop(episode.index, None)
        trial = _next_trial(state, shortening, episode.recorded.start)
        if trial is not None:
            shortening.current[episode.index] = trial
    actions, length = shortening.current.get(episode.index, ()), episode.length
    if not actions or tuple(episode.recorded.actions) != actions[:length]:
        return None
    if length == len(actions):
        return RESET
    return Path(((episode.row, actions[length]),), SHORTEN)


def _next_trial(
    state: LearnerState, shortening: Shortening, start: tuple[int, int]
) -> tuple[int, ...] | None:
    model, buffer = state.present_model(), state.buffer
    rewards = np.frombuffer(buffer.closed.rewards, np.float64)
    n_rewarded = int((rewards != model.usual_reward).sum())
    if n_rewarded != shortening.n_rewarded:
        shortening.n_rewarded = n_rewarded
        scripts = shortest_rewarded(state)
        if scripts != shortening.scripts:
            shortening.scripts = scripts
            shortening.trials = (
                (script.start, actions)
                for script in scripts
                for actions in shorter_actions(model, script)
                if not buffer.has_episode(script.start, actions)
            )
    trial = next(shortening.trials, None)
    shortening.is_done = trial is None
    return None if trial is None or trial[0] != start else trial[1]


def shortest_rewarded(state: LearnerState) -> list[Script]:
    """Return the shortest closed episode up to the highest reward of each query with several."""
    columns, model, closed = state.buffer.columns(), state.present_model(), state.buffer.closed
    _, query = columns.queries
    query, rewards = query[: len(closed)], columns.rewards[: len(closed)]
    if not len(rewards):
        return []
    most = np.full(int(query.max()) + 1, -np.inf)
    least = -most
    np.maximum.at(most, query, rewards)
    np.minimum.at(least, query, rewards)
    is_rewarded = (most > least)[query] & (rewards == most[query]) & (rewards > model.usual_reward)
    steps = np.flatnonzero(is_rewarded)
    number = np.searchsorted(columns.offsets, steps, side="right") - 1
    lengths = steps + 1 - columns.offsets[number]
    scripts = dict[int, Script]()
    for at in np.lexsort([steps, lengths, -rewards[steps]]).tolist():
        step, length = int(steps[at]), int(lengths[at])
        if len(scripts) == MAX_TARGETS or length > MAX_LENGTH:
            break
        first, position = step + 1 - length, int(columns.starts[number[at]])
        scripts.setdefault(
            int(query[step]),
            Script(
                (int(columns.observations[position]), int(columns.labels[position])),
                tuple(columns.observations[position : position + length].tolist()),
                tuple(columns.actions[first : step + 1].tolist()),
            ),
        )
    return list(scripts.values())


def shorter_actions(model: EmpiricalModel, script: Script) -> Iterator[tuple[int, ...]]:
    """Yield the actions of an episode with a part replaced by a shorter path, large parts first."""
    observations, actions = script.observations, script.actions
    last = len(actions) - 1
    size = last
    while size:
        for begin in range(0, last - size + 1, size):
            yield from _replaced(model, script, begin, begin + size)
        size //= 2
    still = [step for step, pair in enumerate(pairwise(observations)) if pair[0] == pair[1]]
    for begin, end in pairwise([0, *still, last]):
        yield from _replaced(model, script, begin, end)


def script_labelings(
    model: EmpiricalModel, scripts: Sequence[Script]
) -> Iterator[LabelingFunction]:
    """Yield labels made of few pairs of action and observation that episodes cannot do without.

    First those of steps before the last one that change no observation, then those of the last one
    as well, then of all known steps with the same actions, and then of all steps of the episodes.
    """
    buffer = model.buffer

    def labeling(queries: Iterable[Query]) -> LabelingFunction:
        outcomes = (
            (
                buffer.actions[action],
                buffer.observations.values[model.last_outcome[observation, action]],
            )
            for observation, action in sorted(set(queries))
        )
        names: dict[Symbol, str | Label] = {
            source: ACTION_OBSERVATION.source_name(source) for source in outcomes
        }
        return LabelingFunction("action+observation", names)

    def is_silent(query: Query) -> bool:
        return model.last_outcome.get(query) == query[0]

    scripted = [[*zip(script.observations, script.actions, strict=True)] for script in scripts]
    silent = [query for steps in scripted for query in steps if is_silent(query)]
    actions = {action for _, action in silent}
    alike = [query for query in model.last_outcome if query[1] in actions and is_silent(query)]
    known = [query for steps in scripted for query in steps if query in model.last_outcome]
    yield labeling(query for steps in scripted for query in steps[:-1] if is_silent(query))
    yield labeling(silent)
    yield labeling(alike)
    yield labeling([*alike, *known])


def _replaced(
    model: EmpiricalModel, script: Script, begin: int, end: int
) -> Iterator[tuple[int, ...]]:
    path = _shortest_path(model, script.observations[begin], script.observations[end])
    if path is not None and len(path) < end - begin:
        yield (*script.actions[:begin], *path, *script.actions[end:])


def _shortest_path(model: EmpiricalModel, start: int, target: int) -> list[int] | None:
    """Return the actions that led from an observation to another one, whatever the states."""
    search = BreadthFirstSearch[int, int]([start])
    for observation in search:
        if observation == target:
            return [action for _, action in search.path_to(target)]
        for action in range(model.n_actions):
            outcome = model.last_outcome.get((observation, action))
            if outcome is not None and (observation, action) not in model.terminating:
                search.add(outcome, observation, action)
    return None

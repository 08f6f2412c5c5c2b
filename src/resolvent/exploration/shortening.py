"""Shorten rewarded episodes, to see which of their steps the reward depends on.

Input: the `LearnerState` and the state of an episode. Output: the next action of a trial, or None.

After a long search, any step before a reward may have been the one that mattered. So parts of the
shortest episode with the reward are replaced by shortest paths, the largest parts first (delta
debugging). What still leads to the reward is shorter; what does not shows that the part matters.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from resolvent.exploration.empirical_model import RESET, EmpiricalModel, Path
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.inference.context import ACTION_OBSERVATION
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.preprocess.labeling import LabelingFunction

SHORTEN: Final = "shortened episode"
MAX_TARGETS: Final = (
    4  # maximum number of queries with several rewards whose episodes are shortened
)
MAX_LENGTH: Final = 2_000  # maximum length of an episode that is shortened


class Script(NamedTuple):
    """The first observation and label of an episode, its actions, and their observations."""

    start: tuple[int, int]
    actions: tuple[int, ...]
    observations: tuple[int, ...] = ()


@dataclass
class Shortening:
    """The shortest rewarded episodes, the trials left of them, and the trial of each environment.

    `n_rewarded` is the number of unusual rewards for which the episodes are the shortest.
    """

    n_rewarded: int = -1
    scripts: list[Script] = field(default_factory=list)
    trials: Iterator[Script] = field(default_factory=lambda: iter(()))
    current: dict[int, tuple[int, ...]] = field(default_factory=dict)
    is_done: bool = False


def shorten(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the next step of a trial to shorten an episode, a reset after it, or None."""
    if not state.labels.are_made or state.all_rewards_equal:
        return None
    if state.selection.shortening is None:
        state.selection.shortening = Shortening()
    shortening, length = state.selection.shortening, episode.length
    if not length:
        trial = _next_trial(state, shortening)
        is_possible = trial is not None and trial.start == episode.recorded.start
        shortening.current[episode.index] = trial.actions if trial and is_possible else ()
    actions = shortening.current.get(episode.index, ())
    if not actions or tuple(episode.recorded.actions) != actions[:length]:
        return None
    if length == len(actions):
        return RESET
    return Path(((episode.row, actions[length]),), SHORTEN)


def _next_trial(state: LearnerState, shortening: Shortening) -> Script | None:
    model, buffer = state.present_model(), state.buffer
    rewards = np.frombuffer(buffer.closed.rewards, np.float64)
    n_rewarded = int((rewards != model.usual_reward).sum())
    if n_rewarded != shortening.n_rewarded:
        shortening.n_rewarded, scripts = n_rewarded, shortest_rewarded(state)
        if scripts != shortening.scripts:
            shortening.scripts = scripts
            shortening.trials = (
                trial
                for script in scripts
                for trial in shorter_scripts(model, script)
                if not buffer.has_episode(trial.start, trial.actions)
            )
    trial = next(shortening.trials, None)
    shortening.is_done = trial is None
    return trial


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
        position = int(columns.starts[number[at]])
        scripts.setdefault(
            int(query[step]),
            Script(
                (int(columns.observations[position]), int(columns.labels[position])),
                tuple(columns.actions[step + 1 - length : step + 1].tolist()),
                tuple(columns.observations[position : position + length].tolist()),
            ),
        )
    return list(scripts.values())


def shorter_scripts(model: EmpiricalModel, script: Script) -> Iterator[Script]:
    """Yield an episode with a part replaced by a shorter path, the large parts first."""
    start, actions, observations = script
    size = last = len(actions) - 1
    parts = list[tuple[int, int]]()
    while size:
        parts += [(begin, begin + size) for begin in range(0, last - size + 1, size)]
        size //= 2
    still = [step for step, pair in enumerate(pairwise(observations)) if pair[0] == pair[1]]
    for begin, end in (*parts, *pairwise([0, *still, last])):
        path = _shortest_path(model, observations[begin], observations[end])
        if path is not None and len(path) < end - begin:
            yield Script(start, (*actions[:begin], *path, *actions[end:]))


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


def script_labelings(
    model: EmpiricalModel, scripts: Iterable[Script]
) -> Iterator[LabelingFunction]:
    """Yield labels made of few pairs of action and observation that episodes cannot do without.

    First those of steps before the last one that change no observation, then those of the last one
    as well, then of all known steps with the same actions, and then of all steps of the episodes.
    """
    actions, observations = model.buffer.actions, model.buffer.observations.values
    steps = [[*zip(script.observations, script.actions, strict=True)] for script in scripts]
    silent = {query for query, outcome in model.last_outcome.items() if query[0] == outcome}
    scripted = {query for queries in steps for query in queries}
    alike = {query for query in silent if query[1] in {action for _, action in scripted & silent}}
    before = {query for queries in steps for query in queries[:-1]}
    known = scripted & model.last_outcome.keys()
    for queries in (before & silent, scripted & silent, alike, alike | known):
        sources = [
            (actions[action], observations[model.last_outcome[observation, action]])
            for observation, action in sorted(queries)
        ]
        names: dict[Any, Any] = {each: ACTION_OBSERVATION.source_name(each) for each in sources}
        yield LabelingFunction("action+observation", names)

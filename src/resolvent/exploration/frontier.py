"""Propose the unknown step with the highest use per step of its path.

An unknown step is of use if it could be better than the plan in some world that agrees with all
steps so far. It is of more use if that needs fewer assumptions, and if it may read a label that
was never read in the state.
"""

from collections.abc import Iterable
from typing import Final

from resolvent.exploration.empirical_model import ENDS, UNKNOWN, VARIES, EmpiricalModel
from resolvent.exploration.search import RESET, Path, Step, StepSearch
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.state_checks import (
    CHECK_STATE,
    distinguishing_query,
    nearest_informative,
)
from resolvent.exploration.values import RELIED_ON, USES, ValueBounds

UNREAD_USE: Final = 5.0
"""Use of a step that may read a label in a state where it was never read."""

LONG_CHECK, FEW_RESETS = 20, 8
"""Steps of a state check before which this number of episodes is begun, to see whether starts
differ."""

N_STARTS_RATED: Final = 4
"""Number of starts by which the use of another episode is estimated."""

RATED_APART: Final = 0.005
"""Share of known steps that have to be new before an estimate that was too low is repeated."""


def frontier(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path to the unknown step of most use, or to a check of the state before it."""
    model = state.present_model()
    state.refresh_bounds(fully=False)
    path = _most_useful(state, model, episode)
    if path is None and state.bounds_at != model.n_known:
        state.refresh_bounds()
        path = _most_useful(state, model, episode)
    is_long_check = path and path.purpose == CHECK_STATE and len(path.steps) >= LONG_CHECK
    are_starts_known = episode.length or state.selection.familiar_resets >= FEW_RESETS
    if is_long_check and not are_starts_known and not model.all_rewards_equal:
        return RESET
    return path


def _most_useful(state: LearnerState, model: EmpiricalModel, episode: EpisodeState) -> Path | None:
    here = most_useful_step(model, state.values, [episode.row])
    queries = model.queries_after.get(episode.context, set())
    if here is None:
        check = distinguishing_query(model, episode.row, queries)
        return check or _from_starts(state, model)
    check = nearest_informative(model, episode.row, queries, here.rate)
    if check is not None:
        return check
    # Another episode is worth it where far less has to be walked than from here.
    begun = episode.length > 0
    if len(model.starts) == 1:
        return (_from_starts(state, model, 1.5 * here.rate) if begun else None) or here
    may_leave = begun or any(row != UNKNOWN for row in model.next_row[episode.row])
    least = (1.5 if begun else 3.0) * here.rate
    is_useless = not may_leave or state.selection.are_resets_useless
    return here if is_useless or not _is_reset_better(state, model, least) else RESET


def _from_starts(state: LearnerState, model: EmpiricalModel, floor: float = 0.0) -> Path | None:
    if state.selection.are_resets_useless:
        return None
    return most_useful_step(model, state.values, model.starts, floor)


def _is_reset_better(state: LearnerState, model: EmpiricalModel, least: float) -> bool:
    """Return whether steps are of more use than `least` in another episode.

    A recent estimate may answer no; an estimate that answers yes is repeated.
    """
    bounds_at, known_then, rate = state.selection.start_rate
    is_recent = 0 <= model.n_known - known_then < RATED_APART * model.n_known
    if bounds_at == state.bounds_at and is_recent and rate <= least:
        return False
    rate = _start_rate(state, model)
    state.selection.start_rate = state.bounds_at, model.n_known, rate
    return rate > least


def _start_rate(state: LearnerState, model: EmpiricalModel) -> float:
    """Return the mean use per step from a few starts."""
    starts = list(model.starts)
    count = min(N_STARTS_RATED, len(starts))
    rates = []
    for number in range(count):
        start = starts[(state.buffer.episodes * count + number) * 7919 % len(starts)]
        path = most_useful_step(model, state.values, [start])
        rates.append(0.0 if path is None else path.rate)
    return sum(rates) / count


def most_useful_step(
    model: EmpiricalModel, values: ValueBounds, sources: Iterable[int], floor: float = 0.0
) -> Path | None:
    """Return the path with the highest use per step, above the floor, from one of the sources."""
    search = StepSearch[int](sources)
    best: Step | None = None
    rate, purpose = floor, ""
    next_row, nondeterministic, parents = model.next_row, model.nondeterministic, search.parents
    highest = _highest_use(model, values)
    for row in search:
        length = search.distance + 1
        if highest / length <= rate:
            break
        levels = values.levels(row)
        for action, target in enumerate(next_row[row]):
            if target == UNKNOWN:
                if not levels[action] or (row, action) in nondeterministic:
                    continue
                use, why = _use(model, values, row, action)
                if use / length > rate:
                    best, rate, purpose = (row, action), use / length, why
            elif target != ENDS and target not in parents:
                search.add(target, row, action)
    if best is None:
        return None
    best, purpose = _unless_terminating(model, values, best, purpose)
    steps = search.steps_to(*best)
    return Path(steps, rate * len(steps), purpose)


def _highest_use(model: EmpiricalModel, values: ValueBounds) -> float:
    """Return an upper bound on the use of any unknown step."""
    relied_on = values.relied_on
    while relied_on and model.next_row[relied_on[-1][0]][relied_on[-1][1]] != UNKNOWN:
        relied_on.pop()
    return RELIED_ON if relied_on else UNREAD_USE


def _unless_terminating(
    model: EmpiricalModel, values: ValueBounds, step: Step, purpose: str
) -> tuple[Step, str]:
    """Postpone a step that likely ends the episode while others here are of use."""
    row, observation = step[0], model.augmented_states[step[0]][0]
    if (observation, step[1]) not in model.terminating:
        return step, purpose
    most = 0.0
    for action, target in enumerate(model.next_row[row]):
        is_open = target == UNKNOWN and (row, action) not in model.nondeterministic
        if is_open and (observation, action) not in model.terminating:
            use, why = _use(model, values, row, action)
            if use > most:
                step, purpose, most = (row, action), why, use
    return step, purpose


def _use(model: EmpiricalModel, values: ValueBounds, row: int, action: int) -> tuple[float, str]:
    """Return the use of an unknown step, and its purpose."""
    level = values.levels(row)[action]
    if not level:
        return 0.0, ""
    observation, *states = model.augmented_states[row]
    outcome = model.last_outcome.get((observation, action))
    if outcome is not None:
        label = model.label_of.get(outcome, VARIES)
        if label >= 0 and model.machines.next_states(states, label) is None:
            return UNREAD_USE, "unread label"
    use, purpose = USES[level]
    if level == 2 and row < len(values.novelty):
        use = max(use * float(values.novelty[row, action]), USES[1][0])
    return use, purpose

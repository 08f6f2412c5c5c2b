"""Propose queries that check the state after a label.

Queries with another output in another state come first, until every other state is ruled out after
each label, and after two labels in a row.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from resolvent.exploration.empirical_model import UNKNOWN, Context, EmpiricalModel
from resolvent.exploration.search import RESET, Path, Step, StepSearch
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import Query

N_CHECKS: Final = 6
"""Number of queries that check the state after a label."""

N_PAIR_CHECKS: Final = 2
"""Number of queries that check the state after two labels in a row."""

ENOUGH_IF_DISTINCT: Final = 2
"""Number of queries that are enough if they rule out every other state."""

CHECK_USE: Final = 30.0
"""Use of a query that checks the state."""

CHECK_STATE: Final = "state check"

MAX_DISTANCE: Final = 1_000
"""Maximum number of steps to a query that checks the state."""

MAX_NODES: Final = 50_000
"""Maximum number of nodes of a search for two labels in a row."""

LONG_CHECK: Final = 20
"""Number of steps above which a check in another episode may be shorter."""

OtherState = tuple[int, int]
"""The number of a machine, and another state of it."""


def check_states(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path to a label with too few checks after it, from here or from a start."""
    model = state.present_model()
    given_up = state.selection.given_up
    here = unchecked_label(model, [episode.row], given_up)
    if _is_long(state, episode, here):
        there = unchecked_label(model, model.starts, set(given_up))
        if _is_far_shorter(there, here):
            return there
    return here


def check_pairs(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path to two labels in a row with too few checks after them.

    One more state may hide behind the first of them.
    """
    model, given_up = state.present_model(), state.selection.given_up_pairs
    path = unchecked_pair(model, episode.row, episode.context, given_up)
    if episode.length and _is_long(state, episode, path):
        for start in model.starts:
            begun = (-1, *model.start_symbols[start])
            there = unchecked_pair(model, start, begun, set(given_up))
            if _is_far_shorter(there, path):
                return RESET
    return path


def _is_long(state: LearnerState, episode: EpisodeState, path: Path | None) -> bool:
    """Return whether it may be shorter to begin another episode than to follow the path."""
    if state.selection.are_resets_useless:
        return False
    return path is None or (episode.length > 0 and len(path.steps) >= LONG_CHECK)


def _is_far_shorter(path: Path | None, alternative: Path | None) -> bool:
    if path is None or alternative is None:
        return path is not None
    return 1.5 * len(path.steps) <= len(alternative.steps)


def undistinguished_states(
    model: EmpiricalModel, states: Sequence[int], queries: Iterable[Query]
) -> list[OtherState]:
    """Return the other states of each machine that these queries have not ruled out."""
    return [
        (machine, state)
        for machine, size in enumerate(model.sizes)
        for state in range(size)
        if state != states[machine]
        and not any(distinguishes(model, states, (machine, state), query) for query in queries)
    ]


def distinguishes(
    model: EmpiricalModel, states: Sequence[int], other_state: OtherState, query: Query
) -> bool:
    """Return whether a machine has different outputs for a query in these and another state."""
    machine, state = other_state
    instead = [*states[:machine], state, *states[machine + 1 :]]
    output = model.machines.output(machine, states, query)
    other_output = model.machines.output(machine, instead, query)
    return output is not None and other_output is not None and output != other_output


def distinguishing_query(
    model: EmpiricalModel, row: int, queries: set[Query], n_checks: int = N_CHECKS
) -> Path | None:
    """Return the path to an informative query not in `queries`; None if these are enough.

    Queries that distinguish the states here from others not ruled out yet come first; without
    any, `n_checks` queries are enough.
    """
    done = queries & model.informative
    states = model.augmented_states[row][1:]
    candidates = undistinguished_states(model, states, done)
    needed = n_checks if candidates or max(model.sizes) == 1 else min(n_checks, ENOUGH_IF_DISTINCT)
    is_enough = len(done) >= needed
    if is_enough and not candidates:
        return None
    search = StepSearch[int]([row])
    first: Step | None = None
    for here, action in _informative_steps(model, search, queries):
        query = model.augmented_states[here][0], action
        if any(distinguishes(model, states, candidate, query) for candidate in candidates):
            return Path(search.steps_to(here, action), CHECK_USE, CHECK_STATE)
        if first is None and not is_enough:
            first = here, action
            if not candidates:
                break
    return None if first is None else Path(search.steps_to(*first), CHECK_USE, CHECK_STATE)


def nearest_informative(
    model: EmpiricalModel, row: int, queries: set[Query], floor: float
) -> Path | None:
    """Return the path to the nearest informative query not in `queries`, if these are too few.

    Its use per step has to be above the floor.
    """
    done = len(queries & model.informative)
    if done >= N_CHECKS:
        return None
    search = StepSearch[int]([row])
    use = CHECK_USE / (1 + done)
    step = next(_informative_steps(model, search, queries, use, floor), None)
    return None if step is None else Path(search.steps_to(*step), CHECK_USE, CHECK_STATE)


def _informative_steps(
    model: EmpiricalModel,
    search: StepSearch[int],
    queries: set[Query],
    use: float = CHECK_USE,
    floor: float = 0.0,
) -> Iterator[Step]:
    """Yield the steps with an informative query not in `queries`, the nearest first.

    Paths read only neutral labels, and end where the use per step is not above the floor.
    """
    for row in search:
        if use / (search.distance + 1) <= floor or search.distance > MAX_DISTANCE:
            return
        observation = model.augmented_states[row][0]
        for action, target in enumerate(model.next_row[row]):
            if target == UNKNOWN:
                continue
            query = observation, action
            if query not in queries and query in model.informative:
                yield row, action
            if target >= 0 and model.label_read[row][action] in model.neutral_labels:
                search.add(target, row, action)


def unchecked_label(
    model: EmpiricalModel, sources: Iterable[int], given_up: set[tuple[Context, int]]
) -> Path | None:
    """Return the shortest path to a label after which an informative query was never asked.

    `given_up` are finished contexts, each with its first row: if a label is read in several
    places, a query may be in reach of only one of them.
    """
    search = StepSearch[int](sources)
    for row in search:
        states = model.augmented_states[row][1:]
        for action, target in enumerate(model.next_row[row]):
            if target < 0:
                continue
            label = model.label_read[row][action]
            if label not in model.neutral_labels:
                context = (label, *states)
                if (context, target) not in given_up:
                    queries = model.queries_after.get(context, set())
                    rest = distinguishing_query(model, target, queries)
                    if rest is not None:
                        steps = search.steps_to(row, action) + rest.steps
                        return Path(steps, CHECK_USE, rest.purpose)
                    given_up.add((context, target))
            search.add(target, row, action)
    return None


def unchecked_pair(
    model: EmpiricalModel, row: int, context: Context, given_up: set[tuple[Context, int, int]]
) -> Path | None:
    """Return the shortest path to two labels in a row with too few checks after them."""
    search = StepSearch[tuple[int, Context]]([(row, context)], MAX_NODES)
    for node in search:
        here, before = node
        states = model.augmented_states[here][1:]
        for action, target in enumerate(model.next_row[here]):
            if target < 0:
                continue
            label, after = model.label_read[here][action], before
            if label not in model.neutral_labels:
                after = (label, *states)
                pair = before, label
                # After the start alone, the first label is a context already.
                if before[0] >= 0 and (*pair, target) not in given_up:
                    queries = model.queries_after_pair.get(pair, set())
                    rest = distinguishing_query(model, target, queries, N_PAIR_CHECKS)
                    if rest is not None:
                        steps = search.steps_to(node, action) + rest.steps
                        return Path(steps, CHECK_USE, rest.purpose)
                    given_up.add((*pair, target))
            search.add((target, after), node, action)
    return None

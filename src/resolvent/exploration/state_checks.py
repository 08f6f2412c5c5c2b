"""Propose queries that check the state after a label.

Queries with another output in another state come first, until every other state is ruled out after
each label, and after two labels in a row.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final

from resolvent.exploration.empirical_model import (
    RESET,
    UNKNOWN,
    Checked,
    Context,
    EmpiricalModel,
    Path,
    Step,
    StepSearch,
)
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import Query

N_CHECKS: Final = 6  # number of queries that check the state after a label
N_PAIR_CHECKS: Final = 2  # number of queries that check the state after two labels in a row
ENOUGH_IF_DISTINCT: Final = 2  # number of queries that are enough if they rule out all other states
CHECK_USE: Final = 30.0  # use of a query that checks the state
CHECK_STATE: Final = "state check"
MAX_DISTANCE: Final = 1_000  # maximum number of steps to a query that checks the state
MAX_NODES: Final = 50_000  # maximum number of nodes of a search for two labels in a row
LONG_CHECK: Final = 20  # number of steps above which a check in another episode may be shorter


def check_states(
    state: LearnerState, episode: EpisodeState, *, in_pairs: bool = False
) -> Path | None:
    """Return the path to a label with too few checks after it, from here or from a start.

    With `in_pairs`, it is two labels in a row: one more state may hide behind the first of them.
    """
    model, given_up = state.present_model(), state.selection.given_up
    here = unchecked(model, [(episode.row, episode.context)], given_up, in_pairs=in_pairs)
    is_long = here is None or (episode.length and len(here.steps) >= LONG_CHECK)
    may_reset = episode.length or not in_pairs
    if not is_long or not may_reset or state.selection.are_resets_useless:
        return here
    starts = [(start, (-1, *symbols)) for start, symbols in model.start_symbols.items()]
    there = unchecked(model, starts, set(given_up), in_pairs=in_pairs)
    if there is None or (here is not None and 1.5 * len(there.steps) > len(here.steps)):
        return here
    return RESET if in_pairs else there


def undistinguished_states(
    model: EmpiricalModel, states: Sequence[int], queries: Iterable[Query]
) -> list[tuple[int, int]]:
    """Return machine and number of the other states that these queries have not ruled out."""
    return [
        (machine, state)
        for machine, size in enumerate(model.sizes)
        for state in range(size)
        if state != states[machine]
        and not any(distinguishes(model, states, (machine, state), query) for query in queries)
    ]


def distinguishes(
    model: EmpiricalModel, states: Sequence[int], other_state: tuple[int, int], query: Query
) -> bool:
    """Return whether a machine has different outputs for a query in these and another state."""
    machine, state = other_state
    instead = [*states[:machine], state, *states[machine + 1 :]]
    output, other = (model.machines.output(machine, each, query) for each in (states, instead))
    return None not in (output, other) and output != other


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
            return search.path(here, action, CHECK_STATE)
        if first is None and not is_enough:
            first = here, action
            if not candidates:
                break
    return None if first is None else search.path(*first, CHECK_STATE)


def nearest_informative(
    model: EmpiricalModel, row: int, queries: set[Query], floor: float
) -> Path | None:
    """Return the path to the nearest informative query not in `queries`, if these are too few.

    Its use per step has to be above the floor.
    """
    done = len(queries & model.informative)
    search, use = StepSearch[int]([row]), CHECK_USE / (1 + done)
    steps = _informative_steps(model, search, queries, use, floor)
    step = next(steps, None) if done < N_CHECKS else None
    return None if step is None else search.path(*step, CHECK_STATE)


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


def unchecked(
    model: EmpiricalModel,
    sources: Iterable[tuple[int, Context]],
    given_up: set[tuple[Checked, int]],
    *,
    in_pairs: bool,
) -> Path | None:
    """Return the shortest path to a label, or to two in a row, with too few checks afterwards.

    Sources are rows with their contexts. `given_up` are finished contexts or pairs, each with its
    first row: if a label is read in several places, a query may be in reach of only one of them.
    """
    queries_after = model.queries_after_pair if in_pairs else model.queries_after
    limit, n_checks = (MAX_NODES, N_PAIR_CHECKS) if in_pairs else (inf, N_CHECKS)
    # Where contexts do not matter, the row alone is a node, which is faster.
    search = StepSearch[Any](sources if in_pairs else (row for row, _ in sources), limit)
    neutral = model.neutral_labels
    for node in search:
        here: int = node[0] if in_pairs else node
        before: Context = node[1] if in_pairs else ()
        labels = model.label_read[here]
        for action, target in enumerate(model.next_row[here]):
            if target < 0:
                continue
            label, after = labels[action], before
            if label not in neutral:
                context = label, *model.augmented_states[here][1:]
                checked: Checked = (before, label) if in_pairs else context
                after = context
                # After the start alone, the first label is a context already.
                is_start = in_pairs and before[0] < 0
                if not is_start and (checked, target) not in given_up:
                    queries = queries_after.get(checked, set())
                    rest = distinguishing_query(model, target, queries, n_checks)
                    if rest is not None:
                        return Path(search.steps_to(node, action) + rest.steps, CHECK_STATE)
                    given_up.add((checked, target))
            reached = (target, after) if in_pairs else target
            if reached not in search.parents:
                search.add(reached, node, action)
    return None

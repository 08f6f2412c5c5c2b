"""A world's tables → its true machines, for tests and comparisons.

Nothing is inferred: the states of a machine are the memory that the world's author
defined, and its tables are read off the world. An error is raised if they are not
functions. In a world that slips, machines describe steps without slips; where chance
decides and the memory does not determine the outcome, they give the most frequent output
over all true states and chances.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import (
    MachinePair,
    RewardMachine,
    Termination,
    TransitionMachine,
    Vocabularies,
    machine_of_tables,
)
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_pairs

if TYPE_CHECKING:
    from resolvent.worlds.mechanics import Mechanics

Column = tuple[Vocabulary[Any], Codes]
"""Values, and their codes by state, or by state and realized action."""


def true_pair(world: "Mechanics", timing: LabelTiming) -> MachinePair:
    """Read both machines off a world; the Reward Machine is supplemented."""
    if timing.lag:
        raise ModelError("a world's true machines cannot read labels late: use another timing")
    observations = Vocabulary(world.observations)
    transition, q = _machine(
        TransitionMachine,
        world,
        timing,
        world.transition_memory,
        observed=(observations, world.observation_of),
        output=(observations, world.observation_of[world.next_state]),
    )
    # Where episodes are over the state is −1, and there are no queries.
    seen = world.observation_of[: world.live]
    sizes = len(world.observations), transition.states
    pair_keys, paired = distinct_pairs(seen, q[: world.live], *sizes)
    pairs = (divmod(key, transition.states) for key in pair_keys.tolist())
    rewards, reward_codes = world.reward_codes
    reward, u = _machine(
        RewardMachine,
        world,
        timing,
        world.reward_memory,
        observed=(Vocabulary((world.observations[o], state) for o, state in pairs), paired),
        output=(Vocabulary(rewards), reward_codes),
    )
    return MachinePair(transition, reward, timing, termination=_termination(world, q, u))


def _machine(
    kind: type[Any],
    world: "Mechanics",
    timing: LabelTiming,
    memory: Codes,
    *,
    observed: Column,
    output: Column,
) -> tuple[Any, Codes]:
    """Return a machine, and its state in every true state from which episodes continue."""
    live, actions = slice(world.live), len(world.actions)
    continues = ~world.ends[live]
    reached = world.next_state[live][continues]
    read, targets = _function(
        f"the {kind.name} memory",
        np.repeat(memory[live], continues.sum(axis=1)).astype(np.int64) * len(world.labels)
        + world.label_of[reached],
        memory[reached],
    )
    table = np.full((int(memory.max()) + 1, len(world.labels)), -1, np.int32)
    table.ravel()[read] = targets
    table, initial = _with_initial(table, world, timing, memory)
    action_of = np.arange(world.next_state.shape[1]) // world.chances
    query = observed[1][live, None].astype(np.int64) * actions + action_of
    n_queries = len(observed[0]) * actions
    samples = (memory[live, None] * n_queries + query).ravel(), output[1][live].ravel()
    keys, outputs = (
        _most_frequent(*samples)
        if world.uncertain
        else _function(f"the output of the {kind.name} machine", *samples)
    )
    machine, number = machine_of_tables(
        kind,
        Vocabularies(Vocabulary(world.labels), observed[0], Vocabulary(world.actions), output[0]),
        table,
        (keys // n_queries, keys % n_queries, outputs),
        initial=initial,
        trivial=_trivial(table, world),
        **({"supplemented": True} if kind is RewardMachine else {}),
    )
    return machine, number[memory]


def _function(what: str, keys: NDArray[np.int64], values: Codes) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct keys, each with its only value."""
    distinct, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if np.any(values[first][inverse] != values):
        raise ModelError(f"{what} does not follow from the memory that this world defines")
    return distinct, values[first]


def _most_frequent(keys: NDArray[np.int64], values: Codes) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct keys, each with its most frequent value, the lowest in a tie."""
    pairs, counts = np.unique(np.stack([keys, values]), axis=1, return_counts=True)
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    distinct, first = np.unique(pairs[0][order], return_index=True)
    return distinct, pairs[1][order][first].astype(np.int32)


def _with_initial(
    table: Codes, world: "Mechanics", timing: LabelTiming, memory: Codes
) -> tuple[Codes, int]:
    """Return the table, with the first labels if the timing reads them, and the initial state."""
    starts = np.unique(world.starts)
    if timing.first > 0:
        if len(distinct := np.unique(memory[starts])) > 1:
            raise ModelError("episodes begin with different memories: read their first labels")
        return table, int(distinct[0])
    # No query comes before the first label, so the initial state may be any that fits.
    grown = np.vstack([table, np.full((1, table.shape[1]), -1, np.int32)])
    for initial in range(len(grown)):
        trial = grown.copy()
        labels, targets = world.label_of[starts], memory[starts]
        free = (trial[initial, labels] == -1) | (trial[initial, labels] == targets)
        trial[initial, labels] = targets
        if free.all() and np.array_equal(trial[initial, labels], targets):
            return trial, initial
    raise ModelError("episodes that begin with the same label have different memories")


def _trivial(table: Codes, world: "Mechanics") -> tuple[int, ...]:
    """Return the code of "no event" if it never changes a state."""
    states = np.arange(len(table))
    return tuple(
        code
        for code, label in enumerate(world.labels)
        if label == NO_EVENT and np.all((table[:, code] == -1) | (table[:, code] == states))
    )


def _termination(world: "Mechanics", q: Codes, u: Codes) -> Termination:
    ended: dict[Any, set[bool]] = {}
    by_action = world.ends.reshape(world.states, len(world.actions), world.chances)
    for state, action in np.ndindex(world.live, len(world.actions)):
        observation = world.observations[int(world.observation_of[state])]
        key = (observation, int(q[state]), int(u[state]), world.actions[action])
        ended.setdefault(key, set()).update(by_action[state, action].tolist())
    return Termination(
        frozenset(key for key, seen in ended.items() if seen == {True}),
        frozenset(key for key, seen in ended.items() if len(seen) > 1),
    )

"""The recipe for random grid worlds: a seed → a world that traces can explain.

Paper: the appendix "Ablation Study Environment Generation".
"""

from itertools import combinations

import numpy as np

from resolvent.errors import OptionError
from resolvent.worlds.grid_world import MOVES, GridWorld

# The paper does not say how likely an RM edge is. Few ways forward and many back
# make traces nearly as long as the paper's.
_FORWARD_CHANCE = 0.1
_BACK_CHANCE = 0.9

_DRAWS = 1_000


def random_grid_world(
    seed: int,
    size: int = 25,
    labels: int = 5,
    tm_states: int = 7,
    rm_states: int = 3,
    blocked_share: float = 0.3,
) -> GridWorld:
    """Draw a world whose machines are minimal and can be distinguished by walking.

    The defaults are the paper's. Labels lie on all cells with both coordinates
    odd. Draws that fall short are rejected, so the same seed gives the same world.

    >>> world = random_grid_world(0)
    >>> len(world.tm_transitions), len(world.rm_transitions), world == random_grid_world(0)
    (7, 3, True)
    """
    _check(seed, size, labels, tm_states, rm_states, blocked_share)
    for attempt in range(1, _DRAWS + 1):
        rng = np.random.default_rng([seed, attempt])
        label_at = _labels(rng, size, labels)
        world = GridWorld(
            size,
            label_at,
            _transition_machine(rng, tm_states, labels),
            _blocked(rng, label_at, tm_states, blocked_share),
            *_reward_machine(rng, rm_states, labels),
        )
        if shortcoming(world) is None:
            return world
    raise OptionError(
        f"no sound world in {_DRAWS:,} draws: {shortcoming(world)}; "
        "use more labels, fewer states or a larger grid"
    )


def _check(
    seed: int, size: int, labels: int, tm_states: int, rm_states: int, blocked_share: float
) -> None:
    least = {"seed": (seed, 0), "size": (size, 1), "labels": (labels, 1)}
    least |= {"tm_states": (tm_states, 1), "rm_states": (rm_states, 2)}
    for name, (value, smallest) in least.items():
        if value < smallest:
            raise OptionError(f"{name}={value}: use at least {smallest}")
    if not 0 <= blocked_share <= 1:
        raise OptionError(f"blocked_share={blocked_share}: use a share from 0 to 1")


def shortcoming(world: GridWorld) -> str | None:
    """Return why traces cannot show that these machines are minimal, or None if they can.

    Any two states of a machine must answer differently to some observation and
    action that occur in both: partition refinement that ends in one round.
    """
    rm_reached: set[int] = set()
    ahead = {0}
    while ahead:
        rm_reached |= ahead
        ahead = {v for u in ahead for v in world.rm_transitions[u]} - rm_reached
    if len(rm_reached) <= world.terminal:
        return "an RM state cannot be reached"

    following, reward, reached = world.tables
    cells, tm_states = len(world.label_at), len(world.tm_transitions)
    shape = (world.terminal, tm_states, cells, len(MOVES))
    running = reached[: len(following)].reshape(shape[:-1])
    if not running.any(axis=(0, 2)).all():
        return "a TM state cannot be reached"

    occurs = np.logical_or.reduce(running, axis=0)
    cell_after = following.reshape(shape)[0] % cells
    for q, p in combinations(range(tm_states), 2):
        differ = (cell_after[q] != cell_after[p]).any(axis=-1)
        if not (differ & occurs[q] & occurs[p]).any():
            return "two TM states cannot be told apart"
    paid = reward.reshape(shape)
    for u, v in combinations(range(world.terminal), 2):
        differ = (paid[u] != paid[v]).any(axis=-1)
        if not (differ & running[u] & running[v]).any():
            return "two RM states cannot be told apart"

    can_end = np.arange(len(reached)) >= len(following)
    while (grown := can_end[following].any(axis=1) & ~can_end[: len(following)]).any():
        can_end[: len(following)] |= grown
    return None if can_end[reached].all() else "an episode may never end"


def _labels(rng: np.random.Generator, size: int, labels: int) -> tuple[int | None, ...]:
    axis = range(size + 1)
    return tuple(int(rng.integers(labels)) if x % 2 and y % 2 else None for x in axis for y in axis)


def _transition_machine(
    rng: np.random.Generator, states: int, labels: int
) -> tuple[tuple[int, ...], ...]:
    """A cycle through all states, then a random target for every other (state, label).

    The paper adds extra random transitions first and completes later; both give
    a free (state, label) a random target, so one draw does the two.
    """
    table = rng.integers(states, size=(states, labels))
    table[np.arange(states), rng.integers(labels, size=states)] = np.arange(1, states + 1) % states
    return tuple(map(tuple, table.tolist()))


def _blocked(
    rng: np.random.Generator, label_at: tuple[int | None, ...], states: int, share: float
) -> tuple[frozenset[int], ...]:
    """For each TM state a share of the labelled cells, none of them in every state."""
    labelled = [observation for observation, label in enumerate(label_at) if label is not None]
    count = int(share * len(labelled))
    draws = (rng.choice(labelled, count, replace=False).tolist() for _ in range(states))
    blocked = [set(draw) for draw in draws]
    for cell in set.intersection(*blocked):
        blocked[rng.integers(states)].remove(cell)
    return tuple(map(frozenset, blocked))


def _reward_machine(
    rng: np.random.Generator, states: int, labels: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]:
    """Forward edges that pay, back edges that cost more: transitions and rewards."""
    terminal = states - 1
    edges: list[dict[int, tuple[int, float]]] = [{} for _ in range(states)]

    def add(source: int, target: int, reward: float) -> None:
        free = [label for label in range(labels) if label not in edges[source]]
        if free:  # with few labels, some edges find none left
            edges[source][int(rng.choice(free))] = (target, round(reward, 2))

    def add_forward(source: int, target: int) -> None:
        low, high = (1.0, 2.0) if target == terminal else (0.01, 1.0)
        add(source, target, rng.uniform(low, high))

    for source in range(terminal):
        for target in range(source + 1, states):
            if rng.random() < _FORWARD_CHANCE:
                add_forward(source, target)
        # Edges only go up so far, so a dead end is a state without any.
        if not edges[source]:
            add_forward(source, terminal)

    # The most that any way up can pay short of the terminal state. Each back edge
    # costs more than that, so a cycle of any number of them loses on the whole.
    most = [0.0] * states
    for source in reversed(range(terminal)):
        for target, reward in edges[source].values():
            if target != terminal:
                most[source] = max(most[source], reward + most[target])
    for source in range(terminal):
        for target in range(source):
            if rng.random() < _BACK_CHANCE:
                add(source, target, -max(most) - rng.uniform(0.5, 5.0))

    rows = [
        [edges[source].get(label, (source, 0.0)) for label in range(labels)]
        for source in range(states)
    ]
    return (
        tuple(tuple(target for target, _ in row) for row in rows),
        tuple(tuple(reward for _, reward in row) for row in rows),
    )

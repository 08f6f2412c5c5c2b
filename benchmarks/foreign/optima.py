"""Environments of other projects → the return of the best policy that sees their whole state."""

import copy
from collections import deque
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

GAMMA = 0.95
_CLOSE = 1e-12


def best_of_tables(env: gym.Env[Any, Any], starts: Sequence[Any]) -> float:
    """Value iteration over the tables that Gymnasium's toy environments carry along.

    The mean over the states that episodes began in, where these are shown, and otherwise
    over those in which they may begin.
    """
    world: Any = env.unwrapped
    values = np.zeros(len(world.P))
    while True:
        better = np.array([_best(world.P[state], values) for state in range(len(values))])
        if np.abs(better - values).max() < _CLOSE:
            break
        values = better
    shown = env.observation_space == world.observation_space
    return float(values[list(starts)].mean() if shown else values @ world.initial_state_distrib)


def _best(actions: dict[int, list[tuple[float, int, float, bool]]], values: Any) -> float:
    return max(
        sum(
            chance * (pay + GAMMA * values[after] * (not ends))
            for chance, after, pay, ends in leads
        )
        for leads in actions.values()
    )


def best_of_taxi(env: gym.Env[Any, Any], starts: Sequence[Any]) -> float:
    """Value iteration over where the taxi is, where to go, and where the passenger may be.

    Nobody sees the passenger, who waits at first at any depot but the destination. Picking up
    where nobody is tells that, and costs; so this is the best there is without seeing more.
    """
    depots = [env.get_wrapper_attr("locs")[at] for at in range(4)]
    table = env.unwrapped.get_wrapper_attr("P")
    inside = 16  # besides the sets of depots at which the passenger may be

    def place(seen: int) -> tuple[int, int]:
        return divmod(seen // 4, 5)

    def lead(seen: int, passenger: int, action: int) -> tuple[int, int, float, bool]:
        """Return what is seen then, where the passenger is, the pay, and whether it ends."""
        state = seen // 4 * 20 + passenger * 4 + seen % 4
        ((_, after, pay, ends),) = table[state][action]
        return after // 20 * 4 + after % 4, after // 4 % 5, pay, ends

    def worth(seen: int, belief: int, action: int, values: Any) -> float:
        if belief == inside:
            after, now, pay, ends = lead(seen, 4, action)
            belief = inside if now == 4 else 1 << now
            return pay + GAMMA * values[after, belief] * (not ends)
        here = next((at for at in range(4) if depots[at] == place(seen)), 4)
        among = [at for at in range(4) if belief >> at & 1]
        if action != 4 or here not in among:
            after, _, pay, _ = lead(seen, among[0], action)
            return pay + GAMMA * values[after, belief]
        after, _, pay, _ = lead(seen, here, action)
        taken = pay + GAMMA * values[after, inside]
        if len(among) == 1:
            return taken
        other = next(at for at in among if at != here)
        after, _, pay, _ = lead(seen, other, action)
        missed = pay + GAMMA * values[after, belief & ~(1 << here)]
        return (taken + (len(among) - 1) * missed) / len(among)

    values = np.zeros((100, inside + 1))
    while True:
        better = np.array(
            [
                [0.0] + [max(worth(seen, b, a, values) for a in range(6)) for b in range(1, 17)]
                for seen in range(100)
            ]
        )
        if np.abs(better - values).max() < 1e-6:
            return float(np.mean([values[seen, 15 & ~(1 << seen % 4)] for seen in starts]))
        values = better


def best_of_cards(env: gym.Env[Any, Any], starts: Sequence[Any]) -> float:
    """Name the right card at every step from the one on that there is something to name."""
    steps = env.unwrapped.max_episode_length
    first = max(getattr(env.unwrapped, "k", 1) - 1, 0)
    return sum(GAMMA**step for step in range(first, steps)) / (steps - first)


def best_of_minigrid(env: gym.Env[Any, Any], starts: Sequence[Any]) -> float:
    """Breadth-first search for the goal in each of the layouts; being there is worth 1."""
    layouts = env.get_wrapper_attr("seeds")
    return sum(GAMMA ** (_shortest(env.unwrapped, seed) - 1) for seed in layouts) / len(layouts)


def _shortest(world: Any, seed: int) -> int:
    first = copy.deepcopy(world)
    first.reset(seed=seed)
    seen, queue = {first.hash()}, deque([(first, 0)])
    while queue:
        before, steps = queue.popleft()
        for action in range(before.action_space.n):
            after = copy.deepcopy(before)
            _, pay, terminated, _, _ = after.step(action)
            if pay > 0:
                return steps + 1
            if not terminated and after.hash() not in seen:
                seen.add(after.hash())
                queue.append((after, steps + 1))
    raise ValueError(f"nothing is paid in the layout of seed {seed}")

"""Planning in plain Python: models by walking, values by sweeping, for tests to compare with.

Nothing here calls the code under test but for the two queries one can put to a
machine, `step` and `output`.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from itertools import product
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from resolvent.machines import UNSEEN, Machine, Machines
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from worlds import MOVES, World

Step = tuple[float, Any] | None
"""Reward and next situation (None where the episode ends), or None where it is not known."""

NaiveModel = dict[Any, dict[Any, Step]]


def labels_read_after(trace: Any, timing: LabelTiming) -> list[Any]:
    """The label read between the answers to step t and to step t + 1."""
    return list(trace.labels[:-1] if timing is LabelTiming.LAGGED else trace.labels[1:])


def naive_model(
    machines: Machines, traces: TraceSet, trust: bool = False
) -> tuple[NaiveModel, Counter[Any]]:
    """What happens in every situation that can be reached, and how often traces begin where.

    Situations are an observation and the states of all machines. Labels must be a
    function of the observation.
    """
    label_of: dict[Any, Any] = {}
    ended: dict[Any, list[bool]] = {}
    asked: set[Any] = set()
    starts: Counter[Any] = Counter()
    for trace in traces:
        states = tuple(0 for _ in machines)
        if machines.timing is LabelTiming.CURRENT_WITH_INITIAL:
            states = _read(machines, states, trace.labels[0])
        starts[trace.observations[0], *states] += 1
        first = 1 if machines.timing is LabelTiming.CURRENT else 0
        for o, label in list(zip(trace.observations, trace.labels, strict=True))[first:]:
            assert label_of.setdefault(o, label) == label
        for t, label in enumerate(labels_read_after(trace, machines.timing)):
            o, a = trace.observations[t], trace.actions[t]
            for machine, state in zip(machines.values(), states, strict=True):
                asked.add((machine.name, state, _seen(machine, o, states), a))
            over = trace.terminated and t == len(trace) - 1
            ended.setdefault((o, states, a), []).append(over)
            ended.setdefault((o, a), []).append(over)
            states = _read(machines, states, label)

    def answer(kind: str, o: Any, states: Any, a: Any) -> Any:
        machine, state = machines[kind], states[list(machines).index(kind)]
        seen = _seen(machine, o, states)
        constant = (seen, a) in machine.constant_outputs
        told = trust or not constant or (kind, state, seen, a) in asked
        return machine.output(state, seen, a) if told else UNSEEN

    def over(o: Any, states: Any, a: Any) -> Any:
        """Whether a step ends the episode, UNSEEN where nobody knows."""
        if "terminated" in machines:
            return answer("terminated", o, states, a)
        found = set(ended.get((o, states, a)) or ended.get((o, a), [False]))
        return found.pop() if len(found) == 1 else UNSEEN

    def step(here: Any, a: Any) -> Step:
        o, *own = here
        states = tuple(own)
        paid, ends = answer("reward", o, states, a), over(o, states, a)
        if paid is UNSEEN or ends is UNSEEN:
            return None
        if ends:
            return paid, None
        following = answer("transition", o, states, a)
        if following is UNSEEN:
            return None
        label = label_of[o if machines.timing is LabelTiming.LAGGED else following]
        after = _read(machines, states, label)
        return None if UNSEEN in after else (paid, (following, *after))

    actions = list(traces.actions)
    model: NaiveModel = {}
    ahead = list(starts)
    while ahead:
        here = ahead.pop()
        if here not in model:
            model[here] = {a: step(here, a) for a in actions}
            ahead += [found[1] for found in model[here].values() if found and found[1]]
    return model, starts


def _read(machines: Machines, states: tuple[Any, ...], label: Any) -> tuple[Any, ...]:
    both = zip(machines.values(), states, strict=True)
    return tuple(machine.step(state, label) for machine, state in both)


def _seen(machine: Machine, o: Any, states: tuple[Any, ...]) -> Any:
    return (o, states[0]) if machine.supplemented else o


def best_values(
    states: Mapping[Any, Mapping[Any, tuple[float, Any]]], gamma: float
) -> dict[Any, float]:
    """Sweep until nothing moves by more than rounding: the worth of each state."""
    value = dict.fromkeys(states, 0.0)
    for _ in range(20_000):
        change = 0.0
        for state, steps in states.items():
            best = max(
                reward + (0.0 if following is None else gamma * value[following])
                for reward, following in steps.values()
            )
            change = max(change, abs(best - value[state]))
            value[state] = best
        if change < 1e-14:
            return value
    raise AssertionError("the sweeps do not settle")


class Truth(dict[Any, dict[Any, tuple[float, Any]]]):
    """The true states of a world, with what each action pays there and leads to."""

    def __init__(
        self, starts: list[Any], actions: Any, step: Callable[[Any, Any], tuple[float, Any]]
    ) -> None:
        super().__init__()
        self.starts = starts
        ahead = list(starts)
        while ahead:
            state = ahead.pop()
            if state not in self:
                self[state] = {a: step(state, a) for a in actions}
                ahead += [one for _, one in self[state].values() if one is not None]


def truth_of_world(world: World) -> Truth:
    def step(state: Any, action: int) -> tuple[float, Any]:
        following, q, u, reward = world.step(*state, action)
        return reward, None if u == world.terminal else (following, q, u)

    return Truth([(start, 0, 0) for start in world.starts], range(len(MOVES)), step)


def truth_of_rules(rules: Any) -> Truth:
    """Walk by a world's own rules, from one true state to the next."""

    def step(state: Any, action: str) -> tuple[float, Any]:
        after, reward, over = rules.step(state, rules.actions.index(action))
        return reward, None if over else after

    return Truth(list(rules.starts()), rules.actions, step)


class WorldEnv(gym.Env[int, int]):
    """A random grid world to act in; `start` says where, else the seed does."""

    def __init__(self, world: World, start: int | None = None) -> None:
        self.world, self.start = world, start
        self.observation_space = spaces.Discrete(len(world.label_at))
        self.action_space = spaces.Discrete(len(MOVES))

    def told(self) -> dict[str, Any]:
        label = self.world.label_at[self.state[0]]
        return {"labels": set() if label is None else {str(label)}}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        start = self.start
        if start is None:
            start = int(self.np_random.choice(self.world.starts))
        self.state = (start, 0, 0)
        return start, self.told()

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        *state, reward = self.world.step(*self.state, int(action))
        self.state = (state[0], state[1], state[2])
        return state[0], reward, state[2] == self.world.terminal, False, self.told()


def agrees(model: Any, truth: Truth, seen: Callable[[Any], Hashable], starts: list[Any]) -> bool:
    """Whether every known step of a model is what truly happens, walking both together.

    `starts` are pairs of a situation's number and the true state it stands for.
    """
    met, ahead = set(starts), list(starts)
    while ahead:
        here, state = ahead.pop()
        for code, action in enumerate(model.actions):
            if not model.known[here, code]:
                continue
            reward, after = truth[state][action]
            if model.reward[here, code] != reward or model.ends[here, code] != (after is None):
                return False
            if after is None:
                continue
            there = int(model.next_state[here, code])
            if model.augmented_state(there)[0] != seen(after):
                return False
            if (there, after) not in met:
                met.add((there, after))
                ahead.append((there, after))
    return True


def all_policies(situations: int, actions: int) -> Any:
    """Every way to choose one action for each situation."""
    return product(range(actions), repeat=situations)

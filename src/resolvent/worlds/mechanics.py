"""A world over its true states: rules in, tables out.

The built-in environments step by these tables; whole rollouts, exact values and the true
machines are computed from them. An agent never sees a true state, only its observation and label.

All chance is drawn before a step, never by the rules: the executed action (`slip`) and one of
several equally likely outcomes (`chances`). Both together are a *realized* action, whose result is
deterministic: its number is action · chances + outcome.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import ModelError, TraceError
from resolvent.machines import (
    MachinePair,
    RewardMachine,
    Termination,
    TransitionMachine,
    Vocabularies,
    machine_of_tables,
)
from resolvent.machines.machine import machine_name
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import NO_EVENT, Label, Symbol, label_order, symbol_order
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_pairs

S = TypeVar("S", bound=Hashable)

_FIRST_BLOCK, _LARGEST_BLOCK = 1 << 12, 1 << 20  # actions that rollouts draw at a time
_ROUNDING = 1e-14  # share of the largest value by which expected values may still change


class Rules(ABC, Generic[S]):
    """The rules of a world, one true state at a time; both memories are empty by default."""

    actions: Sequence[str]

    @abstractmethod
    def starts(self) -> Sequence[S]:
        """Return the initial states of episodes, all equally likely."""

    @abstractmethod
    def step(self, state: S, action: int) -> tuple[S, float, bool]:
        """Return the next state, the reward, and whether the episode ends.

        In a world with several chances, `action` is a realized action.
        """

    @abstractmethod
    def observation(self, state: S) -> Symbol:
        """Return the agent's observation."""

    def label(self, state: S) -> Label:
        """Return the events that hold in a state."""
        return NO_EVENT

    def transition_memory(self, state: S) -> Hashable:
        """Return the memory that, with the observation, determines the next observation."""
        return None

    def reward_memory(self, state: S) -> Hashable:
        """Return the memory that, with observation and TM state, determines the reward."""
        return None


@dataclass(frozen=True, eq=False)
class Mechanics:
    """A world as tables; true states are 0 … n−1.

    `observation_of`, `label_of`, `transition_memory` and `reward_memory` are indexed by
    state; `next_state`, `reward` and `ends` by state and realized action. Episodes continue only
    from the first `live` states. `true_states` are the states as the rules name them, if rules
    made the tables.

    With probability `slip` one of the other actions is executed, all equally likely; then one of
    `chances` equally likely outcomes happens. If `uncertain`, the memory does not determine every
    output, and the true machines give the most frequent one.
    """

    observations: Sequence[Symbol]
    labels: Sequence[Label]
    actions: Sequence[str]
    observation_of: Codes
    label_of: Codes
    next_state: Codes
    reward: NDArray[np.float64]
    ends: NDArray[np.bool_]
    starts: Codes
    transition_memory: Codes
    reward_memory: Codes
    live: int
    true_states: Sequence[Any] = ()
    slip: float = 0.0
    chances: int = 1
    uncertain: bool = False

    @classmethod
    def explore(
        cls,
        rules: Rules[Any],
        *,
        chances: int = 1,
        uncertain: bool = False,
        observations: Sequence[Symbol] = (),
    ) -> "Mechanics":
        """Number all states reachable from the starts, breadth-first.

        `observations` are in the order of their codes, by default sorted.
        """
        realized_actions = range(len(rules.actions) * chances)
        starts = rules.starts()
        live = list(dict.fromkeys(starts))
        number = {state: code for code, state in enumerate(live)}
        steps: list[tuple[Any, float, bool]] = []
        for state in live:
            for action in realized_actions:
                target, reward, ended = rules.step(state, action)
                if not ended and target not in number:
                    number[target] = len(live)
                    live.append(target)
                steps.append((target, reward, ended))
        for target, _, _ in steps:
            number.setdefault(target, len(number))
        states = list(number)
        for state in states[len(live) :]:  # where episodes are over
            steps += [(state, 0.0, True)] * len(realized_actions)
        targets, rewards, ends = zip(*steps, strict=True)
        shape = (len(states), len(realized_actions))
        by_code = observations.index if observations else symbol_order
        observations, observation_of = _coded(states, rules.observation, by_code)
        labels, label_of = _coded(states, rules.label, label_order)
        return cls(
            observations=observations,
            labels=labels,
            actions=tuple(rules.actions),
            observation_of=observation_of,
            label_of=label_of,
            next_state=np.array([number[target] for target in targets], np.int32).reshape(shape),
            reward=np.array(rewards, float).reshape(shape),
            ends=np.array(ends, bool).reshape(shape),
            starts=np.array([number[state] for state in starts], np.int32),
            transition_memory=_coded(states, rules.transition_memory)[1],
            reward_memory=_coded(states, rules.reward_memory)[1],
            live=len(live),
            true_states=tuple(states),
            chances=chances,
            uncertain=uncertain or chances > 1,
        )

    @property
    def states(self) -> int:
        """The number of true states."""
        return len(self.observation_of)

    def machines(self, timing: LabelTiming = LabelTiming.CURRENT) -> MachinePair:
        """Return the true machines of the world, as complete traces would show them.

        States are the memory that the rules define; it is an error if outputs do not follow from
        it. With slips, machines describe steps without; if `uncertain`, they give the most
        frequent output over all true states and chances.
        """
        if timing.lag:
            raise ModelError("a world's true machines cannot read labels late: use another timing")
        observations = Vocabulary(self.observations)
        observed = observations, self.observation_of
        output = observations, self.observation_of[self.next_state]
        memory = self.transition_memory
        transition, q = _machine(TransitionMachine, self, timing, memory, observed, output)
        # Where episodes are over the state is −1, and there are no queries.
        seen = self.observation_of[: self.live]
        sizes = len(self.observations), transition.states
        pair_keys, paired = distinct_pairs(seen, q[: self.live], *sizes)
        pairs = (divmod(key, transition.states) for key in pair_keys.tolist())
        rewards, reward_codes = self.reward_codes
        observed = Vocabulary((self.observations[o], state) for o, state in pairs), paired
        output = Vocabulary(rewards), reward_codes
        reward, u = _machine(RewardMachine, self, timing, self.reward_memory, observed, output)
        return MachinePair(transition, reward, timing, termination=_termination(self, q, u))

    @property
    def draws(self) -> int:
        """The number of random numbers that turn an action into a realized one."""
        return (self.slip > 0) + (self.chances > 1)

    def realize(self, actions: NDArray[np.int64], drawn: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the realized actions: `drawn` is [step, draw], uniform from 0 to 1."""
        alternatives = len(self.actions) - 1
        realized = actions
        if self.slip > 0 and alternatives > 0:
            slipped = drawn[:, 0] < self.slip
            shift = (drawn[:, 0] / self.slip * alternatives).astype(np.int64)
            shift = np.minimum(shift, alternatives - 1)
            realized = np.where(slipped, (actions + 1 + shift) % (alternatives + 1), actions)
        if self.chances > 1:
            realized = realized * self.chances + (drawn[:, -1] * self.chances).astype(np.int64)
        return realized

    def expected(self, by_realized: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return expectations by state and action, given values by state and realized action."""
        actions = len(self.actions)
        values = by_realized.reshape(len(by_realized), actions, self.chances).mean(axis=2)
        if self.slip > 0 and actions > 1:
            slipped = (values.sum(axis=1, keepdims=True) - values) / (actions - 1)
            values = (1.0 - self.slip) * values + self.slip * slipped
        return np.asarray(values)

    def optimal_values(self, gamma: float) -> NDArray[np.float64]:
        """Return the values of the best policy that sees the true state, by value iteration."""
        values = np.zeros(self.states)
        discount = np.where(self.ends, 0.0, gamma)
        while True:
            by_realized = self.reward + discount * values[self.next_state]
            by_action = self.expected(by_realized) if self.draws else by_realized
            improved: NDArray[np.float64] = by_action.max(axis=1)
            rounding = _ROUNDING * np.abs(improved).max() if self.draws else 0.0
            if np.all(np.abs(improved - values) <= rounding):
                return improved
            values = improved

    def rollouts(
        self,
        starts: Codes,
        actions: np.random.Generator,
        max_steps: int | None = None,
        time_limit: int | None = None,
        progress: Callable[[float], object] | None = None,
        *,
        chance: np.random.Generator | None = None,
    ) -> TraceSet:
        """Walk at random from the given states until each episode ends.

        Stepping an environment with both generators gives the same traces: actions come as from
        `Discrete.sample`, slips from `chance`, which is left as after these steps. Gymnasium's
        `time_limit` calls an episode truncated even when it ends in its last step.
        """
        if chance is None:
            chance = np.random.default_rng(0)
        limits = [limit for limit in (max_steps, time_limit) if limit is not None]
        walk = _core.walk(
            np.ascontiguousarray(self.next_state.ravel()),
            self.ends.ravel().astype(np.int32),
            self.next_state.shape[1],
            np.ascontiguousarray(starts, np.int32),
            min(limits, default=0),
        )
        block = _FIRST_BLOCK
        before = chance.bit_generator.state
        chosen: list[NDArray[np.int64]] = []
        while not walk.done:
            drawn = actions.integers(len(self.actions), size=block, dtype=np.int64)
            if self.draws:
                chosen.append(drawn)
                drawn = self.realize(drawn, chance.random((block, self.draws)))
            walk.feed(drawn)
            block = min(2 * block, _LARGEST_BLOCK)
            if progress is not None:
                progress(walk.finished / len(starts))
        states, realized, offsets, terminated = walk.take()
        executed = realized
        if self.draws:
            chance.bit_generator.state = before
            chance.random(len(realized) * self.draws)
            executed = np.concatenate(chosen)[: len(realized)].astype(np.int32)
        rows = np.arange(len(executed)) + np.repeat(np.arange(len(starts)), np.diff(offsets))
        rewards, reward_codes = self.reward_codes
        return TraceSet.taking_over(
            {
                OBSERVATION: (self.observations, self.observation_of[states]),
                LABEL: (self.labels, self.label_of[states]),
                ACTION: (self.actions, executed),
                REWARD: (rewards, reward_codes[states[rows], realized]),
            },
            offsets=offsets,
            terminated=terminated,
            truncated=(terminated == 0) | (np.diff(offsets) == time_limit),
        )

    @cached_property
    def reward_codes(self) -> tuple[list[float], Codes]:
        """The distinct rewards, and the code of each by state and realized action."""
        rewards, codes = np.unique(self.reward, return_inverse=True)
        if not np.isfinite(rewards).all():
            raise TraceError(f"the rewards are from {rewards[0]} to {rewards[-1]}: make all finite")
        return rewards.tolist(), codes.reshape(self.reward.shape).astype(np.int32)


def _coded(
    states: Sequence[Any], value_of: Callable[[Any], Any], order: Callable[[Any], Any] | None = None
) -> tuple[tuple[Any, ...], Codes]:
    """Return the distinct values of the states, in order, and the code of each state's."""
    values = list(map(value_of, states))
    distinct = list(dict.fromkeys(values))
    if order is not None:
        distinct.sort(key=order)
    code = {value: number for number, value in enumerate(distinct)}
    return tuple(distinct), np.array([code[value] for value in values], np.int32)


# --- True machines -------------------------------------------------------------------------------

_Column = tuple[Vocabulary[Any], Codes]  # values, and their codes by state (and realized action)


def _machine(
    kind: type[Any],
    world: Mechanics,
    timing: LabelTiming,
    memory: Codes,
    observed: _Column,
    output: _Column,
) -> tuple[Any, Codes]:
    """Return a machine, and its state in every true state from which episodes continue."""
    live, actions = slice(world.live), len(world.actions)
    continues = ~world.ends[live]
    reached = world.next_state[live][continues]
    read, targets = _function(
        f"the {machine_name(kind.predicts)} memory",
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
    keys, outputs = _function(
        f"the output of the {machine_name(kind.predicts)} machine",
        (memory[live, None] * n_queries + query).ravel(),
        output[1][live].ravel(),
        uncertain=world.uncertain,
    )
    changes = ((table != -1) & (table != np.arange(len(table))[:, None])).any(axis=0)
    labels = enumerate(world.labels)
    machine, number = machine_of_tables(
        kind,
        Vocabularies(Vocabulary(world.labels), observed[0], Vocabulary(world.actions), output[0]),
        table,
        (keys // n_queries, keys % n_queries, outputs),
        initial=initial,
        trivial=tuple(code for code, label in labels if label == NO_EVENT and not changes[code]),
        **({"supplemented": True} if kind is RewardMachine else {}),
    )
    return machine, number[memory]


def _function(
    what: str, keys: NDArray[np.int64], values: Codes, *, uncertain: bool = False
) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct keys, each with its only value.

    If `uncertain`, a key may have several: then with the most frequent one, the lowest in a tie.
    """
    size = int(values.max(initial=0)) + 1
    pairs, counts = np.unique(keys * size + values, return_counts=True)
    order = np.lexsort((-counts, pairs // size))
    distinct, first = np.unique(pairs[order] // size, return_index=True)
    if len(distinct) < len(pairs) and not uncertain:
        raise ModelError(f"{what} does not follow from the memory that this world defines")
    return distinct, (pairs[order][first] % size).astype(np.int32)


def _with_initial(
    table: Codes, world: Mechanics, timing: LabelTiming, memory: Codes
) -> tuple[Codes, int]:
    """Return the table, with the first labels if the timing reads them, and the initial state."""
    starts = np.unique(world.starts)
    labels, targets = world.label_of[starts], memory[starts]
    if timing.first > 0:
        if len(np.unique(targets)) > 1:
            raise ModelError("episodes begin with different memories: read their first labels")
        return table, int(targets[0])
    # No query comes before the first label, so the initial state may be any that fits.
    table = np.vstack([table, np.full((1, table.shape[1]), -1, np.int32)])
    fits = ((table[:, labels] == -1) | (table[:, labels] == targets)).all(axis=1)
    initial = int(np.argmax(fits))  # the added state always fits
    table[initial, labels] = targets
    if np.any(table[initial, labels] != targets):
        raise ModelError("episodes that begin with the same label have different memories")
    return table, initial


def _termination(world: Mechanics, q: Codes, u: Codes) -> Termination:
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

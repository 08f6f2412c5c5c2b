"""An experiment + what traces show of a world → a policy that carries the experiment out.

Steps that traces took in a situation lead on from it; where none does, what the same step did
elsewhere is tried, which may turn out otherwise; where nothing is known, anything is.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np

from resolvent.control.planning.aims import States, aim_of
from resolvent.control.planning.steps_seen import Came, StepsSeen, steps_seen
from resolvent.control.wrapping.memory import Memory
from resolvent.errors import OptionError
from resolvent.machines import Machines
from resolvent.result import InferenceResult, machines_in
from resolvent.samples import LabelReader
from resolvent.senses.live import LiveSenses
from resolvent.traces import TraceFolder, TraceSet
from resolvent.traces.symbols import Label, Symbol, as_label
from resolvent.trust import Experiment

GUESSED: Final = 4
"""A step that was taken only elsewhere counts as so many."""

MOST_SEARCHED: Final = 50_000
"""So many situations are looked through at most for a way."""

Node: TypeAlias = tuple[Symbol, States | None, int]
"""What is seen, the states of the machines unless they are not known, and how far the aim is."""


class _Done(NamedTuple):
    """What was done last: where, as a symbol, and in the values of the environment."""

    node: Node
    action: Symbol
    observation: Any
    value: Any


def carry_out(
    experiment: Experiment,
    env: gym.Env[Any, Any],
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceFolder,
    *,
    name_of: Callable[[Any], Any] | None = None,
    seed: int = 0,
) -> "Trial":
    """Return a policy that carries out an experiment; see `Experiment.policy`."""
    if not isinstance(env, gym.Env):
        raise OptionError(f"policy needs one gymnasium.Env, not a {type(env).__name__}")
    if seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
    known = machines_in(machines)
    live = LiveSenses(env, known.senses, None, None, name_of)
    return Trial(experiment, known, live, steps_seen(known, traces), _symbols(env, live), seed)


class Trial:
    """Carries out an experiment, step by step.

    It is a policy for `collect`, which tells it of labels. In a loop of your own, call `begin`
    with the label of a reset and `read` with that of each step, and ask it for an action with
    what is seen. `done` says whether the question was asked after the labels, `asked` how often;
    where copies of it play side by side (`collect(..., on="processes")`), it is not told.

    >>> import resolvent as rs
    >>> house = rs.environments.House()
    >>> result = rs.infer(rs.collect(house, episodes=2, seed=0))
    >>> experiment = rs.plan(result, result.all_traces()).next_experiment
    >>> trial = experiment.policy(house, result, result.all_traces())
    >>> observation, info = house.reset(seed=0)
    >>> trial.begin(info["labels"])
    >>> while not trial.done:
    ...     observation, reward, terminated, truncated, info = house.step(trial(observation))
    ...     trial.read(info["labels"])
    >>> trial.asked
    1
    """

    def __init__(
        self,
        experiment: Experiment,
        machines: Machines,
        live: LiveSenses,
        seen: StepsSeen,
        actions: list[Symbol],
        seed: int,
    ) -> None:
        self.experiment, self.asked = experiment, 0
        self._aim, self._seen, self._live = aim_of(experiment, machines), seen, live
        self._memory, self._reader = Memory(machines), LabelReader(machines.timing)
        self._machines = machines
        self._actions = sorted({*actions, *seen.actions}, key=[*actions, *seen.actions].index)
        self._rng = np.random.default_rng(seed)
        self._told: tuple[Label, bool] | None = None
        self._last: _Done | None = None
        self._way: list[tuple[Node, Symbol]] = []
        self._lived: dict[Node, dict[Symbol, Came]] = {}
        self._tried: dict[Node, dict[Symbol, int]] = {}
        self._hopeless: set[Node] = set()

    @property
    def done(self) -> bool:
        """Whether the question was asked after the labels."""
        return self.asked > 0

    def begin(self, label: Any) -> None:
        """Take the label of what a reset showed."""
        self._told, self._last = (as_label(label), True), None

    def read(self, label: Any) -> None:
        """Take the label of what a step led to."""
        self._told = as_label(label), False

    def __call__(self, observation: Any) -> Any:
        """Return what to do."""
        told, last = self._told, self._last
        if told is None or (last is None and not told[1]):
            raise OptionError(
                "the policy of an experiment goes by labels: call begin() with that of a reset "
                "and read() with that of a step before it is asked for an action, or have "
                "collect() do so"
            )
        if last is None:
            node = self._begun(observation, told[0])
        else:
            node = self._came(observation, told[0], last)
        action = self._chosen(node)
        tried = self._tried.setdefault(node, {})
        tried[action] = tried.get(action, 0) + 1
        value = self._live.actions.value(action)
        self._told, self._last = None, _Done(node, action, observation, value)
        return value

    def _begun(self, observation: Any, label: Label) -> Node:
        """Return where an episode begins."""
        if self._live.label_of is not None:
            label = as_label(self._live.label_of(None, None, None, observation, {}))
        self._memory.reset(label)
        self._way = []
        read, states = self._reader.reset(label), (0,) * len(self._machines)
        reached = 0 if read is None else self._aim.after(0, states, read)
        return self._live.observations(observation), self._states(), reached

    def _came(self, observation: Any, label: Label, last: "_Done") -> Node:
        """Return where the last step led, and keep in mind that it did."""
        if self._live.label_of is not None:
            made = self._live.label_of(last.observation, last.value, None, observation, {})
            label = as_label(made)
        _, states, reached = last.node
        self._memory.step(label)
        read, symbol = self._reader.step(label), self._live.observations(observation)
        came, lived = Came(symbol, read, False), self._lived.setdefault(last.node, {})
        if lived.get(last.action) != came:
            lived[last.action] = came
            self._hopeless.clear()
        return symbol, self._states(), self._aim.after(reached, states, read)

    def _states(self) -> States | None:
        return None if self._memory.unseen else self._memory.values

    def _chosen(self, node: Node) -> Symbol:
        question = self.experiment.question
        if not self.done and self._aim.is_reached(node[2], node[1]):
            if question is None:
                self.asked += 1
            elif question[0] == node[0]:
                self.asked += 1
                return question[1]
        if self.done:
            return self._anything(node)
        if not self._way or self._way[0][0] != node:
            self._way = self._found(node)
        return self._way.pop(0)[1] if self._way else self._anything(node)

    def _anything(self, node: Node) -> Symbol:
        """Return one of the actions that were done least often here, first what is not known."""
        tried = self._tried.get(node, {})
        known = self._seen.taken.get((node[0], node[1]), {}) if not self.done else {}
        least = min((tried.get(one, 0), one in known) for one in self._actions)
        choice = [one for one in self._actions if (tried.get(one, 0), one in known) == least]
        return choice[int(self._rng.integers(len(choice)))]

    def _found(self, start: Node) -> list[tuple[Node, Symbol]]:
        """Return the cheapest way to where the question can be asked; nothing if there is none."""
        if start in self._hopeless:
            return []
        asks, number = self.experiment.question, 0
        came: dict[Node, tuple[Node, Symbol] | None] = {}
        waiting: list[tuple[int, int, Node, tuple[Node, Symbol] | None]] = [(0, 0, start, None)]
        while waiting and len(came) < MOST_SEARCHED:
            cost, _, node, before = heappop(waiting)
            if node in came:
                continue
            came[node] = before
            if self._aim.is_reached(node[2], node[1]) and (asks is None or asks[0] == node[0]):
                return _way(came, node)
            for more, action, following in self._steps(node):
                if following not in came:
                    number += 1  # of equal costs, the first found
                    heappush(waiting, (cost + more, number, following, (node, action)))
        self._hopeless.update(came)
        return []

    def _steps(self, node: Node) -> Iterator[tuple[int, Symbol, Node]]:
        """Go through what may be done at a node: cost, action, and where it leads."""
        observation, states, reached = node
        lived = self._lived.get(node, {})
        taken = self._seen.taken.get((observation, states), {})
        elsewhere = self._seen.elsewhere.get(observation, {})
        for action in self._actions:
            if action in lived:
                options, cost = [lived[action]], 1
            elif action in taken:
                options, cost = [taken[action]], 1
            else:
                options, cost = elsewhere.get(action, []), GUESSED
            for came in options:
                if not came.ends:
                    after = self._led(states, came.label)
                    there = came.observation, after, self._aim.after(reached, states, came.label)
                    yield cost, action, there

    def _led(self, states: States | None, label: Label) -> States | None:
        if states is None:
            return None
        led = []
        for machine, state in zip(self._machines.values(), states, strict=True):
            code = machine.labels.get(label)
            led.append(-1 if code is None else int(machine.transitions[state, code]))
        return tuple(led) if min(led) >= 0 else None


def _way(came: dict[Node, tuple[Node, Symbol] | None], node: Node) -> list[tuple[Node, Symbol]]:
    way = []
    while (before := came[node]) is not None:
        way.append(before)
        node = before[0]
    return way[::-1]


def _symbols(env: gym.Env[Any, Any], live: LiveSenses) -> list[Symbol]:
    """Return the actions that an environment takes, where they can be listed."""
    return list(live.actions.of_space(env.action_space) or ())

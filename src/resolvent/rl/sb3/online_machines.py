"""Infer machines while a learner of Stable-Baselines3 trains, and show their states to it.

Input: a vector environment. Output: the same with machine states in its observations. The
machines are inferred repeatedly from its own episodes; the space stays the same.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from resolvent.errors import OptionError, locating
from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.machines import Machines
from resolvent.preprocess.transform import Preprocessor
from resolvent.rl.env import (
    LabelsOfSymbols,
    LabelSource,
    SymbolEncoder,
    finite_reward,
    reported_label,
)
from resolvent.rl.observation import Flat, check_fixed_size
from resolvent.rl.sb3.positions import Positions, assign_positions
from resolvent.rl.tracker import StateTracker
from resolvent.rl.transfer import joint_counts, states_at_steps
from resolvent.rl.vector_env import split
from resolvent.traces import TraceSet
from resolvent.traces.columns import ColumnEncoder, TraceSetBuilder
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import Label, Symbol

KINDS = ("transition", "reward", "terminated")
"""The machines that `infer` infers by default, the last one only if it is needed."""


class OnlineMachineWrapper(VecEnvWrapper):
    """Show the states of machines that are inferred from the environments' own episodes.

    Each observation is flattened and followed, for each machine, by the one-hot position of its
    state among `most_states` positions: the first before machines are inferred, the last for all
    remaining states if there are too many. So the space stays the same while machines grow.

    Give it to PPO or DQN, with `InferMachines` as their callback. When machines change, a state
    keeps the position of the old state that occurred at the same steps, as far as possible.

    Labels are found as by `rs.collect`: in `info["labels"]`, by `label_of`, or made of
    observations and actions with `labels="auto"` and the like. `outputs` and all further
    options are those of `rs.infer`. Machines are inferred from finished episodes, so the
    environments need a time limit if they do not end by themselves.

    >>> import gymnasium as gym
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> envs = OnlineMachineWrapper(make_vec_env("resolvent/House-v0", n_envs=2), most_states=3)
    >>> envs.reset().tolist()[0]  # the corridor of four rooms, and three machines
    [1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    """

    def __init__(
        self,
        venv: VecEnv,
        *,
        most_states: int = 8,
        labels: Any = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
        outputs: tuple[str, ...] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(venv, VecEnv):
            raise OptionError(
                f"venv is a {type(venv).__name__}: give a vector environment of "
                "Stable-Baselines3, such as make_vec_env returns"
            )
        if most_states < 1:
            raise OptionError(f"most_states={most_states}: use at least 1")
        if labels is not None:
            options["labels"] = labels
        checked = InferenceOptions(outputs=outputs, **options)
        self._infer_options = {**options, "outputs": checked.outputs}
        kinds: tuple[str, ...] = KINDS
        if checked.outputs is not None:
            kinds = tuple(
                "transition" if output == "observation" else output for output in checked.outputs
            )
        inner = venv.observation_space
        check_fixed_size("flatten", inner)
        self.shown = ShownMachines(kinds, most_states)
        self._flat = Flat(inner, dict.fromkeys(kinds, most_states))
        super().__init__(venv, observation_space=self._flat.space)
        self._batch_space = batch_space(inner, venv.num_envs)
        stand_in = _StandIn(venv)
        self._observations = SymbolEncoder(stand_in, "observation", name_of)
        self._actions = SymbolEncoder(stand_in, "action")
        makes_labels = checked.labels == "auto" or not checked.labels.is_given
        self._labels = LabelSource(None, label_of or (reported_label if makes_labels else None))
        self.result: InferenceResult | None = None
        self.remembers = 0
        """Number of steps for which episodes are stored after machines were inferred from them."""
        self.steps = 0
        """Number of steps that all environments have taken together."""
        self._records = True
        self._finished = _FinishedEpisodes()
        self._traces: list[TraceSet] = []
        self._past: deque[Episode] = deque()
        self._running: list[Episode] = []
        self._trackers: list[PositionTracker] = []
        self._last: Any = None
        self._raw: list[Any] = []
        self._sent: list[Any] = []

    @property
    def machines(self) -> Machines | None:
        """The machines whose states are shown, None before any were inferred."""
        return self.shown.machines

    @property
    def traces(self) -> list[TraceSet]:
        """All episodes that machines were inferred from, in the order of their ends."""
        return list(self._traces)

    def around(self, venv: VecEnv) -> "OnlineMachineWrapper":
        """Return another vector environment that shows the same machines, as for evaluation.

        When machines change here, they change there, from the next episode on. Nothing is
        inferred from its episodes.
        """
        wrapper = OnlineMachineWrapper(venv, most_states=self.shown.places, **self._infer_options)
        wrapper.shown = self.shown
        wrapper._observations, wrapper._actions = self._observations, self._actions
        wrapper._labels = self._labels
        wrapper._records = False
        return wrapper

    def reset(self) -> Any:
        """Begin an episode in all environments; those that go on are truncated."""
        for episode in self._running:
            if self._records and len(episode):
                self._end(episode, terminated=False)
        observations = self.venv.reset()
        self._raw = split(self._batch_space, observations)
        self._running = [self._begin(number) for number in range(self.num_envs)]
        self._trackers = [self._track(episode) for episode in self._running]
        return self._extended(observations)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Send actions to all environments."""
        self._sent = list(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Return the outcomes of the actions."""
        observations, rewards, dones, all_infos = self.venv.step_wait()
        infos = list(all_infos)
        self.steps += 1
        before, self._raw = self._raw, split(self._batch_space, observations)
        for number, done in enumerate(dones):
            info = infos[number]
            reached = info["terminal_observation"] if done else self._raw[number]
            with locating(f"environment {number}"):
                self._step(number, before[number], reached, rewards[number], info)
            if done:
                places = self._trackers[number].places
                infos[number] = {
                    **info,
                    "terminal_observation": self._flat.augment(reached, places),
                }
                if self._records:
                    self._end(self._running[number], not info.get("TimeLimit.truncated", False))
                self._running[number] = self._begin(number)
                self._trackers[number] = self._track(self._running[number])
        return self._extended(observations), rewards, dones, infos

    def infer(self) -> dict[str, Positions] | None:
        """Infer machines from all finished episodes, or update the present machines.

        Return the new and old positions of their states, by the names of the machines; None if
        nothing changes.
        """
        if not self._finished.episodes:
            return None
        traces, self._finished = self._finished.trace_set(), _FinishedEpisodes()
        self._traces.append(traces)
        if self.result is None:
            self.result = infer(traces, options=InferenceOptions(**self._infer_options))
        else:
            self.result = self.result.update(traces)
        machines = self.result.machines
        if self.machines is not None and _same_transitions(self.machines, machines):
            self.shown.machines = machines
            return None
        changed = self.shown.change(machines, self._traces)
        for number, episode in enumerate(self._running):
            self._trackers[number] = self._track(episode)
        return changed

    def current(self) -> Any:
        """Return the last observations, with the states of the present machines."""
        return self._extended(self._last)

    def remembered(self) -> Iterator[tuple["Episode", list[tuple[int, ...]]]]:
        """Yield the remembered episodes, with the positions of all states in them."""
        for episode in (*self._past, *self._running):
            yield episode, list(PositionTracker(self.shown).replay(episode))

    def rows(self, places: Sequence[Sequence[int]]) -> NDArray[Any]:
        """Return the part of observations that shows these positions."""
        columns = np.zeros(
            (len(places), len(self.shown.kinds), self.shown.places), self._flat.space.dtype
        )
        for at, row in enumerate(places):
            columns[at, np.arange(len(row)), row] = 1
        return columns.reshape(len(places), -1)

    def _step(self, number: int, before: Any, reached: Any, reward: Any, info: Any) -> None:
        episode, action = self._running[number], self._sent[number]
        label = self._labels.after_step(before, action, reward, reached, info)
        episode.step(
            self._actions(action), finite_reward(reward), self._observations(reached), label
        )
        self._trackers[number].step(episode)

    def _begin(self, number: int) -> "Episode":
        observation = self._raw[number]
        with locating(f"environment {number}"), locating("reset"):
            label = self._labels.at_reset(observation, self.venv.reset_infos[number])
            return Episode(number, self.steps, [self._observations(observation)], [label])

    def _track(self, episode: "Episode") -> "PositionTracker":
        tracker = PositionTracker(self.shown)
        *_, _ = tracker.replay(episode)
        return tracker

    def _end(self, episode: "Episode", terminated: bool) -> None:
        self._finished.add(episode, terminated=terminated)
        if self.remembers:
            self._past.append(episode)
        oldest = self.steps - self.remembers
        while self._past and self._past[0].first + len(self._past[0]) <= oldest:
            self._past.popleft()

    def _extended(self, observations: Any) -> Any:
        self._last = observations
        columns = np.array([tracker.places for tracker in self._trackers], np.int64).T
        return self._flat.augment_batch(observations, list(columns))


class ShownMachines:
    """The machines whose states are shown now, and the position of each state."""

    def __init__(self, kinds: Sequence[str], places: int) -> None:
        self.kinds, self.places = tuple(kinds), places
        self.machines: Machines | None = None
        self.positions: dict[str, NDArray[np.int64]] = {}

    def change(self, machines: Machines, traces: Iterable[TraceSet]) -> dict[str, Positions]:
        """Show new machines; return the new and old positions of their states."""
        counts = {
            kind: np.zeros((self.places, machines[kind].states), np.int64)
            for kind in self.kinds
            if kind in machines
        }
        for shard in traces:
            after = states_at_steps(machines, shard)
            before = {} if self.machines is None else states_at_steps(self.machines, shard)
            for kind, count in counts.items():
                places = np.zeros(len(after[kind]), np.int32)  # the first, without machines
                if kind in before:
                    places = self.positions[kind][before[kind]].astype(np.int32)
                count += joint_counts(places, after[kind], count.shape)
        positions = {kind: assign_positions(count) for kind, count in counts.items()}
        self.machines = machines
        self.positions = {kind: each.of_state for kind, each in positions.items()}
        return positions


@dataclass
class Episode:
    """The steps of one environment since its last reset, in symbols.

    `environment` is its number, and `first` the number of steps that all environments had taken
    together when it began.
    """

    environment: int
    first: int
    observations: list[Symbol]
    labels: list[Label]
    actions: list[Symbol] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def step(self, action: Symbol, reward: float, next_observation: Symbol, label: Label) -> None:
        """Append a step."""
        self.actions.append(action)
        self.rewards.append(reward)
        self.observations.append(next_observation)
        self.labels.append(label)

    def __len__(self) -> int:
        return len(self.actions)


class PositionTracker:
    """The positions to show in one live episode, by the machines it began with."""

    def __init__(self, machines: ShownMachines) -> None:
        self._kinds, self._positions = machines.kinds, machines.positions
        self._memory: StateTracker | None = None
        self._label_of: LabelsOfSymbols | None = None
        if machines.machines is not None:
            self._memory = StateTracker(machines.machines)
            self._label_of = _symbol_labels(machines.machines.senses)

    def step(self, episode: Episode) -> None:
        """Read the label of the last step."""
        if self._memory is not None:
            self._memory.step(self._label(episode, len(episode)))

    def replay(self, episode: Episode) -> Iterator[tuple[int, ...]]:
        """Yield the positions at each observation of an episode, from its beginning."""
        for number in range(len(episode) + 1):
            if self._memory is not None:
                read = self._memory.step if number else self._memory.reset
                read(self._label(episode, number))
            yield self.places

    def _label(self, episode: Episode, number: int) -> Label:
        """Return the label of an episode's observation, as the machines read it."""
        if self._label_of is None:
            return episode.labels[number]
        action = episode.actions[number - 1] if number else None
        return self._label_of(None, action, None, episode.observations[number], {})

    @property
    def places(self) -> tuple[int, ...]:
        """The position of each machine's state; the first for a missing machine."""
        if self._memory is None:
            return (0,) * len(self._kinds)
        states = self._memory.states
        return tuple(
            int(self._positions[kind][states[kind]]) if kind in states else 0
            for kind in self._kinds
        )


def _symbol_labels(preprocessor: Preprocessor) -> LabelsOfSymbols | None:
    """Return the function that makes labels of symbols; None if labels are recorded."""
    if preprocessor.labelling.is_given:
        return None
    then = (
        {}
        if preprocessor.discretise is None
        else {preprocessor.discretise.of: preprocessor.discretise}
    )
    translations = (then.get(column, _unchanged) for column in ("observation", "action"))
    return LabelsOfSymbols(preprocessor.labelling, *translations)


class _FinishedEpisodes:
    """Episodes that have ended, until machines are inferred from them."""

    def __init__(self) -> None:
        self._coder, self._coded = ColumnEncoder(), TraceSetBuilder()
        self.episodes = 0

    def add(self, episode: Episode, *, terminated: bool) -> None:
        """Add an episode that terminated or was truncated."""
        columns: Mapping[str, list[Any]] = {
            OBSERVATION: episode.observations,
            LABEL: episode.labels,
            ACTION: episode.actions,
            REWARD: episode.rewards,
        }
        self._coded.add(self._coder.code(columns), terminated=terminated, truncated=not terminated)
        self.episodes += 1

    def trace_set(self) -> TraceSet:
        """Return all of them as traces."""
        return self._coded.trace_set(self._coder.values())


class _StandIn(gym.Env[Any, Any]):
    """The spaces and names of environments in another process."""

    def __init__(self, venv: VecEnv) -> None:
        self.observation_space, self.action_space = venv.observation_space, venv.action_space
        for name in ("observation_names", "action_names"):
            if venv.has_attr(name):
                setattr(self, name, venv.get_attr(name, 0)[0])


def _unchanged(symbol: Symbol) -> Symbol:
    return symbol


def _same_transitions(old: Machines, new: Machines) -> bool:
    """Return whether two sets of machines are in the same states after the same steps."""
    if list(old) != list(new) or old.senses != new.senses or old.timing is not new.timing:
        return False
    return all(
        before.labels == after.labels and np.array_equal(before.transitions, after.transitions)
        for before, after in zip(old.values(), new.values(), strict=True)
    )

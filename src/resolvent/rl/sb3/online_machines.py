"""Infer machines while a learner of Stable-Baselines3 trains, and show their states to it.

Input: a vector environment. Output: the same with machine states in its observations. The
machines are inferred repeatedly from its own episodes. Each machine has a fixed number of slots for
its states, so the space stays the same. A network has weights for each slot: a state keeps the slot
of the old state that occurred at the same steps, and a split-off state begins as a copy of it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize, unwrap_vec_wrapper

from resolvent._util.validation import check_at_least
from resolvent.errors import OptionError, locating
from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.machines import Machines
from resolvent.replay.replaying import states_at_steps
from resolvent.rl.augmentation import Flat, check_fixed_size
from resolvent.rl.env import LabelSource, LivePreprocessor, reported_label
from resolvent.rl.rollout import Episode, StepEncoder
from resolvent.rl.tracker import StateTracker
from resolvent.rl.vector_env import split
from resolvent.traces import Codes, TraceSet
from resolvent.traces.columns import EpisodeBuilder
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION

MACHINES: Final = ("transition", "reward", "terminated")  # by default, the last only if needed


@dataclass(frozen=True, eq=False)
class Slots:
    """The slot of each state of one machine, and the slot that showed it before."""

    of_state: NDArray[np.int64]
    before: NDArray[np.int64]

    @property
    def changes(self) -> dict[int, int]:
        """The slots that show another state than before, each with the slot that showed it."""
        pairs = list(zip(self.of_state.tolist(), self.before.tolist(), strict=True))
        return {slot: earlier for slot, earlier in reversed(pairs) if slot != earlier}


def assign_slots(counts: NDArray[np.int64]) -> Slots:
    """Return slots for states, given the counts of states while each slot was shown.

    `counts` has a row for each slot and a column for each state. The pair with the highest
    count stays together, then the next; remaining states get free slots, the most frequent
    first. The last slot is shared by all states for which there is none.
    """
    slots, states = counts.shape
    own = slots if states <= slots else slots - 1
    of_state = np.full(states, -1, np.int64)
    is_free = [True] * own
    rows, columns = np.nonzero(counts[:own])
    for at in np.lexsort((columns, rows, -counts[rows, columns])).tolist():
        slot, state = int(rows[at]), int(columns[at])
        if is_free[slot] and of_state[state] < 0:
            of_state[state], is_free[slot] = slot, False
    free = iter([slot for slot in range(own) if is_free[slot]])
    total = counts.sum(axis=0)
    for state in np.argsort(-total, kind="stable").tolist():
        if of_state[state] < 0:
            of_state[state] = next(free, slots - 1)
    return Slots(of_state, np.where(total > 0, counts.argmax(axis=0), of_state))


class ShownMachines:
    """The machines shown now, of all with `names`, and the slot of each state, below `size`."""

    def __init__(self, names: Sequence[str], size: int) -> None:
        self.names, self.size = tuple(names), size
        self.machines: Machines | None = None
        self.slots: dict[str, NDArray[np.int64]] = {}

    def change(self, machines: Machines, traces: Iterable[TraceSet]) -> dict[str, Slots]:
        """Show new machines; return the new and old slots of their states."""
        counts = {
            name: np.zeros((self.size, machines[name].states), np.int64)
            for name in self.names
            if name in machines
        }
        for shard in traces:
            after = _live_states(machines, shard)
            before = {} if self.machines is None else _live_states(self.machines, shard)
            for name, count in counts.items():
                slots: Any = self.slots[name][before[name]] if name in before else 0
                np.add.at(count, (slots, after[name]), 1)
        assigned = {name: assign_slots(count) for name, count in counts.items()}
        self.machines = machines
        self.slots = {name: slots.of_state for name, slots in assigned.items()}
        return assigned


def _live_states(machines: Machines, traces: TraceSet) -> dict[str, Codes]:
    """Return the state of each machine at every step, as `StateTracker` has it."""
    return states_at_steps(machines, machines.preprocessor.transform(traces), unseen="stay")


class _PlayedEpisode:
    """An episode of an environment, and the slots to show with its observations.

    `first` is the number of steps of all environments when it began. The slots are those of the
    machines that were shown when `follow` was called; that of a missing machine is the first.
    """

    def __init__(
        self, environment: int, first: int, columns: Episode, shown: ShownMachines
    ) -> None:
        self.environment, self.first, self.columns = environment, first, columns
        self.follow(shown)

    def __len__(self) -> int:
        return len(self.columns[ACTION])

    def follow(self, shown: ShownMachines) -> None:
        """Read all labels by the machines that are shown now."""
        self._names, self._slot_of = shown.names, shown.slots
        self._tracker: StateTracker | None = None
        if shown.machines is not None:
            self._tracker = StateTracker(shown.machines)
            # Episodes hold symbols already: the environment's names do not matter.
            self._live = LivePreprocessor(None, shown.machines.preprocessor)
        self.slots: list[tuple[int, ...]] = []
        for _ in self.columns[LABEL]:
            self.read()

    def read(self) -> tuple[int, ...]:
        """Read the next label; return the slots to show with its observation."""
        states: dict[str, int] = {}
        if self._tracker is not None:
            columns, number = self.columns, len(self.slots)
            action = columns[ACTION][number - 1] if number else None
            label = self._live.label(action, columns[OBSERVATION][number], columns[LABEL][number])
            (self._tracker.step if number else self._tracker.reset)(label)
            states = self._tracker.states
        slots = (self._slot_of[name][states[name]] if name in states else 0 for name in self._names)
        self.slots.append(tuple(map(int, slots)))
        return self.slots[-1]


class OnlineMachineWrapper(VecEnvWrapper):
    """Show the states of machines that are inferred from the environments' own episodes.

    Each observation is flattened and followed, for each machine, by the one-hot slot of its
    state among `most_states` slots: the first before machines are inferred, the last for all
    remaining states if there are too many. So the space stays the same while machines grow.

    Give it to PPO or DQN, with `InferMachines` as their callback. When machines change, a state
    keeps the slot of the old state that occurred at the same steps, as far as possible.

    Labels are found as by `rs.collect`: in `info["labels"]`, by `labeling_fn`, or made of
    observations and actions with `labels="auto"` and the like. `labels`, `outputs` and all further
    options are those of `rs.infer`. Machines are inferred from finished episodes, so the
    environments need a time limit if they do not end by themselves; `traces` has these episodes.

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
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(venv, VecEnv):
            raise OptionError(
                f"venv is a {type(venv).__name__}: give a vector environment of "
                "Stable-Baselines3, such as make_vec_env returns"
            )
        check_at_least(1, most_states=most_states)
        self._inference_options = InferenceOptions(**options)
        names: tuple[str, ...] = MACHINES
        if self._inference_options.outputs is not None:
            names = tuple(
                "transition" if output == "observation" else output
                for output in self._inference_options.outputs
            )
        inner = venv.observation_space
        check_fixed_size("flatten", inner)
        self.shown = ShownMachines(names, most_states)
        self._flat = Flat(inner, dict.fromkeys(names, most_states))
        super().__init__(venv, observation_space=self._flat.space)
        self._batch_space = batch_space(inner, venv.num_envs)
        self._encoder = StepEncoder(_StandIn(venv), observation_fn)
        labels = self._inference_options.labels
        if labeling_fn is None and (labels == "auto" or not labels.is_given):
            labeling_fn = reported_label
        self._labels = LabelSource(None, labeling_fn)
        self.result: InferenceResult | None = None
        self.remembers = 0
        """Number of steps for which episodes are stored after machines were inferred from them."""
        self.steps = 0
        """Number of steps that all environments have taken together."""
        self._records = True
        self._finished = EpisodeBuilder()
        self.traces: list[TraceSet] = []
        self._past: deque[_PlayedEpisode] = deque()
        self._running: list[_PlayedEpisode] = []
        self._last: Any = None
        self._raw: list[Any] = []
        self._sent_actions: list[Any] = []

    @property
    def machines(self) -> Machines | None:
        """The machines whose states are shown, None before any were inferred."""
        return self.shown.machines

    def around(self, venv: VecEnv) -> "OnlineMachineWrapper":
        """Return another vector environment that shows the same machines, as for evaluation.

        When machines change here, they change there, from the next episode on. Nothing is
        inferred from its episodes.
        """
        wrapper = OnlineMachineWrapper(
            venv, most_states=self.shown.size, outputs=self._inference_options.outputs
        )
        wrapper.shown = self.shown
        wrapper._encoder, wrapper._labels = self._encoder, self._labels
        wrapper._records = False
        return wrapper

    def reset(self) -> Any:
        """Begin an episode in all environments; those that go on are truncated."""
        for played in self._running:
            if len(played):
                self._end(played, terminated=False)
        observations = self.venv.reset()
        self._raw = split(self._batch_space, observations)
        self._running = [self._begin(number) for number in range(self.num_envs)]
        return self._extended(observations)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Send actions to all environments."""
        self._sent_actions = list(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Return the outcomes of the actions."""
        observations, rewards, dones, all_infos = self.venv.step_wait()
        infos = list(all_infos)
        self.steps += 1
        before, self._raw = self._raw, split(self._batch_space, observations)
        for number, done in enumerate(dones):
            info, reward = infos[number], rewards[number]
            played, action = self._running[number], self._sent_actions[number]
            reached = info["terminal_observation"] if done else self._raw[number]
            with locating(f"environment {number}"):
                label = self._labels.after_step(before[number], action, reward, reached, info)
                self._encoder.step(played.columns, action, reward, reached, label, info)
                slots = played.read()
            if done:
                infos[number] = {**info, "terminal_observation": self._flat.augment(reached, slots)}
                terminated = not info.get("TimeLimit.truncated", False)
                self._end(played, terminated=terminated)
                self._running[number] = self._begin(number)
        return self._extended(observations), rewards, dones, infos

    def infer(self) -> dict[str, Slots] | None:
        """Infer machines from all finished episodes, or update the present machines.

        Return the new and old slots of their states, by the names of the machines; None if
        nothing changes.
        """
        if not len(self._finished):
            return None
        traces, self._finished = TraceSet.from_episodes(self._finished), EpisodeBuilder()
        self.traces.append(traces)
        if self.result is None:
            self.result = infer(traces, options=self._inference_options)
        else:
            self.result = self.result.update(traces)
        machines = self.result.machines
        if self.machines is not None and _same_transitions(self.machines, machines):
            self.shown.machines = machines
            return None
        changed = self.shown.change(machines, self.traces)
        for played in self._running:
            played.follow(self.shown)
        return changed

    def current(self) -> Any:
        """Return the last observations, with the states of the present machines."""
        return self._extended(self._last)

    def remembered(self) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Yield the environment, the first step and the state columns of remembered episodes.

        The columns are the part of observations that shows the states of the present machines, a
        row for each observation.
        """
        for played in (*self._past, *self._running):
            played.follow(self.shown)
            columns = np.eye(self.shown.size, dtype=self._flat.space.dtype)[np.array(played.slots)]
            yield played.environment, played.first, columns.reshape(len(played.slots), -1)

    def _begin(self, number: int) -> _PlayedEpisode:
        observation = self._raw[number]
        with locating(f"environment {number}"), locating("reset"):
            label = self._labels.at_reset(observation, self.venv.reset_infos[number])
            columns = self._encoder.begin(observation, label)
        return _PlayedEpisode(number, self.steps, columns, self.shown)

    def _end(self, played: _PlayedEpisode, *, terminated: bool) -> None:
        if not self._records:
            return
        self._finished.add(played.columns, terminated=terminated, truncated=not terminated)
        if self.remembers:
            self._past.append(played)
        oldest = self.steps - self.remembers
        while self._past and self._past[0].first + len(self._past[0]) <= oldest:
            self._past.popleft()

    def _extended(self, observations: Any) -> Any:
        self._last = observations
        columns = np.array([played.slots[-1] for played in self._running], np.int64).T
        return self._flat.augment_batch(observations, list(columns))


class _StandIn(gym.Env[Any, Any]):
    """The spaces and names of environments in another process."""

    def __init__(self, venv: VecEnv) -> None:
        self.observation_space, self.action_space = venv.observation_space, venv.action_space
        for name in ("observation_names", "action_names"):
            if venv.has_attr(name):
                setattr(self, name, venv.get_attr(name, 0)[0])


def _same_transitions(old: Machines, new: Machines) -> bool:
    """Return whether two sets of machines are in the same states after the same steps."""
    return (
        list(old) == list(new)
        and old.preprocessor == new.preprocessor
        and old.timing is new.timing
        and all(
            before.labels == after.labels and np.array_equal(before.transitions, after.transitions)
            for before, after in zip(old.values(), new.values(), strict=True)
        )
    )


class InferMachines(BaseCallback):
    """Infer machines from a learner's episodes at regular intervals, and show them to it.

    A callback for PPO, DQN and similar learners in an `OnlineMachineWrapper`. Between two rollouts
    it updates the machines from all episodes so far. When they change, states that result from a
    split inherit the weights of the old state, and the steps in a replay buffer are relabeled by
    the new machines. (A buffer whose rows are not the steps themselves is emptied.)

    `every` is the number of steps between two updates; after `until` steps machines stay unchanged.
    The logger records the number of states as "machines/transition_states" and so on.

    >>> import torch
    >>> torch.set_num_threads(1)  # more would only wait for each other in so small a network
    >>> from stable_baselines3 import PPO
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> import gymnasium as gym
    >>> def house():
    ...     return gym.make("resolvent/House-v0", max_episode_steps=50)
    >>> envs = OnlineMachineWrapper(make_vec_env(house, n_envs=4, seed=0), most_states=4)
    >>> ppo = PPO("MlpPolicy", envs, n_steps=256, batch_size=256, seed=0, device="cpu")
    >>> _ = ppo.learn(2_000, callback=InferMachines(every=1_000))
    >>> envs.machines.transition.states, envs.machines.reward.states
    (2, 2)
    """

    def __init__(self, *, every: int = 2_000, until: int | None = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        check_at_least(1, every=every)
        self.every, self.until = every, until
        self.changes: list[int] = []
        """The numbers of steps of the learner after which machines changed."""
        self._due = every

    def _on_training_start(self) -> None:
        envs = unwrap_vec_wrapper(self.training_env, OnlineMachineWrapper)
        if envs is None:
            raise OptionError(
                "InferMachines shows machines by an OnlineMachineWrapper: give the learner "
                "OnlineMachineWrapper(make_vec_env(...)) as its environment"
            )
        self.envs = envs
        if self._buffer is not None:
            self.envs.remembers = self._buffer.buffer_size
        # A learner that continues keeps its count of steps, and so does this.
        self._due = min(self._due, self.model.num_timesteps + self.every)

    @property
    def _buffer(self) -> ReplayBuffer | None:
        return self.model.replay_buffer if isinstance(self.model, OffPolicyAlgorithm) else None

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        steps = self.model.num_timesteps
        if steps < self._due or (self.until is not None and steps > self.until):
            return
        self._due = steps + self.every
        changed = self.envs.infer()
        if self.envs.machines is not None:
            for name, machine in self.envs.machines.items():
                self.logger.record(f"machines/{name}_states", machine.states)
        if changed is not None:
            self.changes.append(steps)
            self._show(changed)

    def _show(self, changed: Mapping[str, Slots]) -> None:
        """Transfer weights and steps, and replace the learner's last observation."""
        transfer_weights(self.model.policy, self.envs, changed)
        if self._buffer is not None:
            relabel_steps(self._buffer, self.envs)
        outermost, current = self.training_env, self.envs.current()
        if outermost is self.envs:
            self.model._last_obs = current
        elif isinstance(outermost, VecNormalize) and outermost.venv is self.envs:
            outermost.old_obs = current
            self.model._last_original_obs = current
            self.model._last_obs = outermost.normalize_obs(current)


def transfer_weights(
    policy: torch.nn.Module, envs: OnlineMachineWrapper, changed: Mapping[str, Slots]
) -> None:
    """Copy to each slot the weights of the slot that showed its state before.

    Only layers that read observations directly are changed.
    """
    width, size = int(np.prod(envs.observation_space.shape or (0,))), envs.shown.size
    columns = {}
    for number, name in enumerate(envs.shown.names):
        first = width - (len(envs.shown.names) - number) * size
        for slot, earlier in changed[name].changes.items() if name in changed else ():
            columns[first + slot] = first + earlier
    if not columns:
        return
    with torch.no_grad():
        for layers in policy.modules():
            if not isinstance(layers, torch.nn.Sequential) or not len(layers):
                continue
            layer = layers[0]
            if isinstance(layer, torch.nn.Linear) and layer.in_features == width:
                layer.weight[:, list(columns)] = layer.weight[:, list(columns.values())]


def relabel_steps(buffer: ReplayBuffer, envs: OnlineMachineWrapper) -> None:
    """Rewrite the machine states of the steps in a replay buffer, by the present machines.

    Its rows have to be the steps, one after the other; any other buffer is emptied.
    """
    if type(buffer) is not ReplayBuffer or buffer.optimize_memory_usage:
        buffer.reset()
        return
    size = buffer.buffer_size
    stored = size if buffer.full else buffer.pos
    for environment, first, columns in envs.remembered():
        ago = envs.steps - first - np.arange(len(columns) - 1)
        is_stored = ago <= stored
        rows, width = (buffer.pos - ago[is_stored]) % size, columns.shape[1]
        buffer.observations[rows, environment, -width:] = columns[:-1][is_stored]
        buffer.next_observations[rows, environment, -width:] = columns[1:][is_stored]

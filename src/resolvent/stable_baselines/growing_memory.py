"""A vector environment of Stable-Baselines3 → the same with the states of machines in view.

The machines are inferred from its own episodes, again and again, while the space of
observations stays what it is.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from resolvent.control.learning.carrying import met_at_steps, met_together
from resolvent.control.wrapping.augmentation import Flat
from resolvent.control.wrapping.memory import Memory
from resolvent.control.wrapping.parts import no_fixed_size
from resolvent.errors import OptionError, locating
from resolvent.machines import Machines
from resolvent.options import Options
from resolvent.pipeline import infer
from resolvent.result import InferenceResult
from resolvent.stable_baselines.episodes import Episode, Finished, Reads, StandIn
from resolvent.stable_baselines.positions import Positions, renumbered
from resolvent.traces import TraceSet
from resolvent.traces.live.naming import Labels, Names, finite_reward, told_if_any
from resolvent.traces.live.vector_naming import split

KINDS = ("transition", "reward", "terminated")
"""The machines that `infer` finds by itself; the last one only where there is need for it."""


class Shown:
    """The machines whose states are in view now, and the place of each of their states."""

    def __init__(self, kinds: Sequence[str], places: int) -> None:
        self.kinds, self.places = tuple(kinds), places
        self.machines: Machines | None = None
        self.positions: dict[str, NDArray[np.int64]] = {}

    def change(self, machines: Machines, traces: Iterable[TraceSet]) -> dict[str, Positions]:
        """Show other machines; return where their states are now, and were before."""
        together = {
            kind: np.zeros((self.places, machines[kind].states), np.int64)
            for kind in self.kinds
            if kind in machines
        }
        for some in traces:
            now = met_at_steps(machines, some)
            before = {} if self.machines is None else met_at_steps(self.machines, some)
            for kind, count in together.items():
                count += met_together(
                    self._places(kind, before.get(kind), len(now[kind])), now[kind], count.shape
                )
        found = {kind: renumbered(count) for kind, count in together.items()}
        self.machines = machines
        self.positions = {kind: one.of_state for kind, one in found.items()}
        return found

    def _places(self, kind: str, states: NDArray[np.int32] | None, steps: int) -> NDArray[np.int32]:
        """Return at which place a state was shown at each step: at the first without machines."""
        if states is None:
            return np.zeros(steps, np.int32)
        return self.positions[kind][states].astype(np.int32)


class Following:
    """The memory of one live episode, as places to show; it keeps the machines it began with."""

    def __init__(self, shown: Shown) -> None:
        self._memory = None if shown.machines is None else Memory(shown.machines)
        self._reads = None if shown.machines is None else Reads(shown.machines.senses)
        self._kinds, self._positions = shown.kinds, shown.positions

    def begin(self, episode: Episode) -> None:
        """Read the label of the first observation."""
        if self._memory is not None and self._reads is not None:
            self._memory.reset(self._reads.at_reset(episode.observations[0], episode.labels[0]))

    def step(self, episode: Episode) -> None:
        """Read the label of what the last step led to."""
        if self._memory is not None and self._reads is not None:
            label = episode.labels[-1]
            last = episode.actions[-1], episode.observations[-1]
            self._memory.step(self._reads.after_step(*last, label))

    def through(self, episode: Episode) -> Iterator[tuple[int, ...]]:
        """Go through an episode from its first observation on, and give the places at each."""
        if self._memory is None or self._reads is None:
            yield from [self.places] * (len(episode) + 1)
            return
        labels = self._reads.all_of(episode)
        self._memory.reset(next(labels))
        yield self.places
        for label in labels:
            self._memory.step(label)
            yield self.places

    @property
    def places(self) -> tuple[int, ...]:
        """The place of each machine's state; the first for a machine that is not there."""
        if self._memory is None:
            return (0,) * len(self._kinds)
        states = self._memory.states
        return tuple(
            int(self._positions[kind][states[kind]]) if kind in states else 0
            for kind in self._kinds
        )


class GrowingMemory(VecEnvWrapper):
    """Shows the states of machines that are inferred from the environments' own episodes.

    Each observation is flattened, and for each machine a row of `most_states` numbers is put
    behind it, of which one is 1: the place of its state. Before machines are inferred that is
    the first place. So the space stays the same while machines grow. Where there are more
    states than places, the last place stands for all that are left.

    Give it to PPO or DQN, and `InferMachines` as their callback. When machines change, a state
    keeps the place of the state that was met at the same steps before, as far as possible.

    Labels are found as by `rs.collect`: in `info["labels"]`, by `label_of`, or made of what is
    seen and done with `labels="auto"` and the like. `outputs` and all further options are those
    of `rs.infer`. Episodes count once they have ended, so the environments need a time limit if
    they do not end by themselves.

    >>> import gymnasium as gym
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> envs = GrowingMemory(make_vec_env("resolvent/House-v0", n_envs=2), most_states=3)
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
        checked = Options(outputs=outputs, **options)
        self._infer_options = {**options, "outputs": checked.outputs}
        kinds = KINDS if checked.outputs is None else tuple(map(_kind, checked.outputs))
        inner = venv.observation_space
        refused = no_fixed_size("flatten", inner)
        if refused is not None:
            raise refused
        self.shown = Shown(kinds, most_states)
        self._flat = Flat(inner, dict.fromkeys(kinds, most_states))
        super().__init__(venv, observation_space=self._flat.space)
        self._batch_space = batch_space(inner, venv.num_envs)
        stand_in = StandIn(inner, venv.action_space, _names_in(venv))
        self._observations = Names(stand_in, "observation", name_of)
        self._actions = Names(stand_in, "action")
        made = checked.labels == "auto" or not checked.labels.is_given
        self._labels = Labels(None, label_of or (told_if_any if made else None))
        self.result: InferenceResult | None = None
        self.remembers = 0
        """For how many steps episodes are kept after machines were inferred from them."""
        self.steps = 0
        """How many steps all environments have taken together."""
        self._records = True
        self._finished = Finished()
        self._traces: list[TraceSet] = []
        self._past: deque[Episode] = deque()
        self._running: list[Episode] = []
        self._following: list[Following] = []
        self._last: Any = None
        self._raw: list[Any] = []
        self._acted: list[Any] = []

    @property
    def machines(self) -> Machines | None:
        """The machines whose states are in view, None before any were inferred."""
        return self.shown.machines

    @property
    def traces(self) -> list[TraceSet]:
        """All episodes that machines were inferred from, in the order in which they ended."""
        return list(self._traces)

    def around(self, venv: VecEnv) -> "GrowingMemory":
        """Return another vector environment with the same memory in view, as for evaluation.

        Its machines are those of this one, also when these change, from the next episode
        on. Nothing is inferred from what is done there.
        """
        other = GrowingMemory(venv, most_states=self.shown.places, **self._infer_options)
        other.shown = self.shown
        other._observations, other._actions = self._observations, self._actions
        other._labels = self._labels
        other._records = False
        return other

    def reset(self) -> Any:
        """Begin an episode in all environments; those that go on are cut."""
        for episode in self._running:
            if self._records and len(episode):
                self._end(episode, terminated=False)
        observations = self.venv.reset()
        self._raw = split(self._batch_space, observations)
        self._running = [self._began(number) for number in range(self.num_envs)]
        self._following = [self._follow(episode) for episode in self._running]
        return self._extended(observations)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Send actions to all environments."""
        self._acted = list(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Take what came of the actions."""
        observations, rewards, dones, told = self.venv.step_wait()
        infos = list(told)
        self.steps += 1
        seen, before = split(self._batch_space, observations), self._raw
        self._raw = seen
        for number, done in enumerate(dones):
            info = infos[number]
            led_to = info["terminal_observation"] if done else seen[number]
            with locating(f"environment {number}"):
                self._step(number, before[number], led_to, rewards[number], info)
            if done:
                places = self._following[number].places
                infos[number] = {**info, "terminal_observation": self._flat.one(led_to, places)}
                if self._records:
                    self._end(self._running[number], not info.get("TimeLimit.truncated", False))
                self._running[number] = self._began(number)
                self._following[number] = self._follow(self._running[number])
        return self._extended(observations), rewards, dones, infos

    def infer(self) -> dict[str, Positions] | None:
        """Infer machines from all episodes that have ended, or update those that there are.

        Return where their states are now, and were before, by the kinds of the machines. None
        where nothing changes.
        """
        if not self._finished.episodes:
            return None
        traces, self._finished = self._finished.trace_set(), Finished()
        self._traces.append(traces)
        if self.result is None:
            self.result = infer(traces, **self._infer_options)
        else:
            self.result = self.result.update(traces)
        machines = self.result.machines
        if self.machines is not None and _moves_alike(self.machines, machines):
            self.shown.machines = machines
            return None
        changed = self.shown.change(machines, self._traces)
        for number, episode in enumerate(self._running):
            self._following[number] = self._follow(episode)
        return changed

    def current(self) -> Any:
        """Return what the environments show now, as the last step did or as machines changed."""
        return self._extended(self._last)

    def remembered(self) -> Iterator[tuple[Episode, list[tuple[int, ...]]]]:
        """Go through the episodes that are kept, with the place of every state in them."""
        for episode in (*self._past, *self._running):
            yield episode, list(Following(self.shown).through(episode))

    def rows(self, places: Sequence[Sequence[int]]) -> NDArray[Any]:
        """Return the part of observations that shows these places."""
        shown = np.zeros(
            (len(places), len(self.shown.kinds), self.shown.places), self._flat.space.dtype
        )
        for at, row in enumerate(places):
            shown[at, np.arange(len(row)), row] = 1
        return shown.reshape(len(places), -1)

    def _step(self, number: int, before: Any, led_to: Any, reward: Any, info: Any) -> None:
        episode, action = self._running[number], self._acted[number]
        label = self._labels.after_step(before, action, reward, led_to, info)
        episode.step(
            self._actions(action), finite_reward(reward), self._observations(led_to), label
        )
        self._following[number].step(episode)

    def _began(self, number: int) -> Episode:
        seen = self._raw[number]
        with locating(f"environment {number}"), locating("reset"):
            label = self._labels.at_reset(seen, self.venv.reset_infos[number])
            return Episode(number, self.steps, [self._observations(seen)], [label])

    def _follow(self, episode: Episode) -> Following:
        following = Following(self.shown)
        *_, _ = following.through(episode)
        return following

    def _end(self, episode: Episode, terminated: bool) -> None:
        self._finished.add(episode, terminated=terminated)
        if self.remembers:
            self._past.append(episode)
        while (
            self._past and self._past[0].first + len(self._past[0]) <= self.steps - self.remembers
        ):
            self._past.popleft()

    def _extended(self, observations: Any) -> Any:
        self._last = observations
        columns = np.array([one.places for one in self._following], np.int64).T
        return self._flat.many(observations, list(columns))


def _moves_alike(one: Machines, other: Machines) -> bool:
    """Whether two sets of machines are in the same states after the same steps."""
    if list(one) != list(other) or one.senses != other.senses or one.timing is not other.timing:
        return False
    both = zip(one.values(), other.values(), strict=True)
    return all(
        mine.labels == yours.labels and np.array_equal(mine.transitions, yours.transitions)
        for mine, yours in both
    )


def _kind(output: str) -> str:
    return "transition" if output == "observation" else output


def _names_in(venv: VecEnv) -> dict[str, Any]:
    """Return what the environments call their observations and actions, where they say so."""
    names = ("observation_names", "action_names")
    return {name: venv.get_attr(name, 0)[0] for name in names if venv.has_attr(name)}

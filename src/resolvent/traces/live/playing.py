"""How episodes are played in one environment, and what is written down of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym

from resolvent.errors import locating
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.answering import ended, of_reset, of_step
from resolvent.traces.live.naming import AnyEnv, told_if_any
from resolvent.traces.live.random_actions import random_actions
from resolvent.traces.live.recording import Recorder
from resolvent.traces.live.rolling import rolling_world, time_limit
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet


@runtime_checkable
class ReadingPolicy(Protocol):
    """A policy that goes by labels as well as by what is seen."""

    def begin(self, label: Label) -> None:
        """Take the label of what a reset showed."""

    def read(self, label: Label) -> None:
        """Take the label of what a step led to."""

    def __call__(self, observation: Any) -> Any:
        """Return what to do."""


@dataclass(frozen=True)
class Play:
    """What `collect` was asked for, but for where and how often."""

    policy: Callable[[Any], Any] | None
    label_of: Callable[..., Any] | None
    labelling: Labelling
    name_of: Callable[[Any], Any] | None
    columns: tuple[str, ...]
    max_steps: int | None
    inner: bool

    def episodes(
        self,
        env: gym.Env[Any, Any],
        numbers: range,
        seed: int | None,
        progress: Callable[[float], object] | None = None,
    ) -> TraceSet:
        """Play as many episodes as there are numbers, which errors call them by."""
        if self._rolls_out and (world := rolling_world(env)) is not None:
            draws = random_actions(env, seed).np_random
            limits = self.max_steps, time_limit(env)
            return self.labelling.on(world.rollouts(len(numbers), seed, draws, *limits, progress))
        choose = self.policy or random_policy(env, seed)
        recorder = Recorder(
            env,
            self.label_of,
            self.columns,
            labelling=self.labelling,
            name_of=self.name_of,
            inner=self.inner,
        )
        for done, number in enumerate(numbers):
            with locating(f"episode {number}"):
                _play(env, seed if done == 0 else None, choose, recorder, self.max_steps)
            if progress is not None:
                progress((done + 1) / len(numbers))
        return recorder.trace_set()

    @property
    def _rolls_out(self) -> bool:
        """Whether whole rollouts tell all that is asked for: they have no infos."""
        chosen = self.policy is not None or self.name_of is not None or self.inner
        told = self.label_of in (None, told_if_any)
        return told and not chosen and not self.columns


def random_policy(env: AnyEnv, seed: int | None) -> Callable[[Any], Any]:
    """Return a policy that draws its actions, by a seed that follows from the one given."""
    space = random_actions(env, seed)
    return lambda observation: space.sample()


def _play(
    env: gym.Env[Any, Any],
    seed: int | None,
    choose: Callable[[Any], Any],
    recorder: Recorder,
    max_steps: int | None,
) -> None:
    """Play one episode into the recorder."""
    observation, info = of_reset(env.reset(seed=seed))
    label = recorder.begin(observation, info)
    reading = choose if isinstance(choose, ReadingPolicy) else None
    if reading is not None:
        reading.begin(label)
    taken = 0
    terminated = truncated = False
    while not (terminated or truncated):
        action = choose(observation)
        observation, reward, done, cut, info = of_step(env.step(action))
        terminated, truncated = ended(done, "terminated"), ended(cut, "truncated")
        label = recorder.step(action, observation, reward, info)
        if reading is not None:
            reading.read(label)
        taken += 1
        truncated = truncated or (taken == max_steps and not terminated)
    recorder.end(terminated=terminated, truncated=truncated)

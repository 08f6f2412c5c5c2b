"""A plan + a Gymnasium environment → what acting by the plan really pays."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.control.by_value import ByValue
from resolvent.control.planning.situations import states_text, that_matter
from resolvent.control.wrapping.augment_observation import augmented_inside
from resolvent.control.wrapping.memory import Memory
from resolvent.errors import ModelError, OptionError
from resolvent.traces.live.naming import Labels, Names
from resolvent.traces.live.rolling import time_limit
from resolvent.traces.symbols import Symbol, symbol_text

if TYPE_CHECKING:
    from resolvent.control.planning.plans import Plan

_PATIENCE = 10_000
"""Steps in a circle after which nothing is expected to end an episode."""


@dataclass(frozen=True, eq=False)
class Runs(ByValue):
    """What some episodes paid, one entry for each."""

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    random_steps: int

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "episodes": len(self.returns),
            "mean_return": float(self.returns.mean()),
            "mean_discounted_return": float(self.discounted_returns.mean()),
            "mean_length": float(self.lengths.mean()),
            "terminated": int(self.terminated.sum()),
            "random_steps": self.random_steps,
        }

    def __str__(self) -> str:
        ended = int(self.terminated.sum())
        episodes = len(self.returns)
        text = (
            f"{episodes} episode{'s' * (episodes != 1)}: mean return {self.returns.mean():.4g} "
            f"(discounted {self.discounted_returns.mean():.4g}), mean length "
            f"{self.lengths.mean():.4g}; {ended} ended, {episodes - ended} were cut"
        )
        if self.random_steps:
            text += f"; {self.random_steps} steps at random, in situations the plan does not know"
        return text


def run(
    plan: "Plan",
    env: gym.Env[Any, Any],
    *,
    episodes: int,
    seed: int | None,
    options: dict[str, Any] | None,
    label_of: Callable[..., Any] | None,
    max_steps: int | None,
    on_unseen: str,
    progress: Callable[[float], object] | None,
) -> Runs:
    """Play episodes by the plan; see `Plan.run`."""
    if not isinstance(env, gym.Env):
        raise OptionError(f"run needs one gymnasium.Env, not a {type(env).__name__}: use gym.make")
    if episodes < 1:
        raise OptionError(f"episodes={episodes}: run at least one")
    if max_steps is not None and max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step, or None for no limit")
    if on_unseen not in ("raise", "random"):
        raise OptionError(f"on_unseen={on_unseen!r}: use 'raise' or 'random'")
    actor = _Actor(plan, env, seed, label_of, max_steps, on_unseen == "random")
    played = []
    for number in range(episodes):
        played.append(actor.episode(number, seed if number == 0 else None, options))
        if progress is not None:
            progress((number + 1) / episodes)
    paid = [rewards for rewards, _ in played]
    return Runs(
        np.array([sum(rewards) for rewards in paid]),
        np.array([_discounted(rewards, plan.gamma) for rewards in paid]),
        np.array([len(rewards) for rewards in paid]),
        np.array([terminated for _, terminated in played]),
        actor.random_steps,
    )


def policy_in(plan: "Plan", env: gym.Env[Any, Any]) -> Callable[[Any], Any]:
    """Return the plan as a function of what a wrapped environment shows."""
    augmented = augmented_inside(env)
    if augmented is None:
        raise OptionError(
            f"{env} does not show the states of the machines: wrap it in AugmentObservation, "
            "or let the plan keep track of them by run()"
        )
    kinds = list(augmented.machines)
    lacking = [kind for kind in plan.model.states if kind not in kinds]
    if lacking:
        raise OptionError(
            f"{env} does not show the state of the {lacking[0]} machine: wrap it in "
            "AugmentObservation with the plan's own machines"
        )
    places = [1 + kinds.index(kind) for kind in plan.model.states]
    observations, actions = Names(augmented.env, "observation"), Names(augmented.env, "action")

    def act(shown: Any) -> Any:
        situation = augmented.situation
        states = (situation[place] for place in places)
        return actions.value(plan.action(observations(situation[0]), *states))

    return act


class _Actor:
    """Plays episodes by a plan."""

    def __init__(
        self,
        plan: "Plan",
        env: gym.Env[Any, Any],
        seed: int | None,
        label_of: Callable[..., Any] | None,
        max_steps: int | None,
        may_guess: bool,
    ) -> None:
        self.plan, self.env, self.memory = plan, env, Memory(that_matter(plan.machines))
        self.labels = Labels(env, label_of)
        self.observations, self.actions = Names(env, "observation"), Names(env, "action")
        self.max_steps, self.may_guess = max_steps, may_guess
        self.space = copy.deepcopy(env.action_space)  # the environment's own is left alone
        self.space.seed(seed)
        self.has_limit = max_steps is not None or time_limit(env) is not None
        self.random_steps = 0

    def episode(
        self, number: int, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[list[float], bool]:
        """Play one episode; return its rewards and whether it ended by itself."""
        observation, info = self.env.reset(seed=seed, options=options)
        memory = self.memory
        memory.reset(self.labels.at_reset(observation, info))
        rewards: list[float] = []
        planned = 0
        terminated = truncated = False
        while not (terminated or truncated or len(rewards) == self.max_steps):
            symbol = self.observations(observation)
            action = self._planned(symbol, memory)
            planned += 1
            if action is None:
                if not self.may_guess:
                    raise ModelError(_unseen_text(number, len(rewards), symbol, memory))
                action = self.space.sample()
                self.random_steps += 1
                planned = 0
            elif planned > len(self.plan.model) + _PATIENCE and not self.has_limit:
                raise OptionError(
                    f"episode {number}, step {len(rewards)}: the plan goes in a circle, and "
                    f"neither the world nor a limit ends the episode: give max_steps"
                )
            following, reward, terminated, truncated, info = self.env.step(action)
            label = self.labels.after_step(observation, action, following, info)
            memory.step(label, terminated)
            rewards.append(float(reward))
            observation = following
        return rewards, bool(terminated)

    def _planned(self, observation: Symbol, memory: Memory) -> Any:
        """Return the action the plan has here, as the environment takes it, or None."""
        model = self.plan.model
        situation = model.situation(observation, *memory.values)
        if situation is None or memory.unseen:  # after an unseen label the states are guesses
            return None
        return self.actions.value(model.actions[int(self.plan.policy[situation])])


def _unseen_text(episode: int, step: int, observation: Symbol, memory: Memory) -> str:
    states, why = states_text(memory.values), "no known step leads there"
    if memory.unseen:
        states, why = "states unknown", "a label was read that the machines were never shown there"
    return (
        f"episode {episode}, step {step}: the plan does not know {symbol_text(observation)} in "
        f"{states}: {why}; plan from more traces, or act at random there: "
        "on_unseen='random' (--on-unseen random)"
    )


def _discounted(rewards: list[float], gamma: float) -> float:
    total = 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
    return total

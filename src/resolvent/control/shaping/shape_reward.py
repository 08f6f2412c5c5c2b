"""One environment + a plan → the same environment, whose rewards tell sooner what is worth it."""

from collections.abc import Callable
from typing import Any, Final

import gymnasium as gym

from resolvent.arguments import check_arguments
from resolvent.control.planning.plans import Plan
from resolvent.control.planning.situations import that_matter
from resolvent.control.shaping.potential import By, Potential
from resolvent.control.wrapping.augment_observation import AugmentObservation, augmented_inside
from resolvent.control.wrapping.belief_memory import BeliefMemory
from resolvent.control.wrapping.fitting import check_fit
from resolvent.control.wrapping.memory import Memory
from resolvent.errors import ModelError, OptionError
from resolvent.senses.live import LiveSenses
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.answering import of_reset, of_step
from resolvent.traces.live.naming import Labels, finite_reward


class ShapeReward(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Pays γ·Φ(next) − Φ(here) on top of each reward, where Φ is what a plan is worth there.

    A learner is told at each step whether it was a good one, not only at the end. What is
    best stays best, in any environment and however wrong the plan is: along an episode the
    payments add up to −Φ(start), whatever is done (Ng, Harada and Russell 1999).

    An episode that terminates leads nowhere, so that Φ is 0 there. One that is cut leads
    where it was cut: a learner that values what lies behind (as Stable-Baselines3 does) values
    the same as without shaping. A situation that the plan does not know promises what those
    that it knows in the same states of the machines do on average, or all, if there are none.

    With by="situation" Φ is the plan's value of each situation, with "states" what the
    states of the machines promise, whatever is observed in them: it says less, and is
    harder to get wrong. `gamma` is that of the learner, by default the plan's.

    It is put around `AugmentObservation` with the plan's machines, or around the environment
    itself, for learners that have a memory of their own: then it finds labels as that one does,
    by `labels`, `label_of` and `name_of`. `info["unshaped_reward"]` is what the
    environment paid. Traces are better collected without this wrapper.

    >>> import gymnasium as gym, resolvent as rs
    >>> env = gym.make("resolvent/House-v0")
    >>> traces = rs.collect(env, episodes=200, seed=0)
    >>> shaped = ShapeReward(env, rs.plan(rs.infer(traces), traces))
    >>> _ = shaped.reset()
    >>> round(shaped.step(2)[1], 4), round(shaped.step(4)[1], 4)  # to the key; sit there
    (0.0, -0.0407)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        plan: Plan,
        *,
        by: By = "situation",
        gamma: float | None = None,
        labels: str | Labelling | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise OptionError(
                f"env is a {type(env).__name__}: give a gymnasium.Env, "
                "or use VectorShapeReward for a VectorEnv"
            )
        check_arguments(ShapeReward.__init__, locals(), leaving=["env", "plan", "by", "label_of"])
        gym.utils.RecordConstructorArgs.__init__(
            self,
            plan=plan,
            by=by,
            gamma=gamma,
            labels=labels,
            label_of=label_of,
            name_of=name_of,
            _disable_deepcopy=True,
        )
        gym.Wrapper.__init__(self, env)
        self.plan = checked_plan(plan)
        self.gamma = checked_gamma(plan.gamma if gamma is None else gamma)
        self.potential = Potential.of_plan(plan, by=by)
        augmented = augmented_inside(env)
        self._follows: _Inside | _Alone
        if augmented is None:
            self._follows = _Alone(env, plan, labels, label_of, name_of)
        else:
            if not (labels is None and label_of is None and name_of is None):
                raise OptionError(
                    "AugmentObservation inside finds the labels already: leave out labels, "
                    "label_of and name_of"
                )
            self._follows = _Inside(augmented, plan)
        self._promised = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = of_reset(self.env.reset(seed=seed, options=options))
        self._follows.reset(observation, info)
        self._promised = self.potential.at(*self._follows.situation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and be paid for what it leads to as well."""
        observation, reward, terminated, truncated, info = of_step(self.env.step(action))
        self._follows.step(action, observation, reward, terminated, info)
        promise = 0.0 if terminated else self.potential.at(*self._follows.situation)
        shaped = finite_reward(reward) + self.gamma * promise - self._promised
        self._promised = promise
        info = {**info, UNSHAPED: reward}
        return observation, shaped, terminated, truncated, info


UNSHAPED: Final = "unshaped_reward"
"""The key of an info under which stands what the environment paid."""


def shaped_inside(env: gym.Env[Any, Any]) -> ShapeReward | None:
    """Return the wrapper that shapes rewards, from under any others."""
    while isinstance(env, gym.Wrapper) and not isinstance(env, ShapeReward):
        env = env.env
    return env if isinstance(env, ShapeReward) else None


def checked_plan(plan: Any) -> Plan:
    """Return a plan, or refuse what is none."""
    if not isinstance(plan, Plan):
        raise OptionError(f"plan is a {type(plan).__name__}: give what rs.plan returned")
    return plan


def checked_gamma(gamma: float) -> float:
    """Return a discount, or refuse what is none."""
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    return gamma


class _Inside:
    """Asks the wrapper inside, which shows the machines, for the situation."""

    def __init__(self, augmented: AugmentObservation, plan: Plan) -> None:
        kinds = list(augmented.machines)
        for kind in plan.model.states:
            if kind not in kinds or augmented.machines[kind] != plan.machines[kind]:
                raise ModelError(
                    f"AugmentObservation inside shows another {kind} machine than the plan's: "
                    "wrap with plan.machines"
                )
        self._augmented = augmented
        self._places = [1 + kinds.index(kind) for kind in plan.model.states]
        self._observations = augmented.live.observations

    @property
    def situation(self) -> tuple[Any, tuple[int, ...]]:
        """The observation as machines know it, and the states."""
        found = self._augmented.situation
        return self._observations(found[0]), tuple(found[place] for place in self._places)

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Do nothing: the wrapper inside was told."""

    def step(
        self, action: Any, observation: Any, reward: Any, terminated: bool, info: dict[str, Any]
    ) -> None:
        """Do nothing: the wrapper inside was told."""


class _Alone:
    """Follows the machines itself."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        plan: Plan,
        labels: str | Labelling | None,
        label_of: Callable[..., Any] | None,
        name_of: Callable[[Any], Any] | None,
    ) -> None:
        machines = that_matter(plan.machines)
        self._live = live = LiveSenses(env, plan.machines.senses, labels, label_of, name_of)
        check_fit(machines, live, env.observation_space, env.action_space)
        self._belief = BeliefMemory(machines, live) if machines.doubt else None
        self._memory = self._belief or Memory(machines)
        self._labels = Labels(env, live.label_of)
        self._seen: Any = None

    @property
    def situation(self) -> tuple[Any, tuple[int, ...]]:
        """The observation as machines know it, and the states."""
        return self._live.observations(self._seen), self._memory.values

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Begin anew."""
        self._memory.reset(self._labels.at_reset(observation, info))
        self._seen = observation

    def step(
        self, action: Any, observation: Any, reward: Any, terminated: bool, info: dict[str, Any]
    ) -> None:
        """Read the label that a step led to."""
        label = self._labels.after_step(self._seen, action, reward, observation, info)
        if self._belief is not None:
            self._belief.took(self._seen, action, reward, observation, terminated)
        self._memory.step(label, terminated)
        self._seen = observation

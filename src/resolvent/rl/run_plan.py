"""Act by a plan in a Gymnasium environment, and compare its returns with the plan's bounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util import html as notebook
from resolvent._util.records import ByValue
from resolvent._util.text import amount
from resolvent._util.validation import check_arguments, check_at_least
from resolvent.errors import ModelError, OptionError
from resolvent.machines.augmented_state import states_text
from resolvent.planning.steps import acting_machines
from resolvent.planning.value_bounds import BoundViolation, bound_violations, returns_of
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.env import LivePreprocessor, time_limit, wrapper_inside
from resolvent.rl.rollout import Recorder, Step, random_actions, record
from resolvent.rl.tracker import StateTracker, tracker_of
from resolvent.traces import TraceSet
from resolvent.traces.symbols import symbol_text

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan

_CYCLE_STEPS: Final = 10_000
"""Number of planned steps beyond the size of the model that count as an endless cycle."""


@dataclass(frozen=True, eq=False)
class Runs(ByValue):
    """The returns of some episodes, with one entry for each.

    `traces` are the episodes, as `collect` would record them, for `result.update`. `contradicts`
    lists the returns outside of the plan's bounds: these hold in every world that agrees with the
    machines, so the machines do not agree with this one.

    For stochastic machines, `surprises` counts the steps with an outcome that no trace had.
    """

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    random_steps: int
    traces: TraceSet
    contradicts: tuple[BoundViolation, ...]
    surprises: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "episodes": len(self.returns),
            "mean_return": float(self.returns.mean()),
            "mean_discounted_return": float(self.discounted_returns.mean()),
            "mean_length": float(self.lengths.mean()),
            "terminated": int(self.terminated.sum()),
            "random_steps": self.random_steps,
            "contradictions": len(self.contradicts),
            "first_contradiction": self.contradicts[0].as_dict() if self.contradicts else None,
            **({} if self.surprises is None else {"surprises": self.surprises}),
        }

    def __repr__(self) -> str:
        return (
            f"Runs({amount(len(self.returns), 'episode')}, mean return {self.returns.mean():.4g}, "
            f"{amount(len(self.contradicts), 'contradiction')})"
        )

    def _repr_html_(self) -> str:
        """Show the first returns and contradictions in a notebook."""
        contradicted = {each.episode: each for each in self.contradicts}
        rows = (
            [
                number,
                f"{self.returns[number]:.4g}",
                f"{self.discounted_returns[number]:.4g}",
                int(self.lengths[number]),
                "yes" if self.terminated[number] else "no",
                "" if number not in contradicted else f"{contradicted[number].least:.4g}",
            ]
            for number in range(len(self.returns))
        )
        header = ["episode", "return", "discounted", "steps", "terminated", "lower bound"]
        return notebook.panel(
            "episodes by a plan",
            notebook.lines(str(self)),
            notebook.table(header, rows, len(self.returns)),
        )

    def __str__(self) -> str:
        terminated, episodes = int(self.terminated.sum()), len(self.returns)
        text = (
            f"{amount(episodes, 'episode')}: mean return {self.returns.mean():.4g} "
            f"(discounted {self.discounted_returns.mean():.4g}), mean length "
            f"{self.lengths.mean():.4g}; {terminated} terminated, "
            f"{episodes - terminated} truncated"
        )
        if self.random_steps:
            steps = amount(self.random_steps, "random step")
            text += f"; {steps} in augmented states that the plan does not know"
        if self.surprises:
            text += f"; {amount(self.surprises, 'step')} with an outcome that no trace has"
        if self.contradicts:
            text += f"\nthe environment contradicts the plan: {self.contradicts[0]}"
            if len(self.contradicts) > 1:
                text += f", and {amount(len(self.contradicts) - 1, 'more episode')} as well"
            text += "; update the machines with these episodes (runs.traces), and plan again"
        return text


def run(
    plan: "Plan",
    env: gym.Env[Any, Any],
    *,
    episodes: int,
    seed: int | None,
    options: dict[str, Any] | None,
    labels: str | LabelingFunction | None,
    labeling_fn: Callable[..., Any] | None,
    observation_fn: Callable[[Any], Any] | None,
    columns: Sequence[str],
    max_steps: int | None,
    on_unseen: Literal["raise", "random"] | None,
    progress: Callable[[float], object] | None,
) -> Runs:
    """Play episodes by a plan; see `Plan.run`."""
    if not isinstance(env, gym.Env):
        raise OptionError(f"run needs one gymnasium.Env, not a {type(env).__name__}: use gym.make")
    check_arguments(run, locals(), leaving=["plan", "env", "labeling_fn"])
    check_at_least(1, episodes=episodes, max_steps=max_steps)
    if on_unseen is None:
        on_unseen = "raise" if plan.model.outcomes is None else "random"
    live = LivePreprocessor(env, plan.machines.preprocessor, labels, labeling_fn, observation_fn)
    recorder = Recorder(env, live.labeling_fn, columns, observation_fn=observation_fn)
    actor = _PlanActor(
        plan,
        live,
        recorder,
        random_actions=random_actions(env, seed) if on_unseen == "random" else None,
        may_cycle=max_steps is not None or time_limit(env) is not None,
    )
    limits = {"max_steps": max_steps, "options": options}
    traces = record(env, actor, recorder, range(episodes), seed=seed, progress=progress, **limits)
    return Runs(
        returns_of(traces),
        returns_of(traces, plan.gamma),
        np.diff(traces.offsets),
        traces.terminated,
        actor.random_steps,
        traces,
        bound_violations(plan, traces, actor.starts),
        None if plan.model.outcomes is None else actor.surprises,
    )


class _PlanActor:
    """Acts by a plan, and records the episodes.

    In augmented states that the plan does not know it takes `random_actions`, or raises an error
    without them. With `may_cycle` a limit ends episodes in which the plan goes in a circle.
    """

    def __init__(
        self,
        plan: "Plan",
        live: LivePreprocessor,
        recorder: Recorder,
        random_actions: gym.Space[Any] | None,
        may_cycle: bool,
    ) -> None:
        self.starts: list[int | None] = []
        self.random_steps = self.surprises = 0
        # If labels are noisy, it acts as if the most likely states were the true ones.
        self._tracker = tracker_of(acting_machines(plan.machines), live)
        self._plan, self._model, self._live, self._recorder = plan, plan.model, live, recorder
        self._random_actions, self._may_cycle = random_actions, may_cycle
        self._symbol: Any = None
        self._here: int | None = None
        self._steps = self._planned = 0

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Read the label of a reset."""
        self._steps = self._planned = 0
        self._tracker.reset(self._recorder.begin(observation, info))
        self._symbol = self._live.observations(observation)
        self._here = self._find()
        self.starts.append(self._here)

    def act(self, observation: Any) -> Any:
        """Return the plan's action, or a random one where the plan has none."""
        if self._here is None:
            if self._random_actions is None:
                raise ModelError(self._unknown_text())
            self.random_steps += 1
            self._planned = 0
            return self._random_actions.sample()
        self._planned += 1
        if self._planned > len(self._model) + _CYCLE_STEPS and not self._may_cycle:
            raise OptionError(
                f"episode {len(self.starts) - 1}, step {self._steps}: the plan goes in a circle, "
                f"and neither the environment nor a limit ends the episode: give max_steps"
            )
        return self._live.actions.value(self._model.actions[int(self._plan.policy[self._here])])

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        """Read the label of a step, and count a surprise."""
        next_observation, reward, terminated, _, info = step
        before = self._here
        if self._tracker.weighs_outcomes:
            self._tracker.weigh(observation, action, reward, next_observation, terminated)
            before = self._find()  # the outcome may have changed the belief
        label = self._recorder.step(action, next_observation, reward, info)
        self._tracker.step(label, bool(terminated))
        self._steps += 1
        if terminated:
            return
        self._symbol = self._live.observations(next_observation)
        self._here = self._find()
        model = self._model
        code = model.actions.get(self._live.actions(action))
        if (
            model.outcomes is None
            or before is None
            or code is None
            or not model.known[before, code]
        ):
            return
        seen = model.outcomes.next_states(before * len(model.actions) + code)
        self.surprises += self._here is None or self._here not in seen

    def _find(self) -> int | None:
        """Return the number of the augmented state; None if the plan does not know it.

        After an unseen label the states are guesses, used only for stochastic machines and if
        random actions are allowed.
        """
        may_guess = self._model.outcomes is not None and self._random_actions is not None
        if self._tracker.unseen and not may_guess:
            return None
        return self._model.find(self._symbol, *self._tracker.values)

    def _unknown_text(self) -> str:
        """Return a message about the unknown augmented state and the remedy."""
        symbol, model = self._symbol, self._model
        states, reason = states_text(self._tracker.values), "no known step leads there"
        if self._tracker.unseen:
            states, reason = "states unknown", "a label was read that is unseen in these machines"
        text = (
            f"episode {len(self.starts) - 1}, step {self._steps}: the plan does not know "
            f"{symbol_text(symbol)} in {states}: {reason}; plan from more traces, or act at "
            "random there: on_unseen='random' (--on-unseen random)"
        )
        if symbol not in model.observations:
            text += (
                f"; the plan's observations are such as {symbol_text(model.observations[0])}: "
                "if observation_fn made them, give it here, too"
            )
        return text


def policy_in(plan: "Plan", env: gym.Env[Any, Any]) -> Callable[[Any], Any]:
    """Return a plan as a policy for an environment inside `AugmentObservation`."""
    augmented = wrapper_inside(env, AugmentObservation)
    if augmented is None:
        raise OptionError(
            f"{env} does not show the states of the machines: wrap it in AugmentObservation, "
            "or use plan.run(env), which tracks them"
        )
    lacking = [name for name in plan.model.states if name not in augmented.machines]
    if lacking:
        raise OptionError(
            f"{env} does not show the state of the {lacking[0]} machine: wrap it in "
            "AugmentObservation with the plan's own machines"
        )
    return _PlanPolicy(plan, augmented)


class _PlanPolicy:
    """A plan as a policy of an environment that shows the states of the machines."""

    acts_inside = True
    """Whether `collect` is to record the environment inside."""

    def __init__(self, plan: "Plan", augmented: AugmentObservation) -> None:
        self._plan, self._episode = plan, augmented.episode

    def __call__(self, observation: Any) -> Any:
        """Return the plan's action in the environment's augmented state."""
        action = self._plan.action(*self._episode.augmented_state(self._plan.model.states))
        return self._episode.live.actions.value(action)


class PlanMemory:
    """The states of a plan's machines in an episode, for `Plan.predict`.

    Labels are made of observations and actions, so the machines have to be inferred with
    `labels="observation"` or the like.
    """

    def __init__(self, plan: "Plan") -> None:
        machines = acting_machines(plan.machines)
        self._live = LivePreprocessor(None, plan.machines.preprocessor)
        if self._live.labeling_fn is None or machines.state_uncertainty:
            raise OptionError(
                "predict gets observations alone, and these machines read labels that the "
                "environment reports: give it the observations of AugmentObservation (in mode "
                '"dict"), or use plan.run(env) or plan.policy_in(env)'
            )
        self._tracker = StateTracker(machines, on_unseen="raise")
        self._action: Any = None

    def act(self, plan: "Plan", observation: Any) -> Any:
        """Return the plan's action, given the next observation of the episode."""
        label = self._live.label(self._action, observation)
        (self._tracker.reset if self._action is None else self._tracker.step)(label)
        symbol = self._live.observations(observation)
        self._action = plan.action(symbol, *self._tracker.values)
        return self._action


def predict(
    plan: "Plan", observation: Any, state: PlanMemory | None, episode_start: Any
) -> tuple[Any, PlanMemory | None]:
    """Return a plan's action for an observation, and the memory; see `Plan.predict`."""
    names = [f"{name}_state" for name in plan.model.states]
    if isinstance(observation, Mapping) and all(name in observation for name in names):
        states = [int(observation[name]) for name in names]
        visible = {f"{name}_state" for name in plan.machines}
        inner = {name: part for name, part in observation.items() if name not in visible}
        return plan.action(inner.get("observation", inner), *states), state
    if state is None or (episode_start is not None and np.any(episode_start)):
        state = PlanMemory(plan)
    return state.act(plan, observation), state

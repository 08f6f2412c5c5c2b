"""Act by a plan in a Gymnasium environment, and compare its returns with the plan's bounds.

Deterministic machines are refuted by one episode with a return outside of the bounds, stochastic
ones by the mean return of many episodes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util import html as notebook
from resolvent._util.math import log
from resolvent._util.records import ByValue, builtin
from resolvent._util.text import amount
from resolvent._util.validation import check_arguments, check_at_least
from resolvent.errors import ModelError, OptionError
from resolvent.machines.augmented_state import states_text
from resolvent.planning.calibration import returns_of
from resolvent.planning.deterministic import discounted_sum
from resolvent.planning.plan import Plan
from resolvent.planning.steps import acting_machines
from resolvent.planning.stochastic import possible_returns
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.env import LivePreprocessor, check_env, time_limit, wrapper_inside
from resolvent.rl.paid import Paid, missing_rewards
from resolvent.rl.rollout import Recorder, Step, random_actions, record
from resolvent.rl.tracker import BeliefTracker, StateTracker, tracker_of
from resolvent.traces import TraceSet
from resolvent.traces.symbols import symbol_text

_NEGLIGIBLE: Final = 1e-4  # discount of the last step that the default limit allows
_UNDISCOUNTED_STEPS: Final = 10_000  # the same limit without discount
_ENOUGH: Final = 10  # minimum number of episodes for a standard error
_TOLERANCE: Final = 0.01  # share of a value below which a difference does not count
_ROUNDING: Final = 1e-9  # share of the larger return below which a difference is rounding


@dataclass(frozen=True)
class BoundViolation:
    """An episode with a return outside of the plan's bounds; `episode` is None for the mean of all.

    `actual` is the discounted return, `least` and `most` are the plan's bounds on it, within the
    length of the episode if it was truncated. They are equal unless the plan takes an unknown step.
    """

    episode: int | None
    least: float
    most: float
    actual: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "episode": self.episode,
            "bounds": builtin((self.least, self.most)),
            "return": self.actual,
        }

    def __str__(self) -> str:
        """Return a line of text."""
        returned = f"episode {self.episode} returned {self.actual:.4g}"
        if self.episode is None:
            returned = f"the episodes returned {self.actual:.4g} on average"
        bound = f"{self.least:.4g}"
        if self.most > self.least:
            bound = f"at most {self.most:.4g}" if self.actual > self.most else f"at least {bound}"
        return f"{returned}, but the plan's value is {bound}"


@dataclass(frozen=True, eq=False)
class Runs(ByValue):
    """The returns of some episodes, with one entry for each.

    `traces` are the episodes, as `collect` would record them, for `result.update`. `contradicts`
    lists the returns outside of the plan's bounds: these hold in every world that agrees with the
    machines, so the machines do not agree with this one.

    For stochastic machines, `surprises` counts the steps with an outcome that no trace had.

    `paid` is the mean discounted return with its 95% interval. An episode that a step limit
    truncated, and not the environment, may have had any rewards later. `stated` is the value that
    the plan states, as a range. `default_limit` is the limit of steps if no other was set.
    """

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    random_steps: int
    traces: TraceSet
    contradicts: tuple[BoundViolation, ...]
    paid: Paid
    stated: tuple[float, float]
    surprises: int | None = None
    default_limit: int | None = None

    @property
    def agrees(self) -> bool:
        """Whether the plan's value is what was paid, up to three standard errors and 1%."""
        return self.paid.allows(*self.stated, _TOLERANCE)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "episodes": len(self.returns),
            "mean_return": float(self.returns.mean()),
            "mean_discounted_return": float(self.discounted_returns.mean()),
            "paid": self.paid.as_dict(),
            "agrees": self.agrees,
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
        violated = {violation.episode: f"{violation.least:.4g}" for violation in self.contradicts}
        returns = (map("{:.4g}".format, sums) for sums in (self.returns, self.discounted_returns))
        ends = np.where(self.terminated, "yes", "no").tolist()
        columns = enumerate(zip(*returns, self.lengths.tolist(), ends, strict=True))
        rows = ([number, *row, violated.get(number, "")] for number, row in columns)
        header = ["episode", "return", "discounted", "steps", "terminated", "lower bound"]
        table = notebook.table(header, rows, len(self.returns))
        return notebook.panel("episodes by a plan", notebook.lines(str(self)), table)

    def __str__(self) -> str:
        terminated, episodes = int(self.terminated.sum()), len(self.returns)
        interval = f", {self.paid.interval_text}" if self.paid.interval_text else ""
        text = (
            f"{amount(episodes, 'episode')}: mean return {self.returns.mean():.4g} "
            f"(discounted {self.discounted_returns.mean():.4g}{interval}), mean length "
            f"{self.lengths.mean():.4g}; {terminated} terminated, "
            f"{episodes - terminated} truncated"
        )
        if self.default_limit in self.lengths.tolist():
            text += f"; no limit was given, so episodes end after {self.default_limit:,} steps"
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
        elif not self.agrees:
            text += (
                f"\nthe plan's value, {self.stated[0]:.4g}, is not what was paid, "
                f"{self.paid}: rely on what was paid"
            )
        return text


def run(
    plan: Plan,
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
    total_steps: int | None = None,
) -> Runs:
    """Play episodes by a plan; see `Plan.run`.

    `total_steps` limits all episodes together; the last ones may not begin.
    """
    check_env(env, gym.Env, "run")
    check_arguments(run, locals(), leaving=["plan", "env", "labeling_fn"])
    check_at_least(1, episodes=episodes, max_steps=max_steps)
    check_at_least(0, seed=seed)
    if on_unseen is None:
        on_unseen = "raise" if plan.model.outcomes is None else "random"
    live = LivePreprocessor(env, plan.machines.preprocessor, labels, labeling_fn, observation_fn)
    recorder = Recorder(env, live.labeling_fn, columns, observation_fn=observation_fn)
    unknown_actions = random_actions(env, seed) if on_unseen == "random" else None
    actor = _PlanActor(plan, live, recorder, unknown_actions)
    has_limit = max_steps is not None or time_limit(env) is not None
    default_limit = None if has_limit else _default_limit(plan)

    def limit() -> int:
        left, longest = (total_steps or 0) - actor.all_steps, actor.most_steps
        most = max_steps or default_limit or left
        return min(most, left) if left >= min(most, 2 * longest) else 0

    traces = record(
        env,
        actor,
        recorder,
        range(episodes),
        seed=seed,
        progress=progress,
        max_steps=limit if total_steps else max_steps or default_limit,
        options=options,
    )
    discounted, is_exact = returns_of(traces, plan.gamma), plan.model.outcomes is None
    return Runs(
        returns_of(traces),
        discounted,
        np.diff(traces.offsets),
        traces.terminated,
        actor.random_steps,
        traces,
        bound_violations(plan, traces, actor.starts),
        Paid.of(
            discounted,
            missing=missing_rewards(traces, actor.truncated, plan.gamma, plan.reward_range),
            possible=possible_returns(plan.model, plan.policy, plan.values, plan.gamma),
        ),
        (plan.value, plan.value + (plan.bound if is_exact else 0.0)),
        None if is_exact else actor.surprises,
        default_limit,
    )


def _default_limit(plan: Plan) -> int:
    """Return the number of steps after which an episode has no more influence on the return.

    A plan may go in a circle, also of random steps. No path without a circle is cut.
    """
    steps = _UNDISCOUNTED_STEPS
    if plan.gamma < 1:
        steps = math.ceil(log(_NEGLIGIBLE) / log(plan.gamma))
    return len(plan.model) + steps


@dataclass
class _PlanActor:
    """Acts by a plan, and records the episodes.

    In augmented states that the plan does not know it takes `random_actions`, or raises an error
    without them. `truncated` are the episodes that the environment truncated.
    """

    plan: Plan
    live: LivePreprocessor
    recorder: Recorder
    random_actions: gym.Space[Any] | None
    starts: list[int | None] = field(default_factory=list)
    truncated: set[int] = field(default_factory=set)
    random_steps: int = 0
    all_steps: int = 0
    most_steps: int = 0  # of an episode
    surprises: int = 0

    def __post_init__(self) -> None:
        # If labels are noisy, it acts as if the most likely states were the true ones.
        self._tracker = tracker_of(acting_machines(self.plan.machines), self.live)
        self._model = self.plan.model

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Read the label of a reset."""
        self._steps = 0
        self._tracker.reset(self.recorder.begin(observation, info))
        self._symbol = self.live.observations(observation)
        self._here = self._find()
        self.starts.append(self._here)

    def act(self, observation: Any) -> Any:
        """Return the plan's action, or a random one where the plan has none."""
        if self._here is None:
            if self.random_actions is None:
                raise ModelError(self._unknown_text())
            self.random_steps += 1
            return self.random_actions.sample()
        return self.live.actions.value(self._model.actions[int(self.plan.policy[self._here])])

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        """Read the label of a step, and count a surprise."""
        next_observation, reward, terminated, truncated, info = step
        before = self._here
        if isinstance(self._tracker, BeliefTracker):
            self._tracker.weigh(observation, action, reward, next_observation, terminated)
            before = self._find()  # the outcome may have changed the belief
        label = self.recorder.step(action, next_observation, reward, info)
        self._tracker.step(label, bool(terminated))
        self._steps += 1
        self.all_steps += 1
        self.most_steps = max(self.most_steps, self._steps)
        if truncated:
            self.truncated.add(len(self.starts) - 1)
        if terminated:
            return
        self._symbol = self.live.observations(next_observation)
        self._here, model = self._find(), self._model
        code = model.actions.get(self.live.actions(action))
        if model.outcomes is None or before is None or code is None:
            return
        if model.known[before, code]:
            seen = model.outcomes.next_states(before * len(model.actions) + code)
            self.surprises += self._here is None or self._here not in seen

    def _find(self) -> int | None:
        """Return the number of the augmented state; None if the plan does not know it.

        After an unseen label the states are guesses, used only for stochastic machines and if
        random actions are allowed.
        """
        may_guess = self._model.outcomes is not None and self.random_actions is not None
        if self._tracker.unseen and not may_guess:
            return None
        return self._model.find(self._symbol, *self._tracker.values)

    def _unknown_text(self) -> str:
        """Return a message about the unknown augmented state and the remedy."""
        symbol, observations = self._symbol, self._model.observations
        states, reason = states_text(self._tracker.values), "no known step leads there"
        if self._tracker.unseen:
            states, reason = "states unknown", "a label was read that is unseen in these machines"
        text = (
            f"episode {len(self.starts) - 1}, step {self._steps}: the plan does not know "
            f"{symbol_text(symbol)} in {states}: {reason}; plan from more traces, or act at "
            "random there: on_unseen='random' (--on-unseen random)"
        )
        if symbol not in observations:
            text += (
                f"; the plan's observations are such as {symbol_text(observations[0])}: "
                "if observation_fn made them, give it here, too"
            )
        return text


def policy_in(plan: Plan, env: gym.Env[Any, Any]) -> Callable[[Any], Any]:
    """Return a plan as a policy for an environment inside `AugmentObservation`."""
    augmented = wrapper_inside(env, AugmentObservation)
    if augmented is None:
        raise OptionError(
            f"{env} does not show the states of the machines: wrap it in AugmentObservation, "
            "or use plan.run(env), which tracks them"
        )
    for name in plan.model.states:
        if name not in augmented.machines:
            raise OptionError(
                f"{env} does not show the state of the {name} machine: wrap it in "
                "AugmentObservation with the plan's own machines"
            )
    return _PlanPolicy(plan, augmented)


class _PlanPolicy:
    """A plan as a policy of an environment that shows the states of the machines."""

    acts_inside = True
    """Whether `collect` is to record the environment inside."""

    def __init__(self, plan: Plan, augmented: AugmentObservation) -> None:
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

    def __init__(self, plan: Plan) -> None:
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

    def act(self, plan: Plan, observation: Any) -> Any:
        """Return the plan's action, given the next observation of the episode."""
        label = self._live.label(self._action, observation)
        (self._tracker.reset if self._action is None else self._tracker.step)(label)
        symbol = self._live.observations(observation)
        self._action = plan.action(symbol, *self._tracker.values)
        return self._action


def predict(
    plan: Plan, observation: Any, state: PlanMemory | None, episode_start: Any
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


# --- Bounds on returns ---------------------------------------------------------------------------


def return_bounds(plan: Plan, start: int, steps: float = math.inf) -> tuple[float, float]:
    """Return bounds on the plan's return from an augmented state within a number of steps.

    They differ only where the plan reaches an unknown step.
    """
    model, gamma, state = plan.model, plan.gamma, start
    total, weight = 0.0, 1.0
    for done in range(len(model) + 1 if math.isinf(steps) else int(steps)):
        action = int(plan.policy[state])
        if not model.known[state, action]:
            (low, high), remaining = plan.reward_range, steps - done
            return (
                total + weight * min(low, discounted_sum(low, gamma, remaining)),
                total + weight * max(high, discounted_sum(high, gamma, remaining)),
            )
        total += weight * float(model.reward[state, action])
        weight *= gamma
        state = int(model.next_state[state, action])
        if state < 0:
            return total, total
    if math.isinf(steps):  # the plan runs in a cycle
        total = float(plan.pessimistic[start])
    return total, total


def bound_violations(
    plan: Plan, traces: TraceSet, starts: Sequence[int | None]
) -> tuple[BoundViolation, ...]:
    """Return the episodes of the plan with returns outside of its bounds.

    `starts` are their initial augmented states, None if the plan does not know it. If no episode
    from a known start contradicts the plan and there are others, the mean of all must not be more
    than three standard errors below its value. For a stochastic model, the mean of all episodes
    from known starts must not be more than three standard errors outside of the plan's bounds.
    """
    known = np.array([number for number, start in enumerate(starts) if start is not None], int)
    if plan.model.outcomes is not None:
        if plan.no_bound is not None or not len(known):
            return ()
        states = [start for start in starts if start is not None]
        bounds = (float(values[states].mean()) for values in (plan.pessimistic, plan.optimistic))
        return _mean_violations(plan, traces.take(known), *bounds)
    levels = plan.machines.preprocessor.rewards
    if levels is not None:
        traces = levels.transform(traces)  # the plan predicts the level of a noisy reward
    returns = returns_of(traces, plan.gamma, plan.machines.reward.digits)
    bounds_from = lru_cache(maxsize=None)(partial(return_bounds, plan))
    violations = []
    for number in known.tolist():
        length = math.inf if traces.terminated[number] else int(np.diff(traces.offsets)[number])
        least, most = bounds_from(starts[number], length)
        actual = float(returns[number])
        if not _at_most(least, actual) or not _at_most(actual, most):
            violations.append(BoundViolation(number, least, most, actual))
    if violations or len(known) == len(starts):
        return tuple(violations)
    return _mean_violations(plan, traces, plan.value, math.inf)


def _mean_violations(
    plan: Plan, traces: TraceSet, least: float, most: float
) -> tuple[BoundViolation, ...]:
    """Return whether the mean return is outside of bounds; truncated episodes might continue."""
    returns = returns_of(traces, plan.gamma, plan.machines.reward.digits)
    missing = missing_rewards(traces, set(), plan.gamma, plan.reward_range)
    paid = Paid.of(returns, missing=missing)
    if len(returns) < _ENOUGH or paid.allows(least, most, _ROUNDING):
        return ()
    return (BoundViolation(None, least, most, paid.mean),)


def _at_most(less: float, more: float) -> bool:
    """Return whether a number is at most another, up to rounding."""
    return less <= more or math.isclose(less, more, rel_tol=_ROUNDING, abs_tol=_ROUNDING)

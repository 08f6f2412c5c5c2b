"""Run a plan in a Gymnasium environment, and compare its returns with the plan's bounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util import html as notebook
from resolvent._util.records import ByValue
from resolvent._util.text import amount
from resolvent._util.validation import check_arguments, shown
from resolvent.errors import ModelError, OptionError, locating
from resolvent.machines.situations import states_text
from resolvent.planning.steps import acting_machines
from resolvent.planning.value_bounds import BoundViolation, bound_violations, returns_of
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.env import LivePreprocessor, time_limit
from resolvent.rl.rollout import Recorder, Step, play_episode, random_actions
from resolvent.rl.tracker import BeliefTracker, StateTracker
from resolvent.rl.wrappers.augment import AugmentObservation, augmented_inside
from resolvent.traces import TraceSet
from resolvent.traces.symbols import Symbol, symbol_text

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
                "yes" if self.terminated[number] else "cut",
                "" if number not in contradicted else f"{contradicted[number].least:.4g}",
            ]
            for number in range(len(self.returns))
        )
        header = ["episode", "return", "discounted", "steps", "ended", "promised instead"]
        return notebook.panel(
            "a plan at work",
            notebook.lines(str(self)),
            notebook.table(header, rows, len(self.returns)),
        )

    def __str__(self) -> str:
        terminated, episodes = int(self.terminated.sum()), len(self.returns)
        text = (
            f"{episodes} episode{'s' * (episodes != 1)}: mean return {self.returns.mean():.4g} "
            f"(discounted {self.discounted_returns.mean():.4g}), mean length "
            f"{self.lengths.mean():.4g}; {terminated} ended, {episodes - terminated} were cut"
        )
        if self.random_steps:
            text += f"; {self.random_steps} steps at random, in situations the plan does not know"
        if self.surprises:
            steps = amount(self.surprises, "step")
            text += f"; {steps} led where no trace had come by the same step"
        if self.contradicts:
            text += f"\nthe world contradicts the plan: {self.contradicts[0]}"
            if len(self.contradicts) > 1:
                text += f", and {amount(len(self.contradicts) - 1, 'other episode')} likewise"
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
    label_of: Callable[..., Any] | None,
    name_of: Callable[[Any], Any] | None,
    columns: Sequence[str],
    max_steps: int | None,
    on_unseen: str | None,
    progress: Callable[[float], object] | None,
) -> Runs:
    """Play episodes by a plan; see `Plan.run`."""
    if not isinstance(env, gym.Env):
        raise OptionError(f"run needs one gymnasium.Env, not a {type(env).__name__}: use gym.make")
    check_arguments(run, locals(), leaving=["plan", "env", "on_unseen", "label_of"])
    if episodes < 1:
        raise OptionError(f"episodes={episodes}: run at least one")
    if max_steps is not None and max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step, or None for no limit")
    if on_unseen is None:
        on_unseen = "raise" if plan.model.chances is None else "random"
    if not isinstance(on_unseen, str) or on_unseen not in ("raise", "random"):
        raise OptionError(f"on_unseen={shown(on_unseen)}: use 'raise' or 'random'")
    live = LivePreprocessor(env, plan.machines.senses, labels, label_of, name_of)
    recorder = Recorder(env, live.label_of, columns, name_of=name_of)
    has_limit = max_steps is not None or time_limit(env) is not None
    space = random_actions(env, seed)
    actor = _PlanActor(plan, live, recorder, space, has_limit, on_unseen == "random")
    for number in range(episodes):
        with locating(f"episode {number}"):
            first_seed = seed if number == 0 else None
            terminated, truncated = play_episode(
                env, actor, seed=first_seed, max_steps=max_steps, options=options
            )
            recorder.end(terminated=terminated, truncated=truncated)
        if progress is not None:
            progress((number + 1) / episodes)
    traces = recorder.trace_set()
    return Runs(
        returns_of(traces),
        returns_of(traces, plan.gamma),
        np.diff(traces.offsets),
        traces.terminated,
        actor.random_steps,
        traces,
        bound_violations(plan, traces, actor.starts),
        None if plan.model.chances is None else actor.surprises,
    )


def policy_in(plan: "Plan", env: gym.Env[Any, Any]) -> Callable[[Any], Any]:
    """Return a plan as a policy for an environment inside `AugmentObservation`."""
    augmented = augmented_inside(env)
    if augmented is None:
        raise OptionError(
            f"{env} does not show the states of the machines: wrap it in AugmentObservation, "
            "or let the plan keep track of them by run()"
        )
    names = list(augmented.machines)
    lacking = [name for name in plan.model.states if name not in names]
    if lacking:
        raise OptionError(
            f"{env} does not show the state of the {lacking[0]} machine: wrap it in "
            "AugmentObservation with the plan's own machines"
        )
    return _PlanPolicy(plan, augmented, [1 + names.index(name) for name in plan.model.states])


class _PlanPolicy:
    """A plan as a policy of an environment that shows the states of the machines."""

    acts_inside = True
    """Tells `collect` to record the environment inside."""

    def __init__(self, plan: "Plan", augmented: AugmentObservation, places: list[int]) -> None:
        self._plan, self._augmented, self._places = plan, augmented, places
        self._observations, self._actions = augmented.live.observations, augmented.live.actions

    def __call__(self, observation: Any) -> Any:
        """Return the plan's action in the environment's augmented state."""
        state = self._augmented.situation
        machine_states = (state[place] for place in self._places)
        action = self._plan.action(self._observations(state[0]), *machine_states)
        return self._actions.value(action)


class _PlanActor:
    """Acts by a plan, and records the episodes."""

    def __init__(
        self,
        plan: "Plan",
        live: LivePreprocessor,
        recorder: Recorder,
        space: gym.Space[Any],
        has_limit: bool,
        may_guess: bool,
    ) -> None:
        self.starts: list[int | None] = []
        self.random_steps = self.surprises = 0
        machines = acting_machines(plan.machines)
        # If labels are noisy, it acts as if the most likely states were the true ones.
        self._belief = BeliefTracker(machines, live) if machines.doubt else None
        self._memory = self._belief or StateTracker(machines)
        self._plan, self._live, self._recorder, self._space = plan, live, recorder, space
        self._has_limit, self._may_guess = has_limit, may_guess
        self._symbol: Any = None
        self._situation: int | None = None
        self._steps = self._planned = 0

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Read the label of a reset."""
        self._steps = self._planned = 0
        self._memory.reset(self._recorder.begin(observation, info))
        self._symbol = self._live.observations(observation)
        self._situation = self._look_up(self._symbol)
        self.starts.append(self._situation)

    def act(self, observation: Any) -> Any:
        """Return the plan's action, or a random one where the plan has none."""
        self._planned += 1
        if self._situation is None:
            if not self._may_guess:
                raise ModelError(self._unknown_text())
            self.random_steps += 1
            self._planned = 0
            return self._space.sample()
        if self._planned > len(self._plan.model) + _CYCLE_STEPS and not self._has_limit:
            raise OptionError(
                f"episode {len(self.starts) - 1}, step {self._steps}: the plan goes in a circle, "
                f"and neither the world nor a limit ends the episode: give max_steps"
            )
        action = self._plan.model.actions[int(self._plan.policy[self._situation])]
        return self._live.actions.value(action)

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        """Read the label of a step, and count a surprise."""
        following, reward, terminated, _, info = step
        before = self._situation
        if self._belief is not None:
            self._belief.took(observation, action, reward, following, terminated)
            before = self._look_up(self._symbol)  # the outcome may have changed the belief
        self._memory.step(self._recorder.step(action, following, reward, info), bool(terminated))
        self._steps += 1
        if terminated:
            return
        self._symbol = self._live.observations(following)
        self._situation = self._look_up(self._symbol)
        model = self._plan.model
        if model.chances is None or before is None:
            return
        code = model.actions.get(self._live.actions(action))
        if code is not None and model.known[before, code]:
            row, after = before * len(model.actions) + code, self._situation
            self.surprises += after is None or after not in model.chances.leads_to(row)

    def _look_up(self, symbol: Symbol) -> int | None:
        """Return the number of the augmented state; None if the plan does not know it.

        After an unseen label the states are guesses, used only for stochastic machines and if the
        plan may guess.
        """
        model = self._plan.model
        if self._memory.unseen and (model.chances is None or not self._may_guess):
            return None
        return model.situation(symbol, *self._memory.values)

    def _unknown_text(self) -> str:
        """Return a message about the unknown situation and the remedy."""
        memory, symbol, model = self._memory, self._symbol, self._plan.model
        states, reason = states_text(memory.values), "no known step leads there"
        if memory.unseen:
            states = "states unknown"
            reason = "a label was read that the machines were never shown there"
        text = (
            f"episode {len(self.starts) - 1}, step {self._steps}: the plan does not know "
            f"{symbol_text(symbol)} in {states}: {reason}; plan from more traces, or act at "
            "random there: on_unseen='random' (--on-unseen random)"
        )
        if symbol not in model.observations:
            text += (
                f"; the plan's observations are such as {symbol_text(model.observations[0])}: "
                "if name_of made them, give it here, too"
            )
        return text

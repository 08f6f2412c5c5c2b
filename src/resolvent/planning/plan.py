"""Machines + traces → a policy, with bounds on its value and on the value of any policy.

The pessimistic value assumes that an unknown step leads to the lowest rewards, the optimistic
value that it leads to the highest; see docs/decisions/planning.md.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util.parallel import Listener, Workers, get_executor
from resolvent._util.records import ByValue, builtin
from resolvent._util.validation import check_arguments, explain_memory_errors, quoted
from resolvent.errors import ModelError, OptionError
from resolvent.evaluation.experiments import Experiment
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.machines import Machines
from resolvent.machines.augmented_state import AugmentedState, augmented_state_text
from resolvent.planning import plan_io
from resolvent.planning.calibration import return_errors
from resolvent.planning.model import Model, first_unknown_step, nearest_unknown_step
from resolvent.planning.optimize import optimize
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.replay.corpus import Corpus
from resolvent.traces import Symbol, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import check_column_names
from resolvent.traces.symbols import as_symbol
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.rl.run_plan import Runs


def plan(
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceDataset,
    *,
    gamma: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    trust_constants: bool = False,
    confidence: float = 0.95,
    on: str | Workers = "threads",
    progress: Listener | None = None,
) -> "Plan":
    """Find the best policy from machines and traces alone.

    The traces show where episodes begin and end, and which labels follow; they need not be those
    that the machines were inferred from. Files are read twice, or once with the result of their
    own inference; `on` and `progress` are those of `infer`. With gamma 1 nothing is discounted,
    which needs an environment without endless rewards.

    Unknown steps are assumed to have rewards within `reward_range`, by default the lowest and
    the highest that occurred. An output that was the same in all states is known only in states
    where these traces show it; `trust_constants` assumes it in all others, and the bounds hold
    only if that is right.

    For stochastic machines, `value` is the expected return by relative frequencies, corrected
    for their luck, and the bounds hold with `confidence`. Files are then read once more. With
    gamma 1, episodes have to end surely.

    If all rewards in the traces are equal, no plan is called optimal: see `all_rewards_equal`.

    >>> from resolvent.worlds import House
    >>> from resolvent.inference.infer import infer
    >>> from resolvent.rl.collect import collect
    >>> traces = collect(House(), episodes=200, seed=0)
    >>> best = plan(infer(traces), traces)
    >>> best.action("corridor", 0, 0), best.action("corridor", 1, 0), best.is_optimal
    ('left', 'up', True)
    >>> print(best)
    value        0.7738 from the starts, discounted by 0.95
    bound        optimal: no policy has a higher value
    model        9 augmented states, 5 actions
    unknown      0 of 45 steps
    >>> print(best.run(House(), episodes=3))
    3 episodes: mean return 1 (discounted 0.7738), mean length 6; 3 terminated, 0 truncated
    """
    check_arguments(plan, locals(), leaving=["machines", "traces"])
    result, machines = machines, machines_of_result(machines)
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence}: use a number above 0 and below 1")
    traces, corpus = as_traces(traces), None
    if isinstance(result, InferenceResult):
        corpus = result.inference_state.corpus
        if isinstance(traces, TraceSet):
            traces = _without_outliers(result, traces)
    with explain_memory_errors("a model was made"), get_executor(on) as workers:
        model = Model.of(
            machines,
            traces,
            trust_constants=trust_constants,
            known=corpus,
            workers=workers,
            progress=progress,
        )
        reward_range = reward_range or model.reward_range
        bounded_policy = optimize(model, gamma, reward_range, confidence)
        best = Plan(machines, model, gamma, reward_range, *bounded_policy)
        if machines.preprocessor.discretize is not None:
            best = replace(best, no_bound=_INTERVALS)
        return best if model.outcomes is None else _calibrated(best, traces, corpus, workers)


_INTERVALS: Final = "the states are intervals of readings, not the states of the environment"


def _calibrated(
    best: "Plan", traces: TraceSet | TraceDataset, known: Corpus | None, workers: Workers
) -> "Plan":
    """Return a plan with the error of its model in the traces, and the reason for no bound."""
    errors = return_errors(best, traces, known, workers)
    error, no_bound = errors.correction, best.no_bound
    if best.machines.state_uncertainty:
        no_bound = f"labels do not determine the states ({best.machines.state_uncertainty})"
    elif error:
        no_bound = (
            f"the model predicts {abs(error):.4g} {'more' if error < 0 else 'less'} than the "
            "traces were paid, so its states lack something that matters"
        )
    elif 0 < errors.span <= best.bound < math.inf:
        no_bound = "it would be as wide as the range of the traces' returns"
    return replace(best, model_error=error, no_bound=no_bound)


def _without_outliers(result: InferenceResult, traces: TraceSet) -> TraceSet:
    """Return the traces without outliers, if the inference was made from these traces."""
    provenance = result.machines.provenance
    if not result.outliers or provenance is None or len(traces) != result.traces:
        return traces
    inliers = traces.take(np.setdiff1d(np.arange(len(traces)), result.outliers))
    return inliers if provenance.is_of(result.preprocessor.transform(inliers)) else traces


@dataclass(frozen=True, eq=False)
class Plan(ByValue):
    """A policy, and bounds on its value.

    `policy` is the code of an action for each augmented state of the model. Its value is at
    least `pessimistic`, and no policy has a value above `optimistic`, if all rewards are within
    `reward_range`. For stochastic machines both bounds hold with `confidence`, and `expected` is
    the value of the policy by relative frequencies; otherwise these two are None. It is too high
    by about `optimism`, since the same counts chose the policy, and too low by `model_error`, since
    the model misses the returns of the traces by as much. `no_bound` is the reason why no bound is
    known, if there is one.
    """

    machines: Machines
    model: Model
    gamma: float
    reward_range: tuple[float, float]
    policy: Codes
    pessimistic: NDArray[np.float64]
    optimistic_policy: Codes
    optimistic: NDArray[np.float64]
    expected: NDArray[np.float64] | None = None
    confidence: float | None = None
    optimism: float = 0.0
    model_error: float = 0.0
    no_bound: str | None = None

    @property
    def value(self) -> float:
        """The mean value of the plan over the starts of the traces.

        It is a lower bound, or for stochastic machines the expected return, without the optimism of
        the counts that chose the policy.
        """
        mean = self.model.mean_at_starts
        value = mean(self.values) - self.optimism + self.model_error
        return max(value, mean(self.pessimistic)) if self.no_bound is None else value

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of each augmented state, as in `value`."""
        return self.pessimistic if self.expected is None else self.expected

    @property
    def bound(self) -> float:
        """The most by which another policy could be better, on average over the starts.

        It is infinite if it is not known.
        """
        return self.model.mean_at_starts(self.gaps) if self.no_bound is None else math.inf

    @property
    def largest_gap(self) -> float:
        """The most by which another policy could be better from any start."""
        return float(self.gaps[self.model.starts].max()) if self.no_bound is None else math.inf

    @property
    def is_optimal(self) -> bool:
        """Whether no policy is better, in any environment that agrees with the machines.

        False if all rewards are equal, and for stochastic machines, where nothing is certain.
        """
        return self.largest_gap == 0 and not self.all_rewards_equal and self.confidence is None

    @property
    def all_rewards_equal(self) -> bool:
        """Whether the observed rewards distinguish no policies, so that all have the same value.

        They do not if all are 0, or if all are equal and no step ended an episode.
        """
        low, high = self.model.reward_range
        may_end = bool(self.model.ends.any() or self.model.sometimes_ends.any())
        return low == high and (low == 0 or not may_end)

    @property
    def assumes_rewards(self) -> bool:
        """Whether the value and the bound depend on rewards that were never observed.

        They do if `reward_range` is wider than the observed rewards and steps are unknown.
        """
        return self.reward_range != self.model.reward_range and self.model.unknown_steps > 0

    @property
    def advice(self) -> str | None:
        """The next thing to try, in words; None if nothing could improve the plan."""
        experiment = None if self.next_experiment is None else str(self.next_experiment)
        if not self.all_rewards_equal:
            return experiment
        if experiment is None:
            return "collect longer traces, or traces of another policy, with other rewards"
        if self.assumes_rewards:
            return experiment
        return f"{experiment}; or pass the possible rewards as reward_range=(low, high)"

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The optimistic minus the pessimistic value of every augmented state."""
        same = self.optimistic == self.pessimistic  # both may be infinite
        return np.subtract(self.optimistic, self.pessimistic, out=np.zeros(len(same)), where=~same)

    def action(self, observation: Any, *states: int) -> Symbol:
        """Return the action in an augmented state; `ModelError` if the model does not have it.

        The states are those of the Transition Machine, the Reward Machine and, if there is one,
        the machine that predicts termination.
        """
        names = [f"{name}_state" for name in self.model.states]
        if len(states) != len(names) or not all(isinstance(s, int | np.integer) for s in states):
            raise OptionError(
                f"action({quoted(observation)}, {', '.join(map(quoted, states))}): pass an "
                f"observation and the integers {', '.join(names)}"
            )
        augmented_state: AugmentedState = (as_symbol(observation), *states)
        number = self.model.find(*augmented_state)
        if number is None:
            raise ModelError(
                f"{augmented_state_text(augmented_state)} cannot be reached by any known step: "
                f"infer and plan from more traces"
            )
        return self.model.actions[int(self.policy[number])]  # type: ignore[no-any-return]

    @cached_property
    def next_experiment(self) -> Experiment | None:
        """The nearest untried step that could still improve the plan; None if there is none.

        It is the first unknown step of the optimistic policy, from any start with a gap. If all
        rewards are equal it is the nearest unknown step. For stochastic machines the likeliest
        path is followed; if all its steps are known, it is the one taken least often.
        """
        starts = self.model.starts[self.gaps[self.model.starts] > 0]
        experiment = first_unknown_step(self.optimistic_policy, self.model, starts)
        if experiment is None and self.all_rewards_equal:
            return nearest_unknown_step(self.model)
        return experiment

    def run(
        self,
        env: gym.Env[Any, Any],
        *,
        episodes: int = 100,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        labels: str | LabelingFunction | None = None,
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
        columns: Iterable[str] = (),
        max_steps: int | None = None,
        on_unseen: Literal["raise", "random"] | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> "Runs":
        """Execute the plan in an environment, and return the returns of the episodes.

        The environment is the plain one, not wrapped; labels are computed as in
        `AugmentObservation`; `options` go to every reset. In an augmented state that the plan
        does not know, it raises `ModelError` with `on_unseen="raise"`, or acts at random, by the
        seed, with "random", which is the default for stochastic machines. `progress` is called
        with the share of episodes done, after each.

        `runs.paid` is the mean discounted return with its 95% interval; `print(runs)` reports a
        plan whose value differs. If neither the environment nor `max_steps` limits episodes, they
        are truncated where the rest could hardly matter: after the number of augmented states and
        the steps that discount a reward to 0.0001 of it (without discount, 10,000 steps).

        The episodes are recorded as traces, with further `columns` as for `collect`. Those whose
        returns the plan had ruled out are in `contradicts`:

        >>> import gymnasium as gym, resolvent as rs
        >>> env = gym.make("resolvent/House-v0")
        >>> result = rs.infer(rs.collect(env, episodes=1, seed=0))  # too few
        >>> runs = rs.plan(result, result.all_traces()).run(env, episodes=1)
        >>> print(runs.contradicts[0])
        episode 0 returned 0, but the plan's value is 0.8574
        >>> result = result.update(runs.traces)
        """
        from resolvent.rl.run_plan import run

        return run(
            self,
            env,
            episodes=episodes,
            seed=seed,
            options=options,
            labels=labels,
            labeling_fn=labeling_fn,
            observation_fn=observation_fn,
            columns=check_column_names(columns),
            max_steps=max_steps,
            on_unseen=on_unseen,
            progress=progress,
        )

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, and the memory for the next call.

        The arguments are those of Stable-Baselines3's policies; the plan is deterministic, and
        takes one observation at a time. Observations and actions are as in the traces. If machines
        make labels of observations and actions themselves, `observation` is one of the plain
        environment, and `state` is what the call before returned: None, or any with
        `episode_start`, begins an episode. Otherwise it is one of `AugmentObservation` in mode
        "dict", which holds the states of the machines, and `state` is returned unchanged.

        >>> import gymnasium as gym, resolvent as rs
        >>> env = gym.make("FrozenLake-v1", is_slippery=False)
        >>> traces = rs.collect(env, episodes=500, seed=0, labels="observation")
        >>> plan = rs.plan(rs.infer(traces, labels="observation"), traces)
        >>> observation, info = env.reset(seed=0)
        >>> state, rewards, terminated = None, 0.0, False
        >>> while not terminated:
        ...     action, state = plan.predict(observation, state)
        ...     observation, reward, terminated, truncated, info = env.step(action)
        ...     rewards += reward
        >>> rewards
        1.0
        """
        from resolvent.rl.run_plan import predict

        return predict(self, observation, state, episode_start)

    def policy_in(self, env: gym.Env[Any, Any]) -> Callable[[Any], Any]:
        """Return the plan as a policy of an environment wrapped in `AugmentObservation`.

        It maps an observation of the wrapped environment to an action, as for `collect`.

        >>> import gymnasium as gym, resolvent as rs
        >>> env = gym.make("resolvent/House-v0")
        >>> traces = rs.collect(env, episodes=200, seed=0)
        >>> plan = rs.plan(rs.infer(traces), traces)
        >>> wrapped = rs.AugmentObservation(env, plan.machines)
        >>> rs.collect(wrapped, episodes=1, policy=plan.policy_in(wrapped))[0].actions
        ('left', 'right', 'up', 'down', 'right', 'sit')
        """
        from resolvent.rl.run_plan import policy_in

        return policy_in(self, env)

    def save(self, path: str | Path) -> None:
        """Write the policy to a JSON file, atomically: a row for each augmented state."""
        plan_io.save(self, path)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as `resolvent plan --json` prints them."""
        model = self.model
        figures = {
            "gamma": self.gamma,
            "reward_range": self.reward_range,
            "value": self.value,
            "bound": self.bound,
            "largest_gap": self.largest_gap,
            "optimal": self.is_optimal,
            "all_rewards_equal": self.all_rewards_equal,
            "observed_reward_range": model.reward_range,
            "assumes_rewards": self.assumes_rewards,
            "augmented_states": len(model),
            "actions": len(model.actions),
            "starts": len(model.starts),
            "unknown_steps": model.unknown_steps,
            "sometimes_ending_steps": int(model.sometimes_ends.sum()),
            "next_experiment": self.next_experiment,
            "advice": self.advice,
        }
        if self.confidence is not None:
            at_least, at_most = map(model.mean_at_starts, (self.pessimistic, self.optimistic))
            if self.no_bound is not None:
                at_least, at_most = -math.inf, math.inf
            figures |= {"confidence": self.confidence, "at_least": at_least, "at_most": at_most}
        if self.no_bound is not None:
            figures["no_bound"] = self.no_bound
        values: dict[str, Any] = builtin(figures)
        return values

    def __repr__(self) -> str:
        quality = "optimal" if self.is_optimal else f"at most {self.bound:.4g} below the best"
        if self.all_rewards_equal:
            quality = "all rewards equal"
        elif self.no_bound is not None:
            quality = "bound not known"
        elif self.confidence is not None:
            quality = f"{quality} with {self.confidence:.4g} confidence"
        return f"Plan(value {self.value:.4g}, {quality}, gamma {self.gamma:g}; {self.model!r})"

    def _repr_html_(self) -> str:
        """Return the figures and the first rows of the policy as HTML."""
        from resolvent.viz.notebook import html_of_plan

        return html_of_plan(self)

    def __str__(self) -> str:
        return "\n".join(f"{name:<12} {text}" for name, text in plan_io.facts_of(self))

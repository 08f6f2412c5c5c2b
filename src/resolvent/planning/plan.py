"""Machines + traces → a policy, with bounds on its value and on the value of any policy.

The pessimistic value assumes that an unknown step leads to the lowest rewards, the optimistic
value that it leads to the highest. The policy of a plan maximizes the pessimistic value, so its
true value is at least that; no policy has more than the optimistic value. If both are equal, the
plan is optimal in every environment that agrees with the machines on what they know. For
stochastic machines both bounds hold with a confidence.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util.parallel import Workers, get_executor
from resolvent._util.progress import Listener
from resolvent._util.records import ByValue
from resolvent._util.validation import check_arguments, shown, telling_of_memory
from resolvent.errors import ModelError, OptionError
from resolvent.evaluation.experiments import Experiment
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.machines import Machines
from resolvent.machines.situations import AugmentedState, augmented_state_text
from resolvent.planning import plan_io
from resolvent.planning.experiment import first_unknown_step, nearest_unknown_step
from resolvent.planning.model import Model
from resolvent.planning.optimize import optimize
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.traces import Symbol, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import check_column_names
from resolvent.traces.symbols import as_symbol, symbol_text
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

    The traces show where episodes begin and end, and which labels follow; they may be others
    than those the machines were inferred from. Files are read twice, or once with the result of
    their own inference; `on` and `progress` are those of `infer`. With gamma 1 nothing is
    discounted, which needs an environment without endless rewards.

    Unknown steps are assumed to have rewards within `reward_range`, by default the lowest and
    the highest that occurred. An output that was the same in all states is known only in states
    where these traces show it; `trust_constants` assumes it in all others, and the bounds hold
    only if that is right.

    For stochastic machines, `value` is the expected return by relative frequencies, and the
    bounds hold with `confidence`. With gamma 1, episodes have to end surely.

    If all rewards in the traces are equal, the plan is `vacuous` and not called optimal.

    >>> from resolvent.worlds import House
    >>> from resolvent.inference.infer import infer
    >>> from resolvent.rl.collect import collect
    >>> traces = collect(House(), episodes=200, seed=0)
    >>> best = plan(infer(traces), traces)
    >>> best.action("corridor", 0, 0), best.action("corridor", 1, 0), best.is_optimal
    ('left', 'up', True)
    >>> print(best)
    value        0.7738 from the starts, discounted by 0.95
    bound        optimal: no way to act is worth more
    situations   9, and 5 actions
    unknown      0 of 45 steps
    >>> print(best.run(House(), episodes=3))
    3 episodes: mean return 1 (discounted 0.7738), mean length 6; 3 ended, 0 were cut
    """
    check_arguments(plan, locals(), leaving=["machines", "traces"])
    result, machines = machines, machines_of_result(machines)
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence}: use a number above 0 and below 1")
    traces, corpus = as_traces(traces), None
    if isinstance(result, InferenceResult):
        corpus = result.standing.corpus
        if isinstance(traces, TraceSet):
            traces = _without_outliers(result, traces)
    with telling_of_memory("a model was made"), get_executor(on) as workers:
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
    return Plan(machines, model, gamma, reward_range, *bounded_policy)


def _without_outliers(result: InferenceResult, traces: TraceSet) -> TraceSet:
    """Return the traces without outliers, if the inference was made from these traces."""
    provenance = result.machines.provenance
    if not result.broken or provenance is None or len(traces) != result.traces:
        return traces
    inliers = traces.take(np.setdiff1d(np.arange(len(traces)), result.broken))
    return inliers if provenance.is_of(result.senses.on(inliers)) else traces


@dataclass(frozen=True, eq=False)
class Plan(ByValue):
    """A policy, and bounds on its value.

    `policy` is the code of an action for each augmented state of the model. Its value is at
    least `pessimistic`, and no policy has a value above `optimistic`, if all rewards are within
    `reward_range`. For stochastic machines both bounds hold with `confidence`, and `expected` is
    the value of the policy by relative frequencies; otherwise these two are None.
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

    @property
    def value(self) -> float:
        """The mean value of the plan over the starts of the traces.

        It is a lower bound, or for stochastic machines the expected return.
        """
        return self.model.at_starts(self.pessimistic if self.expected is None else self.expected)

    @property
    def bound(self) -> float:
        """The most by which another policy could be better, on average over the starts."""
        return self.model.at_starts(self.gaps)

    @property
    def largest_gap(self) -> float:
        """The most by which another policy could be better from any start."""
        return float(self.gaps[self.model.starts].max())

    @property
    def is_optimal(self) -> bool:
        """Whether no policy is better, in any environment that agrees with the machines.

        False for a vacuous plan, and for stochastic machines, where nothing is certain.
        """
        return self.largest_gap == 0 and self.vacuous is None and self.confidence is None

    @property
    def vacuous(self) -> str | None:
        """The reason why all policies have the same value, in words; None if they differ.

        They are equal if all observed rewards are 0, or all are the same and no step ended an
        episode.
        """
        least, most = self.model.reward_range
        if least < most:
            return None
        if least == 0:
            return "only 0 was ever paid, so that all ways to act look alike"
        if self.model.ends.any() or self.model.sometimes_ends.any():
            return None
        return (
            f"every step paid {least:g} and none was the last, so that all ways to act look alike"
        )

    @property
    def assumes_rewards(self) -> bool:
        """Whether the value and the bound depend on rewards that were never observed.

        They do if `reward_range` is wider than the observed rewards and steps are unknown.
        """
        return self.reward_range != self.model.reward_range and self.model.unknown > 0

    @property
    def advice(self) -> str | None:
        """The next thing to try, in words; None if nothing could improve the plan."""
        experiment = None if self.next_experiment is None else str(self.next_experiment)
        if self.vacuous is None:
            return experiment
        if experiment is None:
            return (
                "collect traces in which something else is paid, longer ones or by another policy"
            )
        if self.assumes_rewards:
            return experiment
        return f"{experiment}; or say with reward_range=(low, high) what such steps may pay"

    def gap(self, observation: Any) -> float:
        """Return the most by which another policy could be better from this observation."""
        symbol, model = as_symbol(observation), self.model
        here = model.starts[model.observation[model.starts] == (model.observations.get(symbol))]
        if not len(here):
            raise OptionError(f"no trace begins in {symbol_text(symbol)}")
        return float(self.gaps[here].max())

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The optimistic minus the pessimistic value of every augmented state."""
        same = self.optimistic == self.pessimistic  # both may be infinite
        return np.subtract(self.optimistic, self.pessimistic, out=np.zeros(len(same)), where=~same)

    def action(self, observation: Any, *states: int, **named: int) -> Symbol:
        """Return the action in an augmented state; `ModelError` if the model does not have it.

        The states are those of the Transition Machine, the Reward Machine and, if there is one,
        the machine that predicts termination; or give `transition_state=` and so on.
        """
        names = [f"{name}_state" for name in self.model.states]
        by_name = {**dict(zip(names, states, strict=False)), **named}
        if set(by_name) != set(names) or len(states) + len(named) != len(names):
            raise OptionError(f"a situation is an observation with {', '.join(names)}: give each")
        for name, state in by_name.items():
            if not isinstance(state, int | np.integer):
                raise OptionError(f"{name}={shown(state)}: give the number of a state")
        situation: AugmentedState = (as_symbol(observation), *(by_name[name] for name in names))
        number = self.model.situation(*situation)
        if number is None:
            raise ModelError(
                f"{augmented_state_text(situation)} cannot be reached by any step that is known: "
                f"infer and plan from more traces"
            )
        return self.model.actions[int(self.policy[number])]  # type: ignore[no-any-return]

    @cached_property
    def next_experiment(self) -> Experiment | None:
        """The nearest untried step that could still improve the plan; None if there is none.

        It is the first unknown step of the optimistic policy, from any start with a gap. A step
        that ends episodes only sometimes is left out: trying it again would not settle it. For a
        vacuous plan it is the nearest unknown step. For stochastic machines the likeliest path
        is followed; if all its steps are known, it is the one taken least often.
        """
        starts = self.model.starts[self.gaps[self.model.starts] > 0]
        experiment = first_unknown_step(self.optimistic_policy, self.model, starts)
        if experiment is None and self.vacuous is not None:
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
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
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

        The episodes are recorded as traces, with further `columns` as for `collect`. Those whose
        returns the plan had ruled out are in `contradicts`:

        >>> import gymnasium as gym, resolvent as rs
        >>> env = gym.make("resolvent/House-v0")
        >>> result = rs.infer(rs.collect(env, episodes=1, seed=0))  # too few
        >>> runs = rs.plan(result, result.all_traces()).run(env, episodes=1)
        >>> print(runs.contradicts[0])
        episode 0 was promised 0.8574 and paid 0
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
            label_of=label_of,
            name_of=name_of,
            columns=check_column_names(columns),
            max_steps=max_steps,
            on_unseen=on_unseen,
            progress=progress,
        )

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
        experiment = self.next_experiment
        return {
            "gamma": self.gamma,
            "reward_range": list(self.reward_range),
            "value": plan_io.json_number(self.value),
            "bound": plan_io.json_number(self.bound),
            "largest_gap": plan_io.json_number(self.largest_gap),
            "optimal": self.is_optimal,
            "vacuous": self.vacuous,
            "seen_reward_range": list(self.model.reward_range),
            "assumes_rewards": self.assumes_rewards,
            "situations": len(self.model),
            "actions": len(self.model.actions),
            "starts": len(self.model.starts),
            "unknown_steps": self.model.unknown,
            "sometimes_ending_steps": int(self.model.sometimes_ends.sum()),
            "next_experiment": None if experiment is None else experiment.as_dict(),
            "advice": self.advice,
            **self._confidence_dict(),
        }

    def _confidence_dict(self) -> dict[str, Any]:
        if self.confidence is None:
            return {}
        return {
            "confidence": self.confidence,
            "at_least": plan_io.json_number(self.model.at_starts(self.pessimistic)),
            "at_most": plan_io.json_number(self.model.at_starts(self.optimistic)),
        }

    def __repr__(self) -> str:
        quality = "optimal" if self.is_optimal else f"at most {self.bound:.4g} below the best"
        if self.vacuous is not None:
            quality = "vacuous"
        elif self.confidence is not None:
            quality = f"{quality} with {self.confidence:.4g} confidence"
        return f"Plan(value {self.value:.4g}, {quality}, gamma {self.gamma:g}; {self.model!r})"

    def _repr_html_(self) -> str:
        """Return the figures and the first rows of the policy as HTML."""
        return plan_io.html_of(self)

    def __str__(self) -> str:
        return plan_io.text_of(self)

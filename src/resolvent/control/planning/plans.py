"""Machines + traces → the best way to act that they can tell, and how much better any could be.

Two values are computed exactly. The pessimistic one takes an unknown step to be
worth the least that any world could make of it, the optimistic one the most. The
plan acts by the first, so it is worth at least that; no way to act is worth more
than the second. Where both are equal, the plan is optimal in every world that
agrees with the machines on what they know.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.control.by_value import ByValue
from resolvent.control.planning import plan_files
from resolvent.control.planning.experiment import NextExperiment
from resolvent.control.planning.model import Model
from resolvent.control.planning.running import Runs, policy_in, run
from resolvent.control.planning.situations import Situation, situation_text
from resolvent.control.planning.solving import PayingCycle, Solution, solve
from resolvent.errors import ModelError, OptionError
from resolvent.machines import Machines
from resolvent.result import InferenceResult
from resolvent.traces import Symbol, TraceSet
from resolvent.traces.symbols import as_symbol, symbol_text
from resolvent.traces.vocabulary import Codes
from resolvent.wording import amount


def plan(
    machines: Machines | InferenceResult,
    traces: TraceSet,
    *,
    gamma: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    trust_constants: bool = False,
) -> "Plan":
    """Find the best way to act, from machines and traces alone.

    The traces tell where episodes begin, which labels follow and where they end;
    they may be others than those the machines were inferred from. With gamma 1
    nothing is discounted, which needs a world where one cannot be paid for ever.

    Steps that are not known are taken to pay within `reward_range`, by default
    the least and the most that was ever paid. A question that always got the same
    answer is known only in states in which these traces ask it; trust its answer
    in all others with `trust_constants`, and the bounds hold only if it is right.

    >>> from resolvent.environments import House
    >>> from resolvent.pipeline import infer
    >>> from resolvent.traces.live.collecting import collect
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
    if isinstance(machines, InferenceResult):
        machines = machines.machines
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    if not isinstance(traces, TraceSet):
        raise OptionError(
            f"plan needs traces in memory, not a {type(traces).__name__}: use read_traces; "
            f"if they are too many, some of them will do, with trust_constants=True"
        )
    model = Model.of(machines, traces, trust_constants=trust_constants)
    least, most = reward_range = reward_range or model.reward_range
    if not least <= model.reward_range[0] <= model.reward_range[1] <= most:
        raise OptionError(
            f"reward_range={reward_range}: rewards from {model.reward_range[0]:g} to "
            f"{model.reward_range[1]:g} were seen"
        )
    try:
        safe, hopeful = (
            solve(model.following, np.where(model.known, model.reward, worth), gamma)
            for worth in (_in_all(least, gamma, min), _in_all(most, gamma, max))
        )
    except PayingCycle as cycle:
        raise OptionError(_cycle_text(model, cycle)) from None
    return Plan(
        machines,
        model,
        gamma,
        reward_range,
        policy=safe.policy,
        pessimistic=safe.value,
        optimistic_policy=hopeful.policy,
        optimistic=_unless_equal(hopeful, safe),
    )


def _in_all(reward: float, gamma: float, chosen: Callable[[float, float], float]) -> float:
    """Return what a step is worth that pays this much, as do all after it.

    There may be none after it or no end of them, whichever is chosen.
    """
    forever = reward / (1 - gamma) if gamma < 1 else math.copysign(math.inf, reward)
    return reward if reward == 0 else chosen(reward, forever)


def _unless_equal(hopeful: Solution, safe: Solution) -> NDArray[np.float64]:
    """Return the optimistic values, or the pessimistic ones where they differ by rounding alone."""
    more = hopeful.value > safe.value + safe.rounding + hopeful.rounding
    return np.where(more, hopeful.value, safe.value)


def _cycle_text(model: Model, cycle: PayingCycle) -> str:
    paid = model.reward[cycle.situations, cycle.actions].sum()
    actions = ", ".join(symbol_text(model.actions[action]) for action in cycle.actions)
    return (
        f"gamma=1: in {situation_text(model.named(cycle.situations[0]))} the actions {actions} "
        f"pay {paid:.6g} and lead back there, again and again: use gamma below 1"
    )


@dataclass(frozen=True, eq=False)
class Plan(ByValue):
    """What to do in every situation, and what that is worth.

    `policy` holds the code of an action for each situation of the model. Acting
    by it is worth at least `pessimistic`; nothing is worth more than `optimistic`,
    as long as no step pays outside `reward_range`.
    """

    machines: Machines
    model: Model
    gamma: float
    reward_range: tuple[float, float]
    policy: Codes
    pessimistic: NDArray[np.float64]
    optimistic_policy: Codes
    optimistic: NDArray[np.float64]

    @property
    def value(self) -> float:
        """What acting by the plan is worth at least, on average over where traces began."""
        return self._at_starts(self.pessimistic)

    @property
    def bound(self) -> float:
        """By how much acting otherwise could be better, at most, on average over the starts."""
        return self._at_starts(self.gaps)

    @property
    def largest_gap(self) -> float:
        """By how much acting otherwise could be better, at most, from the worst of the starts."""
        return float(self.gaps[self.model.starts].max())

    @property
    def is_optimal(self) -> bool:
        """Whether no way to act is better, in any world that agrees with the machines."""
        return self.largest_gap == 0

    def gap(self, observation: Any) -> float:
        """Return by how much acting otherwise could be better when an episode begins here."""
        symbol, model = as_symbol(observation), self.model
        here = model.starts[model.observation[model.starts] == (model.observations.get(symbol))]
        if not len(here):
            raise OptionError(f"no trace begins in {symbol_text(symbol)}")
        return float(self.gaps[here].max())

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The optimistic less the pessimistic value of every situation."""
        same = self.optimistic == self.pessimistic  # both may be infinite
        return np.subtract(self.optimistic, self.pessimistic, out=np.zeros(len(same)), where=~same)

    def action(self, observation: Any, *states: int, **named: int) -> Symbol:
        """Return what to do in a situation; `ModelError` if it is not one of the model's.

        The states are those of the Transition Machine, the Reward Machine and, if there
        is one, the machine that tells when episodes end; or `transition_state=` and so on.
        """
        names = [f"{kind}_state" for kind in self.model.states]
        given = {**dict(zip(names, states, strict=False)), **named}
        if set(given) != set(names) or len(states) + len(named) != len(names):
            raise OptionError(f"a situation is an observation with {', '.join(names)}: give each")
        situation: Situation = (as_symbol(observation), *(given[name] for name in names))
        number = self.model.situation(*situation)
        if number is None:
            raise ModelError(
                f"{situation_text(situation)} cannot be reached by any step that is known: "
                f"infer and plan from more traces"
            )
        return self.model.actions[int(self.policy[number])]  # type: ignore[no-any-return]

    @cached_property
    def next_experiment(self) -> NextExperiment | None:
        """The unknown step that hope leads to soonest; None when there is nothing to hope for.

        The optimistic policy is followed from each start where a gap is left. A
        step that is unknown because it ends episodes only sometimes is left out:
        trying it again would not settle it.
        """
        found = [
            self._experiment(int(start))
            for start in self.model.starts[self.gaps[self.model.starts] > 0]
        ]
        return min(
            (one for one in found if one is not None),
            key=lambda one: len(one.actions),
            default=None,
        )

    def _experiment(self, start: int) -> NextExperiment | None:
        model, here, actions = self.model, start, list[Symbol]()
        while model.known[here, action := int(self.optimistic_policy[here])]:
            actions.append(model.actions[action])
            here = int(model.following[here, action])
            if here < 0 or len(actions) > len(model):
                return None
        if model.sometimes_ends[here, action]:
            return None
        return NextExperiment(
            model.named(start), tuple(actions), model.named(here), model.actions[action]
        )

    def run(
        self,
        env: gym.Env[Any, Any],
        *,
        episodes: int = 100,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        label_of: Callable[..., Any] | None = None,
        max_steps: int | None = None,
        on_unseen: Literal["raise", "random"] = "raise",
        progress: Callable[[float], object] | None = None,
    ) -> Runs:
        """Act by the plan in an environment, and return what it paid.

        The environment is the plain one, not wrapped; labels are found as
        `collect` finds them; `options` go to every reset. In a situation the plan
        does not know, it raises `ModelError`, or with `on_unseen="random"` does
        anything, by the seed. `progress` is called with the share of episodes done,
        after each.
        """
        return run(
            self,
            env,
            episodes=episodes,
            seed=seed,
            options=options,
            label_of=label_of,
            max_steps=max_steps,
            on_unseen=on_unseen,
            progress=progress,
        )

    def policy_in(self, env: gym.Env[Any, Any]) -> Callable[[Any], Any]:
        """Return the plan as a policy of an environment inside `AugmentObservation`.

        It takes what the environment shows and returns an action, as `collect`
        wants it.

        >>> import gymnasium as gym, resolvent as rs
        >>> env = gym.make("resolvent/House-v0")
        >>> traces = rs.collect(env, episodes=200, seed=0)
        >>> plan = rs.plan(rs.infer(traces), traces)
        >>> wrapped = rs.AugmentObservation(env, plan.machines)
        >>> rs.collect(wrapped, episodes=1, policy=plan.policy_in(wrapped))[0].actions
        ('left', 'right', 'up', 'down', 'right', 'sit')
        """
        return policy_in(self, env)

    def save(self, path: str | Path) -> None:
        """Write the policy to a JSON file, whole or not at all: a row for each situation."""
        plan_files.save(self, path)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as `resolvent plan --json` prints them."""
        following = self.next_experiment
        return {
            "gamma": self.gamma,
            "reward_range": list(self.reward_range),
            "value": plan_files.json_number(self.value),
            "bound": plan_files.json_number(self.bound),
            "largest_gap": plan_files.json_number(self.largest_gap),
            "optimal": self.is_optimal,
            "situations": len(self.model),
            "actions": len(self.model.actions),
            "starts": len(self.model.starts),
            "unknown_steps": self.model.unknown,
            "sometimes_ending_steps": int(self.model.sometimes_ends.sum()),
            "next_experiment": None if following is None else following.as_dict(),
        }

    def __str__(self) -> str:
        model = self.model
        discount = "undiscounted" if self.gamma == 1 else f"discounted by {self.gamma:g}"
        bound = "optimal: no way to act is worth more"
        if not self.is_optimal:
            bound = f"at most {self.bound:.4g} below the best"
            if len(model.starts) > 1:
                bound += f" on average, {self.largest_gap:.4g} from any one start"
        if model.unknown:
            bound += ", if pay stays within {:g} to {:g}".format(*self.reward_range)
        lines = [
            f"{'value':<12} {self.value:.4g} from the starts, {discount}",
            f"{'bound':<12} {bound}",
            f"{'situations':<12} {len(model):,}, and {amount(len(model.actions), 'action')}",
            f"{'unknown':<12} {model.unknown:,} of {model.known.size:,} steps",
        ]
        sometimes = int(model.sometimes_ends.sum())
        if sometimes:
            lines.append(
                f"{'':<12} {sometimes:,} of these sometimes end the episode and sometimes do not"
            )
        if self.next_experiment is not None:
            lines.append(f"{'try next':<12} {self.next_experiment}")
        return "\n".join(lines)

    def _at_starts(self, values: NDArray[np.float64]) -> float:
        return float(np.average(values[self.model.starts], weights=self.model.start_counts))

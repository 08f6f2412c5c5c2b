"""Machines + traces → the best way to act that they can tell, and how much better any could be.

Two values are computed exactly. The pessimistic one takes an unknown step to be
worth the least that any world could make of it, the optimistic one the most. The
plan acts by the first, so it is worth at least that; no way to act is worth more
than the second. Where both are equal, the plan is optimal in every world that
agrees with the machines on what they know. Where machines answer with chance, `chance/`
finds what to expect, and both values hold with a confidence.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.arguments import check_arguments, shown
from resolvent.by_value import ByValue
from resolvent.control.planning import plan_files
from resolvent.control.planning.experiment import nearest_unknown, soonest_by
from resolvent.control.planning.model import Model
from resolvent.control.planning.plan_text import html_of, text_of
from resolvent.control.planning.situations import Situation, situation_text
from resolvent.control.planning.valuing import best_in
from resolvent.errors import ModelError, OptionError
from resolvent.limits import telling_of_memory
from resolvent.machines import Machines
from resolvent.progress import Listener
from resolvent.result import InferenceResult, machines_in
from resolvent.traces import Symbol, TraceFolder, TraceSet
from resolvent.traces.column_names import check_column_names
from resolvent.traces.given import as_traces
from resolvent.traces.labelling import Labelling
from resolvent.traces.symbols import as_symbol, symbol_text
from resolvent.traces.vocabulary import Codes
from resolvent.trust import Experiment
from resolvent.workers import Workers, at_work

if TYPE_CHECKING:
    from resolvent.rl.run_plan import Runs


def plan(
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceFolder,
    *,
    gamma: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    trust_constants: bool = False,
    confidence: float = 0.95,
    on: str | Workers = "threads",
    progress: Listener | None = None,
) -> "Plan":
    """Find the best way to act, from machines and traces alone.

    The traces tell where episodes begin, which labels follow and where they end;
    they may be others than those the machines were inferred from. A scanned place is gone
    through twice, or once with the result of its own inference, by those that `on` names, as
    for `infer`; `progress` is told how far they are. With gamma 1
    nothing is discounted, which needs a world where one cannot be paid for ever.

    Steps that are not known are taken to pay within `reward_range`, by default
    the least and the most that was ever paid. A question that always got the same
    answer is known only in states in which these traces ask it; trust its answer
    in all others with `trust_constants`, and the bounds hold only if it is right.

    Where machines answer with chance, so does the model: `value` is then what the plan is
    expected to pay by the shares of what came, and the bounds hold with this `confidence`,
    by how often each step was taken. With gamma 1 episodes have to end surely.

    Where the traces never show that one thing pays more than another, there is nothing
    to plan for: `vacuous` says so then, and the plan is not called optimal.

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
    check_arguments(plan, locals(), leaving=["machines", "traces"])
    found, machines = machines, machines_in(machines)
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence}: use a number above 0 and below 1")
    traces, known = as_traces(traces), None
    if isinstance(found, InferenceResult):
        known = found.standing.corpus
        if isinstance(traces, TraceSet):
            traces = _without_broken(found, traces)
    with telling_of_memory("a model was made"), at_work(on) as workers:
        model = Model.of(
            machines,
            traces,
            trust_constants=trust_constants,
            known=known,
            workers=workers,
            progress=progress,
        )
    reward_range = reward_range or model.reward_range
    best = best_in(model, gamma, reward_range, confidence)
    return Plan(machines, model, gamma, reward_range, *best)


def _without_broken(found: InferenceResult, traces: TraceSet) -> TraceSet:
    """Leave out traces that inference found to be broken, if these are the ones it was given."""
    made = found.machines.provenance
    if not found.broken or made is None or len(traces) != found.traces:
        return traces
    others = traces.take(np.setdiff1d(np.arange(len(traces)), found.broken))
    return others if made.is_of(found.senses.on(others)) else traces


@dataclass(frozen=True, eq=False)
class Plan(ByValue):
    """What to do in every situation, and what that is worth.

    `policy` holds the code of an action for each situation of the model. Acting
    by it is worth at least `pessimistic`; nothing is worth more than `optimistic`,
    as long as no step pays outside `reward_range`.

    Where machines answer with chance, both hold with `confidence`, and `expected` is what
    acting by the plan pays on average if all chances are the shares that were seen. Else both
    are None.
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
        """What acting by the plan is worth, on average over where traces began.

        That is at least so much, or, where there is chance, what it is expected to pay.
        """
        return self.model.at_starts(self.pessimistic if self.expected is None else self.expected)

    @property
    def bound(self) -> float:
        """By how much acting otherwise could be better, at most, on average over the starts."""
        return self.model.at_starts(self.gaps)

    @property
    def largest_gap(self) -> float:
        """By how much acting otherwise could be better, at most, from the worst of the starts."""
        return float(self.gaps[self.model.starts].max())

    @property
    def is_optimal(self) -> bool:
        """Whether no way to act is better, in any world that agrees with the machines.

        False for a plan that is vacuous: where nothing was ever paid, nothing is known
        of what is better. False also where machines answer with chance: nothing is sure then.
        """
        return self.largest_gap == 0 and self.vacuous is None and self.confidence is None

    @property
    def vacuous(self) -> str | None:
        """Why the plan says nothing of how to act, in words; None where it does.

        That is so where every reward seen was the same, and how long an episode lasts
        made no difference either: it was 0, or no step ended an episode.
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
        """Whether the value and the bound rest on rewards that were never seen.

        That is so where `reward_range` is wider than what was paid, and steps are unknown.
        """
        return self.reward_range != self.model.reward_range and self.model.unknown > 0

    @property
    def advice(self) -> str | None:
        """What to try next, in words; None where there is nothing to hope for."""
        told = None if self.next_experiment is None else str(self.next_experiment)
        if self.vacuous is None:
            return told
        if told is None:
            return (
                "collect traces in which something else is paid, longer ones or by another policy"
            )
        if self.assumes_rewards:
            return told
        return f"{told}; or say with reward_range=(low, high) what such steps may pay"

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
        for name, state in given.items():
            if not isinstance(state, int | np.integer):
                raise OptionError(f"{name}={shown(state)}: give the number of a state")
        situation: Situation = (as_symbol(observation), *(given[name] for name in names))
        number = self.model.situation(*situation)
        if number is None:
            raise ModelError(
                f"{situation_text(situation)} cannot be reached by any step that is known: "
                f"infer and plan from more traces"
            )
        return self.model.actions[int(self.policy[number])]  # type: ignore[no-any-return]

    @cached_property
    def next_experiment(self) -> Experiment | None:
        """The unknown step that hope leads to soonest; None when there is nothing to hope for.

        The optimistic policy is followed from each start where a gap is left. A
        step that is unknown because it ends episodes only sometimes is left out:
        trying it again would not settle it. A plan that is vacuous has no reason to hope
        for one step more than for another: then it is the nearest.

        Where machines answer with chance, the likeliest way is followed, and if all its steps
        are known, it is the one that was taken least often.
        """
        hopeful = self.model.starts[self.gaps[self.model.starts] > 0]
        soonest = soonest_by(self.optimistic_policy, self.model, hopeful)
        if soonest is None and self.vacuous is not None:
            return nearest_unknown(self.model)
        return soonest

    def run(
        self,
        env: gym.Env[Any, Any],
        *,
        episodes: int = 100,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        labels: str | Labelling | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
        columns: Iterable[str] = (),
        max_steps: int | None = None,
        on_unseen: Literal["raise", "random"] | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> "Runs":
        """Act by the plan in an environment, and return what it paid.

        The environment is the plain one, not wrapped; labels are found as
        `AugmentObservation` finds them; `options` go to every reset. In a situation the plan
        does not know, it raises `ModelError` with `on_unseen="raise"`, or with "random" does
        anything, by the seed. By default it raises, but not where machines answer with
        chance: there, anything may come now and then. `progress` is called with the share of
        episodes done, after each.

        The episodes are kept as traces, with further `columns` as `collect` takes them,
        and those that paid what the plan had ruled out are named:

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
        from resolvent.rl.run_plan import policy_in

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
            "vacuous": self.vacuous,
            "seen_reward_range": list(self.model.reward_range),
            "assumes_rewards": self.assumes_rewards,
            "situations": len(self.model),
            "actions": len(self.model.actions),
            "starts": len(self.model.starts),
            "unknown_steps": self.model.unknown,
            "sometimes_ending_steps": int(self.model.sometimes_ends.sum()),
            "next_experiment": None if following is None else following.as_dict(),
            "advice": self.advice,
            **self._confidence_dict(),
        }

    def _confidence_dict(self) -> dict[str, Any]:
        if self.confidence is None:
            return {}
        return {
            "confidence": self.confidence,
            "at_least": plan_files.json_number(self.model.at_starts(self.pessimistic)),
            "at_most": plan_files.json_number(self.model.at_starts(self.optimistic)),
        }

    def __repr__(self) -> str:
        verdict = "optimal" if self.is_optimal else f"at most {self.bound:.4g} below the best"
        if self.vacuous is not None:
            verdict = "vacuous"
        elif self.confidence is not None:
            verdict = f"{verdict} with {self.confidence:.4g} confidence"
        return f"Plan(value {self.value:.4g}, {verdict}, gamma {self.gamma:g}; {self.model!r})"

    def _repr_html_(self) -> str:
        """Show the figures in a notebook, and what to do in the first situations."""
        return html_of(self)

    def __str__(self) -> str:
        return text_of(self)

"""A plan + a Gymnasium environment → what acting by the plan really pays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import notebook
from resolvent.arguments import check_arguments, shown
from resolvent.by_value import ByValue
from resolvent.control.planning.promises import Contradiction, contradictions, returns_of
from resolvent.control.planning.situations import states_text, that_matter
from resolvent.control.wrapping.augment_observation import AugmentObservation, augmented_inside
from resolvent.control.wrapping.belief_memory import BeliefMemory
from resolvent.control.wrapping.memory import Memory
from resolvent.errors import ModelError, OptionError, locating
from resolvent.senses.live import LiveSenses
from resolvent.traces import TraceSet, Vocabulary
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.answering import ended, of_reset, of_step
from resolvent.traces.live.random_actions import random_actions
from resolvent.traces.live.recording import Recorder
from resolvent.traces.live.rolling import time_limit
from resolvent.traces.symbols import Symbol, symbol_text
from resolvent.wording import amount

if TYPE_CHECKING:
    from resolvent.control.planning.plans import Plan

_PATIENCE = 10_000
"""Steps in a circle after which nothing is expected to end an episode."""


@dataclass(frozen=True, eq=False)
class Runs(ByValue):
    """What some episodes paid, one entry for each.

    `traces` are the episodes themselves, as `collect` would have recorded them, for
    `result.update`. `contradicts` names those that paid what the plan had ruled out: a
    plan's promise holds in every world that agrees with the machines, so they do not
    agree with this one.

    Where machines answer with chance, `surprises` counts the steps that led where no trace
    had come by them.
    """

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    random_steps: int
    traces: TraceSet
    contradicts: tuple[Contradiction, ...]
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
        """Show in a notebook what the first episodes paid, and where the world contradicts."""
        broken = {one.episode: one for one in self.contradicts}
        rows = (
            [
                number,
                f"{self.returns[number]:.4g}",
                f"{self.discounted_returns[number]:.4g}",
                int(self.lengths[number]),
                "yes" if self.terminated[number] else "cut",
                "" if number not in broken else f"{broken[number].least:.4g}",
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
        ended = int(self.terminated.sum())
        episodes = len(self.returns)
        text = (
            f"{episodes} episode{'s' * (episodes != 1)}: mean return {self.returns.mean():.4g} "
            f"(discounted {self.discounted_returns.mean():.4g}), mean length "
            f"{self.lengths.mean():.4g}; {ended} ended, {episodes - ended} were cut"
        )
        if self.random_steps:
            text += f"; {self.random_steps} steps at random, in situations the plan does not know"
        if self.surprises:
            led = amount(self.surprises, "step")
            text += f"; {led} led where no trace had come by the same step"
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
    labels: str | Labelling | None,
    label_of: Callable[..., Any] | None,
    name_of: Callable[[Any], Any] | None,
    columns: Sequence[str],
    max_steps: int | None,
    on_unseen: str | None,
    progress: Callable[[float], object] | None,
) -> Runs:
    """Play episodes by the plan; see `Plan.run`."""
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
    live = LiveSenses(env, plan.machines.senses, labels, label_of, name_of)
    recorder = Recorder(env, live.label_of, columns, name_of=name_of)
    actor = _Actor(plan, env, seed, live, recorder, max_steps, on_unseen == "random")
    for number in range(episodes):
        with locating(f"episode {number}"):
            actor.episode(number, seed if number == 0 else None, options)
        if progress is not None:
            progress((number + 1) / episodes)
    traces = actor.recorder.trace_set()
    return Runs(
        returns_of(traces),
        returns_of(traces, plan.gamma),
        np.diff(traces.offsets),
        traces.terminated,
        actor.random_steps,
        traces,
        contradictions(plan, traces, actor.starts),
        None if plan.model.chances is None else actor.surprises,
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
    return _Policy(plan, augmented, [1 + kinds.index(kind) for kind in plan.model.states])


class _Policy:
    """A plan as a policy of an environment that shows the states of the machines."""

    acts_inside = True
    """Tells `collect` to record the world inside."""

    def __init__(self, plan: "Plan", augmented: AugmentObservation, places: list[int]) -> None:
        self._plan, self._augmented, self._places = plan, augmented, places
        live = augmented.live
        self._observations, self._actions = live.observations, live.actions

    def __call__(self, shown: Any) -> Any:
        """Return what to do in the situation in which the environment is."""
        situation = self._augmented.situation
        states = (situation[place] for place in self._places)
        observation = self._observations(situation[0])
        return self._actions.value(self._plan.action(observation, *states))


class _Actor:
    """Plays episodes by a plan."""

    def __init__(
        self,
        plan: "Plan",
        env: gym.Env[Any, Any],
        seed: int | None,
        live: LiveSenses,
        recorder: Recorder,
        max_steps: int | None,
        may_guess: bool,
    ) -> None:
        self.plan, self.env = plan, env
        machines = that_matter(plan.machines)
        # Where labels lie, it acts as if the most likely states were those that it is in.
        self.belief = BeliefMemory(machines, live) if machines.doubt else None
        self.memory = self.belief or Memory(machines)
        self.live, self.recorder = live, recorder
        self.starts: list[int | None] = []
        self.max_steps, self.may_guess = max_steps, may_guess
        self.space = random_actions(env, seed)
        self.has_limit = max_steps is not None or time_limit(env) is not None
        self.random_steps = self.surprises = 0

    def episode(self, number: int, seed: int | None, options: dict[str, Any] | None) -> None:
        """Play one episode into the recorder, and note where it began."""
        observation, info = of_reset(self.env.reset(seed=seed, options=options))
        memory, recorder, seen_as = self.memory, self.recorder, self.live.observations
        memory.reset(recorder.begin(observation, info))
        self.starts.append(self._situation(seen_as(observation), memory))
        taken = planned = 0
        terminated = truncated = False
        while not (terminated or truncated):
            symbol = seen_as(observation)
            action = self._planned(symbol, memory)
            planned += 1
            if action is None:
                if not self.may_guess:
                    raise ModelError(
                        _unseen_text(number, taken, symbol, memory)
                        + _naming_text(symbol, self.plan.model.observations)
                    )
                action = self.space.sample()
                self.random_steps += 1
                planned = 0
            elif planned > len(self.plan.model) + _PATIENCE and not self.has_limit:
                raise OptionError(
                    f"episode {number}, step {taken}: the plan goes in a circle, and "
                    f"neither the world nor a limit ends the episode: give max_steps"
                )
            seen_before = observation
            observation, reward, done, cut, info = of_step(self.env.step(action))
            terminated, truncated = ended(done, "terminated"), ended(cut, "truncated")
            if self.belief is not None:
                self.belief.took(seen_before, action, reward, observation, terminated)
            before = self._situation(symbol, memory)
            memory.step(recorder.step(action, observation, reward, info), terminated)
            if not terminated:
                self._note_surprise(before, action, seen_as(observation), memory)
            taken += 1
            truncated = truncated or (taken == self.max_steps and not terminated)
        recorder.end(terminated=terminated, truncated=truncated)

    def _note_surprise(
        self, before: int | None, action: Any, observation: Symbol, memory: Memory | BeliefMemory
    ) -> None:
        """Count a step that led where no trace had come by the same one."""
        model = self.plan.model
        if model.chances is None or before is None:
            return
        done = model.actions.get(self.live.actions(action))
        led = self._situation(observation, memory)
        if done is not None and model.known[before, done]:
            step = before * len(model.actions) + done
            self.surprises += led is None or led not in model.chances.leads_to(step)

    def _situation(self, observation: Symbol, memory: Memory | BeliefMemory) -> int | None:
        """Return the number of a situation, or None if the plan does not know it.

        After an unseen label the states are guesses. They are taken for true only where chance
        explains it, and where the plan may guess.
        """
        if memory.unseen and (self.plan.model.chances is None or not self.may_guess):
            return None
        return self.plan.model.situation(observation, *memory.values)

    def _planned(self, observation: Symbol, memory: Memory | BeliefMemory) -> Any:
        """Return the action the plan has here, as the environment takes it, or None."""
        situation = self._situation(observation, memory)
        if situation is None:
            return None
        action = self.plan.model.actions[int(self.plan.policy[situation])]
        return self.live.actions.value(action)


def _naming_text(observation: Symbol, known: Vocabulary[Symbol]) -> str:
    """Say what may be wrong where an observation is none that the plan knows at all."""
    if observation in known:
        return ""
    return (
        f"; the plan's observations are such as {symbol_text(known[0])}: if name_of made them, "
        "give it here, too"
    )


def _unseen_text(
    episode: int, step: int, observation: Symbol, memory: Memory | BeliefMemory
) -> str:
    states, why = states_text(memory.values), "no known step leads there"
    if memory.unseen:
        states, why = "states unknown", "a label was read that the machines were never shown there"
    return (
        f"episode {episode}, step {step}: the plan does not know {symbol_text(observation)} in "
        f"{states}: {why}; plan from more traces, or act at random there: "
        "on_unseen='random' (--on-unseen random)"
    )

"""Explore a random world: machines with output probabilities, and a plan with a confidence.

A single step proves nothing there. So a round is a batch: machines and a plan from all traces, then
episodes that follow the optimistic policy of the plan, with some random steps so that nothing stays
unseen. Each batch is half of all steps before it.
"""

from collections.abc import Callable
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent.errors import TraceError, locating
from resolvent.exploration.relabel import describe_labeling
from resolvent.exploration.runner import SingleRunner
from resolvent.exploration.solution import Round
from resolvent.exploration.stopping import Statement
from resolvent.inference.infer import infer_with
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machines
from resolvent.planning.plan import Plan, plan
from resolvent.planning.steps import acting_machines
from resolvent.rl.env import LivePreprocessor
from resolvent.rl.rollout import Recorder
from resolvent.rl.tracker import StateTracker
from resolvent.traces import TraceSet

FIRST_BATCH: Final = 500
"""Minimum number of steps of a batch."""

RANDOM_SHARE: Final = 0.2
"""Share of random steps."""


class StochasticSolver:
    """Explores a random world batch by batch."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        options: InferenceOptions,
        traces: TraceSet,
        *,
        gamma: float,
        reward_range: tuple[float, float] | None,
        confidence: float,
        limit: int | None,
        label_of: Callable[..., Any] | None,
        name_of: Callable[[Any], Any] | None,
        actions: list[Any],
    ) -> None:
        self.runner, self.options, self.traces = SingleRunner(env), options, traces
        self.gamma, self.reward_range, self.confidence = gamma, reward_range, confidence
        self.limit, self.seed = limit, options.seed
        self.label_of, self.name_of, self.actions = label_of, name_of, actions
        self.truncated_episodes = 0

    def infer_plan(self) -> Plan:
        """Infer machines from all traces, and plan by them."""
        return self._plan(infer_with(self.options, self.traces).machines, self.reward_range)

    def gap(self, plan: Plan) -> float:
        """Return the largest possible improvement over a plan.

        It is infinite if all rewards are equal and the user gave no range.
        """
        return float("inf") if self._are_rewards_equal(plan) else plan.largest_gap

    def _are_rewards_equal(self, plan: Plan) -> bool:
        return plan.vacuous is not None and self.reward_range is None

    def _plan(self, machines: Machines, reward_range: tuple[float, float] | None) -> Plan:
        return plan(
            machines,
            self.traces,
            gamma=self.gamma,
            reward_range=reward_range,
            confidence=self.confidence,
        )

    def round(self, plan: Plan) -> Round:
        """Return the present round of the history."""
        return Round(
            self.traces.steps,
            len(self.traces),
            {name: machine.states for name, machine in plan.machines.items()},
            plan.value,
            plan.bound if np.isfinite(plan.bound) else None,
            "how often what comes",
        )

    def statement(self, plan: Plan, reason: str, truncated: int, failure: str | None) -> Statement:
        """Return the guarantee of a plan; `truncated` counts the episodes truncated before."""
        return Statement(
            "chance",
            steps=self.traces.steps,
            episodes=len(self.traces),
            states={name: machine.states for name, machine in plan.machines.items()},
            situations=len(plan.model),
            moves=0,
            open_steps=plan.model.unknown,
            gap=self.gap(plan),
            depth=1,
            reward_range=plan.reward_range,
            capped=truncated + self.truncated_episodes,
            confidence=plan.confidence,
            contradiction=reason,
            labels=describe_labeling(self.options.labels),  # type: ignore[arg-type]
            failure=failure,
        )

    def explore(self, followed: Plan, budget: int, is_interrupted: Callable[[], bool]) -> None:
        """Play another batch by the optimistic policy of a plan, within a budget of all steps.

        Where all rewards are equal, unknown steps are assumed to pay more.
        """
        if self._are_rewards_equal(followed):
            least, most = followed.reward_range
            followed = self._plan(followed.machines, (least, most + 1))
        batch = min(max(FIRST_BATCH, self.traces.steps // 2), budget - self.traces.steps)
        machines = followed.machines
        env = self.runner.env
        live = LivePreprocessor(env, machines.senses, None, None, self.name_of)
        recorder = Recorder(env, self.label_of or live.label_of, name_of=self.name_of)
        rng = np.random.default_rng((self.seed, self.traces.steps, 1))
        played_steps, number = 0, len(self.traces)
        try:
            while played_steps < batch and not is_interrupted():
                with locating(f"episode {number}"):
                    played_steps += self._episode(
                        followed, live, recorder, rng, batch - played_steps, number
                    )
                number += 1
        finally:  # keep the steps before a failure
            played = recorder.trace_set()
            if played.steps:
                self.traces = TraceSet([*self.traces, *played])

    def _episode(
        self,
        followed: Plan,
        live: LivePreprocessor,
        recorder: Recorder,
        rng: np.random.Generator,
        most: int,
        number: int,
    ) -> int:
        drawn = np.random.SeedSequence((self.seed, number, 1)).generate_state(1)[0]
        memory = StateTracker(acting_machines(followed.machines))
        observation, info = self.runner.reset({0: int(drawn) >> 1})[0]
        memory.reset(recorder.begin(observation, info))
        model, steps, over = followed.model, 0, False
        try:
            while not over:
                here = model.situation(live.observations(observation), *memory.values)
                action = self.actions[int(rng.integers(len(self.actions)))]
                if here is not None and rng.random() >= RANDOM_SHARE:
                    symbol = model.actions[int(followed.optimistic_policy[here])]
                    action = live.actions.value(symbol)
                with locating(f"step {steps}"):
                    (result,) = self.runner.step({0: action})
                observation = result.observation
                label = recorder.step(action, observation, result.reward, result.info)
                memory.step(label, result.terminated)
                steps += 1
                over = result.terminated or result.truncated or steps in (self.limit, most)
                if over:
                    recorder.end(terminated=result.terminated, truncated=not result.terminated)
                    self.truncated_episodes += not result.terminated and steps != most
        except TraceError:
            recorder.cut()
            raise
        return steps

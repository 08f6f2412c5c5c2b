"""A world that is random after all → machines that say how often what comes, and a plan by them.

No single step is a proof there, so rounds are batches: machines and a plan from all traces,
then episodes that follow what the plan hopes for, with some steps at random so that nothing
stays unseen for ever. Each batch is half of all steps before it.
"""

from collections.abc import Callable
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent.control.planning.plans import Plan, plan
from resolvent.control.planning.situations import that_matter
from resolvent.control.wrapping.memory import Memory
from resolvent.options import Options
from resolvent.pipeline import infer_with
from resolvent.senses.live import LiveSenses
from resolvent.traces import TraceSet
from resolvent.traces.live.recording import Recorder

FIRST_BATCH: Final = 500
AT_RANDOM: Final = 0.2
"""The share of steps that are taken at random."""


class ByChance:
    """Explores a world that answers with chance, batch by batch."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        options: Options,
        *,
        gamma: float,
        reward_range: tuple[float, float] | None,
        confidence: float,
        limit: int | None,
        seed: int,
        label_of: Callable[..., Any] | None,
        name_of: Callable[[Any], Any] | None,
        actions: list[Any],
    ) -> None:
        self.env, self.options = env, options
        self.traces = TraceSet([])
        self.gamma, self.reward_range, self.confidence = gamma, reward_range, confidence
        self.limit, self.seed = limit, seed
        self.label_of, self.name_of, self.actions = label_of, name_of, actions
        self.resets = 0

    def think(self) -> Plan:
        """Infer machines from all traces, and plan by them."""
        return plan(
            infer_with(self.options, self.traces),
            self.traces,
            gamma=self.gamma,
            reward_range=self.reward_range,
            confidence=self.confidence,
        )

    def explore(self, followed: Plan, budget: int, stops: Callable[[], bool]) -> None:
        """Play another batch by what a plan hopes for, within a budget of steps in all."""
        batch = min(max(FIRST_BATCH, self.traces.steps // 2), budget - self.traces.steps)
        machines = followed.machines
        live = LiveSenses(self.env, machines.senses, None, None, self.name_of)
        recorder = Recorder(self.env, self.label_of or live.label_of, name_of=self.name_of)
        rng = np.random.default_rng((self.seed, self.traces.steps, 1))
        taken = 0
        while taken < batch and not stops():
            taken += self._episode(followed, live, recorder, rng, batch - taken)
        played = recorder.trace_set()
        if played.steps:
            self.traces = TraceSet([*self.traces, *played])

    def _episode(
        self,
        followed: Plan,
        live: LiveSenses,
        recorder: Recorder,
        rng: np.random.Generator,
        most: int,
    ) -> int:
        drawn = np.random.SeedSequence((self.seed, self.resets, 1)).generate_state(1)[0]
        self.resets += 1
        memory = Memory(that_matter(followed.machines))
        observation, info = self.env.reset(seed=int(drawn) >> 1)
        memory.reset(recorder.begin(observation, info))
        model, taken = followed.model, 0
        while True:
            here = model.situation(live.observations(observation), *memory.values)
            action = self.actions[int(rng.integers(len(self.actions)))]
            if here is not None and rng.random() >= AT_RANDOM:
                symbol = model.actions[int(followed.optimistic_policy[here])]
                action = live.actions.value(symbol)
            observation, reward, terminated, truncated, info = self.env.step(action)
            memory.step(recorder.step(action, observation, reward, info), bool(terminated))
            taken += 1
            if terminated or truncated or taken in (self.limit, most):
                recorder.end(terminated=bool(terminated), truncated=not terminated)
                return taken

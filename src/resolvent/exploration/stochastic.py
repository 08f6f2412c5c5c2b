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
from resolvent.errors import TraceError, locating
from resolvent.exploration.runner import SingleRunner
from resolvent.machines import Machines
from resolvent.options import Options
from resolvent.pipeline import infer_with
from resolvent.senses.live import LiveSenses
from resolvent.traces import TraceSet
from resolvent.traces.live.recording import Recorder

FIRST_BATCH: Final = 500
AT_RANDOM: Final = 0.2
"""The share of steps that are taken at random."""


class StochasticSolver:
    """Explores a world that answers with chance, batch by batch."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        options: Options,
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
        self.env, self.options, self.traces = SingleRunner(env), options, traces
        self.gamma, self.reward_range, self.confidence = gamma, reward_range, confidence
        self.limit, self.seed = limit, options.seed
        self.label_of, self.name_of, self.actions = label_of, name_of, actions
        self.capped = 0

    def think(self) -> Plan:
        """Infer machines from all traces, and plan by them."""
        return self._planned(infer_with(self.options, self.traces).machines, self.reward_range)

    def gap(self, found: Plan) -> float:
        """Return by how much acting otherwise could be better than a plan, at most.

        Where all that was ever paid is the same, nobody knows: unless somebody said what could be.
        """
        return float("inf") if self._pays_alike(found) else found.largest_gap

    def _pays_alike(self, found: Plan) -> bool:
        return found.vacuous is not None and self.reward_range is None

    def _planned(self, machines: Machines, reward_range: tuple[float, float] | None) -> Plan:
        return plan(
            machines,
            self.traces,
            gamma=self.gamma,
            reward_range=reward_range,
            confidence=self.confidence,
        )

    def explore(self, followed: Plan, budget: int, stops: Callable[[], bool]) -> None:
        """Play another batch by what a plan hopes for, within a budget of steps in all.

        Where nothing pays so far, it hopes that what is not known does.
        """
        if self._pays_alike(followed):
            least, most = followed.reward_range
            followed = self._planned(followed.machines, (least, most + 1))
        batch = min(max(FIRST_BATCH, self.traces.steps // 2), budget - self.traces.steps)
        machines = followed.machines
        env = self.env.env
        live = LiveSenses(env, machines.senses, None, None, self.name_of)
        recorder = Recorder(env, self.label_of or live.label_of, name_of=self.name_of)
        rng = np.random.default_rng((self.seed, self.traces.steps, 1))
        taken, number = 0, len(self.traces)
        try:
            while taken < batch and not stops():
                with locating(f"episode {number}"):
                    taken += self._episode(followed, live, recorder, rng, batch - taken, number)
                number += 1
        finally:  # whatever fails, what was seen stays
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
        number: int,
    ) -> int:
        drawn = np.random.SeedSequence((self.seed, number, 1)).generate_state(1)[0]
        memory = Memory(that_matter(followed.machines))
        observation, info = self.env.reset({0: int(drawn) >> 1})[0]
        memory.reset(recorder.begin(observation, info))
        model, taken, over = followed.model, 0, False
        try:
            while not over:
                here = model.situation(live.observations(observation), *memory.values)
                action = self.actions[int(rng.integers(len(self.actions)))]
                if here is not None and rng.random() >= AT_RANDOM:
                    symbol = model.actions[int(followed.optimistic_policy[here])]
                    action = live.actions.value(symbol)
                with locating(f"step {taken}"):
                    (came,) = self.env.step({0: action})
                observation = came.observation
                label = recorder.step(action, observation, came.reward, came.info)
                memory.step(label, came.terminated)
                taken += 1
                over = came.terminated or came.truncated or taken in (self.limit, most)
                if over:
                    recorder.end(terminated=came.terminated, truncated=not came.terminated)
                    self.capped += not came.terminated and taken != most
        except TraceError:
            recorder.cut()
            raise
        return taken

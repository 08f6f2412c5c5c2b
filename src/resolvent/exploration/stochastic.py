"""Explore a stochastic environment: machines with output probabilities, a plan with a confidence.

A single step proves nothing there. So a round is a batch: machines and a plan from all traces, then
episodes that follow the optimistic policy of the plan, with some random steps so that nothing stays
unseen. Each batch is as long as all steps before it.
"""

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import gymnasium as gym
import numpy as np

from resolvent._util.math import log
from resolvent._util.parallel import stop_requests
from resolvent.errors import OptionError, TraceError, locating
from resolvent.exploration.belief_states import HiddenStates
from resolvent.exploration.environment import CheckedEnv, member_of, seed_of
from resolvent.exploration.solution import Round, Solution
from resolvent.exploration.stopping import Guarantee, describe_labeling
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import ACTION_OBSERVATION, fit_preprocessor
from resolvent.inference.infer import infer_with
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machines
from resolvent.noise.hidden_states import held_out
from resolvent.noise.model import Noise
from resolvent.planning.plan import Plan, plan
from resolvent.planning.steps import acting_machines
from resolvent.preprocess.labeling import AS_RECORDED
from resolvent.rl.env import LivePreprocessor
from resolvent.rl.rollout import Recorder, Step, play_episode
from resolvent.rl.tracker import StateTracker
from resolvent.traces import TraceSet
from resolvent.traces.source import InMemorySource

if TYPE_CHECKING:
    from resolvent.exploration.solve import SolveRun

NEGLIGIBLE: Final = 0.01  # discount of rewards that are not explored for
FIRST_BATCH: Final = 500  # minimum number of steps of a batch
MIN_HELD_OUT: Final = 5  # minimum number of held-out traces to compare machines
RANDOM_SHARE: Final = 0.2  # share of random steps


def explore_stochastic(run: "SolveRun", before: Solution | Conflict) -> Solution:
    """Continue after a solution or a conflict that shows that the environment is stochastic."""
    learner = StochasticLearner(run, before)
    with member_of(run.player.runner.env) as env, stop_requests() as is_interrupted:
        if not isinstance(env, gym.Env):
            raise OptionError(
                f"the environment is stochastic, and {type(env.unwrapped).__name__} has no single "
                f"environments: pass one made by gym.make"
            )
        while True:
            best = learner.learn()
            bound = best.bound if np.isfinite(best.bound) else None
            learned = learner.traces.steps, len(learner.traces), _states_of(best)
            run.history.append(Round(*learned, best.value, bound, "output probabilities"))
            if run.progress is not None:
                run.progress(run.history[-1])
            solution = run.saved(learner.solution(best))
            is_good = solution.guarantee.gap <= run.state.config.target
            if is_good or solution.steps >= run.budget or is_interrupted():
                return solution
            try:
                learner.play_batch(env, best, is_interrupted)
            except TraceError as error:
                raise run.failure(error, learner.solution(best, str(error))) from error


class StochasticLearner:
    """Learns the probabilities of outputs from all traces at once."""

    def __init__(self, run: "SolveRun", before: Solution | Conflict) -> None:
        state, hypothesis = run.state, run.state.hypothesis
        self.run, self.config = run, state.config
        if isinstance(before, Solution):
            self.traces, self.reason = before.traces, before.guarantee.contradiction or ""
            labeling = before.machines.preprocessor.labeling
        else:
            self.traces, self.reason = state.buffer.traces(), str(before).split(";")[0]
            labeling = state.labels.labeling
        self.labels = describe_labeling(labeling)
        self.options = InferenceOptions(
            noise="auto",
            labels=labeling,
            timing=None if hypothesis.may_time else hypothesis.options.timing,  # type: ignore[arg-type]
            seed=self.config.seed,
        )
        self.truncated_episodes = state.truncated_episodes
        self.most_steps = run.player.limit or self.run.budget
        self.may_have_beliefs = state.labels.automatic and labeling != AS_RECORDED

    @property
    def limit(self) -> int:
        """Maximum length of an episode: rewards later than that count for little.

        It is not below the length of any episode that ended itself.
        """
        gamma, length = self.config.gamma, np.diff(self.traces.offsets)
        horizon = log(NEGLIGIBLE) / log(gamma) if gamma < 1 else self.most_steps
        longest = int(length[self.traces.terminated].max(initial=0))
        return min(self.most_steps, max(ceil(horizon), longest))

    def learn(self) -> Plan:
        """Return the plan from all traces: on beliefs if these predict more than the labels do.

        Both are compared on every fourth trace; see docs/decisions/exploration.md.
        """
        traces, is_test = self.traces, held_out(self.traces)
        if self.may_have_beliefs and np.count_nonzero(is_test) >= MIN_HELD_OUT:
            training, test = (traces.take(np.flatnonzero(part)) for part in (~is_test, is_test))
            preprocessor = fit_preprocessor(self.options, InMemorySource([traces]))
            preprocessor = replace(preprocessor, labeling=ACTION_OBSERVATION)
            hidden = HiddenStates.fit(traces, preprocessor, self.options.seed)
            if hidden is not None and hidden.predicts_better(self.infer(training), test):
                return hidden.best_plan(self.plan)
        return self.plan(self.infer(traces))

    def infer(self, traces: TraceSet) -> Machines:
        """Return the machines of traces, none of which is an outlier: all of them were played."""
        result = infer_with(self.options, traces)
        if result.outliers:
            result = infer_with(replace(self.options, noise=Noise(outcomes=True)), traces)
        return result.machines

    def plan(self, machines: Machines, reward_range: tuple[float, float] | None = None) -> Plan:
        """Return the plan of machines, by default for the user's range of rewards."""
        return plan(
            machines,
            self.traces,
            gamma=self.config.gamma,
            reward_range=reward_range or self.config.reward_range,
            confidence=self.run.confidence,
        )

    def solution(self, best: Plan, failure: str | None = None) -> Solution:
        """Return the solution with a plan.

        The gap is infinite if all rewards are equal and the user gave no range.
        """
        guarantee = Guarantee(
            "stochastic",
            steps=self.traces.steps,
            episodes=len(self.traces),
            states=_states_of(best),
            augmented_states=len(best.model),
            transitions=0,
            open_steps=best.model.unknown_steps,
            gap=float("inf") if self._lacks_rewards(best) else best.largest_gap,
            depth=1,
            reward_range=best.reward_range,
            truncated=self.truncated_episodes,
            confidence=best.confidence,
            contradiction=self.reason,
            labels=self.labels,
            failure=failure,
        )
        return Solution(
            best,
            best.machines,
            self.traces,
            tuple(self.run.history),
            guarantee,
            self.config.seed,
            self.config.reward_range,
            world=self.run.world,
        )

    def _lacks_rewards(self, best: Plan) -> bool:
        return best.all_rewards_equal and self.config.reward_range is None

    def play_batch(
        self, env: gym.Env[Any, Any], best: Plan, is_interrupted: Callable[[], bool]
    ) -> None:
        """Play another batch by the optimistic policy of a plan, within the budget of all steps.

        Where all rewards are equal, unknown steps are assumed to have higher ones.
        """
        if self._lacks_rewards(best):
            least, most = best.reward_range
            best = self.plan(best.machines, (least, most + 1))
        n_steps, number = self.traces.steps, len(self.traces)
        last = n_steps + min(max(FIRST_BATCH, n_steps), self.run.budget - n_steps)
        env = CheckedEnv(env)
        actor = _OptimisticActor(env, self.run, best, (self.config.seed, n_steps, 1))
        try:
            while n_steps < last and not is_interrupted():
                seed, most = seed_of(self.config.seed, number, 1), last - n_steps
                limit = min(most, self.limit)
                with locating(f"episode {number}"):
                    terminated, _ = play_episode(env, actor, seed=seed, max_steps=limit)
                actor.recorder.end(terminated=terminated, truncated=not terminated)
                self.truncated_episodes += not terminated and actor.steps != most
                n_steps += actor.steps
                number += 1
        except TraceError:  # keep the steps before a failure
            actor.recorder.truncate()
            raise
        finally:
            played = actor.recorder.trace_set()
            if played.steps:
                self.traces = TraceSet([*self.traces, *played])


def _states_of(best: Plan) -> dict[str, int]:
    return {name: machine.states for name, machine in best.machines.items()}


class _OptimisticActor:
    """Follows the optimistic policy of a plan with some random actions; records the episodes."""

    def __init__(
        self, env: gym.Env[Any, Any], run: "SolveRun", best: Plan, seed: tuple[int, ...]
    ) -> None:
        encoder, machines = run.player.encoder, best.machines
        self.model, self.policy, self.actions = best.model, best.optimistic_policy, encoder.actions
        self.rng, self.steps = np.random.default_rng(seed), 0
        self.live = LivePreprocessor(env, machines.preprocessor, None, None, encoder.observation_fn)
        labeling_fn = encoder.labeling_fn or self.live.labeling_fn
        self.recorder = Recorder(env, labeling_fn, observation_fn=encoder.observation_fn)
        self.tracker = StateTracker(acting_machines(machines))

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        self.tracker.reset(self.recorder.begin(observation, info))
        self.steps = 0

    def act(self, observation: Any) -> Any:
        row = self.model.find(self.live.observations(observation), *self.tracker.values)
        action = self.actions[int(self.rng.integers(len(self.actions)))]
        if row is not None and self.rng.random() >= RANDOM_SHARE:
            action = self.live.actions.value(self.model.actions[int(self.policy[row])])
        return action

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        next_observation, reward, terminated, _, info = step
        label = self.recorder.step(action, next_observation, reward, info)
        self.tracker.step(label, bool(terminated))
        self.steps += 1

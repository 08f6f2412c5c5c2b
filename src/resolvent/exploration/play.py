"""Play the plan of a solution in fresh episodes, which show what it is paid.

Input: the solution of learning. Output: the episodes; `solve` learns from those that contradict
the plan.
"""

from typing import TYPE_CHECKING, Final

import gymnasium as gym

from resolvent._util.math import log
from resolvent.exploration.environment import member_of, seed_of
from resolvent.exploration.learner import EncodedStep, begin_episode, close_episode, update
from resolvent.exploration.solution import Solution
from resolvent.rl import run_plan
from resolvent.rl.run_plan import Runs
from resolvent.traces import TraceSet

if TYPE_CHECKING:
    from resolvent.exploration.solve import SolveRun

PLAYED_SHARE: Final = 0.1  # share of the budget that is left for playing
PLAYED_SHARE_OF_REST: Final = 0.3  # the same of what is left if learning stops early
MAX_EPISODES: Final = 200
ENOUGH_EPISODES: Final = 5  # number of episodes for which the steps left should suffice
SMALL, NEGLIGIBLE = 0.01, 0.001  # discounts until which an episode is played, with few steps left


def steps_to_play(budget: int) -> int:
    """Return how many steps of a budget are left for playing.

    >>> steps_to_play(20_000)
    2000
    """
    return int(PLAYED_SHARE * budget)


def play_plan(run: "SolveRun", solution: Solution) -> Runs | None:
    """Play the plan in fresh episodes, until the steps left for that are spent.

    None if there are no steps for it, no single environment, or the user interrupts it.
    """
    config, left = run.state.config, run.full_budget - solution.steps
    remaining = max(min(steps_to_play(run.full_budget), left), int(PLAYED_SHARE_OF_REST * left))
    if solution.guarantee.reason in ("interrupted", "failed") or not remaining:
        return None
    limit = min(run.player.limit or remaining, remaining)
    if config.gamma < 1:
        least, most = (int(log(x) / log(config.gamma)) + 1 for x in (SMALL, NEGLIGIBLE))
        limit = min(limit, most, max(least, remaining // ENOUGH_EPISODES))
    with member_of(run.player.runner.env) as env:
        if not isinstance(env, gym.Env):
            return None
        try:
            return run_plan.run(
                solution.plan,
                env,
                episodes=MAX_EPISODES,
                seed=seed_of(config.seed, solution.steps, 2),
                options=None,
                labels=None,
                labeling_fn=run.player.encoder.labeling_fn,
                observation_fn=run.player.encoder.observation_fn,
                columns=(),
                max_steps=limit,
                on_unseen="random",
                progress=None,
                total_steps=remaining,
            )
        except KeyboardInterrupt:
            return None


def learn_from(run: "SolveRun", traces: TraceSet) -> bool:
    """Learn from episodes that were not chosen by the learner; return whether machines changed."""
    state, episode, changed = run.state, run.state.episodes[0], False
    for begun in state.episodes:
        if begun.is_open:
            close_episode(state, begun)
        begun.action = None
    for trace in traces:
        is_given = state.labels.labeling.is_given
        labels = trace.labels if is_given else [None] * len(trace.observations)
        begin_episode(state, episode, EncodedStep(trace.observations[0], labels[0]))
        for number, action in enumerate(trace.actions, 1):
            step = EncodedStep(
                trace.observations[number],
                labels[number],
                state.buffer.actions.index(action),
                float((trace.rewards or ())[number - 1]),
                terminated=trace.terminated and number == len(trace.actions),
            )
            changed |= update(state, episode, step)
            if state.conflict is not None:
                return True
        if episode.is_open:
            close_episode(state, episode)
    run.make_checkpoint()
    return changed

"""Learning to act: Q-learning with the machines in view, in the 25×25 world.

Paper: the learning curve after the ablation study.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent.inference.infer import infer
from resolvent.paper.experiments.ablation import WORLD
from resolvent.paper.experiments.worlds import about, gathered, world_called
from resolvent.paper.processes import Clock
from resolvent.paper.run import Run
from resolvent.planning.model import Model
from resolvent.rl.trainer import q_learning
from resolvent.rl.wrappers.augment import AugmentObservation

EXPERIMENT: Final = "policy"
SETTING: Final = "25x25"
TRACES: Final = 1_000
PAPER_EPISODES: Final = 1_500
GAMMA: Final = 0.95
MAX_STEPS: Final = 2_000
"""Where episodes are cut, for without memory some never end."""

EVALUATE_EVERY: Final = 50
BIN: Final = 25


@dataclass(frozen=True)
class Learner:
    """A learner: its title in tables, whether it sees the machines, and its options."""

    title: str
    machines: bool = True
    options: dict[str, Any] = field(default_factory=dict)


LEARNERS: Final = {
    "machines": Learner("machines (the paper's schedule)"),
    "observation": Learner("observation only", machines=False),
    "initial-value": Learner("machines, values begin at 1", options={"initial_value": 1.0}),
    "model": Learner(
        "machines, counterfactual and shaping", options={"counterfactual": True, "shaping": True}
    ),
}


def runs(seeds: int, episodes: int) -> Iterator[Run]:
    """Yield all runs; a repetition is a seed of the traces and of the learner."""
    for repetition in range(seeds):
        for name in LEARNERS:
            arguments = {"world": WORLD, "learner": name, "seed": repetition, "episodes": episodes}
            yield Run(EXPERIMENT, SETTING, name, repetition, f"{__name__}:learn", arguments)


def learn(clock: Clock, *, world: str, learner: str, seed: int, episodes: int) -> dict[str, Any]:
    """Infer machines from random traces, learn with them in view, and evaluate the policy.

    The worth of the greedy policy is exact: its mean discounted return over all starts,
    beside that of the best policy that sees the true state. Rewards of episodes are not
    discounted, as in the paper, and come with their maximum.
    """
    place = world_called(world)
    seen = gathered(place, TRACES, seed)
    machines = infer(seen, outputs=("observation", "reward"), noise="none").machines.as_pair()
    chosen = LEARNERS[learner]
    env: gym.Env[Any, Any] = AugmentObservation(place, machines) if chosen.machines else place
    model = Model.of(machines, seen) if chosen.options.get("shaping") else None
    with clock:
        learned = q_learning(
            env,
            episodes=episodes,
            seed=seed,
            gamma=GAMMA,
            max_steps=MAX_STEPS,
            model=model,
            evaluate_every=EVALUATE_EVERY,
            **chosen.options,
        )
    tables = place.mechanics
    optimum = float(tables.optimal_values(GAMMA)[tables.starts].mean())
    paid = learned.curve.returns[: min(PAPER_EPISODES, episodes)]
    binned = paid[: len(paid) // BIN * BIN].reshape(-1, BIN).mean(axis=1)
    return about(seen) | {
        "status": "found",
        "tm_states": machines.transition.states,
        "states": machines.reward.states,
        "episodes": episodes,
        "learning_steps": int(learned.curve.steps.sum()),
        "optimum": round(optimum, 6),
        "most": round(float(tables.optimal_values(1.0)[tables.starts].mean()), 6),
        "returns": np.round(binned, 5).tolist(),
        "worth": {
            "episode": [evaluation.episode for evaluation in learned.evaluations],
            "value": [round(evaluation.value, 5) for evaluation in learned.evaluations],
        },
    }

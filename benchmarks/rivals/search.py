"""A small search for the hyperparameters of the networks, in one world with a seed of its own.

Prints and keeps the results in the file of the cells; known settings are not run again.
"""

import time
from collections.abc import Iterator
from typing import Any

from cells import Cells
from evaluating import WORLDS, solved_at
from nets import Net, recurrent, stacked_dqn, stacked_ppo

SEED = 100
STEPS = 40_000
WORLD = "TMaze"


def tried() -> Iterator[tuple[str, Net]]:
    """Give each setting with what is written of it."""
    for rate in (1e-3, 3e-3):
        for entropy in (0.01, 0.05):
            options: dict[str, Any] = {"learning_rate": rate, "ent_coef": entropy}
            yield f"recurrent PPO, rate {rate:g}, entropy {entropy:g}", recurrent(**options)
            yield f"PPO, stack 16, rate {rate:g}, entropy {entropy:g}", stacked_ppo(16, **options)
    for rate, fraction in ((1e-3, 0.1), (1e-3, 0.3), (3e-3, 0.3)):
        options = {"learning_rate": rate, "exploration_fraction": fraction}
        name = f"DQN, stack 16, rate {rate:g}, exploring for {fraction:g}"
        yield name, stacked_dqn(16, **options)


def main() -> None:
    """Run what was not run yet."""
    for name, net in tried():
        if name in Cells.read().search:
            continue
        started = time.process_time()
        curve = net(WORLDS[WORLD], SEED, STEPS)
        result = {
            "solved_at": solved_at(curve.steps, curve.shares),
            "last": curve.shares[-1],
            "best": max(curve.shares),
            "steps": curve.steps[-1],
            "seconds": round(time.process_time() - started, 1),
        }
        Cells.keep("search", name, result)
        print(name, result, flush=True)


if __name__ == "__main__":
    main()

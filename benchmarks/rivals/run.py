"""Methods for worlds with hidden state: return by number of steps: docs/rivals.md.

Runs each method in each world with each seed, and keeps every finished cell in
benchmarks/rivals/results.json: an interrupted run continues. Then writes the curves in
docs/pictures and the tables of the page.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cells import FILE, SEEDS, Cells
from evaluating import WORLDS, Curve, Setting, solved_at
from loops import Jirp, JirpWithBoth, Lrm, loop
from ours import from_random, solve

STEPS = 100_000

Method = Callable[[Setting, int, int], tuple[Curve, dict[str, Any]]]


def _ours(run: Callable[[Setting, int, int], Curve]) -> Method:
    return lambda setting, seed, most: (run(setting, seed, most), {})


def _loop(kind: Any, setting: Setting, seed: int, most: int) -> tuple[Curve, dict[str, Any]]:
    curve, belief = loop(kind, setting, seed, most)
    return curve, {
        "inferred": belief.inferred,
        "states": belief.states,
        "out_of_time": not belief.may_infer,
    }


def _net(
    name: str, stack: int, setting: Setting, seed: int, most: int
) -> tuple[Curve, dict[str, Any]]:
    import nets  # PyTorch takes seconds to import, and the other methods do without

    return getattr(nets, name)(stack)(setting, seed, most), {}


METHODS: dict[str, Method] = {
    "rs.solve": _ours(solve),
    "machines from random episodes, plan": _ours(from_random),
    "LRM": partial(_loop, Lrm),
    "JIRP": partial(_loop, Jirp),
    "JIRP's loop, both machines": partial(_loop, JirpWithBoth),
    "recurrent PPO": partial(_net, "recurrent", 1),
    "PPO, last 16 steps": partial(_net, "stacked_ppo", 16),
    "PPO, last 4 steps": partial(_net, "stacked_ppo", 4),
    "DQN, last 16 steps": partial(_net, "stacked_dqn", 16),
}


def run(world: str, method: str, seed: int, most: int) -> dict[str, Any]:
    """Run one cell, and return what there is to keep of it."""
    started = time.process_time()
    curve, extra = METHODS[method](WORLDS[world], seed, most)
    seconds = round(time.process_time() - started, 1)
    return {
        "steps": curve.steps,
        "shares": curve.shares,
        "most": most,
        "seconds": seconds,
        **extra,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS, help="that a run may take")
    parser.add_argument("--file", type=Path, default=FILE, help="of the cells")
    parser.add_argument("--no-page", action="store_true", help="leave the page as it is")
    options = parser.parse_args(arguments)
    for method in options.methods:
        for world in options.worlds:
            for seed in range(options.seeds):
                key = Cells.key(world, method, seed)
                if key in Cells.read(options.file).cells:
                    continue
                result = run(world, method, seed, options.steps)
                Cells.keep("cells", key, result, options.file)
                at = solved_at(result["steps"], result["shares"])
                when = "never" if at is None else f"{at:,}"
                print(f"{key}: {when}, {result['seconds']} s", flush=True)
    if not options.no_page:
        import page

        page.write(Cells.read(options.file))


if __name__ == "__main__":
    main()

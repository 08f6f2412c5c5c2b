"""The comparison with baselines: three grids, every method on the same traces.

Paper: "Efficiency Comparison with Baselines".
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from resolvent.paper.experiments.methods import METHODS, Method
from resolvent.paper.experiments.worlds import about, gathered, judged, world_called
from resolvent.paper.processes import Clock
from resolvent.paper.run import Run, function_called

EXPERIMENT: Final = "baselines"
GRIDS: Final = {"3x3": ("grid-3", 275), "4x4": ("grid-4", 500), "5x5": ("grid-5", 6_000)}
"""By setting: the world and its number of traces."""


def runs(repetitions: int, methods: Mapping[str, Method] = METHODS) -> Iterator[Run]:
    """Yield all runs; a repetition is a seed of the traces and of the method."""
    for setting, (world, traces) in GRIDS.items():
        for repetition in range(repetitions):
            for name, method in methods.items():
                yield Run(
                    EXPERIMENT,
                    setting,
                    name,
                    repetition,
                    f"{__name__}:compare",
                    {
                        "world": world,
                        "traces": traces,
                        "seed": repetition,
                        "function": method.function,
                        "options": method.options,
                    },
                    method.needs,
                    method.extra,
                )


def compare(
    clock: Clock, *, world: str, traces: int, seed: int, function: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Run a method on traces of a world, and compare its result with the truth."""
    place = world_called(world)
    seen = gathered(place, traces, seed)
    description = about(seen)
    states = place.machines().reward.states
    method = function_called(function)
    with clock:
        outcome = method(seen, states=states, seed=seed, time_limit=clock.limit, **options)
    return description | judged(outcome, place, seed)

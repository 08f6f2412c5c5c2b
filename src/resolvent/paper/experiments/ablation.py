"""The ablation: the effect of each part of the pipeline, in the 25×25 world.

Paper: "Ablation Study".
"""

from collections.abc import Iterator
from typing import Any, Final

from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.paper.baselines.outcome import Outcome
from resolvent.paper.experiments.worlds import about, gathered, judged, world_called
from resolvent.paper.processes import Clock
from resolvent.paper.run import Run

EXPERIMENT: Final = "ablation"
WORLD: Final = "random-28"
"""Of the first thirty, the world whose traces come closest in length to the paper's 225.3."""

SETTINGS: Final = {"low": 1_000, "high": 10_000}
PARTS: Final[dict[str, dict[str, Any]]] = {
    "full": {},
    "no-supplement": {"supplement": False},
    "keep-redundant": {"remove_redundant": False},
    "keep-trivial": {"remove_trivial": False},
    "keep-both": {"remove_redundant": False, "remove_trivial": False},
}
"""By name: the options that switch a part off."""

STRATEGIES: Final = ("rpni", "edsm", "search")


def runs(repetitions: int, strategies: tuple[str, ...] = STRATEGIES) -> Iterator[Run]:
    """Yield all runs; a repetition is a seed of the traces."""
    for setting, traces in SETTINGS.items():
        for repetition in range(repetitions):
            for part in PARTS:
                for strategy in strategies:
                    yield Run(
                        EXPERIMENT,
                        setting,
                        f"{part}--{strategy}",
                        repetition,
                        f"{__name__}:ablate",
                        {
                            "world": WORLD,
                            "traces": traces,
                            "seed": repetition,
                            "part": part,
                            "strategy": strategy,
                        },
                    )


def ablate(
    clock: Clock, *, world: str, traces: int, seed: int, part: str, strategy: str
) -> dict[str, Any]:
    """Infer both machines with a part switched off.

    As in the paper, all traces are used at once, and only "no event" is known to be trivial.
    """
    place = world_called(world)
    seen = gathered(place, traces, seed)
    description = about(seen)
    with clock:
        result = infer(
            seen,
            options=InferenceOptions(
                outputs=("observation", "reward"),
                strategy=strategy,  # type: ignore[arg-type]  # the options look it up
                trivial=(),
                noise="none",
                refine=False,
                time_limit=clock.limit,
                **PARTS[part],
            ),
        )
    nodes = {name: getattr(result, name).prefix_tree_nodes for name in ("transition", "reward")}
    outcome = Outcome(
        strategy,
        "found",
        result.seconds["total"],
        result.machines.as_pair(),
        {"prefix_tree_nodes": nodes},
    )
    return description | judged(outcome, place, seed)

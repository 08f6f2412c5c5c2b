"""The paper's three experiments: worlds, methods and settings → runs, and the work of each run.

Paper: "Efficiency Comparison with Baselines", "Ablation Study", and the learning curve after it.
All methods get the same traces, and are compared with the true machines of the world.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import product
from typing import Any, Final, NamedTuple

import gymnasium as gym
import numpy as np

from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.machines import EdgeRewardMachine, MachinePair
from resolvent.paper.baselines.aalpy import aalpy, import_merging
from resolvent.paper.baselines.hmm import hmm
from resolvent.paper.baselines.ilp import ilp, import_solver
from resolvent.paper.baselines.lrm import lrm
from resolvent.paper.baselines.outcome import Outcome, Status, wrong_rewards
from resolvent.paper.correctness import compare_edges, compare_pair
from resolvent.paper.runs import Run, Stopwatch
from resolvent.planning.model import Model
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.collect import collect
from resolvent.rl.trainer import q_learning
from resolvent.traces.trace_set import TraceSet
from resolvent.worlds import PhaseGrid, RandomWorld
from resolvent.worlds.env import World

BASELINES, ABLATION, POLICY = "baselines", "ablation", "policy"
EXPERIMENTS: Final = (BASELINES, ABLATION, POLICY)

GRIDS: Final = {"3x3": ("grid-3", 275), "4x4": ("grid-4", 500), "5x5": ("grid-5", 6_000)}
"""By setting of the comparison: the world and its number of traces."""

RANDOM_WORLD: Final = "random-28"
"""Of the first thirty, the world whose traces come closest in length to the paper's 225.3."""

ABLATION_TRACES: Final = {"low": 1_000, "high": 10_000}  # numbers of traces, by setting

PARTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "full": ("full pipeline", {}),
    "no-supplement": ("without supplement", {"supplement": False}),
    "keep-redundant": ("without removal of redundant α", {"remove_redundant": False}),
    "keep-trivial": ("without removal of trivial β", {"remove_trivial": False}),
    "keep-both": ("without both removals", {"remove_redundant": False, "remove_trivial": False}),
}
"""By name: the title in tables, and the options that switch a part of the pipeline off."""

STRATEGIES: Final = ("rpni", "edsm", "search")

POLICY_SETTING: Final = "25x25"
POLICY_TRACES: Final = 1_000
PAPER_EPISODES: Final = 1_500
GAMMA: Final = 0.95
MAX_STEPS: Final = 2_000  # then episodes are truncated: without memory some never end
EVALUATE_EVERY: Final = 50
BIN: Final = 25  # number of episodes whose returns are averaged
_FRESH_TRACES = 1_000
_FRESH_SEED = 1_000_000


class Learner(NamedTuple):
    """A learner: its title in tables, its options, and whether it observes the machines."""

    title: str
    options: dict[str, Any]
    machines: bool = True


LEARNERS: Final = {
    "machines": Learner("machines (the paper's schedule)", {}),
    "observation": Learner("observation only", {}, machines=False),
    "initial-value": Learner("machines, values begin at 1", {"initial_value": 1.0}),
    "model": Learner(
        "machines, counterfactual and shaping", {"counterfactual": True, "shaping": True}
    ),
}


# --- Methods of the comparison -------------------------------------------------------------------


def run_ours(traces: TraceSet, *, seed: int, time_limit: float, strategy: str) -> Outcome:
    """Infer the paper's two machines as `infer` does, with nothing else set but the strategy."""
    result = infer(
        traces,
        outputs=("observation", "reward"),
        strategy=strategy,
        noise="none",
        seed=seed,
        time_limit=time_limit,
    )
    status: Status = "time limit" if result.unfinished else "found"
    return Outcome(strategy, status, result.seconds["total"], result.machines.as_pair())


class Method(NamedTuple):
    """A method of the comparison: its title in tables, its function, and options of it.

    The function gets traces, a time limit, and what `takes` names: a "seed", or the number of
    "states" of the task. `require` imports what the method needs, or raises `MissingExtra`.
    """

    title: str
    function: Callable[..., Outcome]
    options: dict[str, Any]
    takes: tuple[str, ...] = ("seed",)
    require: Callable[[], object] = lambda: None


OURS: Final = "rpni"  # the paper's order of merging, which others are compared with

METHODS: Final[dict[str, Method]] = {
    OURS: Method("ours, rpni", run_ours, {"strategy": "rpni"}),
    "edsm": Method("ours, edsm", run_ours, {"strategy": "edsm"}),
    "aalpy": Method("AALpy, first fit", aalpy, {"order": "first-fit"}, (), import_merging),
    "aalpy-edsm": Method("AALpy, EDSM", aalpy, {"order": "edsm"}, (), import_merging),
    "hmm": Method("HMM", hmm, {}, ("seed", "states")),
    "ilp-conflicts": Method("ILP, conflicts", ilp, {"mode": "conflicts"}, (), import_solver),
    "ilp": Method("ILP, all traces", ilp, {"mode": "all"}, (), import_solver),
    "lrm": Method("LRM, adapted", lrm, {"first_counts": False}),
    "lrm-published": Method("LRM, published", lrm, {"first_counts": True}),
}


# --- The work of a run ---------------------------------------------------------------------------


def compare(
    stopwatch: Stopwatch, *, world: str, traces: int, seed: int, method: str
) -> dict[str, Any]:
    """Run a method on traces of a world, and compare its result with the truth."""
    chosen = METHODS[method]
    chosen.require()
    env = make_world(world)
    collected = collect(env, episodes=traces, seed=seed)
    description = _described(collected)
    parameters = {"seed": seed, "states": env.machines().reward.states + 1}
    options = chosen.options | {name: parameters[name] for name in chosen.takes}
    with stopwatch:
        outcome = chosen.function(collected, time_limit=stopwatch.time_limit, **options)
    return description | evaluate(outcome, env, seed)


def ablate(
    stopwatch: Stopwatch, *, world: str, traces: int, seed: int, part: str, strategy: str
) -> dict[str, Any]:
    """Infer both machines with a part switched off.

    As in the paper, all traces are used at once, and only "no event" is known to be trivial.
    """
    env = make_world(world)
    collected = collect(env, episodes=traces, seed=seed)
    description = _described(collected)
    with stopwatch:
        result = infer(
            collected,
            options=InferenceOptions(
                outputs=("observation", "reward"),
                strategy=strategy,  # type: ignore[arg-type]  # the options look it up
                trivial=(),
                noise="none",
                refine=False,
                time_limit=stopwatch.time_limit,
                **PARTS[part][1],
            ),
        )
    nodes = {name: getattr(result, name).prefix_tree_nodes for name in ("transition", "reward")}
    details = {"prefix_tree_nodes": nodes}
    pair = result.machines.as_pair()
    outcome = Outcome(strategy, "found", result.seconds["total"], pair, details)
    return description | evaluate(outcome, env, seed)


def learn(
    stopwatch: Stopwatch, *, world: str, learner: str, seed: int, episodes: int
) -> dict[str, Any]:
    """Infer machines from random traces, learn with them in view, and evaluate the policy.

    The value of the greedy policy is exact: its mean discounted return over all starts,
    beside that of the best policy that sees the true state. Returns of episodes are not
    discounted, as in the paper, and come with their maximum.
    """
    env = make_world(world)
    collected = collect(env, episodes=POLICY_TRACES, seed=seed)
    machines = infer(collected, outputs=("observation", "reward"), noise="none").machines.as_pair()
    chosen = LEARNERS[learner]
    seen: gym.Env[Any, Any] = AugmentObservation(env, machines) if chosen.machines else env
    model = Model.of(machines, collected) if chosen.options.get("shaping") else None
    with stopwatch:
        table = q_learning(
            seen,
            episodes=episodes,
            seed=seed,
            gamma=GAMMA,
            max_steps=MAX_STEPS,
            model=model,
            evaluate_every=EVALUATE_EVERY,
            **chosen.options,
        )
    tables = env.mechanics
    optimum = float(tables.optimal_values(GAMMA)[tables.starts].mean())
    returns = table.curve.returns[: min(PAPER_EPISODES, episodes)]
    binned = returns[: len(returns) // BIN * BIN].reshape(-1, BIN).mean(axis=1)
    return _described(collected) | {
        "status": "found",
        "tm_states": machines.transition.states,
        "states": machines.reward.states,
        "episodes": episodes,
        "learning_steps": int(table.curve.steps.sum()),
        "optimum": round(optimum, 6),
        "largest_return": round(float(tables.optimal_values(1.0)[tables.starts].mean()), 6),
        "returns": np.round(binned, 5).tolist(),
        "policy": {
            "episode": [evaluation.episode for evaluation in table.evaluations],
            "value": [round(evaluation.value, 5) for evaluation in table.evaluations],
        },
    }


def make_world(name: str) -> World:
    """Return a world by its short name: "grid-3" to "grid-5", or "random-SEED"."""
    kind, _, number = name.partition("-")
    return PhaseGrid(int(number)) if kind == "grid" else RandomWorld(int(number))


def _described(traces: TraceSet) -> dict[str, Any]:
    """Describe the traces of a run; equal digests show that they are the same."""
    return {"traces": len(traces), "steps": traces.steps, "traces_sha256": traces.digest}


def evaluate(outcome: Outcome, world: World, seed: int) -> dict[str, Any]:
    """Describe the result of a method, compared with the truth."""
    record: dict[str, Any] = {"status": outcome.status, "details": outcome.details}
    machine = outcome.machine
    fresh = collect(world, episodes=_FRESH_TRACES, seed=_FRESH_SEED + seed)
    if isinstance(machine, MachinePair):
        correctness = compare_pair(machine, world.mechanics)
        score = machine.score(fresh)
        record["tm_states"] = machine.transition.states
        wrong = score.transition.all_wrong + score.reward.all_wrong
        unseen = score.transition.unseen + score.reward.unseen
    elif isinstance(machine, EdgeRewardMachine):
        correctness = compare_edges(machine, world.mechanics)
        wrong, unseen = wrong_rewards(machine, fresh), 0
    else:
        return record
    return record | {
        "fresh": {"steps": fresh.steps, "wrong": wrong, "unseen": unseen},
        "states": outcome.states,
        "reachable": asdict(correctness),
        "correctness": str(correctness),
    }


# --- Runs ----------------------------------------------------------------------------------------


def baseline_runs(repetitions: int) -> Iterator[Run]:
    """Yield all runs of the comparison; a repetition is a seed of the traces and of the method."""
    for (setting, (world, traces)), seed, method in product(
        GRIDS.items(), range(repetitions), METHODS
    ):
        arguments = {"world": world, "traces": traces, "seed": seed, "method": method}
        yield Run(BASELINES, setting, method, seed, compare, arguments)


def ablation_runs(repetitions: int, strategies: tuple[str, ...] = STRATEGIES) -> Iterator[Run]:
    """Yield all runs of the ablation; a repetition is a seed of the traces."""
    for (setting, traces), seed, part, strategy in product(
        ABLATION_TRACES.items(), range(repetitions), PARTS, strategies
    ):
        arguments = {"world": RANDOM_WORLD, "traces": traces, "seed": seed}
        arguments |= {"part": part, "strategy": strategy}
        yield Run(ABLATION, setting, f"{part}--{strategy}", seed, ablate, arguments)


def policy_runs(seeds: int, episodes: int) -> Iterator[Run]:
    """Yield all runs of learning; a repetition is a seed of the traces and of the learner."""
    for seed, learner in product(range(seeds), LEARNERS):
        arguments = {"world": RANDOM_WORLD, "learner": learner, "seed": seed, "episodes": episodes}
        yield Run(POLICY, POLICY_SETTING, learner, seed, learn, arguments)

"""Worlds without labels: are the events discovered, from how many steps, in what time?

Each small world is given with more and more episodes of random actions, twice as many each time.
Printed are the steps from which the machines have the true numbers of states, also with twice the
episodes: with the labels of the world, and without any. In the office random actions leave out
those into a plant. For the paper's random worlds, whose labels are on 169 cells in 5 classes, the
cells that were discovered as events are counted. `--short` takes two worlds.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import gymnasium as gym
import numpy as np

import resolvent as rs

OUTPUTS = ("observation", "reward")


class Setting(NamedTuple):
    """A world, and the episodes to begin with and to end at."""

    world: str
    first: int
    last: int
    timing: str = "current"


SMALL = (
    Setting("House", 4, 512),
    Setting("HouseInterference", 4, 512),
    Setting("TMaze", 4, 512, "current-with-initial"),
    Setting("PhaseGrid3", 4, 1_024),
    Setting("PhaseGrid4", 4, 1_024),
    Setting("PhaseGrid5", 4, 1_024),
    Setting("OfficeCoffee", 4, 1_024),
    Setting("OfficeMail", 4, 1_024),
    Setting("TwoKeys", 2, 256),
    Setting("Cookie", 2, 256),
)
SHORT = (Setting("House", 8, 128), Setting("TMaze", 8, 128, "current-with-initial"))


def past_the_plants(env: gym.Env, seed: int) -> Callable[[int], int]:
    """Random actions, but for those into a plant: they would end nearly every episode."""
    tables, draw = env.unwrapped.mechanics, random.Random(seed)
    plant = np.array(["plant" in label for label in tables.labels])[tables.label_of]
    safe = {
        int(tables.observation_of[state]): np.flatnonzero(~plant[tables.next_state[state]]).tolist()
        for state in range(tables.live)
    }
    return lambda seen: draw.choice(safe[seen])


def played(setting: Setting, seed: int) -> tuple[rs.TraceSet, tuple[int, int]]:
    """All episodes of a world, and the numbers of states of its machines."""
    env = gym.make(f"resolvent/{setting.world}-v0")
    policy = past_the_plants(env, seed) if setting.world.startswith("Office") else None
    traces = rs.collect(env, episodes=setting.last, seed=seed, policy=policy)
    return traces, sizes(env.unwrapped.machines())


def sizes(machines: rs.Machines) -> tuple[int, int]:
    """The numbers of states."""
    return machines.transition.states, machines.reward.states


def with_labels(traces: rs.TraceSet, timing: str) -> tuple[int, int]:
    """Infer as usual."""
    return sizes(rs.infer(traces, outputs=OUTPUTS, timing=timing, noise="none").machines)


def without_labels(traces: rs.TraceSet, timing: str) -> tuple[int, int]:
    """Take the labels away, find events, and infer."""
    del timing  # is found
    return sizes(found_in(traces).machines)


def found_in(traces: rs.TraceSet) -> rs.InferenceResult:
    """Find the events of traces that tell none."""
    blank = rs.LabelingFunction("observation", {}).transform(traces)
    return rs.infer(blank, outputs=OUTPUTS, labels="auto")


def episodes_needed(
    ask: Callable[[rs.TraceSet, str], tuple[int, int]],
    setting: Setting,
    traces: rs.TraceSet,
    truth: tuple[int, int],
    first: int,
) -> tuple[int | None, float]:
    """Return the episodes from which the machines have the right sizes, and seconds it took."""
    episodes, before, seconds = first, False, 0.0
    while episodes <= setting.last:
        started = time.perf_counter()
        try:
            right = ask(traces[:episodes], setting.timing) == truth
        except rs.ContradictoryTraces:
            right = False
        if right and before:
            return episodes // 2, seconds
        before, seconds = right, time.perf_counter() - started
        episodes *= 2
    return (episodes // 2 if before else None), seconds


def compare(setting: Setting, seeds: int) -> None:
    """Print one world's line."""
    rows = []
    for seed in range(seeds):
        traces, truth = played(setting, seed)
        labelled, _ = episodes_needed(with_labels, setting, traces, truth, setting.first)
        first = labelled or setting.first
        unlabelled, spent = episodes_needed(without_labels, setting, traces, truth, first)
        steps = (episodes and traces[:episodes].steps for episodes in (labelled, unlabelled))
        rows.append((*steps, spent))
    cells = [
        " ".join(f"{row[column]:>9,}" if row[column] else f"{'—':>9}" for row in rows)
        for column in (0, 1)
    ]
    seconds = statistics.median(row[2] for row in rows)
    print(f"{setting.world:<18} {cells[0]}   {cells[1]}   {seconds:>8.1f}", flush=True)


def cells_found(world_seed: int, steps: int) -> None:
    """Print which cells of a random world were found to be events."""
    env = gym.make("resolvent/RandomWorld-v0", world_seed=world_seed)
    sample = rs.collect(env, episodes=100, seed=1)
    traces = rs.collect(env, episodes=100 * steps // sample.steps, seed=1)
    label = env.unwrapped.grid.label_at
    true = {cell for cell in traces.observations if label[cell] is not None}
    started = time.perf_counter()
    result = found_in(traces)
    seconds = time.perf_counter() - started
    events = result.preprocessor.labeling.events
    cells = set(traces.observations) if events is None else set(events)
    right = len(cells & true)
    print(
        f"{world_seed:>5} {traces.steps:>10,} {len(true):>6} {right:>6} {len(cells) - right:>6} "
        f"{right / max(len(cells), 1):>10.3f} {right / len(true):>7.3f} "
        f"{'/'.join(map(str, sizes(result.machines))):>7} "
        f"{'/'.join(map(str, sizes(env.unwrapped.machines()))):>6} {seconds:>8.1f}",
        flush=True,
    )


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="two small worlds, one seed")
    parser.add_argument("--seeds", type=int, default=3, help="of the small worlds' traces")
    parser.add_argument("--worlds", help="of the small ones, those named, with commas between")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of each random world")
    parser.add_argument("--random-worlds", type=int, default=3, help="how many there are")
    options = parser.parse_args()
    settings = SHORT if options.short else SMALL
    if options.worlds is not None:
        named = options.worlds.split(",")
        settings = tuple(setting for setting in settings if setting.world in named)
    print("steps until right: with labels, without; seconds of the latter")
    for setting in settings:
        compare(setting, 1 if options.short else options.seeds)
    if options.short or not options.random_worlds:
        return
    print("\nworld      steps events  right  false  precision  recall  states   true  seconds")
    for world_seed in range(options.random_worlds):
        cells_found(world_seed, options.steps)


if __name__ == "__main__":
    main()

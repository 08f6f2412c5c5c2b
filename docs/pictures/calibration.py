"""What machines hold likely, and how often it came → docs/pictures/calibration.svg.

Machines are inferred from noisy worlds and foretell fresh traces of them. At each step every
observation that the machine knows is foretold with some chance; all of these are sorted into
bins by their chances, and counted is which of them came. `python docs/pictures/calibration.py`
draws the picture anew; look at what comes out.
"""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import resolvent as rs
from resolvent.machines.likelihood import output_probabilities, smoothing_of
from resolvent.replay.replaying import replay_traces
from resolvent.replay.steps import to_machine_codes
from resolvent.viz.curves import import_matplotlib

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from noise import KINDS, noisy, whole_traces

PICTURE = Path(__file__).with_name("calibration.svg")
STYLE = {"svg.hashsalt": "resolvent", "svg.fonttype": "path", "font.size": 9.0}
EVEN = np.linspace(0, 1, 21)
SMALL = np.geomspace(1e-6, 1, 19)
FEWEST = 20
"""Bins in which fewer events are to be expected are not drawn."""
AT_ONCE = 2_000


@dataclass(frozen=True)
class Foretold:
    """Events by the chance they were given: how many, how many were to be expected, and came."""

    number: NDArray[np.int64]
    expected: NDArray[np.float64]
    came: NDArray[np.int64]

    def drawn(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return chances, shares that came, and twice their standard error, of enough events."""
        enough = (self.expected >= FEWEST) & (self.number > 0)
        number = self.number[enough]
        chance, share = self.expected[enough] / number, self.came[enough] / number
        return chance, share, 2 * np.sqrt(chance * (1 - chance) / number)


def foretold(machines: rs.Machines, fresh: rs.TraceSet, bins: NDArray[np.float64]) -> Foretold:
    """Foretell every observation at every step of fresh traces, and look which came."""
    machine, shown = (
        machines.transition,
        replay_traces(machines, machines.preprocessor.transform(fresh)),
    )
    rows = shown.machines["transition"].known_outputs
    query, output = to_machine_codes(machine, rows, shown.alphabets, machine.states)
    width, smoothing = len(machine.outputs), smoothing_of(machine)
    known = machine.predict(np.ascontiguousarray(rows["state"]), query) >= 0
    keys = rows["state"][known].astype(np.int64) * (query.max() + 1)
    keys += query[known]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    states = rows["state"][known][first].astype(np.int32)
    queries = query[known][first]
    output, count = output[known], rows["count"][known]
    came = np.zeros((len(first), width + 1), np.int64)  # the last is for what is not known
    np.add.at(came, (place, output), count)
    number = np.zeros(len(bins) - 1, np.int64)
    expected, happened = np.zeros(len(number)), np.zeros_like(number)
    outputs = np.arange(width, dtype=np.int32)
    for start in range(0, len(first), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        times = np.repeat(came[some].sum(1), width)
        repeated = (np.repeat(one[some], width) for one in (states, queries))
        chance = output_probabilities(
            machine, smoothing, *repeated, np.tile(outputs, len(states[some]))
        )
        which = np.clip(np.searchsorted(bins, chance, "right") - 1, 0, len(number) - 1)
        number += np.bincount(which, times, len(number)).astype(np.int64)
        expected += np.bincount(which, times * chance, len(number))
        seen = came[some, :width].ravel()
        happened += np.bincount(which, seen, len(number)).astype(np.int64)
    return Foretold(number, expected, happened)


def walked(kind: str) -> tuple[rs.InferenceResult, rs.TraceSet]:
    """Infer from noisy traces of a random world; return fresh ones as well."""
    env, noise = gym.make("resolvent/RandomWorld-v0", world_seed=0), KINDS[kind]
    both = noisy(whole_traces(env, 2 * noise.steps, 0), noise, 0)
    half = int(np.searchsorted(both.offsets, noise.steps))
    return rs.infer(both[:half], noise="auto"), both[half:]


def slipped() -> tuple[rs.InferenceResult, rs.TraceSet]:
    """Infer from traces of Gymnasium's FrozenLake as it is; return fresh ones as well."""
    env = gym.make("FrozenLake-v1")
    known, fresh = (
        rs.collect(env, episodes=3_000, seed=seed, labels="observation") for seed in (0, 1)
    )
    return rs.infer(known, labels="observation", noise="auto"), fresh


def main() -> None:
    """Draw all chances evenly on the left, and small ones on the right."""
    worlds = {
        "25×25, 20% of actions slip": walked("slip20"),
        "25×25, 5% of observations replaced": walked("replaced5"),
        "FrozenLake": slipped(),
    }
    matplotlib = import_matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = importlib.import_module("matplotlib.figure").Figure((8, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        right.set(xscale="log", yscale="log")
        draw(left, worlds, EVEN, (0, 1))
        draw(right, worlds, SMALL, (SMALL[0], 1))
        left.set_ylabel("share of those events that came")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.savefig(PICTURE, format="svg", metadata={"Date": None})


def draw(axes: Any, worlds: dict[str, Any], bins: NDArray[np.float64], span: Any) -> None:
    """Draw the shares that came, by chance; on the line where all is as foretold."""
    axes.plot(span, span, color="0.7", linewidth=1)
    colours = ("#0072B2", "#D55E00", "#009E73")
    for (name, (result, fresh)), colour in zip(worlds.items(), colours, strict=True):
        told = foretold(result.machines, fresh, bins)
        chance, share, error = told.drawn()
        off = np.abs(told.came - told.expected).sum() / told.came.sum()
        print(f"{name}: {result.machines.transition.states} states, {fresh.steps:,} fresh steps")
        print(f"  in bins from {bins[0]:g}, {off:.2%} of what came is off what was to be expected")
        axes.errorbar(
            chance, share, yerr=error, fmt="o", markersize=4, color=colour, label=name, capsize=2
        )
    axes.set_xlabel("chance that the machine gave to an event")
    axes.set_xlim(*span)
    axes.set_ylim(*span)
    axes.set_aspect("equal")
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()

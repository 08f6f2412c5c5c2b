"""Which of several consistent machines is the true one: the shortest, or the smallest?

Strategies infer machines from the same traces, too few for most of them: random Mealy machines,
25×25 worlds and the protocols of `tests/protocols`. One of the machines is chosen by its
description length (`resolvent.machines.build`), one by its number of states. Printed is how
often each choice is the true machine where not all are, and the share of outputs in fresh traces
that it predicts wrongly or not at all.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import resolvent as rs
from resolvent.inference.strategy import EDSM, LIKELIHOOD, RPNI
from resolvent.machines.likelihood import description_bits

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from mealy_machine import Mealy
from protocols import BANK

ORDERS = [EDSM, RPNI, LIKELIHOOD]
FRESH = 20_000


@dataclass(frozen=True)
class Case:
    """Traces of a known machine to learn from, others to predict, and who finds machines."""

    family: str
    traces: rs.TraceSet
    fresh: rs.TraceSet
    output: str
    truth: Any
    search: bool = False

    def machines(self) -> Iterator[rs.Machines]:
        """Yield what strategies find, with trivial labels removed and with all labels."""
        for trivial in ("auto", ["no event"]):
            for order in ORDERS:
                yield self._inferred(strategy=order, trivial=trivial)
        if self.search:
            yield self._inferred(strategy="search", effort=0.05)

    def _inferred(self, **options: Any) -> rs.Machines:
        options = {"outputs": [self.output], "noise": "none", **options}
        return rs.infer(self.traces, options=rs.InferenceOptions(**options)).machines


def mealy_cases(seeds: int) -> Iterator[Case]:
    """Yield random machines of 5 to 40 states, with too few steps for them."""
    for seed in range(seeds):
        for states in (5, 10, 20, 40):
            machine = Mealy.drawn(states, 100 + seed, inputs=6)
            for per_move in (15, 30, 60):
                steps = per_move * states * 6
                fresh = machine.traces(FRESH, 900 + seed)
                traces = machine.traces(steps, seed)
                yield Case("random Mealy", traces, fresh, "output", machine.is_found)


def protocol_cases(seeds: int) -> Iterator[Case]:
    """Yield the bank's protocols."""
    for seed in range(seeds):
        for model in BANK.values():
            fresh = model.traces(FRESH, 900 + seed)
            for steps in (2_000, 8_000, 32_000, 128_000):
                traces = model.traces(steps, 50 + seed)
                yield Case("protocols", traces, fresh, "output", model.machine.is_found)


def world_cases(seeds: int) -> Iterator[Case]:
    """Yield 25×25 worlds of seven states."""
    for seed in range(seeds):
        env: Any = gym.make("resolvent/RandomWorld-v0", world_seed=30 + seed)
        traces = rs.collect(env, episodes=600, seed=seed)
        fresh = rs.collect(env, episodes=100, seed=900 + seed)
        true = env.unwrapped.machines().transition
        for count in (60, 120, 250, 500):

            def found(machine: rs.Machine, true: rs.Machine = true) -> bool:
                return machine.states == true.states

            yield Case("25×25 worlds", traces[:count], fresh, "observation", found, search=True)


def main() -> None:
    """Print a row for each family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--families", nargs="*", default=["mealy", "worlds", "protocols"])
    options = parser.parse_args()
    families = {"mealy": mealy_cases, "worlds": world_cases, "protocols": protocol_cases}
    print(f"{'':16}{'cases':>7}{'differ':>8}{'right by bits':>15}{'by states':>11}", end="")
    print(f"{'wrong by bits':>15}{'by states':>11}")
    for name in options.families:
        rows = [row for case in families[name](options.seeds) for row in [choices(case)] if row]
        family, differ = name, [row for row in rows if row[0]]
        right = np.sum([row[1:3] for row in rows], axis=0)
        wrong = np.mean([row[3:5] for row in differ], axis=0) if differ else (0.0, 0.0)
        print(f"{family:16}{len(rows):>7}{len(differ):>8}{right[0]:>15}{right[1]:>11}", end="")
        print(f"{wrong[0]:>15.2%}{wrong[1]:>11.2%}", flush=True)


def choices(case: Case) -> tuple[bool, bool, bool, float, float] | None:
    """Return whether the choices differ, whether each is right, and how wrong each is."""
    results = list(case.machines())
    machines = [next(iter(machine.values())) for machine in results]
    bits = [description_bits(machine) for machine in machines]
    by_bits = int(np.argmin(bits))
    by_states = int(np.argmin([machine.states for machine in machines]))
    if np.ptp(bits) < 1e-6:
        return None
    differ = round(bits[by_bits], 6) != round(bits[by_states], 6)
    chosen = [by_bits, by_states]
    right = [bool(case.truth(machines[machine])) for machine in chosen]
    wrong = [missed(results[machine], case) if differ else 0.0 for machine in chosen]
    return differ, right[0], right[1], wrong[0], wrong[1]


def missed(machines: rs.Machines, case: Case) -> float:
    """Return the share of answers in fresh traces that a machine gets wrong or does not know."""
    (score,) = machines.score(case.fresh).values()
    predictions = score.right + score.wrong + score.unseen
    return float((score.wrong + score.unseen) / predictions)


if __name__ == "__main__":
    main()

"""The bank of protocols: steps until machines are exact, and wrong predictions before: docs/bank.md.

Every strategy and AALpy's learners get the same random walks through the models of
`tests/protocols`: 1,000 steps, then twice as many, and so on. A machine is exact if it has all
states, transitions and outputs of the model, and no others. The result is the first budget that is
exact together with the next one, which excludes lucky machines; trying all larger budgets would
take days. Each run is a process of its own with a limit of CPU seconds; after a stopped run, no
larger budget is tried on those walks.

Results go to a file, and known ones are not run again: the benchmark can be stopped and continued.
"""

import argparse
import json
import multiprocessing
import resource
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from bank_contenders import AALPY, CONTENDERS, Walks, guessing
from bank_page import HELD_OUT, page

from protocols import BANK, Model

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "bank.md"
RESULTS = ROOT / "results" / "bank.json"
FEWEST = 1_000
FRESH_STEPS, FRESH_SEED = 50_000, 1_000
"""Walks to predict: how many steps, and what is added to the seed of those learned from."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not known yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(BANK), choices=list(BANK))
    parser.add_argument(
        "--contenders", nargs="*", default=list(CONTENDERS), choices=list(CONTENDERS)
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--cap", type=int, default=60, help="CPU seconds for one machine")
    parser.add_argument("--most", type=int, default=1_024_000, help="steps at most")
    parser.add_argument("--most-aalpy", type=int, default=128_000, help="steps for AALpy at most")
    parser.add_argument("--held-out-only", action="store_true", help="no search for exact machines")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    if not options.page_only:
        for key, result in runs(options, results):
            results[key] = result
            options.results.parent.mkdir(exist_ok=True)
            options.results.write_text(json.dumps(results, indent=0, sort_keys=True))
            print(key, result, flush=True)
    options.page.write_text(page(results), encoding="utf-8")


def runs(options: argparse.Namespace, results: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what was not known: all models with one seed, then with the next."""
    for seed in options.seeds:
        for name in options.models:
            model = BANK[name]
            walks = Budgets(model, seed)
            for contender in options.contenders:
                most = options.most_aalpy if contender in AALPY else options.most
                for steps in HELD_OUT:
                    if steps <= most:
                        yield from _asked(walks, contender, steps, options.cap, results)
                if not options.held_out_only:
                    yield from _until_exact(walks, contender, most, options.cap, results)
            key = f"{name}/moves seen/{seed}"
            if results.get(key) is None:
                seen = walks.all_seen(options.most)
                if seen is not None or key not in results:
                    yield key, seen


class Budgets:
    """Random walks through a model, as many steps as are asked for."""

    def __init__(self, model: Model, seed: int) -> None:
        self.model, self.seed = model, seed
        self._seen: dict[int, np.ndarray] = {}

    def of(self, steps: int) -> Walks:
        """Return the walks."""
        return self.model.walks(steps, self.seed)

    def all_seen(self, most: int) -> int | None:
        """Return the first budget in which every input is taken in every state."""
        budgets = doubling(most)
        return next((steps for steps in budgets if self._visited(steps).all()), None)

    def can_be_found(self, steps: int, contender: str) -> bool:
        """Whether walks show enough that the machine can be exact.

        A move that was never made is not in any machine, unless its input changes no state:
        ours may find that out from other states.
        """
        never = ~self._visited(steps)
        if contender in AALPY:
            return not never.any()
        moves = self.model.machine.moves
        changing = (moves != np.arange(len(moves))[:, None]).any(axis=0)
        return not never[:, changing].any()

    def _visited(self, steps: int) -> np.ndarray:
        if steps not in self._seen:
            inputs, _, offsets = self.of(steps)
            self._seen[steps] = self.model.machine.visits(inputs, offsets) > 0
        return self._seen[steps]


def doubling(most: int) -> list[int]:
    """Return the budgets, each twice the one before."""
    budgets = [FEWEST]
    while budgets[-1] * 2 <= most:
        budgets.append(budgets[-1] * 2)
    return budgets


def _until_exact(
    walks: Budgets, contender: str, most: int, cap: int, results: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Ask for machines from more and more steps, until two in a row are exact."""
    before = False
    for steps in doubling(most):
        if not walks.can_be_found(steps, contender):
            continue
        yield from _asked(walks, contender, steps, cap, results)
        result = results[_key(walks, contender, steps)]
        exact = result.get("exact", False)
        if (exact and before) or not {"stopped", "failed"}.isdisjoint(result):
            return
        before = exact


def _key(walks: Budgets, contender: str, steps: int) -> str:
    return f"{walks.model.name}/{contender}/{walks.seed}/{steps}"


def _asked(
    walks: Budgets, contender: str, steps: int, cap: int, results: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield one run, if it is not known or was stopped by a lower limit."""
    key = _key(walks, contender, steps)
    if key in results and results[key].get("stopped", cap) >= cap:
        return
    fewer = (*HELD_OUT, *doubling(steps))
    stopped = [
        results.get(_key(walks, contender, budget), {}).get("stopped", 0)
        for budget in fewer
        if budget < steps
    ]
    if max(stopped, default=0) >= cap:
        yield key, {"stopped": cap}
    else:
        yield key, limited(walks, contender, steps, cap)


def limited(walks: Budgets, contender: str, steps: int, cap: int) -> dict[str, Any]:
    """Run a contender in a process of its own, which ends after so many CPU seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(walks, contender, steps, cap, sender))
    process.start()
    sender.close()
    try:
        result: dict[str, Any] = receiver.recv()
    except EOFError:  # the limit ended it
        result = {"stopped": cap}
    process.join()
    return result


def _run(walks: Budgets, contender: str, steps: int, cap: int, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cap, cap + 1))
    warnings.simplefilter("ignore")  # AALpy says of each machine that it is partial
    machine = walks.model.machine
    try:
        table, seconds = CONTENDERS[contender](machine, walks.of(steps))
    except Exception as error:
        sender.send({"failed": f"{type(error).__name__}: {error}"})
        return
    fresh = walks.model.walks(FRESH_STEPS, FRESH_SEED + walks.seed)
    sender.send(
        {
            "states": len(table.moves),
            "exact": machine.is_found(table),
            "wrong": round(machine.wrong_share(table, fresh), 6),
            "guessing": round(machine.wrong_share(guessing(table), fresh), 6),
            "cpu": round(seconds, 3),
        }
    )


if __name__ == "__main__":
    main()

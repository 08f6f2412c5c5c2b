"""The learners on the bank of protocols: our strategies and AALpy's, each on the same walks.

A learner takes a model and walks through it, and returns its machine as a table over the model's
inputs and outputs.
"""

import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import resolvent as rs
from resolvent.inference.strategy import STRATEGIES
from resolvent.machines.build import guess_missing

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from mealy_machine import Mealy, Table

Walks = tuple[np.ndarray, np.ndarray, np.ndarray]
Contender = Callable[[Mealy, Walks], tuple[Table, float]]
"""Returns what was learned and the CPU seconds that learning took, data at hand."""


def ours(**options: Any) -> Contender:
    """Return `rs.infer` with these options."""

    def learn(machine: Mealy, walks: Walks) -> tuple[Table, float]:
        traces = machine.as_traces(*walks)
        started = time.process_time()
        result = rs.infer(traces, options=rs.InferenceOptions(outputs=["output"], **options))
        took = time.process_time() - started
        return machine.table_of(result.machines["output"]), took

    return learn


def aalpys(run: Callable[[list[Any]], Any], *, prefixes: bool) -> Contender:
    """Return a learner of AALpy's, which wants each walk whole or each prefix with its output."""

    def learn(machine: Mealy, walks: Walks) -> tuple[Table, float]:
        inputs, outputs, offsets = (part.tolist() for part in walks)
        data: list[Any] = []
        for begin, end in itertools.pairwise(offsets):
            word = tuple(inputs[begin:end])
            if prefixes:
                data.extend((word[: n + 1], outputs[begin + n]) for n in range(len(word)))
            else:
                data.append(list(zip(word, outputs[begin:end], strict=True)))
        started = time.process_time()
        learned = run(data)
        return _table(learned, machine), time.process_time() - started

    return learn


def _table(learned: Any, machine: Mealy) -> Table:
    """Return a machine of AALpy's as a table."""
    states = [learned.initial_state]
    numbers = {id(learned.initial_state): 0}
    rows = []
    for state in states:
        row = np.full((len(machine.inputs), 2), -1, np.int32)
        for symbol, target in state.transitions.items():
            if id(target) not in numbers:
                numbers[id(target)] = len(states)
                states.append(target)
            row[symbol] = numbers[id(target)], state.output_fun[symbol]
        rows.append(row)
    table = np.array(rows)
    return Table(table[..., 0], table[..., 1])


def guessing(table: Table) -> Table:
    """Return a table that guesses what it does not know, as `Machine.guessing` does."""
    return Table(*guess_missing(table.moves, table.outputs))


def _rpni(data: list[Any]) -> Any:
    from aalpy.learning_algs import run_RPNI

    return run_RPNI(data, automaton_type="mealy", print_info=False)


def _edsm(data: list[Any]) -> Any:
    from aalpy.learning_algs import run_EDSM

    return run_EDSM(data, automaton_type="mealy", print_info=False)


def _gsm(data: list[Any]) -> Any:
    """Evidence for each blue state in turn: what AALpy can do that EDSM takes too long for."""
    from aalpy.learning_algs import run_GSM
    from aalpy.learning_algs.general_passive.GsmNode import GsmNode
    from aalpy.learning_algs.general_passive.ScoreFunctionsGSM import SimpleScoreCalculation

    def agreeing(merged: dict[GsmNode, GsmNode]) -> int:
        return len(merged) - len(set(map(id, merged.values())))

    return run_GSM(
        data,
        output_behavior="mealy",
        transition_behavior="deterministic",
        score_calc=SimpleScoreCalculation(GsmNode.deterministic_compatible, agreeing),
        node_order="short-lex",
        consider_only_min_blue=True,
        data_format="io_traces",
    )


AALPY: dict[str, Contender] = {
    "AALpy RPNI": aalpys(_rpni, prefixes=True),
    "AALpy EDSM": aalpys(_edsm, prefixes=True),
    "AALpy GSM": aalpys(_gsm, prefixes=False),
}
OURS: dict[str, Contender] = {"default": ours()} | {
    name: ours(strategy=name, noise="none") for name, one in STRATEGIES.items() if not one.proves
}
"""`rs.infer` as it is, and each strategy alone, told that the systems are not random."""

CONTENDERS = OURS | AALPY

"""AALpy's state merging as peers under noise: ALERGIA on traces, and GSM on our samples.

ALERGIA gets traces of actions and observations with labels, so it has to learn place and memory
together. GSM (general state merging) gets the input of our own search, a tree of label sequences
with the counts of outputs at its nodes, and one of two rules for merging nodes: ALERGIA's
Hoeffding bound for each query, or Akaike's criterion.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log, sqrt
from typing import Any

import numpy as np
from aalpy.automata import Mdp
from aalpy.learning_algs import run_Alergia
from aalpy.learning_algs.general_passive.DataHandler import DataHandler
from aalpy.learning_algs.general_passive.GeneralizedStateMerging import GeneralizedStateMerging
from aalpy.learning_algs.general_passive.GsmNode import GsmNode, no_op_input, unknown_output
from aalpy.learning_algs.general_passive.ScoreFunctionsGSM import (
    ScoreCalculation,
    SimpleFutureBasedCompatibility,
    lower_threshold,
)
from aalpy.learning_algs.stochastic_passive.CompatibilityChecker import HoeffdingCompatibility
from numpy.typing import NDArray

import resolvent as rs
from resolvent.paper.baselines.outcome import Clock
from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE

EPSILON = 0.05
START = "start"

Counts = dict[int, dict[int, int]]
"""How often each query was answered how."""


class Counted(DataHandler):
    """Node data: how often each query was answered how there."""

    def init_data(self) -> Counts:
        """Begin with no answers."""
        return {}

    def aggregate_data(self, *step: Any) -> None:
        """Take in nothing: the tree comes with its answers."""

    def merge(self, x: Counts, y: Counts) -> Counts:
        """Add up the answers of two nodes."""
        for query, answers in y.items():
            counts = x.setdefault(query, {})
            for answer, times in answers.items():
                counts[answer] = counts.get(answer, 0) + times
        return x

    def copy(self, x: Counts) -> Counts:
        """Copy the answers of a node."""
        return {query: dict(answers) for query, answers in x.items()}


class Hoeffding(SimpleFutureBasedCompatibility):
    """ALERGIA's rule: shares of no answer to any query differ by more than chance allows."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__()
        self.tick = tick
        self.factor = sqrt(0.5 * log(2 / EPSILON))

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Say whether two nodes may be one."""
        self.tick()
        for query in a.data.keys() & b.data.keys():
            first, second = a.data[query], b.data[query]
            first_total, second_total = sum(first.values()), sum(second.values())
            bound = self.factor * (sqrt(1 / first_total) + sqrt(1 / second_total))
            for answer in first.keys() | second.keys():
                if (
                    abs(first.get(answer, 0) / first_total - second.get(answer, 0) / second_total)
                    > bound
                ):
                    return False
        return True


class Akaike(ScoreCalculation):
    """Of all merges the one that saves most parameters beyond the likelihood that it costs."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__()
        self.tick = tick

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Let everything be merged that is worth it."""
        self.tick()
        return True

    def score_function(self, part: dict[Any, Any]) -> Any:
        """Return what a merge saves, if that is more than nothing."""
        before = np.sum([_weight(node.data) for node in part], axis=0)
        after = np.sum([_weight(node.data) for node in set(part.values())], axis=0)
        likelihood, parameters = before - after
        return lower_threshold(parameters - likelihood, 0)


def _weight(counts: Counts) -> tuple[float, int]:
    """Return the logarithm of the likelihood of a node's answers, and its parameters."""
    likelihood, parameters = 0.0, 0
    for answers in counts.values():
        total = sum(answers.values())
        likelihood += sum(times * log(times / total) for times in answers.values())
        parameters += len(answers)
    return likelihood, parameters


def merged(
    samples: SampleSet, rule: type[Hoeffding] | type[Akaike], clock: Clock
) -> NDArray[np.int32]:
    """Let GSM merge the tree of label histories; return its moves as [state, label]."""
    merging = GeneralizedStateMerging(
        output_behavior="mealy",
        transition_behavior="deterministic",
        score_calc=rule(clock.check),
        data_handler=Counted(),
        consider_only_min_blue=True,
    )
    root = merging.run(_tree(samples), convert=False, data_format="tree")
    number = {root: 0}
    queue = [root]
    rows = []
    for node in queue:
        row = [NONE] * len(samples.labels)
        for label in sorted(node.transitions):
            for child in node.transitions[label].values():
                if child not in number:
                    number[child] = len(number)
                    queue.append(child)
                row[label] = number[child]
        rows.append(row)
    return np.array(rows, np.int32)


def _tree(samples: SampleSet) -> Any:
    root = GsmNode((no_op_input, unknown_output), None, {})
    beta, alpha, output = (c.tolist() for c in (samples.beta, samples.alpha, samples.output))
    for start, stop in pairwise(samples.offsets.tolist()):
        node = root
        for row in range(start, stop):
            if (label := beta[row]) != NONE:
                children = node.transitions[label]
                if 0 not in children:
                    children[0] = GsmNode((label, 0), node, {})
                node = children[0]
            answers = node.data.setdefault(alpha[row], {})
            answers[output[row]] = answers.get(output[row], 0) + 1
    return root


class Watched(HoeffdingCompatibility):
    """AALpy's own test of ALERGIA, which looks at the clock."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__(EPSILON)
        self.tick = tick

    def are_states_different(self, *nodes: Any, **more: Any) -> bool:
        """Say whether two nodes differ."""
        self.tick()
        return super().are_states_different(*nodes, **more)


def alergia(traces: rs.TraceSet, clock: Clock) -> Mdp:
    """Let ALERGIA learn a Markov decision process whose states show observation and label."""
    data = [[START, *_steps(trace)] for trace in traces]
    return run_Alergia(data, "mdp", compatibility_checker=Watched(clock.check))


def _steps(trace: rs.Trace) -> Iterator[tuple[Any, Any]]:
    """Yield actions and what they show, the first observation by an action of its own."""
    outputs = [*zip(trace.observations, map(_text, trace.labels), strict=True)]
    yield START, outputs[0]
    yield from zip(trace.actions, outputs[1:], strict=True)


def _text(label: Any) -> str:
    return "".join(sorted(label or ()))


def chances(process: Mdp, traces: rs.TraceSet) -> NDArray[np.float64]:
    """Return the chance that the process gave to each observation that came, but for the first.

    It is 0 for what never came before in its state. The process then goes on in the first of its
    states that show what came.
    """
    probabilities = []
    showing = {state.output: state for state in reversed(process.states)}
    for trace in traces:
        state = process.initial_state
        for action, output in _steps(trace):
            leads = state.transitions.get(action, []) if state is not None else []
            probabilities.append(
                sum(share for after, share in leads if after.output[0] == output[0])
            )
            state = next(
                (successor for successor, _ in leads if successor.output == output),
                showing.get(output),
            )
    firsts = np.cumsum([0, *(len(trace.actions) + 1 for trace in traces)])[:-1]
    return np.delete(np.array(probabilities), firsts)

"""AALpy's general state merging on our samples; imports AALpy, so import this file only when asked.

AALpy gets a prefix tree of labels with the answers seen at each node as node data,
through its own hooks, so that it searches the same space as our search does.
"""

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
from aalpy.learning_algs.general_passive.DataHandler import DataHandler
from aalpy.learning_algs.general_passive.GeneralizedStateMerging import (
    GeneralizedStateMerging,
    Instrumentation,
)
from aalpy.learning_algs.general_passive.GsmNode import GsmNode, no_op_input, unknown_output
from aalpy.learning_algs.general_passive.ScoreFunctionsGSM import ScoreCalculation
from numpy.typing import NDArray

from resolvent.errors import MissingExtra, OptionError, TimeLimitReached, TraceError
from resolvent.inference.conflict import explain
from resolvent.machines import Machine, MachinePair, RewardMachine, TransitionMachine, machines_of
from resolvent.machines.build import machine_of_tables
from resolvent.paper.baselines.clock import Clock
from resolvent.paper.baselines.outcome import Outcome
from resolvent.preprocess.contradictions import find_contradiction
from resolvent.preprocess.reduction import remove_redundant, remove_trivial, trivial_codes
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.preprocess.supplement import supplement
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.replay import states_at_steps
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

Answered = tuple[NDArray[np.int64], Codes, Codes]
"""Columns: a state, an alpha, and the output it answers with."""


class Answers(DataHandler):  # type: ignore[misc]
    """Node data: the answers seen there, by question."""

    def init_data(self) -> dict[int, int]:
        """Begin with no answers."""
        return {}

    def aggregate_data(self, *step: Any) -> None:
        """Take in nothing: the tree comes with its answers."""

    def merge(self, x: dict[int, int], y: dict[int, int]) -> dict[int, int]:
        """Put the answers of two nodes together, which do not disagree."""
        x.update(y)
        return x

    def copy(self, x: dict[int, int]) -> dict[int, int]:
        """Copy the answers of a node."""
        return dict(x)


class FirstFit(ScoreCalculation):  # type: ignore[misc]
    """Accept two nodes if no question has different answers; the first fit is used."""

    def __init__(self, tick: Callable[[], None] | None) -> None:
        super().__init__()
        self.tick = tick

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Return whether two nodes agree on the questions both have seen."""
        if self.tick is not None:
            self.tick()
        smaller, larger = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        return all(larger.get(question, answer) == answer for question, answer in smaller.items())


class MostEvidence(FirstFit):
    """Take the merge on which most answers agree."""

    def initialize_merge(self, *merge: Any) -> None:
        """Begin to count."""
        self.agreeing = 0

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Return whether two nodes agree, and count the answers that do."""
        if self.tick is not None:
            self.tick()
        smaller, larger = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        for question, answer in smaller.items():
            expected = larger.get(question)
            if expected is not None:
                if expected != answer:
                    return False
                self.agreeing += 1
        return True

    def score_function(self, part: Any) -> int:
        """Score a fit by the answers that agree."""
        return self.agreeing


class PaperOrder(Instrumentation):  # type: ignore[misc]
    """Sorts nodes as `rpni` does: states by promotion, others by label history in shortlex order.

    AALpy's own "short-lex" uses the shortest history that currently leads to a node. Merges change
    it, and AALpy recomputes it for each comparison.
    """

    def __init__(self, root: Any) -> None:
        super().__init__()
        self.promotion: dict[Any, int] = {}
        queue = [root]
        for node in queue:
            queue.extend(node.transitions[label][0] for label in sorted(node.transitions))
        self.history = {node: number for number, node in enumerate(queue)}

    def log_promote(self, node: Any) -> None:
        """Give a new state the next number."""
        self.promotion[node] = len(self.promotion)

    def key(self, node: Any) -> int:
        """Return what to sort by; AALpy never sorts states together with other nodes."""
        promoted = self.promotion.get(node)
        return self.history[node] if promoted is None else promoted


def merged(
    samples: SampleSet, *, edsm: bool, tick: Callable[[], None] | None = None
) -> tuple[Codes, Answered, int]:
    """Let AALpy infer an automaton from samples that do not contradict each other.

    `tick` is called at each comparison of nodes and may raise, to stop. Returns the
    transition table, −1 where a label was never read, numbered breadth first; what its
    states answer; and the size of the tree.
    """
    root = _tree(samples)
    order = PaperOrder(root)
    merging = GeneralizedStateMerging(
        output_behavior="mealy",
        transition_behavior="deterministic",
        score_calc=MostEvidence(tick) if edsm else FirstFit(tick),
        data_handler=Answers(),
        node_order=None if edsm else order.key,
        consider_only_min_blue=not edsm,
    )
    root = merging.run(root, convert=False, instrumentation=order, data_format="tree")
    number = {root: 0}
    queue = [root]
    rows: list[list[int]] = []
    answers: list[tuple[int, int, int]] = []
    for node in queue:
        row = [NONE] * len(samples.labels)
        for label in sorted(node.transitions):
            for child in node.transitions[label].values():
                if child not in number:
                    number[child] = len(number)
                    queue.append(child)
                row[label] = number[child]
        rows.append(row)
        answers.extend((number[node], alpha, output) for alpha, output in node.data.items())
    state, alpha, output = np.array(answers, np.int64).reshape(-1, 3).T
    columns = (state, alpha.astype(np.int32), output.astype(np.int32))
    return np.array(rows, np.int32), columns, len(order.history)


def _tree(samples: SampleSet) -> Any:
    """Build AALpy's tree: labels lead on, answers lie at the nodes."""
    root = GsmNode((no_op_input, unknown_output), None, {})
    beta, alpha, output = (c.tolist() for c in (samples.beta, samples.alpha, samples.output))
    for start, stop in pairwise(samples.offsets.tolist()):
        node = root
        for row in range(start, stop):
            label = beta[row]
            if label != NONE:
                children = node.transitions[label]
                child = children.get(0)
                if child is None:
                    child = children[0] = GsmNode((label, 0), node, {})
                node = child
            if alpha[row] != NONE:
                node.data[alpha[row]] = output[row]
    return root


M = TypeVar("M", bound=Machine)

ORDERS = ("first-fit", "edsm")


def aalpy(
    traces: TraceSet,
    *,
    order: Literal["first-fit", "edsm"] = "first-fit",
    timing: LabelTiming | str = LabelTiming.CURRENT,
    time_limit: float | None = None,
) -> Outcome:
    """Infer both machines by AALpy's state merging, from the same samples as ours.

    As in `infer`, questions with a constant answer and the label "no event" are removed first,
    and observations are supplemented with Transition Machine states.

    Args:
        traces: The traces.
        order: "first-fit" takes blue states in shortlex order and the first red one that
            fits, as `infer` with "rpni" does. "edsm" takes the pair with the most
            agreeing answers; AALpy breaks ties.
        timing: The labels that are read before a step is answered.
        time_limit: Seconds for everything. After them the status is "time limit", and
            there is no machine.

    Returns:
        An outcome with a `MachinePair`, whose details hold for each machine its states,
        nodes of the prefix tree, and seconds.

    Raises:
        MissingExtra: when AALpy is not installed.
        ContradictoryTraces: when no deterministic machine can explain the traces.

    >>> import gymnasium as gym, resolvent as rs
    >>> from resolvent.machines import is_isomorphic
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
    >>> options = rs.InferenceOptions(strategy="rpni", trivial=[])
    >>> pair, ours = aalpy(traces).machine, rs.infer(traces, options=options).machines
    >>> is_isomorphic(pair.transition, ours.transition), is_isomorphic(pair.reward, ours.reward)
    (True, True)
    """
    if order not in ORDERS:
        raise OptionError(f"unknown order '{order}': choose one of {', '.join(ORDERS)}")
    if timing not in tuple(LabelTiming):
        raise OptionError(f"unknown timing '{timing}': choose one of {', '.join(LabelTiming)}")
    if not len(traces):
        raise TraceError("there are no traces to learn from: collect or read at least one")
    run = _Run(traces, LabelTiming(timing), order == "edsm", Clock(time_limit))
    pair = None
    with suppress(TimeLimitReached):
        pair = run.pair()
    return Outcome(
        method="aalpy",
        status="time limit" if pair is None else "found",
        seconds=run.clock.seconds,
        machine=pair,
        details={"order": order, "timing": str(timing), **run.details},
    )


class _Run:
    """One inference in progress."""

    def __init__(self, traces: TraceSet, timing: LabelTiming, edsm: bool, clock: Clock) -> None:
        self.merging = _import_merging()
        self.traces, self.timing, self.edsm, self.clock = traces, timing, edsm, clock
        self.trivial = trivial_codes(traces.labels)
        self.histories = remove_trivial(Histories.of(traces, timing), self.trivial)
        self.details: dict[str, Any] = {}

    def pair(self) -> MachinePair:
        """Find the Transition Machine, and with its states the Reward Machine."""
        traces, histories = self.traces, self.histories
        transition = self._machine(
            TransitionMachine, output_samples(traces, histories, "observation")
        )
        machines = machines_of([transition], self.timing)
        states = states_at_steps(machines, traces)["transition"]
        observed = supplement(traces, states)
        samples = output_samples(traces, histories, "reward", observed=observed)
        reward = self._machine(RewardMachine, samples, supplemented=True)
        return MachinePair(transition, reward, self.timing)

    def _machine(self, kind: type[M], samples: SampleSet, **more: Any) -> M:
        started = self.clock.seconds
        reduced, constants = remove_redundant(samples)
        if rows := find_contradiction(reduced):
            asking = partial(output_samples, predicts=kind.predicts)
            raise explain(rows, self.traces, asking, kind.kind, self.timing, self.trivial)
        self.clock.look()
        tick = None if self.clock.left is None else self.clock.look
        table, (state, alpha, output), nodes = self.merging.merged(
            reduced, edsm=self.edsm, tick=tick
        )
        # One answer in one state is an answer for all of them; which asked for it is not known.
        answers = (
            np.append(state, np.zeros(len(constants.alpha), np.int64)),
            samples.alpha_keys[np.append(alpha, constants.alpha)],
            np.append(output, constants.output),
        )
        machine, _ = machine_of_tables(
            kind,
            labels=samples.labels,
            observations=samples.observations,
            actions=samples.actions,
            outputs=samples.outputs,
            transitions=table,
            initial=0,
            answers=answers,
            trivial=self.trivial,
            **more,
        )
        machine = replace(
            machine,
            asked_state=machine.asked_state[:0],
            asked_question=machine.asked_question[:0],
        )
        self.details[kind.kind] = {
            "states": machine.states,
            "nodes": nodes,
            "seconds": self.clock.seconds - started,
        }
        return machine


def _import_merging() -> Any:
    """Import the module that needs AALpy, or name the missing extra."""
    try:
        return importlib.import_module("resolvent.paper.baselines.aalpy")
    except ImportError as error:
        raise MissingExtra('the peer AALpy is missing: pip install "resolvent[aalpy]"') from error

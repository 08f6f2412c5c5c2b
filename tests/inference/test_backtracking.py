"""Sinks, where all outputs agree, mislead edsm; likelihood and backtracking find the machine."""

from itertools import pairwise

import numpy as np
import pytest

import resolvent as rs
from mealy_machine import Mealy
from protocols import BANK
from resolvent.inference.engine import Limits, merge
from resolvent.inference.merge_order import merge_with_backtracking
from resolvent.inference.state_merging import RedBlue, Watch
from resolvent.machines.build import StateLimitExceeded
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from strategies import sample_set


def handshake(steps, inputs):
    """One right input in each state, one that ends in a sink, and others that are ignored."""
    sink = steps
    moves = np.tile(np.arange(steps + 1, dtype=np.int32)[:, None], (1, inputs))
    outputs = np.zeros_like(moves)
    for state in range(steps):
        right, wrong = state % inputs, (state + 1) % inputs
        moves[state, right], outputs[state, right] = (state + 1) % steps, 1
        moves[state, wrong], outputs[state, wrong] = sink, 2
    outputs[sink] = 3
    return Mealy(moves, outputs)


def samples_of(traces):
    return output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "output")


def found(machine, traces, strategy):
    result = rs.infer(
        traces, outputs=["output"], strategy=strategy, options=rs.InferenceOptions(refine=False)
    )
    return machine.is_found(result.machines["output"])


def test_a_sink_misleads_edsm_but_not_likelihood():
    machine = handshake(6, 5)
    logs = [machine.traces(8_000, seed, (10, 30)) for seed in range(3)]
    assert [found(machine, log, "likelihood") for log in logs] == [True] * 3
    assert [found(machine, log, "edsm") for log in logs].count(False) >= 2


def test_traces_repeated_or_shuffled_change_nothing():
    given, told, offsets = (machine := handshake(4, 4)).walks(1_500, 0, (5, 20))
    walks = [(given[begin:end], told[begin:end]) for begin, end in pairwise(offsets)]
    shuffled = [walks[at] for at in np.random.default_rng(0).permutation(len(walks))]

    def log(parts):
        ends = np.cumsum([0, *(len(inputs) for inputs, _ in parts)])
        return machine.as_traces(
            *(np.concatenate(column) for column in zip(*parts, strict=True)), ends
        )

    machines = [
        rs.infer(log(parts), outputs=["output"], strategy=strategy).machines["output"]
        for strategy in ("likelihood", "backtracking")
        for parts in (walks, shuffled, walks + shuffled)
    ]
    assert len({str(machine.transitions.tolist()) for machine in machines[:3]}) == 1
    assert len({str(machine.transitions.tolist()) for machine in machines[3:]}) == 1


def test_backtracking_corrects_a_wrong_merge():
    machine = BANK["tcp"].machine
    samples = samples_of(machine.traces(16_000, 2))
    once, again = (merge(samples, order=order) for order in ("likelihood", "backtracking"))
    assert len(once.access) > machine.states == len(again.access)


def test_backtracking_respects_the_state_limit():
    samples = samples_of(handshake(4, 4).traces(1_500, 0, (5, 20)))
    found = merge(samples, order="backtracking")
    for engine in ("native", "python"):
        allowed = merge(samples, "backtracking", engine, Limits(most_states=found.states))
        assert allowed.events == found.events
        with pytest.raises(StateLimitExceeded):
            merge(samples, "backtracking", engine, Limits(most_states=found.states - 1))


def test_a_time_limit_during_backtracking_returns_the_best_so_far(monkeypatch):
    rows = [[(label, 0, label) for label in (0, 1, 0, 1, 1)], [(1, 0, 1), (0, 0, 0)]]
    samples = sample_set(rows)
    first = merge(samples, order="likelihood")

    class Hurried(Watch):
        """Has time for one run: a second one has to repeat the first."""

        def check(self, progress):
            if repeating:
                raise rs.errors.TimeLimitReached("time ran out")

    repeating = []
    begin = RedBlue.__init__

    def counted(self, *given):
        starts.append(1)
        begin(self, *given)
        if len(starts) > 1:
            repeating.append(1)

    starts: list[int] = []
    monkeypatch.setattr(RedBlue, "__init__", counted)
    assert merge_with_backtracking(samples, 1024, Hurried(None, None)).events == first.events
    assert len(starts) == 2

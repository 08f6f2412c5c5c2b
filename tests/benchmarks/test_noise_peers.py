"""The peers that noisy traces are compared with: the HMM is held to a list of all hidden paths."""

import subprocess
import sys
from itertools import product
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from resolvent.paper.baselines.outcome import Clock
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from noise_io_hmm import LITTLE, Asked, Fit, Stretches, _round, fit, log_loss  # noqa: E402


def samples_of(traces):
    histories = Histories.of(traces, LabelTiming.CURRENT)
    samples = output_samples(traces, histories, "observation")
    samples.beta[samples.beta == samples.labels.get(frozenset())] = -1
    return samples


def coin_traces(number, seed=0):
    """A coin that is turned over by an event, and shows the wrong side now and then."""
    random = np.random.default_rng(seed)
    traces = []
    for _ in range(number):
        turned = random.random(6) < 0.4
        turned[0] = False  # what came at the beginning is not read
        shown = (np.cumsum(turned) + (random.random(6) < 0.1)) % 2
        labels = [{"turn"} if one else set() for one in turned]
        seen = [0, *(int(one) for one in shown)]
        traces.append(Trace(seen, [*labels, None], ["look"] * 6, [0.0] * 6))
    return TraceSet(traces)


def plain_likelihood(samples, moves, chances, first, last):
    """Add up the chances of all hidden paths of one trace."""
    total = 0.0
    rows = range(first, last)
    for path in product(range(moves.shape[1]), repeat=len(rows)):
        chance, before = 1.0, 0
        for state, row in zip(path, rows, strict=True):
            label = samples.beta[row]
            chance *= (state == before) if label < 0 else moves[label, before, state]
            chance *= chances[state, samples.alpha[row], samples.output[row]]
            before = state
        total += chance
    return total


def chances_of(found, samples):
    """p(answer | state, query), with what is added to each answer that ever came."""
    keys = samples.alpha.astype(int) * len(samples.outputs) + samples.output
    table = np.zeros((len(found.answers), samples.alpha.max() + 1, len(samples.outputs)))
    for column, key in enumerate(np.unique(keys)):
        table[(slice(None), *divmod(key, len(samples.outputs)))] = found.answers[:, column] + LITTLE
    return table / table.sum(2, keepdims=True)


def test_the_likelihood_is_that_of_all_hidden_paths():
    samples = samples_of(coin_traces(4))
    random = np.random.default_rng(1)
    moves = random.dirichlet(np.ones(2), (len(samples.labels), 2))
    pairs = len(np.unique(samples.alpha * len(samples.outputs) + samples.output))
    start = Fit(moves, random.random((2, pairs)), np.nan)
    told = _round(start, Stretches.of(samples), Asked.of(samples)).log_likelihood
    bounds = zip(samples.offsets[:-1], samples.offsets[1:], strict=True)
    chances = chances_of(start, samples)
    plain = [plain_likelihood(samples, moves, chances, *both) for both in bounds]
    assert told == pytest.approx(sum(map(log, plain)))


def test_fitting_recovers_the_coin():
    samples = samples_of(coin_traces(300))
    found = fit(samples, 2, restarts=3, seed=0, clock=Clock(None))
    turn = samples.labels.code(frozenset({"turn"}))
    assert found.table[:, turn].tolist() == [1, 0]
    truth = Fit.certain(found.table, samples)
    fresh = samples_of(coin_traces(200, seed=5))
    fitted, certain = (log_loss(one, samples, fresh, 0.1) for one in (found, truth))
    assert fitted == pytest.approx(certain, abs=0.02)
    nothing = Fit.certain(np.zeros((1, len(samples.labels)), np.int32), samples)
    assert log_loss(nothing, samples, fresh, 0.1) > certain + 0.2


def test_the_loss_of_a_deterministic_table_is_that_of_counting():
    """By one state that has seen three answers of one kind and one of another."""
    seen = [0, 0, 0, 0, 1]
    trace = Trace(seen, [None] * 5, ["look"] * 4, [0.0] * 4)
    samples = samples_of(TraceSet([trace]))
    model = Fit.certain(np.zeros((1, len(samples.labels)), np.int32), samples)
    lost = log_loss(model, samples, samples, 1e-9)
    assert exp(-lost) == pytest.approx((0.75**3 * 0.25) ** 0.25, rel=1e-3)


@pytest.mark.slow
def test_the_table_is_printed():
    pytest.importorskip("aalpy")
    ran = subprocess.run(
        [sys.executable, BENCHMARKS / "noise_peers.py", "--short", "--world", "house, 5% slip"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in ran.stdout.splitlines()]
    found = {row[1]: row for row in rows[2:]}
    assert found["Resolvent"][2:4] == ["2", "1 of 1"]
    assert found["Resolvent"][4] == found["the true moves"][4]
    assert set(found) == {
        "the true moves",
        "Resolvent",
        "GSM, Hoeffding",
        "GSM, Akaike",
        "IO-HMM, EM",
        "ALERGIA, MDP",
    }

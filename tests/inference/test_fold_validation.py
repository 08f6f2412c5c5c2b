"""Cross-validation by `infer`: which machines carry a warning, and what folds say of a machine."""

from types import SimpleNamespace

import numpy as np
import pytest

import resolvent as rs
from mealy_machine import Mealy
from resolvent.evaluation.holdout import StepKinds
from resolvent.inference.fit import Fold
from resolvent.inference.validation import UNRELIABLE, _finding

ORDER = ("wood", "iron", "factory")


def craft(traces, rewarded, seed=0, size=5, length=40):
    """Traces of a map with objects: the reward comes once they were visited in order."""
    rng = np.random.default_rng(seed)
    cells = np.random.default_rng(5).permutation(size * size).tolist()
    label_at = dict(zip(cells, [*ORDER, "grass", *ORDER, "grass"], strict=False))
    finished, others = [], []
    while len(finished) < rewarded or len(others) < traces - rewarded:
        cell, done = cells[-1], 0
        seen, labels, actions, rewards = [cell], [None], [], []
        for action in rng.integers(0, 4, length).tolist():
            x, y = divmod(cell, size)
            x, y = x + (0, 1, 0, -1)[action], y + (1, 0, -1, 0)[action]
            cell = x * size + y if 0 <= x < size and 0 <= y < size else cell
            label = label_at.get(cell)
            done += label == ORDER[done]
            seen.append(cell)
            labels.append(label)
            actions.append(action)
            rewards.append(float(done == len(ORDER)))
            if rewards[-1]:
                break
        trace = rs.Trace(seen, labels, actions, rewards, terminated=done == len(ORDER))
        (finished if trace.terminated else others).append(trace)
    return rs.TraceSet(finished[:rewarded] + others[: traces - rewarded])


def doubts(result):
    return [warning.kind for warning in result.warnings if warning.kind in UNRELIABLE]


def test_a_right_machine_of_rare_rewards_carries_no_warning():
    result = rs.infer(craft(300, 24))
    assert (result.machines.reward.states, doubts(result)) == (3, [])
    folds = result.folds["reward"]
    rare = [fold.rare for fold in folds]
    assert sum(rare) > 0
    assert max(rare) - min(rare) <= 1  # spread evenly over the folds
    assert result.as_dict()["cross_validation"]["reward"][0] == folds[0].as_dict()


def test_a_machine_of_too_few_rewards_carries_one():
    result = rs.infer(craft(40, 3, seed=1))
    (warning,) = (note for note in result.warnings if note.kind in UNRELIABLE)
    assert warning.figures["machine"] == "reward"
    assert "rare outcome" in warning.text
    assert f"[{warning.kind}]" in str(result)


@pytest.mark.parametrize("seed", range(3))
def test_too_few_steps_of_a_mealy_machine_are_noticed(seed):
    machine = Mealy.drawn(8, seed, inputs=4)
    options = {"outputs": ["output"], "noise": "none"}
    assert doubts(rs.infer(machine.traces(350, seed), **options))
    enough = rs.infer(machine.traces(6_000, seed), **options)
    assert machine.is_found(enough.machines["output"])
    assert not doubts(enough)


def test_neither_order_nor_repeats_make_a_difference():
    traces = craft(60, 8)
    order = np.random.default_rng(0).permutation(len(traces))
    result = rs.infer(traces)
    assert rs.infer(traces.take(order)).folds == result.folds
    assert rs.infer(traces.take(np.append(order, order[:9]))).folds == result.folds


def test_an_update_is_validated_again():
    traces = craft(300, 24)
    few = rs.infer(traces.take(np.arange(0, 300, 12)))
    more = few.update(traces.take(np.flatnonzero(np.arange(300) % 12)))
    assert doubts(few)
    assert not doubts(more)


def test_what_is_not_validated():
    traces = craft(60, 8)
    assert rs.infer(traces, time_limit=60.0).folds == {}
    noisy = rs.infer(traces, options=rs.InferenceOptions(noise=rs.Noise(outcomes=True)))
    assert noisy.folds == {}


def fold(states, steps=60, errors=0, unseen=0, rare=0, rare_errors=0):
    return Fold(states, steps, errors, unseen, rare, rare_errors)


@pytest.mark.parametrize(
    ("folds", "kind"),
    [
        ([fold(4), fold(4)], None),
        ([fold(4), fold(4, errors=3)], "held-out-errors"),
        ([fold(4), fold(4, errors=2, unseen=2)], None),  # no prediction is no wrong one
        ([fold(5, errors=30), fold(6, errors=40)], None),  # the present one would be preferred
        ([fold(4, 20), fold(3, errors=30)], "held-out-errors"),
        ([fold(4), fold(3, errors=30)], None),  # confirmed by a machine of the same size
        ([fold(4)] * 4 + [fold(4, errors=30)], None),  # by 200 steps
        ([fold(4), fold(3)], "larger-than-necessary"),
        ([fold(4, 400, 3, rare=10, rare_errors=3), fold(4, 400, 1)], "held-out-errors"),
        ([fold(4, 5), fold(4, 4)], "hardly-tested"),
    ],
)
def test_what_folds_say_of_a_machine_of_four_states(folds, kind):
    machine = SimpleNamespace(name="reward", predicts="reward", states=4)
    kinds = StepKinds(np.ones(3, bool), np.zeros(3, bool), may_be_rare=True)
    finding = _finding(machine, tuple(folds), kinds, craft(3, 0))
    assert (finding and finding.kind) == kind


def test_an_output_that_never_varies_in_few_traces_is_doubtful():
    traces = craft(20, 0)
    assert "never-varied" in doubts(rs.infer(traces))
    assert "never-varied" not in doubts(rs.infer(craft(120, 0)))

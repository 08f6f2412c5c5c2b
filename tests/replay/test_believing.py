"""Scores of machines in doubt: the same as a belief gives step by step, and better than labels."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.machines.augmented_state import Belief, LabelNoise, StateUncertainty
from resolvent.replay.score import belief_score
from resolvent.worlds import House

LIES = LabelNoise(missed=0.2, false=0.0, swapped=0.0)


def switched(episodes, seed):
    """A hall with cheese at one side, which a switch changes; a fifth of its labels is missed."""
    random = np.random.default_rng(seed)
    true, recorded = [], []
    for _ in range(episodes):
        side, seen, labels, told, done = "left", ["hall"], [None], [None], []
        for _ in range(30):
            if seen[-1] != "hall":
                action, came = "back", "hall"
            else:
                action = str(random.choice(["left", "right", "wait"]))
                came = "hall" if action == "wait" else "cheese" if action == side else "wall"
            switch = bool(random.random() < 0.2)
            if switch:
                side = "left" if side == "right" else "right"
            seen.append(came)
            labels.append("switch" if switch else None)
            told.append("switch" if switch and random.random() > LIES.missed else None)
            done.append(action)
        true.append(rs.Trace(seen, labels, done))
        recorded.append(rs.Trace(seen, told, done))
    return rs.TraceSet(true), rs.TraceSet(recorded)


@pytest.fixture(scope="module")
def doubtful():
    true, recorded = switched(200, 0)
    shares = {frozenset(): 0.8, frozenset({"switch"}): 0.2}
    return rs.infer(true).machines.replacing(
        state_uncertainty=StateUncertainty(LIES, shares)
    ), recorded


def stepwise(machines, traces):
    """Right answers of the Transition Machine and its log loss, by a belief step by step."""
    belief, right, loss = Belief(machines), 0, 0.0
    for trace in traces:
        belief.reset(trace.labels[0])
        for step, action in enumerate(trace.actions):
            seen, came = trace.observations[step], trace.observations[step + 1]
            mixed = {
                output: float(
                    belief._shares @ belief._likelihood("transition", seen, action, output)
                )
                for output in machines.transition.outputs
            }
            right += max(mixed, key=mixed.__getitem__) == came
            loss -= np.log(mixed[came])
            belief.weigh(seen, action, {"observation": came})
            belief.read(trace.labels[step + 1])
    return right, loss / traces.steps


def test_it_is_what_a_belief_gives_step_by_step(doubtful):
    machines, recorded = doubtful
    few = recorded[:15]
    right, loss = stepwise(machines, few)
    scored = belief_score(machines, few).transition
    assert scored.all_right == right
    assert scored.steps == few.steps
    assert scored.log_loss == pytest.approx(loss, rel=1e-6)


def test_beliefs_predict_better_than_noisy_labels(doubtful):
    machines, recorded = doubtful
    believed = machines.score(recorded)
    read = machines.replacing(state_uncertainty=StateUncertainty()).score(recorded)
    assert believed.transition.all_wrong < 0.8 * read.transition.all_wrong
    assert believed.transition.log_loss < 0.5 * read.transition.log_loss
    first = believed.first_mismatch
    assert first.predicted != first.actual
    trace = recorded[first.trace]
    assert (trace.observations[first.step], trace.actions[first.step]) == (
        first.observation,
        first.action,
    )


def test_without_noise_all_is_right():
    traces = rs.collect(House(), episodes=50, seed=0)
    machines = rs.infer(traces).machines
    shares = dict.fromkeys(machines.transition.labels, 0.25)
    sure = machines.replacing(
        state_uncertainty=StateUncertainty(LabelNoise(1e-6, 0.0, 0.0), shares)
    )
    assert belief_score(sure, traces).perfect
    assert machines.score(traces).perfect

"""The states of machines in live episodes, with machines made by hand."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.errors import ModelError, OptionError, TraceError
from resolvent.machines import MachinePair, RewardMachine, TransitionMachine
from resolvent.machines.augmented_state import LabelNoise, StateUncertainty
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.tracker import StateTracker, VectorStateTracker
from resolvent.traces import Vocabulary
from resolvent.worlds import House


def machine(kind, labels, transitions):
    """Return a machine without outputs: only transitions matter here."""
    none = np.empty(0, np.int32)
    return kind(
        labels=Vocabulary([frozenset(label) for label in labels]),
        observations=Vocabulary([]),
        actions=Vocabulary([]),
        outputs=Vocabulary([]),
        transitions=np.array(transitions, np.int32),
        trivial=(),
        output_state=none,
        output_query=none.astype(np.int64),
        output_value=none,
        constant_query=none.astype(np.int64),
        constant_value=none,
    )


A, B, C = frozenset("a"), frozenset("b"), frozenset("c")

# a toggles the transition machine, b is unseen in its state 1; the reward machine
# counts b up to 2, knows c, and never saw a in state 2.
PAIR = MachinePair(
    machine(TransitionMachine, ["a", "b"], [[1, 0], [0, -1]]),
    machine(RewardMachine, ["a", "b", "c"], [[0, 1, 0], [1, 2, 1], [-1, 2, 2]]),
)


def states(memory):
    return *memory.values, memory.unseen


def after(timing, *labels):
    memory = StateTracker(PAIR.replacing(timing=timing))
    memory.reset(labels[0])
    for label in labels[1:]:
        memory.step(label)
    return states(memory)


def test_both_machines_read_the_labels_after_the_first():
    assert after(LabelTiming.CURRENT, A) == (0, 0, 0)
    assert after(LabelTiming.CURRENT, A, A) == (1, 0, 0)
    assert after(LabelTiming.CURRENT, A, A, A, B) == (0, 1, 0)


def test_the_first_label_is_read_with_current_with_initial():
    assert after(LabelTiming.CURRENT_WITH_INITIAL, A) == (1, 0, 0)
    assert after(LabelTiming.CURRENT_WITH_INITIAL, B, A) == (1, 1, 0)


def test_labels_are_read_a_step_late_with_lagged():
    assert after(LabelTiming.LAGGED, A) == (0, 0, 0)
    assert after(LabelTiming.LAGGED, A, B) == (1, 0, 0)
    assert after(LabelTiming.LAGGED, B, A, A) == (1, 1, 0)


def test_only_the_machine_that_has_the_label_changes_its_state():
    assert after(LabelTiming.CURRENT, A, A, B) == (1, 1, 1)
    assert after(LabelTiming.CURRENT, A, C) == (0, 0, 1)
    assert after(LabelTiming.CURRENT, A, B, B, A) == (1, 2, 1)


def test_a_label_unknown_to_both_machines_counts_once():
    assert after(LabelTiming.CURRENT, A, A, {"d"}, {"a", "b"}, A) == (0, 0, 2)


def test_a_reset_returns_to_the_initial_states():
    memory = StateTracker(PAIR)
    memory.reset(None)
    memory.step(A)
    memory.step(B)
    assert states(memory) == (1, 1, 1)
    memory.reset(None)
    assert states(memory) == (0, 0, 0)


@pytest.mark.parametrize("label", [A, {"a"}, ["a"], "a", np.array(["a"])])
def test_labels_may_be_spelled_as_in_traces(label):
    assert after(LabelTiming.CURRENT, None, label) == (1, 0, 0)


def test_the_error_names_label_state_and_remedy():
    memory = StateTracker(PAIR, on_unseen="raise")
    memory.reset(None)
    memory.step(A)
    with pytest.raises(
        ModelError,
        match=r"^label 'b' was never seen in state 1 of the transition machine: "
        r'collect traces that show it there and infer again, or go on with on_unseen="stay"$',
    ):
        memory.step(B)


def test_the_error_names_both_machines_or_a_new_label():
    memory = StateTracker(PAIR, on_unseen="raise")
    memory.reset(None)
    with pytest.raises(ModelError, match="label 'c' was never seen in state 0 of the transition"):
        memory.step(C)
    with pytest.raises(ModelError, match="label 'd & e' was never seen at all: collect traces"):
        memory.step({"d", "e"})


def test_the_first_label_may_raise_at_reset():
    memory = StateTracker(
        PAIR.replacing(timing=LabelTiming.CURRENT_WITH_INITIAL), on_unseen="raise"
    )
    with pytest.raises(ModelError, match="label 'c' was never seen"):
        memory.reset(C)


def test_the_last_label_of_a_terminated_episode_does_not_count():
    memory = StateTracker(PAIR, on_unseen="raise")
    memory.reset(None)
    memory.step({"the end"}, terminated=True)
    assert states(memory) == (0, 0, 0)


def test_invalid_on_unseen():
    with pytest.raises(OptionError, match="on_unseen='guess': give 'stay' or 'raise'"):
        StateTracker(PAIR, on_unseen="guess")


# ---- vector trackers -------------------------------------------------------

ALL = np.ones(3, bool)


def columns(memory):
    return [column.tolist() for column in states(memory)]


@pytest.mark.parametrize("timing", LabelTiming)
def test_a_vector_tracker_equals_single_trackers(timing):
    rng = np.random.default_rng(0)
    labels = [A, B, C, frozenset("d"), frozenset()]
    pair = PAIR.replacing(timing=timing)
    many, single = VectorStateTracker(pair, 3), [StateTracker(pair) for _ in range(3)]
    for step in range(200):
        told = [labels[code] for code in rng.integers(len(labels), size=3)]
        ended, terminated = rng.random(3) < 0.2, rng.random(3) < 0.2
        if step == 0 or rng.random() < 0.2:
            ended = ALL if step == 0 else ended
            many.reset(told, ended)
            for number in np.flatnonzero(ended):
                single[number].reset(told[number])
        else:
            masked = rng.random() < 0.5
            many.step(told, ~ended if masked else ALL, terminated)
            for number in np.flatnonzero(~ended) if masked else range(3):
                single[number].step(told[number], bool(terminated[number]))
        assert columns(many) == [list(column) for column in zip(*map(states, single), strict=True)]


@pytest.mark.parametrize(
    "told",
    [
        np.array([A, B, frozenset()]),
        [A, B, None],
        [{"a"}, ["b"], ()],
        np.array(["a", "b", "d"]),
        ("a", B, {"d"}),
        np.array([["a", "a"], ["b", "b"], ["d", "d"]]),
    ],
)
def test_columns_of_labels_may_have_any_spelling(told):
    memory = VectorStateTracker(PAIR, 3)
    memory.step(told, ALL, ~ALL)
    memory.step(told, ALL, ~ALL)
    assert columns(memory) == [[0, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_integer_labels():
    pair = MachinePair(
        machine(TransitionMachine, ["1", "2"], [[1, 0], [1, 0]]),
        machine(RewardMachine, ["1", "2"], [[0, 0]]),
    )
    memory = VectorStateTracker(pair, 3)
    memory.step(np.array([1, 2, 3]), ALL, ~ALL)
    assert columns(memory) == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_an_invalid_label_names_its_environment():
    with pytest.raises(TraceError, match=r"^environment 1: 0\.5 cannot be a proposition"):
        VectorStateTracker(PAIR, 3).step(["a", 0.5, "b"], ALL, ~ALL)


@pytest.mark.parametrize("timing", [LabelTiming.CURRENT, LabelTiming.LAGGED])
def test_the_error_names_the_environment(timing):
    memory = VectorStateTracker(PAIR.replacing(timing=timing), 3, on_unseen="raise")
    memory.reset([A, A, A], ALL)
    memory.step([A, frozenset({"new"}), A], ALL, np.array([False, timing == "current", False]))
    with pytest.raises(ModelError, match=r"^environment 1: label 'new' was never seen at all"):
        memory.step([A, frozenset({"new"}), A], ALL, ~ALL)


def test_returned_columns_do_not_change_later():
    memory = VectorStateTracker(PAIR, 3)
    memory.reset([A, A, A], ALL)
    before = memory.values[0]
    memory.step([A, A, A], ALL, ~ALL)
    assert (before.tolist(), memory.values[0].tolist()) == ([0, 0, 0], [1, 1, 1])


LEFT, UP, RIGHT = 2, 0, 3


class ForgetsKey(gym.Wrapper):
    """The house, whose labels never contain the key."""

    def step(self, action):
        *rest, info = self.env.step(action)
        return *rest, {**info, "labels": frozenset(info["labels"]) - {"key"}}


@pytest.fixture(scope="module")
def machines():
    found = rs.infer(rs.collect(House(), episodes=200, seed=0)).machines
    shares = dict.fromkeys(found.transition.labels, 0.25)
    return found.replacing(state_uncertainty=StateUncertainty(LabelNoise(0.3, 0.0, 0.0), shares))


def test_the_space_holds_probabilities_of_states(machines):
    wrapped = rs.AugmentObservation(House(), machines, mode="belief")
    seen, info = wrapped.reset(seed=0)
    assert wrapped.observation_space.contains(seen)
    assert set(seen) == {"observation", "transition_belief", "reward_belief"}
    assert seen["transition_belief"].tolist() == [1.0, 0.0]
    seen, *_, info = wrapped.step(LEFT)
    assert wrapped.observation_space.contains(seen)
    assert info["transition_state"] == 1
    assert wrapped.augmented_state[1] == 1


def test_a_missed_label_is_inferred_from_outcomes(machines):
    wrapped = rs.AugmentObservation(ForgetsKey(House()), machines, mode="belief")
    wrapped.reset(seed=0)
    seen, *_, info = wrapped.step(LEFT)  # to the key, without its label
    assert 0.1 < seen["transition_belief"][1] < 0.5
    assert info["transition_state"] == 0
    wrapped.step(RIGHT)
    seen, *_, info = wrapped.step(UP)  # through the door, which only opens with the key
    assert seen["transition_belief"][1] > 0.95
    assert info["transition_state"] == 1
    read = rs.AugmentObservation(ForgetsKey(House()), machines)
    read.reset(seed=0)
    for action in (LEFT, RIGHT, UP):
        *_, info = read.step(action)
    assert info["transition_state"] == 0  # by labels alone


@pytest.mark.parametrize("autoreset", list(gym.vector.AutoresetMode)[:2])
def test_vector_beliefs_equal_those_of_single_environments(machines, autoreset):
    envs = gym.vector.SyncVectorEnv(
        [lambda: gym.wrappers.TimeLimit(House(), 7)] * 3, autoreset_mode=autoreset
    )
    wrapped = rs.wrappers.VectorAugmentObservation(envs, machines, mode="belief")
    alone = [
        rs.AugmentObservation(gym.wrappers.TimeLimit(House(), 7), machines, mode="belief")
        for _ in range(3)
    ]
    random = np.random.default_rng(0)
    seen, _ = wrapped.reset(seed=0)
    shown = [one.reset(seed=number)[0] for number, one in enumerate(alone)]
    for _ in range(6):
        for number, one in enumerate(shown):
            assert np.allclose(seen["transition_belief"][number], one["transition_belief"])
            assert np.allclose(seen["reward_belief"][number], one["reward_belief"])
        actions = random.integers(0, 4, 3)
        seen, *_ = wrapped.step(actions)
        shown = [one.step(action)[0] for one, action in zip(alone, actions, strict=True)]
    for _ in range(20):  # beyond the ends of episodes
        seen, *_ = wrapped.step(random.integers(0, 4, 3))
        assert wrapped.observation_space.contains(seen)


def test_labels_unknown_to_all_machines(machines):
    def strange(observation):
        return {"fire"}

    wrapped = rs.AugmentObservation(
        House(), machines, mode="belief", labeling_fn=strange, on_unseen="raise"
    )
    wrapped.reset(seed=0)
    with pytest.raises(ModelError, match="'fire' was never seen at all"):
        wrapped.step(LEFT)


def test_states_are_not_encoded_in_this_mode(machines):
    wrapped = rs.AugmentObservation(House(), machines, mode="belief")
    with pytest.raises(OptionError, match="shows probabilities, not states"):
        wrapped.encode(0, 1, 0)


def test_a_plan_acts_by_the_most_likely_states(machines):
    traces = rs.collect(House(), episodes=300, seed=0)
    result = rs.infer(traces)
    plan = rs.plan(
        result.machines.replacing(state_uncertainty=machines.state_uncertainty), traces, gamma=0.9
    )
    told = plan.run(House(), episodes=3, seed=0, max_steps=60)
    assert told.terminated.all()
    forgetful = plan.run(ForgetsKey(House()), episodes=3, seed=0, max_steps=200, on_unseen="random")
    assert len(forgetful.returns) == 3

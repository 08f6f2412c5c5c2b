"""Wrappers and plans with noisy labels: states are estimated from the outcomes of steps."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.errors import ModelError, OptionError
from resolvent.machines.augmented_state import LabelNoise, StateUncertainty
from resolvent.worlds import House

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

"""A ring road with a toll gate, small enough to compute everything by hand.

Cells 0, 1, 2 in a ring; a coin lies in cell 1; cell 2 opens only with the coin, where the episode
ends with reward 5. Waiting has no effect.
"""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from resolvent import _core
from resolvent.errors import ModelError, OptionError, TraceError
from resolvent.preprocess.timing import LabelTiming
from resolvent.worlds.env import VectorWorld, World
from resolvent.worlds.mechanics import Mechanics
from table_worlds import world

NONE, COIN, GATE = frozenset(), frozenset({"coin"}), frozenset({"gate"})


class RingRules:
    """A state is (cell, whether the coin was taken)."""

    actions = ("on", "back", "wait")

    def starts(self):
        return [(0, False), (1, False)]

    def step(self, state, action):
        cell, coin = state
        target = (cell + (1, -1, 0)[action]) % 3
        if target == 2 and not coin:
            target = cell
        return (target, coin or target == 1), 5.0 * (target == 2), target == 2

    def observation(self, state):
        return f"cell {state[0]}"

    def label(self, state):
        return (NONE, COIN, GATE)[state[0]]

    def transition_memory(self, state):
        return state[1]

    def reward_memory(self, state):
        return 0  # the transition memory determines the reward


class SteppedRing(gym.Env):
    """The same world, written as an ordinary environment."""

    observation_names = ("cell 0", "cell 1", "cell 2")
    action_names = RingRules.actions

    def __init__(self):
        self.observation_space = gym.spaces.Discrete(3)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = RingRules().starts()[int(self.np_random.integers(2))]
        return self.state[0], {"labels": RingRules().label(self.state)}

    def step(self, action):
        self.state, reward, ended = RingRules().step(self.state, action)
        return self.state[0], reward, ended, False, {"labels": RingRules().label(self.state)}


class Ring(World):
    def __init__(self, render_mode=None):
        super().__init__(Mechanics.explore(RingRules()), render_mode)

    def picture(self, state):
        return Drawn(self.mechanics.true_states[state])


class Drawn:
    def __init__(self, state):
        self.state = state

    def ansi(self):
        return f"in cell {self.state[0]}"

    def rgb_array(self):
        return np.full((1, 1, 3), self.state[0], np.uint8)


class VectorRing(VectorWorld):
    world = Ring


@pytest.fixture
def ring():
    return Mechanics.explore(RingRules())


def test_all_reachable_states_are_in_the_tables(ring):
    # Coinless in cells 0 and 1, with the coin in 0 and 1, and the end in 2.
    assert set(ring.true_states[: ring.live]) == {(0, False), (1, False), (1, True), (0, True)}
    assert ring.true_states[ring.live :] == ((2, True),)
    assert ring.starts.tolist() == [0, 1]
    assert ring.observations == ("cell 0", "cell 1", "cell 2")
    assert ring.labels == (NONE, COIN, GATE)


def test_the_tables_agree_with_the_rules(ring):
    rules = RingRules()
    for number, state in enumerate(ring.true_states[: ring.live]):
        assert ring.observations[ring.observation_of[number]] == rules.observation(state)
        assert ring.labels[ring.label_of[number]] == rules.label(state)
        for action in range(3):
            target, reward, ended = rules.step(state, action)
            assert ring.true_states[ring.next_state[number, action]] == target
            assert ring.reward[number, action] == reward
            assert ring.ends[number, action] == ended


def test_optimal_values_are_those_computed_by_hand(ring):
    # With the coin the gate is one step away, from either side of it.
    by_state = dict(zip(ring.true_states, ring.optimal_values(0.5).tolist(), strict=True))
    assert by_state == {
        (0, True): 5.0,
        (1, True): 5.0,
        (0, False): 2.5,  # to cell 1, which gives the coin, and on
        (1, False): 2.5,  # the coin of the start is not taken: that needs a step that stays
        (2, True): 0.0,
    }


def test_the_machines_are_those_computed_by_hand(ring):
    pair = ring.machines()
    assert (pair.transition.states, pair.reward.states) == (2, 1)
    with_coin = pair.transition.step(0, {"coin"})
    assert with_coin == 1
    assert pair.transition.step(1, {"coin"}) == 1
    assert pair.transition.output(0, "cell 0", "back") == "cell 0"
    assert pair.transition.output(1, "cell 0", "back") == "cell 2"
    assert pair.transition.constant_outputs[("cell 1", "back")] == "cell 0"
    assert pair.reward.output(0, ("cell 1", 1), "on") == 5.0
    assert pair.termination.ends == {("cell 0", 1, 0, "back"), ("cell 1", 1, 0, "on")}
    assert not pair.termination.ambiguous


def test_many_walks_give_the_true_machines():
    env = Ring()
    traces = rs.collect(env, episodes=300, seed=0)
    inferred, true = rs.infer(traces).machines, env.machines()
    assert rs.is_isomorphic(inferred.transition, true.transition)
    assert true.score(traces).perfect
    assert inferred.termination == true.termination


def test_a_memory_that_is_not_enough_is_refused():
    class Forgetful(RingRules):
        def transition_memory(self, state):
            return 0

    with pytest.raises(ModelError, match="output of the transition machine does not follow"):
        Mechanics.explore(Forgetful()).machines()


def test_starts_with_different_memories_need_their_first_label():
    class Remembered(RingRules):
        def starts(self):
            return [(0, False), (1, True)]

    world = Mechanics.explore(Remembered())
    with pytest.raises(ModelError, match="read their first labels"):
        world.machines()
    pair = world.machines(LabelTiming.CURRENT_WITH_INITIAL)
    assert pair.transition.output(pair.transition.run([COIN]), "cell 1", "on") == "cell 2"
    assert pair.transition.output(pair.transition.run([NONE]), "cell 0", "back") == "cell 0"
    with pytest.raises(ModelError, match="cannot read labels late"):
        world.machines(LabelTiming.LAGGED)


@given(st.integers(0, 2**31), st.integers(1, 40), st.none() | st.integers(1, 9))
def test_rollouts_are_those_of_a_stepped_environment(seed, episodes, limit):
    stepped = rs.collect(SteppedRing(), episodes=episodes, seed=seed, max_steps=limit)
    assert rs.collect(Ring(), episodes=episodes, seed=seed, max_steps=limit) == stepped


@pytest.mark.parametrize(("wrapper", "requested", "longest"), [(3, None, 3), (3, 9, 3), (9, 3, 3)])
def test_the_lowest_limit_counts(wrapper, requested, longest):
    env = TimeLimit(Ring(), wrapper)
    traces = rs.collect(env, episodes=200, seed=0, max_steps=requested)
    assert max(map(len, traces)) == longest
    assert traces == rs.collect(
        TimeLimit(SteppedRing(), wrapper), episodes=200, seed=0, max_steps=3
    )


def test_a_world_with_its_own_steps_is_stepped():
    class Generous(Ring):
        def step(self, action):
            seen, reward, *rest = super().step(action)
            return seen, reward + 1, *rest

    assert 0.0 not in rs.collect(Generous(), episodes=5, seed=0).rewards


def test_a_policy_steps_the_environment():
    traces = rs.collect(Ring(), episodes=9, seed=0, policy=lambda cell: 0, max_steps=5)
    assert list(traces.actions) == ["on"]
    # From cell 0 past the coin; from cell 1 the closed gate stops the agent, who takes the coin.
    assert {trace.observations for trace in traces} == {
        ("cell 0", "cell 1", "cell 2"),
        ("cell 1", "cell 1", "cell 2"),
    }


def test_progress_is_reported_to_the_end():
    fractions = []
    rs.collect(Ring(), episodes=5000, seed=0, progress=fractions.append)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_a_start_can_be_chosen():
    env = Ring()
    assert env.reset(options={"start": 1})[0] == 1
    assert env.reset(options={"start": 0})[0] == 0
    with pytest.raises(OptionError, match=r"no episode begins there; starts are 0, 1$"):
        env.reset(options={"start": 2})


def test_unknown_actions_are_refused():
    env = Ring()
    env.reset()
    with pytest.raises(OptionError, match="action 3 is not one of 0 on, 1 back, 2 wait"):
        env.step(3)
    with pytest.raises(OptionError, match="render_mode='human'"):
        Ring(render_mode="human")


def test_rendering_shows_the_true_state():
    env = Ring(render_mode="ansi")
    env.reset(options={"start": 1})
    assert env.render() == "in cell 1"
    assert Ring().render() is None
    many = VectorRing(2, render_mode="rgb_array")
    many.reset(options={"start": 1})
    assert [picture.tolist() for picture in many.render()] == [[[[1, 1, 1]]]] * 2


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_of_worlds_behaves_as_that_of_gymnasium(mode):
    """From the same starts and by the same actions, all that both return is the same."""

    def limited():
        return TimeLimit(Ring(), 5)

    ours = VectorRing(4, autoreset_mode=mode, max_episode_steps=5)
    theirs = SyncVectorEnv([limited] * 4, autoreset_mode=mode)
    # Only one start, so that no random number matters.
    for one in (ours, *(env.unwrapped for env in theirs.envs)):
        object.__setattr__(one.mechanics, "starts", np.int32([0]))
    rng = np.random.default_rng(0)
    same(ours.reset(seed=0), theirs.reset(seed=0))
    over = np.zeros(4, bool)
    for _ in range(60):
        if mode is AutoresetMode.DISABLED and over.any():
            with pytest.raises(OptionError, match="is over: reset it"):
                ours.step(np.zeros(4, np.int64))
            options = {"reset_mask": over}
            same(ours.reset(options=dict(options)), theirs.reset(options=dict(options)))
        actions = rng.integers(3, size=4)
        mine, yours = ours.step(actions), theirs.step(actions)
        same(mine, yours)
        over = mine[2] | mine[3]


def same(mine, yours):
    if isinstance(mine, dict):
        assert mine.keys() == yours.keys()
        for key in mine:
            if key in ("final_info", "final_obs", "labels"):
                defined = mine[f"_{key}"] if f"_{key}" in mine else np.ones(4, bool)
                if key == "final_info":
                    same(mine[key], yours[key])
                else:
                    assert mine[key][defined].tolist() == yours[key][defined].tolist()
            else:
                same(mine[key], yours[key])
    elif isinstance(mine, tuple):
        for left, right in zip(mine, yours, strict=True):
            same(left, right)
    else:
        assert np.array_equal(mine, yours)


def test_bad_batches_are_refused():
    envs = VectorRing(2)
    envs.reset(seed=0)
    with pytest.raises(OptionError, match="actions must be 2 ints from 0 to 2"):
        envs.step(np.array([0, 3]))
    with pytest.raises(OptionError, match="must be an array of 2 bools"):
        envs.reset(options={"reset_mask": [True]})
    with pytest.raises(OptionError, match="num_envs=0: use at least 1"):
        VectorRing(0)
    with pytest.raises(OptionError, match="max_episode_steps=0: use at least 1"):
        VectorRing(1, max_episode_steps=0)


@pytest.mark.parametrize(
    ("following", "ends", "actions", "starts", "limit", "wrong"),
    [
        ([0, 1], [0, 0], 0, [0], 0, "at least one action"),
        ([0, 1], [0], 2, [0], 0, "one row of `actions` entries"),
        ([0, 2], [0, 0], 1, [0], 0, "out of range"),
        ([0, -1], [0, 0], 1, [0], 0, "out of range"),
        ([0, 1], [0, 2], 1, [0], 0, "out of range"),
        ([0, 1], [0, 0], 1, [2], 0, "out of range"),
        ([0, 1], [0, 0], 1, [0], -1, "max_steps"),
    ],
)
def test_the_core_checks_its_tables(following, ends, actions, starts, limit, wrong):
    with pytest.raises(ValueError, match=wrong):
        _core.walk(np.int32(following), np.int32(ends), actions, np.int32(starts), limit)


def test_the_core_checks_actions_and_that_episodes_are_over():
    walk = _core.walk(np.int32([0]), np.int32([0]), 1, np.int32([0]), 2)
    with pytest.raises(ValueError, match="no such action"):
        walk.feed(np.int64([1]))
    walk.feed(np.int64([0]))
    with pytest.raises(ValueError, match="not over"):
        walk.take()
    walk.feed(np.int64([0, 0, 0]))
    states, actions, offsets, terminated = walk.take()
    assert (len(states), len(actions), offsets.tolist(), terminated.tolist()) == (3, 2, [0, 2], [0])


def test_rewards_that_are_not_finite_are_refused():
    env = world([[0, 0]], [[0.0, np.inf]], [[False, True]])
    with pytest.raises(TraceError, match=r"^the rewards are from 0.0 to inf: make all finite$"):
        rs.collect(env, episodes=1, seed=0)

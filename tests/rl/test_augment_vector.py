"""The vector wrapper gives what single wrappers give."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import resolvent as rs
from resolvent.worlds import House
from silent_houses import HouseWithMethod

MODES = ["dict", "flatten", "multidiscrete", "discrete"]
UP, DOWN, LEFT, RIGHT, SIT = range(5)
COUNT = 4

autoresets = pytest.mark.parametrize("autoreset", AutoresetMode, ids=lambda mode: mode.value)


@pytest.fixture(scope="module")
def pair():
    return rs.infer(rs.collect(House(), episodes=300, seed=0)).machines


def house(number=0):
    """Return a house with a time limit, so that episodes terminate or are truncated."""
    return gym.wrappers.TimeLimit(House(), 7 + number)


def houses(autoreset, made=house, count=COUNT, **options):
    return gym.vector.SyncVectorEnv(
        [lambda n=n: made(n) for n in range(count)], autoreset_mode=autoreset, **options
    )


def assert_same(one: Any, other: Any) -> None:
    """Check that two batches have the same values, keys, masks and types."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype == object:
            for pair in zip(one.tolist(), other.tolist(), strict=True):
                assert_same(*pair)
        else:
            assert one.tolist() == other.tolist()
    else:
        assert one == other


def assert_same_walk(one, other, steps=120):
    """Check that two vector environments return the same along a random walk."""
    assert one.observation_space == other.observation_space
    assert one.single_observation_space == other.single_observation_space
    rng = np.random.default_rng(0)
    for mine, theirs in zip(one.reset(seed=3), other.reset(seed=3), strict=True):
        assert_same(mine, theirs)
    for _ in range(steps):
        actions = rng.integers(5, size=one.num_envs)
        mine, theirs = one.step(actions), other.step(actions)
        for pair in zip(mine, theirs, strict=True):
            assert_same(*pair)
        assert mine[0] in one.observation_space
        ended = mine[2] | mine[3]
        if one.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            mine, theirs = (
                envs.reset(options={"reset_mask": ended.copy()}) for envs in (one, other)
            )
            for pair in zip(mine, theirs, strict=True):
                assert_same(*pair)


@autoresets
@pytest.mark.parametrize("mode", MODES)
def test_the_vector_wrapper_equals_single_wrappers(pair, mode, autoreset):
    def single(number):
        return rs.AugmentObservation(house(number), pair, mode=mode, knowledge=False)

    assert_same_walk(
        rs.wrappers.VectorAugmentObservation(houses(autoreset), pair, mode=mode),
        houses(autoreset, single),
    )


@autoresets
@pytest.mark.parametrize("timing", rs.LabelTiming)
@pytest.mark.parametrize("parameters", [1, 3])
def test_labeling_functions_give_the_labels_of_single_wrappers(pair, parameters, timing, autoreset):
    events = ["hall", "key", "toilet", "sofa"]
    labeling_fn = (lambda room: events[room]) if parameters == 1 else _of_step
    walked = rs.collect(House(), episodes=300, seed=0, labeling_fn=labeling_fn)
    machines = rs.infer(walked, timing=timing).machines
    options = {"mode": "multidiscrete", "labeling_fn": labeling_fn}

    def single(number):
        return rs.AugmentObservation(house(number), machines, **{"knowledge": False, **options})

    assert_same_walk(
        rs.wrappers.VectorAugmentObservation(houses(autoreset, copy=False), machines, **options),
        houses(autoreset, single),
    )


def _of_step(room, action, following):
    return ["hall", "key", "toilet", "sofa"][following] if following != room else "still"


@pytest.mark.parametrize("autoreset", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_labels_from_methods_equal_those_of_single_wrappers(pair, autoreset):
    def with_method(number):
        return gym.wrappers.TimeLimit(HouseWithMethod(), 7 + number)

    def single(number):
        return rs.AugmentObservation(with_method(number), pair, knowledge=False)

    assert_same_walk(
        rs.wrappers.VectorAugmentObservation(houses(autoreset, with_method), pair),
        houses(autoreset, single),
    )


@autoresets
def test_environments_in_other_processes(pair, autoreset):
    fns = [lambda n=n: house(n) for n in range(2)]
    envs = gym.vector.AsyncVectorEnv(fns, autoreset_mode=autoreset, context="spawn")
    try:
        wrapped = rs.wrappers.VectorAugmentObservation(envs, pair, mode="flatten")
        single = houses(
            autoreset,
            lambda n: rs.AugmentObservation(house(n), pair, mode="flatten", knowledge=False),
            count=2,
        )
        assert_same_walk(wrapped, single)
    finally:
        envs.close()


@autoresets
@pytest.mark.parametrize("name", ["House", "HouseInterference", "PhaseGrid3", "TMaze"])
def test_augmented_observations_of_built_in_worlds_are_markovian(name, autoreset):
    """The same action in the same augmented state always has the same outcome."""
    pair = gym.make(f"resolvent/{name}-v0").unwrapped.machines()
    envs = rs.wrappers.VectorAugmentObservation(
        gym.make_vec(f"resolvent/{name}-v0", num_envs=COUNT, autoreset_mode=autoreset),
        pair,
        mode="multidiscrete",
        on_unseen="raise",
    )
    assert not isinstance(envs.unwrapped, gym.vector.SyncVectorEnv)
    rng = np.random.default_rng(0)
    seen, _ = envs.reset(seed=0)
    went: dict[Any, Any] = {}
    ended = np.zeros(COUNT, bool)
    for _ in range(300):
        if autoreset is AutoresetMode.DISABLED and ended.any():
            seen, _ = envs.reset(options={"reset_mask": ended.copy()})
        actions = rng.integers(envs.single_action_space.n, size=COUNT)
        following, rewards, terminated, truncated, infos = envs.step(actions)
        before, ended = ended, terminated | truncated
        for number in range(COUNT):
            if autoreset is AutoresetMode.NEXT_STEP and before[number]:
                continue
            led_to = following[number]
            if autoreset is AutoresetMode.SAME_STEP and ended[number]:
                led_to = infos["final_obs"][number]
            outcome = (led_to[0], rewards[number], terminated[number])
            assert went.setdefault((*seen[number], actions[number]), outcome) == outcome
        seen = following
    assert len(went) > 20


# ---- by hand ---------------------------------------------------------------


def rows(envs, actions):
    observations, *_ = envs.step(actions)
    return observations.tolist()


def test_the_call_after_an_end_resets_and_reads_no_label(pair):
    envs = rs.wrappers.VectorAugmentObservation(
        houses(AutoresetMode.NEXT_STEP, lambda number: House()), pair, mode="multidiscrete"
    )
    envs.reset()
    assert rows(envs, [LEFT, LEFT, UP, RIGHT]) == [[1, 1, 0], [1, 1, 0], [0, 0, 0], [3, 0, 0]]
    assert rows(envs, [RIGHT, RIGHT, UP, SIT]) == [[0, 1, 0], [0, 1, 0], [0, 0, 0], [3, 0, 0]]
    assert rows(envs, [UP, RIGHT, UP, LEFT]) == [[2, 1, 1], [3, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert rows(envs, [UP, SIT, UP, LEFT]) == [[2, 1, 1], [3, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert rows(envs, [UP, SIT, UP, UP]) == [[2, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0]]


def test_an_explicit_reset_replaces_the_automatic_one(pair):
    envs = rs.wrappers.VectorAugmentObservation(
        houses(AutoresetMode.NEXT_STEP, lambda number: House()), pair, mode="multidiscrete"
    )
    envs.reset()
    rows(envs, [RIGHT, UP, UP, UP])
    rows(envs, [SIT, UP, UP, UP])
    envs.reset()
    assert rows(envs, [LEFT, UP, UP, UP]) == [[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_the_first_label_is_not_read_in_the_last_state(pair):
    def told(room):
        return {"labels": {"home"} if room == 0 else set()}

    class Home(House):
        def reset(self, **options):
            room, _ = super().reset(**options)
            return room, told(room)

        def step(self, action):
            room, *rest, _ = super().step(action)
            return room, *rest, told(room)

    envs = rs.wrappers.VectorAugmentObservation(
        houses(AutoresetMode.NEXT_STEP, lambda number: Home()), pair, on_unseen="raise"
    )
    envs.reset()
    for action in (RIGHT, SIT, UP):
        envs.step([action] * COUNT)
    with pytest.raises(rs.errors.ModelError, match="label 'home' was never seen"):
        envs.step([UP] * COUNT)


def test_final_observations_are_augmented(pair):
    envs = rs.wrappers.VectorAugmentObservation(
        houses(AutoresetMode.SAME_STEP, lambda number: House()), pair, mode="multidiscrete"
    )
    envs.reset()
    rows(envs, [LEFT, UP, UP, UP])
    rows(envs, [RIGHT, RIGHT, UP, UP])
    observations, _, terminated, _, infos = envs.step([RIGHT, SIT, UP, UP])
    assert terminated.tolist() == [False, True, False, False]
    assert observations.tolist() == [[3, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert infos["final_obs"][1].tolist() == [3, 0, 0]
    assert infos["_final_obs"].tolist() == terminated.tolist()
    assert infos["transition_state"].tolist() == [1, 0, 0, 0]
    assert infos["final_info"]["_transition_state"].tolist() == terminated.tolist()
    observations, *_, infos = envs.step([SIT, UP, UP, UP])
    assert infos["final_obs"][0].tolist() == [3, 1, 0]
    assert infos["final_info"]["transition_state"].tolist() == [1, 0, 0, 0]
    assert observations[0].tolist() == [0, 0, 0]


def test_a_reset_mask_resets_only_masked_environments(pair):
    envs = rs.wrappers.VectorAugmentObservation(
        houses(AutoresetMode.DISABLED, lambda number: House()), pair, mode="multidiscrete"
    )
    envs.reset()
    rows(envs, [LEFT] * COUNT)
    mask = np.array([True, False, False, True])
    observations, infos = envs.reset(options={"reset_mask": mask})
    assert observations.tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert infos["_unseen"].tolist() == mask.tolist()
    assert rows(envs, [RIGHT] * COUNT) == [[3, 0, 0], [0, 1, 0], [0, 1, 0], [3, 0, 0]]


class Native(gym.vector.VectorEnv):
    """Rooms without single environments: an action is the next room."""

    observation_names = House.observation_names
    action_names = House.action_names

    def __init__(self, labels, autoreset=None):
        self.num_envs = 2
        self.single_observation_space, self.single_action_space = map(spaces.Discrete, (4, 5))
        self.observation_space = spaces.MultiDiscrete([4, 4])
        self.action_space = spaces.MultiDiscrete([5, 5])
        self.labels = labels
        self.metadata = {} if autoreset is None else {"autoreset_mode": autoreset}

    def told(self, rooms):
        return {"labels": [self.labels[room] for room in rooms]}

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, int), self.told([0, 0])

    def step(self, rooms):
        rooms, ended = np.array(rooms), np.array(rooms) == 3
        infos = {"final_obs": rooms, "final_info": self.told(rooms)}
        same = self.metadata.get("autoreset_mode") is AutoresetMode.SAME_STEP
        shown = np.where(ended, 0, rooms) if same else rooms
        return shown, np.zeros(2), ended, ~np.ones(2, bool), {**infos, **self.told(shown)}


@pytest.mark.parametrize(
    "labels", [[set(), {"key"}, {"toilet"}, {"sofa"}], [None, "key", "toilet", "sofa"]]
)
def test_native_vector_environments(pair, labels):
    envs = rs.wrappers.VectorAugmentObservation(Native(labels), pair, mode="discrete")
    envs.reset()
    assert envs.decode(envs.step([1, 0])[0]) == [(1, 1, 0), (0, 0, 0)]
    assert envs.decode(envs.step([2, 3])[0]) == [(2, 1, 1), (3, 0, 0)]
    # Without an autoreset mode, the call after an end is a reset.
    assert envs.decode(envs.step([0, 0])[0]) == [(0, 1, 1), (0, 0, 0)]

    same = Native(labels, AutoresetMode.SAME_STEP)
    envs = rs.wrappers.VectorAugmentObservation(same, pair, mode="discrete")
    envs.reset()
    envs.step([1, 1])
    observations, *_, infos = envs.step([2, 3])
    assert envs.decode(observations) == [(2, 1, 1), (0, 0, 0)]
    assert envs.decode(infos["final_obs"][1:]) == [(3, 1, 0)]


# ---- refusals --------------------------------------------------------------


def test_an_unseen_label_raises_on_request(pair):
    envs = rs.wrappers.VectorAugmentObservation(
        houses(AutoresetMode.NEXT_STEP),
        pair,
        on_unseen="raise",
        labeling_fn=lambda room: "draught" if room == 3 else None,
    )
    envs.reset()
    with pytest.raises(rs.errors.ModelError, match="environment 2: label 'draught' was never seen"):
        envs.step([UP, UP, RIGHT, RIGHT])


def test_machines_of_another_environment_are_refused():
    trace = rs.Trace(["street", "shop"], [None, None], ["enter"], [0])
    shop = rs.infer(rs.TraceSet([trace]))
    with pytest.raises(
        rs.errors.ModelError, match="know the action 'enter', which the environment lacks"
    ):
        rs.wrappers.VectorAugmentObservation(houses(AutoresetMode.NEXT_STEP), shop)


def test_a_single_environment_is_refused(pair):
    with pytest.raises(
        rs.OptionError, match=r"needs a gymnasium\.vector\.VectorEnv, not a House: use Augm"
    ):
        rs.wrappers.VectorAugmentObservation(House(), pair)
    with pytest.raises(
        rs.OptionError, match=r"needs a gymnasium\.Env, not a SyncVectorEnv: use VectorAugm"
    ):
        rs.AugmentObservation(houses(AutoresetMode.NEXT_STEP), pair)


def test_returned_values_may_be_written_into(pair):
    envs = rs.wrappers.VectorAugmentObservation(houses(AutoresetMode.NEXT_STEP), pair)
    observations, infos = envs.reset()
    observations["transition_state"][:] = 1
    infos["reward_state"][:] = 1
    observations, *_ = envs.step([UP] * COUNT)
    assert observations["transition_state"].tolist() == [0] * COUNT
    assert observations["reward_state"].tolist() == [0] * COUNT

"""Parts of observations for deep learners, in all spaces of Gymnasium."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import resolvent as rs
from every_space import FIXED, FREE, NAMES, Shows, machines_of_shows
from resolvent.rl.augmentation import parts_of

MODES = ["dict", "flatten"]


def augmented(space, shown, mode="dict"):
    return rs.AugmentObservation(Shows(space, shown), machines_of_shows(), mode=mode)


def first(space, shown, mode="dict"):
    """Return the augmented observation without the states."""
    wrapped = augmented(space, [shown], mode)
    seen, _ = wrapped.reset()
    assert seen in wrapped.observation_space
    return {name: value for name, value in seen.items() if not name.endswith("_state")}


def test_nested_parts_have_path_names():
    space = spaces.Dict(
        robot=spaces.Dict(arm=spaces.Discrete(3), at=spaces.Tuple([spaces.Discrete(9)] * 2)),
        light=spaces.MultiBinary(2),
    )
    seen = first(space, {"robot": {"arm": 2, "at": (4, 5)}, "light": np.array([0, 1], np.int8)})
    assert seen.pop("light").tolist() == [0, 1]
    assert seen == {"robot/arm": 2, "robot/at/0": 4, "robot/at/1": 5}


def test_parts_of_a_tuple_have_numbers():
    space = spaces.Tuple([spaces.Discrete(3), spaces.Discrete(4)])
    assert first(space, (2, 3)) == {"observation/0": 2, "observation/1": 3}


def test_a_text_becomes_numbers_of_characters():
    space = spaces.Text(4, charset=["a", "b", "c"])
    codes = {letter: space.character_index(letter) for letter in "abc"}
    seen = first(space, "ca")["observation"]
    assert seen.tolist() == [codes["c"], codes["a"], 3, 3]
    part = augmented(space, ["ca"]).observation_space["observation"]
    assert part == spaces.MultiDiscrete([4] * 4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", ["a?", "abcabcabc"])
def test_a_text_outside_its_space(mode, text):
    space = spaces.Text(4, charset="abc")
    with pytest.raises(
        rs.TraceError, match=r"the observation '.*' is not in Text\(1, 4,.*: correct"
    ):
        augmented(space, [text], mode).reset()


@pytest.mark.parametrize(
    ("space", "shown", "size", "seen"),
    [
        (spaces.Discrete(3, start=2), 4, 5, 4),
        (spaces.Discrete(3, start=-1), 1, 3, 2),
        (spaces.Discrete(3, start=-9), -9, 3, 0),
    ],
)
def test_numbers_are_shifted_only_if_some_are_below_0(space, shown, size, seen):
    assert first(space, shown) == {"observation": seen}
    assert augmented(space, [shown]).observation_space["observation"] == spaces.Discrete(size)


def test_rows_of_numbers():
    space = spaces.MultiDiscrete([[3, 4], [2, 5]], start=[[-1, 0], [7, 0]])
    seen = first(space, np.array([[1, 3], [8, 4]]))["observation"]
    assert seen.tolist() == [2, 3, 8, 4]
    part = augmented(space, [seen]).observation_space["observation"]
    assert part.nvec.tolist() == [3, 4, 9, 5]


def test_a_single_number_becomes_an_array():
    seen = first(spaces.Box(-1, 1, ()), np.array(0.5, np.float32))["observation"]
    assert (seen.tolist(), seen.dtype) == ([0.5], np.float32)


def test_arrays_stay_arrays():
    """Learners read images with convolutions."""
    image = np.arange(300, dtype=np.uint8).reshape(10, 10, 3)
    space = spaces.Dict(view=spaces.Dict(image=spaces.Box(0, 255, (10, 10, 3), np.uint8)))
    assert first(space, {"view": {"image": image}})["view/image"] is image


def test_duplicate_names_of_parts_are_refused():
    space = spaces.Dict({"a/b": spaces.Discrete(2), "a": spaces.Dict(b=spaces.Discrete(2))})
    with pytest.raises(rs.OptionError, match=r"two parts .* called 'a/b': rename one"):
        augmented(space, [])
    space = spaces.Dict({"reward_state": spaces.Text(3), "a": spaces.Discrete(2)})
    with pytest.raises(rs.OptionError, match=r"called 'reward_state'"):
        augmented(space, [])


def values_of(space, count=4):
    space.seed(3)
    return [space.sample() for _ in range(count)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("autoreset", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_batch_equals_single_observations(name, mode, autoreset):
    space = NAMES[name]
    values = values_of(space)

    def made(place):
        return Shows(space, values[place:] + values[:place])

    envs = gym.vector.SyncVectorEnv(
        [lambda place=place: made(place) for place in range(3)], autoreset_mode=autoreset
    )
    batches = rs.wrappers.VectorAugmentObservation(envs, machines_of_shows(), mode=mode)
    alone = [
        rs.AugmentObservation(made(place), machines_of_shows(), mode=mode) for place in range(3)
    ]
    shown = [env.reset()[0] for env in alone]
    batch, _ = batches.reset()
    for _ in range(4):
        assert batch in batches.observation_space
        for row, one in enumerate(shown):
            assert same(at(batch, row), one)
        batch, *_ = batches.step(np.zeros(3, int))
        shown = [env.step(0)[0] for env in alone]


def at(batch, row):
    return (
        {name: at(part, row) for name, part in batch.items()}
        if isinstance(batch, dict)
        else batch[row]
    )


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return np.array_equal(one, other) and np.shape(one) == np.shape(other)


@pytest.mark.parametrize("name", FREE)
def test_a_space_without_fixed_size_warns(name):
    space = NAMES[name]
    for mode in ("flatten", "multidiscrete", "discrete"):
        with pytest.raises(rs.OptionError, match=f'mode="{mode}" needs observations of a fixed'):
            augmented(space, [], mode)
    with pytest.warns(
        rs.errors.SpaceWarning, match="Stable-Baselines3 needs observations of a fixed"
    ) as said:
        wrapped = augmented(space, values_of(space))
    assert said[0].filename == __file__  # the line that creates the wrapper
    assert "\n" not in str(said[0].message)
    seen, _ = wrapped.reset()
    assert seen in wrapped.observation_space


def test_the_warning_names_the_part():
    space = spaces.Dict(items=spaces.Sequence(spaces.Discrete(3)), place=spaces.Discrete(2))
    with pytest.raises(rs.OptionError, match=r"the part 'items' is Sequence.*FilterObservation"):
        augmented(space, [], "flatten")


@pytest.mark.parametrize("mode", ["multidiscrete", "discrete"])
def test_a_long_space_is_shown_in_one_line(mode):
    for space in (spaces.MultiDiscrete([[3, 4], [2, 5]]), spaces.Text(5)):
        with pytest.raises(rs.OptionError) as caught:
            augmented(space, [], mode)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_plain_data(name):
    for part in parts_of(NAMES[name]):
        (shown,) = values_of(part.inner, 1)
        stored = pickle.loads(pickle.dumps(copy.deepcopy(part)))  # noqa: S301
        bare = type(part)((), part.inner, part.space, stored.convert)
        assert bare.of(shown) in part.space

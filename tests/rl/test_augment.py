"""The states of machines in observations of the house and of tiny environments."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import resolvent as rs
from resolvent.worlds import House
from silent_houses import HouseWithMethod

MODES = ["dict", "flatten", "multidiscrete", "discrete"]
UP, DOWN, LEFT, RIGHT, SIT = range(5)

# To the key, through the door to the toilet, and on to the sofa.
WAY = [LEFT, RIGHT, UP, DOWN, RIGHT, SIT]
STATES = [(0, 0, 0), (1, 1, 0), (0, 1, 0), (2, 1, 1), (0, 1, 1), (3, 1, 1), (3, 1, 1)]


@pytest.fixture(scope="module")
def pair():
    return rs.infer(rs.collect(House(), episodes=300, seed=0)).machines


def walked(env, actions=WAY):
    """Return the observations and infos of a walk, reset included."""
    observation, info = env.reset(seed=0)
    seen, told = [observation], [info]
    for action in actions:
        observation, _, _, _, info = env.step(action)
        seen.append(observation)
        told.append(info)
    return seen, told


# ---- modes -----------------------------------------------------------------


def test_dict(pair):
    env = rs.AugmentObservation(House(), pair)
    assert env.observation_space == spaces.Dict(
        {
            "observation": spaces.Discrete(4),
            "transition_state": spaces.Discrete(2),
            "reward_state": spaces.Discrete(2),
        }
    )
    assert walked(env)[0] == [
        {"observation": o, "transition_state": q, "reward_state": u} for o, q, u in STATES
    ]


def test_flatten(pair):
    env = rs.AugmentObservation(House(), pair, mode="flatten")
    assert env.observation_space == spaces.Box(0, 1, (8,), np.int64)
    hot = np.eye(4, dtype=np.int64)
    assert [row.tolist() for row in walked(env)[0]] == [
        [*hot[o], *hot[q][:2], *hot[u][:2]] for o, q, u in STATES
    ]


def test_multidiscrete(pair):
    env = rs.AugmentObservation(House(), pair, mode="multidiscrete")
    assert env.observation_space == spaces.MultiDiscrete([4, 2, 2])
    assert [tuple(row.tolist()) for row in walked(env)[0]] == STATES


def test_discrete(pair):
    env = rs.AugmentObservation(House(), pair, mode="discrete")
    assert env.observation_space == spaces.Discrete(16)
    seen = walked(env)[0]
    assert seen == [4 * o + 2 * q + u for o, q, u in STATES]
    assert [env.decode(number) for number in seen] == STATES
    assert len({env.decode(number) for number in range(16)}) == 16


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["House", "HouseInterference"])
def test_gymnasiums_checker(name, mode):
    bare = gym.make(f"resolvent/{name}-v0").unwrapped
    machines = rs.infer(rs.collect(bare, episodes=300, seed=0)).machines
    check_env(rs.AugmentObservation(bare, machines, mode=mode), skip_render_check=True)


@pytest.mark.parametrize("mode", MODES)
def test_every_observation_is_in_the_space(pair, mode):
    env = rs.AugmentObservation(House(), pair, mode=mode)
    env.action_space.seed(0)
    for _ in range(20):
        observation, _ = env.reset()
        ended = False
        while not ended:
            assert observation in env.observation_space
            observation, _, ended, _, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space


# ---- other observations ----------------------------------------------------


class Told(gym.Env[Any, Any]):
    """Shows given observations one after the other; all steps have the label "key"."""

    def __init__(self, space: gym.Space[Any], shown: list[Any]) -> None:
        self.observation_space = space
        self.action_space = spaces.Discrete(2)
        self.shown = shown

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.options = 0, options
        return self.shown[0], {"labels": set()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        last = self.at == len(self.shown) - 1
        return self.shown[self.at], 0.0, False, last, {"labels": {"key"}}


def machines_for():
    """Return machines with two reward states: "key" decides the last reward."""
    traces = rs.TraceSet(
        [
            rs.Trace([0, 0, 0], [None, label, None], [0, 0], [0, pay])
            for label, pay in ((None, 0), ("key", 1))
        ]
    )
    return rs.infer(traces).machines


def augmented(space, shown, mode):
    env = Told(space, shown)
    pair = machines_for()
    assert (pair.transition.states, pair.reward.states) == (1, 2)
    wrapped = rs.AugmentObservation(env, pair, mode=mode)
    seen, _ = walked(wrapped, [0] * (len(shown) - 1))
    assert all(one in wrapped.observation_space for one in seen)
    return wrapped, seen


def test_discrete_observations_with_another_start():
    space = spaces.Discrete(3, start=-1)
    wrapped, seen = augmented(space, [-1, 0, 1], "discrete")
    assert (wrapped.observation_space, seen) == (spaces.Discrete(6), [0, 3, 5])
    assert [wrapped.decode(number) for number in seen] == [(-1, 0, 0), (0, 0, 1), (1, 0, 1)]
    wrapped, seen = augmented(space, [-1, 0, 1], "multidiscrete")
    assert wrapped.observation_space == spaces.MultiDiscrete([3, 1, 2])
    assert [row.tolist() for row in seen] == [[0, 0, 0], [1, 0, 1], [2, 0, 1]]
    _, seen = augmented(space, [-1, np.int64(0), 1], "flatten")
    assert [row.tolist() for row in seen] == [
        [1, 0, 0, 1, 1, 0],
        [0, 1, 0, 1, 0, 1],
        [0, 0, 1, 1, 0, 1],
    ]
    wrapped, seen = augmented(space, [-1, 0, 1], "dict")
    assert wrapped.observation_space["observation"] == spaces.Discrete(3)
    assert [one["observation"] for one in seen] == [0, 1, 2]


@pytest.mark.parametrize("width", [1, 2])
def test_a_multidiscrete_row_gets_two_more_numbers(width):
    space = spaces.MultiDiscrete([5] * width, start=[2] * width)
    shown = [np.full(width, 2), np.full(width, 6)]
    wrapped, seen = augmented(space, shown, "multidiscrete")
    assert wrapped.observation_space == spaces.MultiDiscrete([*[5] * width, 1, 2])
    assert [row.tolist() for row in seen] == [[*[0] * width, 0, 0], [*[4] * width, 0, 1]]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8])
def test_arrays_are_flattened_and_keep_their_dtype(kind):
    space = spaces.Box(0, 9, (2, 2), kind)
    shown = [np.zeros((2, 2), kind), np.array([[1, 2], [3, 9]], kind)]
    wrapped, seen = augmented(space, shown, "flatten")
    assert wrapped.observation_space == spaces.Box(
        np.zeros(7, kind), np.array([9, 9, 9, 9, 1, 1, 1], kind), dtype=kind
    )
    assert [row.tolist() for row in seen] == [[0, 0, 0, 0, 1, 1, 0], [1, 2, 3, 9, 1, 0, 1]]
    assert all(row.dtype == kind for row in seen)


def test_a_dict_gets_two_more_keys_or_is_flattened():
    space = spaces.Dict({"place": spaces.Discrete(3), "light": spaces.MultiBinary(2)})
    shown = [{"place": 1, "light": np.array([0, 1], np.int8)}] * 2
    wrapped, seen = augmented(space, shown, "dict")
    assert set(wrapped.observation_space.spaces) == {
        "place",
        "light",
        "transition_state",
        "reward_state",
    }
    assert seen[1] == {**shown[1], "transition_state": 0, "reward_state": 1}
    assert "reward_state" not in shown[1]
    _, seen = augmented(space, shown, "flatten")
    assert seen[1].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


def test_a_duplicate_key_is_refused():
    space = spaces.Dict({"reward_state": spaces.Discrete(3)})
    with pytest.raises(rs.OptionError, match=r"called 'reward_state': .*mode=\"flatten\""):
        augmented(space, [], "dict")


@pytest.mark.parametrize(
    ("space", "mode", "instead"),
    [
        (spaces.Box(0, 1, (2,)), "discrete", 'mode="flatten" for arrays'),
        (spaces.Box(0, 1, (2,)), "multidiscrete", 'use mode="dict" or mode="flatten"'),
        (spaces.MultiDiscrete([2, 2]), "discrete", 'use mode="multidiscrete" for a row'),
        (spaces.MultiDiscrete([[2, 2]]), "multidiscrete", 'use mode="dict" or mode="flatten"'),
        (spaces.Sequence(spaces.Discrete(2)), "flatten", 'use mode="dict"'),
        (
            spaces.Discrete(2),
            "tuple",
            "give 'dict', 'flatten', 'multidiscrete', 'discrete' or 'belief'",
        ),
    ],
)
def test_an_unsuitable_mode_names_a_suitable_one(space, mode, instead):
    with pytest.raises(rs.OptionError, match=instead):
        augmented(space, [], mode)


def test_only_discrete_observations_need_decoding(pair):
    with pytest.raises(rs.OptionError, match=r'only observations of mode="discrete"'):
        rs.AugmentObservation(House(), pair, mode="flatten").decode(0)


# ---- infos, labels, unseen -------------------------------------------------


def test_infos_have_the_states(pair):
    _, told = walked(rs.AugmentObservation(House(), pair, mode="discrete"))
    assert [(info["transition_state"], info["reward_state"]) for info in told] == [
        (q, u) for _, q, u in STATES
    ]
    assert {info["unseen"] for info in told} == {0}
    assert told[1]["labels"] == {"key"}


def test_seed_and_options_are_passed_on(pair):
    env = Told(spaces.Discrete(1), [0])
    wrapped = rs.AugmentObservation(env, machines_for())
    wrapped.reset(seed=5, options={"start": "here"})
    assert env.options == {"start": "here"}
    assert env.np_random_seed == 5


def test_an_unseen_label_stays_and_is_counted_until_the_reset(pair):
    def labeling_fn(room):
        return {0: "draught", 1: "key"}.get(room)

    env = rs.AugmentObservation(House(), pair, labeling_fn=labeling_fn)
    _, told = walked(env, [LEFT, RIGHT, LEFT, RIGHT])
    assert [info["unseen"] for info in told] == [0, 0, 1, 1, 2]
    assert [info["transition_state"] for info in told] == [0, 1, 1, 1, 1]
    assert env.reset()[1]["unseen"] == 0


def test_an_unseen_label_raises_on_request(pair):
    env = rs.AugmentObservation(
        House(), pair, on_unseen="raise", labeling_fn=lambda room: "draught"
    )
    env.reset()
    with pytest.raises(rs.errors.ModelError, match="label 'draught' was never seen at all"):
        env.step(UP)


def test_an_unseen_label_at_the_end_does_not_raise():
    """Entering the cyanroom ends the episode, so the machines never read "toilet"."""
    house = House(goal="cyanroom")
    pair = rs.infer(rs.collect(house, episodes=300, seed=0)).machines
    assert pair.transition.step(1, {"toilet"}) is rs.UNSEEN
    env = rs.AugmentObservation(house, pair, on_unseen="raise")
    _, told = walked(env, [LEFT, RIGHT, UP])
    assert told[-1]["unseen"] == 0


def test_labels_of_steps(pair):
    def labeling_fn(room, action, following):
        return "key" if (room, action, following) == (0, LEFT, 1) else None

    _, told = walked(
        rs.AugmentObservation(House(), pair, labeling_fn=labeling_fn), [LEFT, LEFT, RIGHT]
    )
    assert [info["transition_state"] for info in told] == [0, 1, 1, 1]


def test_labels_from_a_method_of_the_environment(pair):
    env = gym.wrappers.TimeLimit(HouseWithMethod(), 10)
    wrapped = rs.AugmentObservation(env, pair, mode="multidiscrete")
    assert [tuple(row.tolist()) for row in walked(wrapped)[0]] == STATES


def test_an_error_of_a_labeling_function_shows_its_call(pair):
    env = rs.AugmentObservation(House(), pair, labeling_fn={0: None, 1: None}.__getitem__)
    env.reset()
    with pytest.raises(rs.TraceError, match=r"^labeling_fn\(3\) raised KeyError: 3$") as raised:
        env.step(RIGHT)
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(rs.OptionError, match="labeling_fn is a dict: give a function of"):
        rs.AugmentObservation(House(), pair, labeling_fn={})  # type: ignore[arg-type]


# ---- machines of other environments ----------------------------------------


def learned(observations, actions):
    """Return machines inferred from one walk with these symbols."""
    trace = rs.Trace(observations, [None] * len(observations), actions, [0] * len(actions))
    return rs.infer(rs.TraceSet([trace]))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (learned(["corridor", "corridor"], ["jump"]), r"know the action 'jump', which .* 'up', "),
        (learned(["corridor"] * 3, ["up", "jump"]), "know the action 'jump'"),
        (learned([0, 0], [1]), r"know the action 1, which the environment lacks \(it has 'up'"),
        (
            learned(["attic", "cellar"], ["up"]),
            r"none of the environment's observations \(they know 'attic', 'cellar'; it has "
            r"'corridor', 'orangeroom', 'cyanroom', …\): they were inferred in another environment",
        ),
    ],
)
def test_machines_of_another_environment_are_refused(result, message):
    with pytest.raises(rs.errors.ModelError, match=message):
        rs.AugmentObservation(House(), result.machines)


def test_numbers_are_compared_without_names():
    def refused(space, observations, actions):
        with pytest.raises(rs.errors.ModelError) as raised:
            rs.AugmentObservation(Told(space, []), learned(observations, actions))
        return str(raised.value)

    assert "know the action 2, which" in refused(spaces.Discrete(3), [0, 0], [2])
    assert "(they know 3; it has 0, 1, 2)" in refused(spaces.Discrete(3), [3, 3], [0])
    assert "it has 4, 5, 6" in refused(spaces.Discrete(3, start=4), [0, 3], [0])


def test_machines_of_a_part_or_a_larger_world_are_accepted():
    rs.AugmentObservation(House(), learned(["corridor", "corridor"], ["up"]))
    rs.AugmentObservation(House(), learned(["corridor", "attic"], ["up"]))
    rs.AugmentObservation(Told(spaces.Box(0, 1, (2,)), []), learned([(5, 5), (6, 6)], [0]))


def test_names_do_not_apply_to_arrays():
    flat = gym.wrappers.FlattenObservation(House())
    pair = rs.infer(rs.collect(flat, episodes=300, seed=0)).machines
    wrapped = rs.AugmentObservation(flat, pair, mode="flatten")
    assert walked(wrapped)[0][3].tolist() == [0, 0, 1, 0, 0, 1, 0, 1]


def test_other_objects_are_no_machines():
    with pytest.raises(rs.ResolventError, match="a list is not a set of machines: pass machines"):
        rs.AugmentObservation(House(), [])  # type: ignore[arg-type]


# ---- specs -----------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, Path])
def test_a_spec_with_a_path_survives_json(pair, tmp_path, kind):
    path = tmp_path / "house.json"
    pair.save(path)
    env = rs.AugmentObservation(
        gym.make("resolvent/House-v0"), kind(path), mode="discrete", on_unseen="raise"
    )
    text = env.spec.to_json()
    assert json.loads(text)["additional_wrappers"][0]["kwargs"] == {
        "machines": str(path),
        "mode": "discrete",
        "on_unseen": "raise",
        "labels": None,
        "labeling_fn": None,
        "observation_fn": None,
        "knowledge": None,
    }
    again = gym.make(gym.envs.registration.EnvSpec.from_json(text))
    assert again.spec == env.spec
    assert again.observation_space == spaces.Discrete(16)
    assert walked(again)[0] == walked(env)[0]


def test_a_spec_with_machines_works_in_this_process_only(pair):
    result = rs.infer(rs.collect(House(), episodes=300, seed=0))
    for machines in (pair, result):
        env = rs.AugmentObservation(gym.make("resolvent/House-v0"), machines, mode="discrete")
        assert walked(gym.make(env.spec))[0] == walked(env)[0]
        with pytest.raises(TypeError):
            env.spec.to_json()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(rs.errors.ModelError, match=r"nowhere\.json"):
        rs.AugmentObservation(House(), tmp_path / "nowhere.json")


def test_traces_of_a_wrapped_environment_hold_augmented_observations(pair):
    env = rs.AugmentObservation(House(), pair, mode="discrete")
    plan = iter(WAY)
    (trace,) = rs.collect(env, episodes=1, policy=lambda observation: next(plan))
    assert trace.observations == tuple(4 * o + 2 * q + u for o, q, u in STATES)
    assert trace.actions[0] == "left"

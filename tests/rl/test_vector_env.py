"""Collecting from vector environments, compared with the logs of their members."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from resolvent.errors import OptionError, TraceError
from resolvent.rl.collect import collect
from resolvent.rl.vector_env import info_of
from resolvent.traces.trace import Trace
from resolvent.worlds import House
from silent_houses import HouseWithMethod, SilentHouse

COUNT = 3

autoresets = pytest.mark.parametrize("autoreset", AutoresetMode, ids=lambda mode: mode.value)


class Noted(House):
    """A house that logs each episode, truncated ones as well."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self.limit = limit
        self.episodes: list[dict[str, list[Any]]] = []

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        room, info = super().reset(**options)
        first = {"seen": [room], "labels": [info["labels"]], "done": [], "paid": [], "end": [0, 0]}
        self.episodes.append(first)
        return room, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        room, reward, terminated, _, info = super().step(action)
        note = self.episodes[-1]
        note["seen"].append(room)
        note["labels"].append(info["labels"])
        note["done"].append(int(action))
        note["paid"].append(reward)
        truncated = len(note["done"]) == self.limit and not terminated
        note["end"] = [terminated, truncated]
        return room, reward, terminated, truncated, info


def noted(envs, number, episode, cut=None):
    note = envs.envs[number].episodes[episode]
    terminated, truncated = note["end"]
    truncated = truncated or (len(note["done"]) == cut and not terminated)
    return Trace(
        [House.observation_names[room] for room in note["seen"]],
        note["labels"],
        [House.action_names[action] for action in note["done"]],
        note["paid"],
        terminated,
        truncated,
    )


def noted_houses(autoreset, limits=(None, 12, 5), **options):
    return gym.vector.SyncVectorEnv(
        [lambda limit=limit: Noted(limit) for limit in limits], autoreset_mode=autoreset, **options
    )


@autoresets
@pytest.mark.parametrize("episodes", [1, 2, 3, 20])
@pytest.mark.parametrize("copy", [True, False])
def test_traces_alternate_between_environments(autoreset, episodes, copy):
    envs = noted_houses(autoreset, copy=copy)
    traces = collect(envs, episodes=episodes, seed=1)
    assert list(traces) == [noted(envs, k % COUNT, k // COUNT) for k in range(episodes)]


@autoresets
def test_short_episodes_are_not_favored(autoreset):
    envs = noted_houses(autoreset, limits=(1, 40))
    traces = collect(envs, episodes=10, seed=0, policy=lambda rooms: np.zeros(2, int))
    assert [len(trace) for trace in traces] == [1, 40] * 5


@autoresets
def test_max_steps_truncates_and_resets(autoreset):
    envs = noted_houses(autoreset, limits=(None, 3, 9))
    traces = collect(envs, episodes=30, seed=0, max_steps=6)
    assert list(traces) == [noted(envs, k % COUNT, k // COUNT, cut=6) for k in range(30)]
    assert max(map(len, traces)) == 6
    assert {len(trace) for trace in traces[1::3]} <= {1, 2, 3}


@autoresets
def test_a_policy_maps_batches(autoreset):
    plan = {"corridor": "left", "orangeroom": "right", "cyanroom": "down", "limegreenroom": "sit"}
    codes = [House.action_names.index(plan[room]) for room in House.observation_names]
    batches: list[Any] = []

    def policy(rooms):
        batches.append(rooms)
        return [codes[room] for room in rooms]

    one = collect(House(), episodes=1, policy=lambda room: codes[room], max_steps=20)[0]
    for trace in collect(noted_houses(autoreset), episodes=4, policy=policy, max_steps=4):
        assert trace.actions == one.actions[:4]
        assert trace.observations == one.observations[:5]
    assert {batch.shape for batch in batches} == {(COUNT,)}


def test_the_same_seed_gives_the_same_vector_traces():
    first = collect(noted_houses("NextStep"), episodes=20, seed=7)
    assert collect(noted_houses("NextStep"), episodes=20, seed=7) == first
    assert collect(noted_houses("NextStep"), episodes=20, seed=8) != first


def test_seeds_reach_the_environments():
    envs, untouched = noted_houses("NextStep"), noted_houses("NextStep")
    for one in (envs, untouched):
        one.action_space.seed(3)
    collect(envs, episodes=5, seed=11)
    assert [env.np_random_seed for env in envs.envs] == [11, 12, 13]
    assert envs.action_space.sample().tolist() == untouched.action_space.sample().tolist()


@autoresets
def test_environments_in_other_processes(autoreset):
    fns = [lambda limit=limit: gym.wrappers.TimeLimit(House(), limit) for limit in (12, 5)]
    here = gym.vector.SyncVectorEnv(fns, autoreset_mode=autoreset)
    there = gym.vector.AsyncVectorEnv(fns, autoreset_mode=autoreset, context="spawn")
    try:
        traces = collect(there, episodes=9, seed=4, max_steps=8)
    finally:
        there.close()
    assert traces == collect(here, episodes=9, seed=4, max_steps=8)
    assert traces[0].observations[0] == "corridor"


def test_progress_is_reported_for_every_episode():
    shares: list[float] = []
    collect(noted_houses("NextStep"), episodes=4, seed=0, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]


# ---- labels ----------------------------------------------------------------


@autoresets
@pytest.mark.parametrize(
    "labeling_fn",
    [
        lambda room: {f"in {room}"},
        lambda room, action, following: f"{room} {action} {following}",
    ],
)
def test_labels_by_a_function(autoreset, labeling_fn):
    envs = noted_houses(autoreset, copy=False)
    for k, trace in enumerate(collect(envs, episodes=12, seed=0, labeling_fn=labeling_fn)):
        note = envs.envs[k % COUNT].episodes[k // COUNT]
        seen, done = note["seen"], note["done"]
        if labeling_fn.__code__.co_argcount == 1:
            expected = [{f"in {room}"} for room in seen]
        else:
            steps = zip(seen[:-1], done, seen[1:], strict=True)
            expected = [set(), *({" ".join(map(str, step))} for step in steps)]
        assert list(map(set, trace.labels)) == expected


@pytest.mark.parametrize("autoreset", ["NextStep", "Disabled"])
def test_labels_from_methods_of_the_environments(autoreset):
    traces = [
        collect(gym.vector.SyncVectorEnv([made] * 2, autoreset_mode=autoreset), episodes=6, seed=0)
        for made in (HouseWithMethod, House)
    ]
    assert traces[0] == traces[1]


def test_a_method_cannot_give_the_last_label_with_same_step_resets():
    envs = gym.vector.SyncVectorEnv([HouseWithMethod] * 2, autoreset_mode="SameStep")
    with pytest.raises(TraceError, match=r"get_events\(\) cannot report .* or use another auto"):
        collect(envs, episodes=2, seed=0)


@pytest.mark.parametrize(("key", "value"), [("label", "a"), ("events", ["a"]), ("labels", 7)])
def test_labels_from_batched_infos(key, value):
    class Late(House):
        def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
            return super().reset(**options)[0], {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            *rest, _ = super().step(action)
            return *rest, {key: value}

    for autoreset in AutoresetMode:
        envs = gym.vector.SyncVectorEnv([Late] * 2, autoreset_mode=autoreset)
        for trace in collect(envs, episodes=4, seed=0, max_steps=5):
            told = {"7"} if value == 7 else {"a"}
            assert list(map(set, trace.labels)) == [set(), *[told] * len(trace)]


def test_missing_labels_are_located():
    envs = gym.vector.SyncVectorEnv([SilentHouse] * 2)
    with pytest.raises(
        TraceError, match=r"^episode 0 \(environment 0\): step 0: the environment gives no label"
    ):
        collect(envs, episodes=4)


def root(error):
    return error if error.__cause__ is None else root(error.__cause__)


def test_an_error_of_a_labeling_function_is_located():
    def labeling_fn(room):
        return {0: None, 1: "key"}[int(room)]

    envs = noted_houses("NextStep", limits=(None, 2))

    def policy(rooms):
        """Go right, where the function fails, in the second episode of the second house."""
        played = envs.envs[1].episodes
        return np.array([2, 3 if len(played) == 2 and not played[-1]["done"] else 0])

    with pytest.raises(
        TraceError,
        match=r"^episode 3 \(environment 1\): step 0: labeling_fn\(3\) raised KeyError: 3",
    ) as raised:
        collect(envs, episodes=10, policy=policy, labeling_fn=labeling_fn)
    assert isinstance(root(raised.value), KeyError)


@pytest.mark.parametrize("vector", [False, True])
def test_a_label_of_a_wrong_type_is_located(vector):
    env = noted_houses("NextStep") if vector else House()
    where = r"episode 0 \(environment 0\): reset" if vector else "episode 0: reset"
    with pytest.raises(
        TraceError, match=rf"^{where}: labeling_fn\(.*0\)* gave 0.5: 0.5 cannot be a proposition"
    ):
        collect(env, episodes=1, labeling_fn=lambda room: 0.5)


def test_an_error_of_a_labeling_function_in_one_environment():
    with pytest.raises(
        TraceError, match=r"^episode 0: reset: labeling_fn\(0\) raised Zero"
    ) as raised:
        collect(House(), episodes=1, labeling_fn=lambda room: 1 // room)
    assert isinstance(root(raised.value), ZeroDivisionError)


# ---- errors ----------------------------------------------------------------


def test_a_reward_that_is_not_finite_is_located():
    class Poor(House):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            room, _, *rest = super().step(action)
            return room, float("nan"), *rest

    with pytest.raises(
        TraceError, match=r"^episode 0 \(environment 0\): step 0: the reward is nan"
    ):
        collect(gym.vector.SyncVectorEnv([Poor] * 2), episodes=2)


class Native(gym.vector.VectorEnv):
    """Two counters to 3, without single environments."""

    observation_names = ("zero", "one", "two", "three")

    def __init__(self, autoreset=AutoresetMode.NEXT_STEP, final=True):
        self.num_envs = 2
        self.metadata = {"autoreset_mode": autoreset}
        self.final = final
        self.single_observation_space = spaces.Discrete(4)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = spaces.MultiDiscrete([4, 4])
        self.action_space = spaces.MultiDiscrete([2, 2])

    def told(self, counts):
        return {"labels": [{f"at {count}"} for count in counts]}

    def reset(self, *, seed=None, options=None):
        self.counts = np.zeros(2, int)
        return self.counts, self.told(self.counts)

    def step(self, actions):
        if self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP:
            fresh = self.counts == 3
            self.counts = np.where(fresh, 0, self.counts + actions)
            ended, infos = self.counts == 3, {}
        else:
            counts = self.counts + actions
            ended = counts == 3
            infos = {"final_obs": counts, "final_info": self.told(counts)} if self.final else {}
            self.counts = np.where(ended, 0, counts)
        return (
            self.counts,
            ended * 1.0,
            ended,
            ~np.ones(2, bool),
            {
                **infos,
                **self.told(self.counts),
            },
        )


@pytest.mark.parametrize("autoreset", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_native_vector_environments(autoreset):
    traces = collect(Native(autoreset), episodes=5, seed=0)
    for trace in traces:
        assert (trace.observations[0], trace.observations[-1]) == ("zero", "three")
        numbers = list(map(Native.observation_names.index, trace.observations))
        assert np.diff(numbers).tolist() == list(trace.actions)
        assert list(map(set, trace.labels)) == [{f"at {number}"} for number in numbers]
        assert trace.rewards == (*[0.0] * (len(trace) - 1), 1.0)


@autoresets
@pytest.mark.parametrize("name", ["House", "PhaseGrid3", "OfficeCoffee", "TMaze"])
def test_vector_traces_of_built_in_worlds_fit_their_machines(name, autoreset):
    envs = gym.make_vec(f"resolvent/{name}-v0", num_envs=5, autoreset_mode=autoreset)
    assert not isinstance(envs, gym.vector.SyncVectorEnv)
    traces = collect(envs, episodes=23, seed=0, max_steps=30)
    assert len(traces) == 23
    assert max(map(len, traces)) <= 30
    assert gym.make(f"resolvent/{name}-v0").unwrapped.machines().score(traces).perfect


def test_requirements_for_native_vector_environments():
    with pytest.raises(
        OptionError, match="max_steps cannot truncate episodes of Native, which may"
    ):
        collect(Native(), episodes=1, max_steps=5)
    with pytest.raises(TraceError, match=r'gives no infos\["final_obs"\]: use another autoreset'):
        collect(
            Native(AutoresetMode.SAME_STEP, final=False), episodes=5, labeling_fn=lambda o: None
        )


class Priced(Noted):
    """A house with costs of steps, and other values at resets."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        room, info = super().reset(**options)
        return room, {**info, "cost": 99, "about": {"word": "reset"}}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        room, reward, terminated, truncated, info = super().step(action)
        told = {"cost": int(action), "about": {"word": House.action_names[int(action)]}}
        return room, reward, terminated, truncated, {**info, **told}


@autoresets
def test_columns_of_each_environment(autoreset):
    envs = gym.vector.SyncVectorEnv(
        [lambda limit=limit: Priced(limit) for limit in (None, 12, 5)], autoreset_mode=autoreset
    )
    traces = collect(envs, episodes=20, seed=0, columns=["cost", "about"])
    assert len(traces) == 20
    for trace in traces:
        assert [House.action_names[cost] for cost in trace.columns["cost"]] == list(trace.actions)
        assert trace.columns["about"] == tuple((("word", action),) for action in trace.actions)


@autoresets
def test_a_missing_column_is_located(autoreset):
    envs = gym.vector.SyncVectorEnv([Priced, Noted], autoreset_mode=autoreset)
    message = r'^episode 1 \(environment 1\): step 0: the environment gives no info\["cost"\]'
    with pytest.raises(TraceError, match=message):
        collect(envs, episodes=4, seed=0, columns=["cost"])


def test_infos_of_one_environment():
    infos = {"cost": np.array([3, 0]), "_cost": np.array([True, False]), "at": [5, 6], "n": 2}
    assert info_of(0, infos) == {"cost": 3, "at": 5}
    assert info_of(1, infos) == {"at": 6}

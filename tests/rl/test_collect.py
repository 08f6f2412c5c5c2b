"""Collecting traces from the house and from tiny environments."""

import enum
import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from resolvent._util.parallel import Processes, Threads
from resolvent.errors import OptionError, TraceError
from resolvent.rl.collect import EPISODES, collect, seed_of_shard
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.worlds import House, TMaze
from shuffled_workers import ShuffledWorkers


class Corridor(gym.Env[Any, Any]):
    """Cells 0 to 3; action 1 walks on, action 0 stays; the last cell has reward 1 and ends."""

    def __init__(self, reward: Any = 1.0) -> None:
        self.observation_space = spaces.Discrete(4)
        self.action_space = spaces.Discrete(2)
        self.reward = reward
        self.cell = 0

    def told(self) -> dict[str, Any]:
        return {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, self.told()

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.cell += int(action)
        done = self.cell == 3
        return self.cell, self.reward if done else 0.0, done, False, self.told()


class Told(Corridor):
    """Reports in `info`, under the first key, whether the cell is odd."""

    def __init__(self, *keys: str) -> None:
        super().__init__()
        self.keys = keys

    def told(self) -> dict[str, Any]:
        odd = {"odd"} if self.cell % 2 else set()
        return {key: odd if key == self.keys[0] else {"wrong"} for key in self.keys}


class Event(enum.Enum):
    ODD = 1


class Asked(Corridor):
    def get_events(self) -> set[Event]:
        return {Event.ODD} if self.cell % 2 else set()


class AskedByAnotherName(Corridor):
    def labels(self) -> list[str]:
        return ["odd"] if self.cell % 2 else []


def walk_on(observation: Any) -> int:
    return 1


def walk(env: gym.Env[Any, Any], **options: Any) -> tuple[Label, ...]:
    return collect(env, episodes=1, policy=walk_on, **options)[0].labels


def label(*propositions: str) -> Label:
    return frozenset(propositions)


ODD = (label(), label("odd"), label(), label("odd"))


def test_a_house_by_hand() -> None:
    plan = iter(["left", "right", "up", "down", "right", "sit"])
    traces = collect(
        House(), episodes=1, policy=lambda observation: House.action_names.index(next(plan))
    )
    (trace,) = traces
    assert trace.observations == (
        "corridor",
        "orangeroom",
        "corridor",
        "cyanroom",
        "corridor",
        "limegreenroom",
        "limegreenroom",
    )
    assert trace.labels == (
        label(),
        label("key"),
        label(),
        label("toilet"),
        label(),
        label("sofa"),
        label("sofa"),
    )
    assert trace.actions == ("left", "right", "up", "down", "right", "sit")
    assert trace.rewards == (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert (trace.terminated, trace.truncated) == (True, False)


@pytest.mark.parametrize("key", ["labels", "label", "events"])
def test_labels_from_info(key: str) -> None:
    assert walk(Told(key)) == ODD


def test_labels_come_before_label_before_events_before_methods() -> None:
    assert walk(Told("labels", "label", "events")) == ODD
    assert walk(Told("label", "events")) == ODD

    class Both(Told):
        def get_events(self) -> set[str]:
            return {"wrong"}

    assert walk(Both("events")) == ODD


def test_labels_from_methods_also_through_wrappers() -> None:
    assert walk(Asked()) == (label(), label("ODD"), label(), label("ODD"))
    assert walk(gym.wrappers.TimeLimit(AskedByAnotherName(), 10)) == ODD


def test_an_attribute_that_is_not_a_method_gives_no_labels() -> None:
    env = Corridor()
    env.labels = ["odd"]  # type: ignore[attr-defined]
    with pytest.raises(TraceError, match="gives no label"):
        walk(env)


def test_a_function_of_the_observation_precedes_reported_labels() -> None:
    found = walk(Told("labels"), labeling_fn=lambda cell: {f"cell {cell}"})
    assert found == (label("cell 0"), label("cell 1"), label("cell 2"), label("cell 3"))


def test_a_function_of_the_step_has_no_event_at_reset() -> None:
    found = walk(Told("labels"), labeling_fn=lambda o, a, following: f"{o}-{a}-{following}")
    assert found == (label(), label("0-1-1"), label("1-1-2"), label("2-1-3"))


def test_parameters_with_defaults_do_not_count() -> None:
    found = walk(
        Corridor(),
        labeling_fn=lambda cell, first=1, last=3: {"end"} if cell in (first, last) else None,
    )
    assert found == (label(), label("end"), label(), label("end"))


def test_a_labeling_function_with_two_parameters_is_refused() -> None:
    with pytest.raises(OptionError, match=r"labeling_fn has 2 parameters: give it \(observation\)"):
        walk(Corridor(), labeling_fn=lambda observation, action: None)


def test_a_labeling_function_gets_the_raw_observation() -> None:
    seen: list[Any] = []
    collect(House(), episodes=1, seed=0, max_steps=1, labeling_fn=lambda o: seen.append(o))
    assert seen[0] == 0


def test_without_labels_the_error_says_how_to_supply_them() -> None:
    with pytest.raises(
        TraceError,
        match=r'^episode 0: step 0: .*pass labels="auto".*labeling_fn=.*info\["labels"\]',
    ):
        walk(Corridor())


def test_a_reset_may_lack_a_label_and_a_step_may_not() -> None:
    class Late(Told):
        def told(self) -> dict[str, Any]:
            return {} if self.cell == 0 else super().told()

    assert walk(Late("labels")) == ODD
    with pytest.raises(TraceError, match="episode 0: step 0: the environment gives no label"):
        collect(Late("labels"), episodes=1, policy=lambda observation: 0)


def test_an_invalid_label_is_located() -> None:
    with pytest.raises(TraceError, match=r"episode 0: step 1: .*0\.5 cannot be a proposition"):
        walk(Corridor(), labeling_fn=lambda cell: [0.5] if cell == 2 else None)


def test_without_names_integers_stay_and_arrays_become_tuples() -> None:
    class Pairs(Told):
        def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            cell, *rest = super().step(action)
            return np.array([cell, -cell]), *rest

        def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
            cell, info = super().reset(**options)
            return np.array([cell, -cell]), info

    trace = collect(Pairs("labels"), episodes=1, policy=lambda pair: np.int64(1))[0]
    assert trace.observations == ((0, 0), (1, -1), (2, -2), (3, -3))
    assert trace.actions == (1, 1, 1)


def test_names_are_found_through_wrappers_and_must_cover_all_numbers() -> None:
    env = Told("labels")
    env.observation_names = ("a", "b", "c")  # type: ignore[attr-defined]
    assert walk(gym.wrappers.TimeLimit(env, 2)) == ODD[:3]
    with pytest.raises(TraceError, match="episode 0: step 2: observation 3 has no name"):
        walk(env)


def test_the_same_seed_gives_the_same_traces() -> None:
    first = collect(House(), episodes=50, seed=7)
    assert collect(House(), episodes=50, seed=7) == first
    assert collect(House(), episodes=50, seed=8) != first
    assert len({trace.actions for trace in first}) > 1


def test_the_seed_reaches_the_first_reset_only() -> None:
    seeds: list[int | None] = []

    class Seeded(Told):
        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            seeds.append(seed)
            return super().reset(seed=seed)

    collect(Seeded("labels"), episodes=3, seed=5)
    assert seeds == [5, None, None]


def test_the_action_space_of_the_environment_is_not_used() -> None:
    touched, untouched = House(), House()
    touched.action_space.seed(3)
    untouched.action_space.seed(3)
    collect(touched, episodes=5, seed=0)
    draws = [[env.action_space.sample() for _ in range(20)] for env in (touched, untouched)]
    assert draws[0] == draws[1]


def test_random_actions_include_all_actions() -> None:
    assert set(collect(House(), episodes=50, seed=0).actions) == set(House.action_names)


def test_max_steps_truncates_unless_the_episode_ends_there() -> None:
    def ends(max_steps: int) -> tuple[int, bool, bool]:
        trace = collect(Told("labels"), episodes=1, policy=walk_on, max_steps=max_steps)[0]
        return len(trace), trace.terminated, trace.truncated

    assert ends(2) == (2, False, True)
    assert ends(3) == (3, True, False)
    assert ends(4) == (3, True, False)


def test_truncation_by_the_environment_is_kept() -> None:
    trace = collect(
        gym.wrappers.TimeLimit(Told("labels"), 5), episodes=1, policy=lambda observation: 0
    )[0]
    assert (len(trace), trace.terminated, trace.truncated) == (5, False, True)


def test_each_trace_has_its_own_steps() -> None:
    traces = collect(House(), episodes=30, seed=1)
    assert isinstance(traces, TraceSet)
    assert len(traces) == 30
    for trace in traces:
        assert trace.observations[0] == "corridor"
        assert trace.observations[-1] == "limegreenroom"
        assert trace.actions[-1] == "sit"
        assert trace.terminated


def test_progress_ends_at_one() -> None:
    stepped: list[float] = []
    collect(House(), episodes=4, policy=lambda room: 4 if room == 3 else 3, progress=stepped.append)
    assert stepped == [0.25, 0.5, 0.75, 1.0]
    rolled: list[float] = []  # less often for tabular environments
    collect(House(), episodes=1_000, seed=0, progress=rolled.append)
    assert rolled == sorted(rolled)
    assert len(rolled) > 1
    assert rolled[-1] == 1.0


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), np.float32("-inf")])
def test_a_reward_that_is_not_finite_is_located(reward: Any) -> None:
    with pytest.raises(TraceError, match=r"episode 0: step 2: the reward is .*finite"):
        walk(Corridor(reward), labeling_fn=lambda cell: None)


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(TraceError, match="step 2: the reward is None; rewards must be numbers"):
        walk(Corridor(None), labeling_fn=lambda cell: None)


def test_a_column_of_two_types_is_refused() -> None:
    env = Corridor()
    with pytest.raises(TraceError, match="episode 0: actions: step 1: 'on' is a str"):
        collect(
            gym.wrappers.TransformAction(env, lambda action: 1, None),
            episodes=1,
            policy=lambda cell: 1 if cell == 0 else "on",
            labeling_fn=lambda cell: None,
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes=0: use at least 1"),
        ({"episodes": -3}, "episodes=-3"),
        ({"episodes": 1, "max_steps": 0}, "max_steps=0"),
    ],
)
def test_invalid_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        collect(House(), **options)


def test_a_name_or_a_function_makes_the_environment() -> None:
    given = collect(House(), episodes=3, seed=1)
    assert collect("resolvent/House-v0", episodes=3, seed=1) == given
    assert collect(House, episodes=3, seed=1) == given


def test_other_objects_are_refused() -> None:
    with pytest.raises(OptionError, match=r"not a int: use gym.make"):
        collect(3, episodes=1)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"the environment gave a str: it has to return"):
        collect(lambda: "house", episodes=1)  # type: ignore[arg-type,return-value]
    with pytest.raises(OptionError, match=r"len> needs arguments: give a function without"):
        collect(len, episodes=1)  # type: ignore[arg-type]


class Costly(Corridor):
    """Reports the cost of each step, as a NumPy number, and whether it was the last."""

    def told(self) -> dict[str, Any]:
        if self.cell == 0:
            return {"labels": set(), "cost": "at reset"}
        return {
            "labels": set(),
            "cost": np.int64(10 + self.cell),
            "near": {"end": self.cell == 3},
        }


def test_columns_are_recorded_from_infos_after_each_step() -> None:
    traces = collect(Costly(), episodes=2, policy=lambda cell: 1, columns=["near", "cost"])
    assert list(traces.columns) == ["reward", "cost", "near"]
    for trace in traces:
        assert trace.columns["cost"] == (11, 12, 13)
        assert trace.columns["near"] == ((("end", False),), (("end", False),), (("end", True),))
        assert trace.rewards == (0.0, 0.0, 1.0)


def test_a_column_missing_in_infos_is_located() -> None:
    message = r'^episode 0: step 0: the environment gives no info\["cots"\] .*info\["cost"\]'
    with pytest.raises(TraceError, match=message):
        collect(Costly(), episodes=2, policy=lambda cell: 1, columns=["cots"])

    class Nan(Costly):
        def told(self) -> dict[str, Any]:
            return {"labels": set(), "cost": float("nan")}

    with pytest.raises(TraceError, match=r'step 0: info\["cost"\]: nan cannot be a symbol'):
        collect(Nan(), episodes=1, policy=lambda cell: 1, columns=["cost"])
    with pytest.raises(TraceError, match="a column cannot be called `reward`"):
        collect(Costly(), episodes=2, columns=["reward"])


def test_tabular_environments_are_stepped_if_infos_are_needed() -> None:
    class Priced(House):
        rolls_out = True

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            room, reward, terminated, truncated, info = super().step(action)
            return room, reward, terminated, truncated, {**info, "cost": int(action)}

    traces = collect(Priced(), episodes=3, seed=0, columns=["cost"])
    for trace in traces:
        assert [House.action_names[cost] for cost in trace.columns["cost"]] == list(trace.actions)
    plain = collect(House(), episodes=3, seed=0)
    assert [trace.actions for trace in traces] == [trace.actions for trace in plain]
    with pytest.raises(TraceError, match=r'^episode 0: step 0: .* no info\["cost"\]'):
        collect(House(), episodes=1, seed=0, columns=["cost"])


class Coin(gym.Env[Any, Any]):
    """Tosses a fair coin each step, with reward 1 for guessing it."""

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(1)
        self.action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        return 0, float(action == self.toss()), False, False, {}

    def toss(self) -> int:
        return int(self.np_random.integers(2))


class CoinByShare(Coin):
    """Draws as a vector of action spaces does."""

    def toss(self) -> int:
        return int(2 * self.np_random.random())


@pytest.mark.parametrize("seed", [0, 1, 2, 7, 2**40])
def test_random_actions_are_independent_of_the_environment(seed: int) -> None:
    traces = collect(Coin(), episodes=1, seed=seed, max_steps=2_000, labels="observation")
    assert 0.4 < np.mean(traces[0].rewards) < 0.6


@pytest.mark.parametrize("seed", [0, 5])
def test_random_actions_are_independent_of_a_vector_environment(seed: int) -> None:
    envs = gym.vector.SyncVectorEnv([CoinByShare])
    traces = collect(envs, episodes=1, seed=seed, max_steps=2_000, labels="observation")
    assert 0.4 < np.mean(traces[0].rewards) < 0.6


def test_a_seed_below_0_is_refused() -> None:
    with pytest.raises(OptionError, match="seed=-1: use at least 0"):
        collect(Corridor(), episodes=1, seed=-1)


class Counting(gym.Env[int, int]):
    """Counts its episodes, and shows the number or a random one."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Discrete(100)

    def __init__(self) -> None:
        self.episodes = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.episodes += 1
        return self.episodes, {"labels": set()}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        print("a word to whoever listens")
        shown = int(self.np_random.integers(50, 100))
        return shown, 0.0, shown > 90, False, {"labels": set()}


class Alternating:
    """A policy with a memory."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self, observation: Any) -> int:
        self.last = 1 - self.last
        return self.last


def test_traces_are_those_of_each_shard_alone() -> None:
    traces = collect(House(), episodes=40, seed=5, on="threads")
    assert len(traces) == 40
    for first in range(0, 40, EPISODES):
        some = traces[first : first + EPISODES]
        alone = collect(House(), episodes=len(some), seed=seed_of_shard(5, first // EPISODES))
        assert list(some) == list(alone)


def test_traces_do_not_depend_on_number_and_order_of_workers() -> None:
    played = [
        collect(Counting(), episodes=40, seed=1, policy=Alternating(), on=workers)
        for workers in (Threads(1), Threads(3), ShuffledWorkers(0), ShuffledWorkers(1))
    ]
    assert all(one == played[0] for one in played)
    # Each shard begins with a new environment and a new policy.
    begins = [int(trace.observations[0]) for trace in played[0]]
    assert begins == [1 + number % EPISODES for number in range(40)]
    assert {trace.actions[0] for trace in played[0][::EPISODES]} == {1}


def test_more_episodes_begin_like_fewer() -> None:
    few = collect("resolvent/House-v0", episodes=20, seed=3, on="threads")
    many = collect("resolvent/House-v0", episodes=50, seed=3, on="threads")
    assert list(many[:20]) == list(few)
    assert list(few) != list(collect("resolvent/House-v0", episodes=20, seed=4, on="threads"))


def test_without_a_seed_collections_differ() -> None:
    first, second = (collect(House, episodes=20, on="threads") for _ in range(2))
    assert list(first) != list(second)


def test_processes_give_the_same_traces(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[float] = []
    workers = Processes(2)
    try:
        for env in (TMaze(), "resolvent/TMaze-v0", TMaze):
            traces = collect(env, episodes=40, seed=2, on=workers, progress=told.append)
            assert traces == collect(TMaze(), episodes=40, seed=2, on="threads")
        collect(Counting, episodes=2, seed=0, on=workers)
    finally:
        workers.close()
    assert told == [1 / 3, 2 / 3, 1.0] * 3
    assert capfd.readouterr().out == ""


def test_seeds_of_shards_differ_and_fit_into_32_bits() -> None:
    seeds = {seed_of_shard(seed, number) for seed in (0, 1) for number in range(1000)}
    assert len(seeds) == 2000
    assert seed_of_shard(0, 2**32 - 1) < 2**32


class Locked(Counting):
    """Cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def test_an_environment_that_cannot_be_copied_needs_a_function() -> None:
    with pytest.raises(OptionError, match=r"the environment cannot be copied .*: give its name"):
        collect(Locked(), episodes=1, seed=0, on="threads")
    assert len(collect(Locked, episodes=20, seed=0, on="threads")) == 20


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"policy": lambda observation: 0}, "the policy"),
        ({"observation_fn": lambda observation: "x"}, "observation_fn"),
        ({"labeling_fn": lambda observation: set()}, "labeling_fn"),
    ],
)
def test_an_object_that_cannot_be_sent_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionError, match=rf"^on='processes': {what} cannot .* in a module"):
        collect(House(), episodes=1, seed=0, on="processes", **options)
    with pytest.raises(OptionError, match="the function that makes the environment cannot"):
        collect(lambda: House(), episodes=1, seed=0, on="processes")


def test_invalid_arguments_for_workers() -> None:
    envs = gym.vector.SyncVectorEnv([House, House])
    with pytest.raises(OptionError, match="on='threads' is for single environments"):
        collect(envs, episodes=4, on="threads")
    with pytest.raises(OptionError, match=r"not a int: use gym.make"):
        collect(3, episodes=4, on="threads")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="gave a SyncVectorEnv"):
        collect(lambda: envs, episodes=4, on="threads")
    with pytest.raises(OptionError, match="seed=-1"):
        collect(House(), episodes=4, seed=-1, on="threads")
    with pytest.raises(OptionError, match="on='dask': choose"):
        collect(House(), episodes=4, on="dask")


class Failing(Counting):
    """Raises in its third episode."""

    def reset(self, **given: Any) -> tuple[int, dict[str, Any]]:
        shown, info = super().reset(**given)
        if self.episodes == 3:
            raise TraceError("no label")
        return shown, info


def test_errors_number_episodes_over_all_shards() -> None:
    with pytest.raises(TraceError, match=f"episode {EPISODES + 2}: no label"):
        collect(_from_second_piece, episodes=2 * EPISODES, seed=0, on=Threads(1))


_made = 0


def _from_second_piece() -> gym.Env[int, int]:
    global _made
    _made += 1
    return Counting() if _made == 1 else Failing()

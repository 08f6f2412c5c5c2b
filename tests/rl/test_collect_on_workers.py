"""Collecting on workers: the same traces on all of them, and errors of one line."""

import threading
from typing import Any

import gymnasium as gym
import pytest

from resolvent._util.parallel import Processes, Threads
from resolvent.errors import OptionError, TraceError
from resolvent.rl.collect import EPISODES, collect, seed_of_shard
from resolvent.worlds import House, TMaze
from shuffled_workers import ShuffledWorkers


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

"""The rows of the tables: environments and logs of other projects, and the user's code for each.

The code of a row is run line for line: up to `result = ` once for traces to learn from and once,
with another seed, for fresh ones. It gets `gym` and `rs`, `episodes`, `seed` and, for logs, `log`,
the name of a CSV file. Environments are named `env`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from optima import best_of_cards, best_of_minigrid, best_of_tables


@dataclass(frozen=True)
class Row:
    """One environment or log.

    Attributes:
        name: What it is called in the table.
        origin: Whose it is.
        code: What a user writes.
        episodes: How many to learn from; as many as 100 more are fresh.
        optimum: What the best policy is paid, given the environment and how its episodes begin.
        acting: By a plan, or by Q-learning where the world is random but its reward is not.
        system: The system that a log is of.
        short: How many episodes do where there is little time.
    """

    name: str
    origin: str
    code: str
    episodes: int
    optimum: Callable[[Any, Any], float] | None = None
    acting: Literal["plan", "q-learning"] | None = None
    system: str | None = None
    short: int = 20

    @property
    def lines(self) -> int:
        """How many lines of code a user writes, besides importing gymnasium and resolvent."""
        return sum(map(bool, self.code.splitlines()))


def _grid(name: str, made: str, code: str, **more: Any) -> Row:
    return Row(name, "MiniGrid", f"import minigrid.wrappers\n\nenv = {made}\n{code}", **more)


_AS_IT_IS = """\
traces = rs.collect(env, episodes=episodes, seed=seed, labels="observation")
result = rs.infer(traces, labels="observation")
"""
_ONE_LAYOUT = """\
env = minigrid.wrappers.ReseedWrapper(env, seeds=[0])
env = gym.wrappers.TransformReward(env, lambda reward: float(reward > 0))
"""
_REWARD_ALONE = """\
traces = rs.collect(env, episodes=episodes, seed=seed, labels="observation")
result = rs.infer(traces, labels="observation", outputs=["reward"])
"""
_LOG = """\
traces = rs.read_log(log, episode="session", order="time", input="event", output="response")
result = rs.infer(traces)
"""

ROWS = (
    Row(
        "FrozenLake",
        "Gymnasium",
        f'env = gym.make("FrozenLake-v1", is_slippery=False)\n{_AS_IT_IS}',
        1000,
        best_of_tables,
        "plan",
        short=400,
    ),
    Row(
        "FrozenLake, its rows alone shown",
        "Gymnasium",
        """\
env = gym.make("FrozenLake-v1", is_slippery=False)
env = gym.wrappers.TransformObservation(env, lambda cell: cell // 4, gym.spaces.Discrete(4))
traces = rs.collect(env, episodes=episodes, seed=seed, labels="auto")
result = rs.infer(traces, labels="auto")
""",
        3000,
        best_of_tables,
        "plan",
        short=2000,
    ),
    Row(
        "FrozenLake, slippery",
        "Gymnasium",
        f'env = gym.make("FrozenLake-v1")\n{_AS_IT_IS}',
        3000,
        best_of_tables,
        "plan",
    ),
    Row(
        "CliffWalking",
        "Gymnasium",
        f'env = gym.make("CliffWalking-v1", max_episode_steps=200)\n{_AS_IT_IS}',
        100,
        best_of_tables,
        "plan",
        short=100,
    ),
    Row(
        "Taxi",
        "Gymnasium",
        f'env = gym.make("Taxi-v4")\n{_AS_IT_IS}',
        2000,
        best_of_tables,
        "plan",
        short=10,
    ),
    Row(
        "Blackjack",
        "Gymnasium",
        f'env = gym.make("Blackjack-v1")\n{_AS_IT_IS}',
        5000,
        short=500,
    ),
    Row(
        "CartPole, its velocities hidden",
        "Gymnasium",
        """\
env = gym.make("CartPole-v1")
env = gym.wrappers.TransformObservation(env, lambda seen: seen[[0, 2]], None)
traces = rs.collect(env, episodes=episodes, seed=seed, labels="observation")
result = rs.infer(traces, labels="observation")
""",
        200,
    ),
    _grid(
        "DoorKey, as it is", 'gym.make("MiniGrid-DoorKey-5x5-v0")', _AS_IT_IS, episodes=50, short=10
    ),
    _grid(
        "DoorKey, one layout",
        'gym.make("MiniGrid-DoorKey-5x5-v0")',
        _ONE_LAYOUT + _AS_IT_IS,
        episodes=300,
        optimum=best_of_minigrid,
        acting="plan",
        short=5,
    ),
    _grid(
        "RedBlueDoors, as it is",
        'gym.make("MiniGrid-RedBlueDoors-6x6-v0")',
        _AS_IT_IS,
        episodes=50,
        short=3,
    ),
    _grid(
        "RedBlueDoors, one layout",
        'gym.make("MiniGrid-RedBlueDoors-6x6-v0")',
        _ONE_LAYOUT + _AS_IT_IS,
        episodes=300,
        optimum=best_of_minigrid,
        acting="plan",
        short=3,
    ),
    _grid(
        "Memory, as it is", 'gym.make("MiniGrid-MemoryS7-v0")', _AS_IT_IS, episodes=100, short=20
    ),
    _grid(
        "Memory, two layouts",
        'gym.make("MiniGrid-MemoryS7-v0", agent_view_size=3)',
        _ONE_LAYOUT.replace("[0]", "[34, 23]") + _AS_IT_IS,
        episodes=300,
        optimum=best_of_minigrid,
        acting="plan",
        short=10,
    ),
    _grid(
        "Memory, two layouts, walking alone",
        'gym.make("MiniGrid-MemoryS7-v0", agent_view_size=3)',
        _ONE_LAYOUT.replace("[0]", "[34, 23]")
        + "env = gym.wrappers.TransformAction(env, int, gym.spaces.Discrete(3))\n"
        + _AS_IT_IS.replace("observation", "auto"),
        episodes=100,
        optimum=best_of_minigrid,
        acting="plan",
        short=10,
    ),
    Row(
        "RepeatFirst, easy",
        "POPGym",
        "from popgym.envs.repeat_first import RepeatFirstEasy\n\nenv = RepeatFirstEasy()\n"
        + _REWARD_ALONE.replace("observation", "auto"),
        200,
        best_of_cards,
        "q-learning",
        short=100,
    ),
    Row(
        "RepeatPrevious, the card before",
        "POPGym",
        f"from popgym.envs.repeat_previous import RepeatPrevious\n\nenv = RepeatPrevious(k=2)\n"
        f"{_REWARD_ALONE}",
        500,
        best_of_cards,
        "q-learning",
        short=300,
    ),
    Row(
        "RepeatPrevious, easy (four cards back)",
        "POPGym",
        f"from popgym.envs.repeat_previous import RepeatPreviousEasy\n\n"
        f"env = RepeatPreviousEasy()\n{_REWARD_ALONE}",
        2000,
        best_of_cards,
        "q-learning",
    ),
    Row(
        "HigherLower, easy",
        "POPGym",
        f"from popgym.envs.higher_lower import HigherLowerEasy\n\nenv = HigherLowerEasy()\n"
        f"{_REWARD_ALONE}",
        500,
        short=100,
    ),
    Row(
        "MineSweeper, easy",
        "POPGym",
        """\
from popgym.envs.minesweeper import MineSweeperEasy

env = MineSweeperEasy()
traces = rs.collect(env, episodes=episodes, seed=seed, labels="action+observation")
result = rs.infer(traces, labels="action+observation", outputs=["reward"])
""",
        500,
        short=100,
    ),
    Row("a vending machine", "log", _LOG, 400, system="vending", short=400),
    Row("an end of a TCP connection", "log", _LOG, 400, system="connection", short=400),
    Row("logins to an account", "log", _LOG, 400, system="login", short=400),
    Row("a lift", "log", _LOG, 6400, system="lift", short=400),
)

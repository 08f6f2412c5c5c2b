"""Environments that nobody here wrote: odd spaces, observations, rewards, endings and failures."""

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import gymnasium as gym
import numpy as np

import resolvent as rs
from fuzz.mutations import NUMBERS, TEXTS, odd_value
from fuzz.targets import Call
from resolvent._util.validation import quoted

SPACES: tuple[Callable[[], Any], ...] = (
    lambda: gym.spaces.Discrete(2),
    lambda: gym.spaces.Discrete(3, start=-1),
    lambda: gym.spaces.MultiDiscrete([2, 2]),
    lambda: gym.spaces.MultiBinary(2),
    lambda: gym.spaces.Tuple((gym.spaces.Discrete(2), gym.spaces.Discrete(1))),
    lambda: gym.spaces.Box(-1, 1, (2,), np.float32),
    lambda: gym.spaces.Text(3),
    lambda: gym.spaces.Dict(room=gym.spaces.Discrete(2)),
    lambda: gym.spaces.Discrete(10**9),
    lambda: gym.spaces.MultiDiscrete([1000, 1000, 1000]),
    lambda: None,
    lambda: "a space",
)
SEEN: tuple[Callable[[int], Any], ...] = (
    int,
    np.int64,
    str,
    lambda state: (state, "a"),
    lambda state: {"room": state},
    lambda state: np.array([state, 1], np.float32),
    lambda state: np.array(state),
    lambda state: [state],
    lambda state: TEXTS[state % len(TEXTS)],
    lambda state: NUMBERS[state % len(NUMBERS)],
    lambda state: float("nan"),
    lambda state: None,
    lambda state: object(),
    lambda state: b"bytes",
    lambda state: {"room": np.array([np.nan]), "x": {"y": [state]}},
    lambda state: np.array([None, state], object),
)
PAID: tuple[Any, ...] = (
    0, 1, 1.0, -0.5, True, np.float32(0.5), np.int8(1), None, "1", "a", float("nan"), float("inf"),
    np.array([1.0]), np.array(1.0), np.array([1.0, 2.0]), 1e308, -1e308, 1e-320, 10**400,
    Decimal("0.5"), 1j, [1], object(),
)  # fmt: skip
ENDED: tuple[Any, ...] = (True, False, np.bool_(True), 0, 1, None, "yes", np.array([True]), [], 0.5)
INFOS: tuple[Any, ...] = (
    {}, None, [], "info", {"label": "key"}, {"label": None}, {"label": ["a", "b"]},
    {"label": [["a"]]}, {"label": {"a": 1}}, {"label": 3}, {"label": np.array(["a"])},
    {"label": "é\n"}, {"label": float("nan")}, {"label": ("a",)}, {1: 2},
)  # fmt: skip


class Broke(Exception):  # noqa: N818
    """What an environment of this module raises."""


class OddWorld(gym.Env[Any, Any]):
    """A small world with a hidden state, most of it as it should be, some of it odd."""

    def __init__(self, draw: Random) -> None:
        mostly = draw.random() < 0.6  # one thing alone is odd
        self.draw = Random(draw.random())
        odd = draw.randrange(7)

        def pick(which: int, usual: Any, choices: Any) -> Any:
            return draw.choice(choices) if which == odd or not mostly else usual

        self.action_space = pick(0, SPACES[0], SPACES)()
        self.observation_space = pick(1, lambda: gym.spaces.Discrete(6), SPACES)()
        self.see = pick(2, int, SEEN)
        self.paid = pick(3, 1.0, PAID)
        self.ended = pick(4, True, ENDED)
        self.info = pick(5, {}, INFOS)
        self.fault = pick(6, "", ("", "raise", "reset raises", "four", "two", "none", "random"))
        self.length = draw.choice((1, 2, 4, 9))
        self.steps = self.state = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin anew."""
        if self.fault == "reset raises" and self.steps > 5:
            raise Broke("no reset")
        self.state = 0 if self.fault != "random" else self.draw.randrange(3)
        self.left = self.length
        return (self.see(self.state), self.info) if self.fault != "two" else self.see(self.state)

    def step(self, action: Any) -> Any:
        """Go on."""
        self.steps += 1
        if self.fault == "raise" and self.steps == 7:
            raise Broke("no step")
        try:
            moved = int(np.asarray(action).ravel()[0])
        except (TypeError, ValueError, IndexError):
            moved = 1
        if self.fault == "random":
            moved = self.draw.randrange(2)
        self.state = (self.state + moved) % 5
        self.left -= 1
        seen = self.see(self.state)
        paid = self.paid if self.state == 4 else 0
        ended = self.ended if self.state == 4 else False
        if self.fault == "four":
            return seen, paid, ended, self.info
        if self.fault == "none":
            return None
        return seen, paid, ended, self.left <= 0, self.info


def _many(draw: Random) -> gym.vector.VectorEnv[Any, Any, Any]:
    seed = draw.random()
    return gym.vector.SyncVectorEnv([lambda: OddWorld(Random(seed))] * draw.choice((1, 2, 3)))


def played(draw: Random) -> tuple[Callable[[], object], str]:
    """Draw a world, and one of the calls that play in it."""
    world = OddWorld(draw)
    about = {name: value for name, value in vars(world).items() if name not in ("draw", "see")}
    name = draw.choice(("collect", "solve", "Explorer", "q_learning"))
    labels = draw.choice(("auto", "given", "observation", "action", "transition"))
    calls: dict[str, Callable[[], object]] = {
        "collect": lambda: rs.collect(world, episodes=3, seed=0, max_steps=20, labels=labels),
        "solve": lambda: rs.solve(world, budget=60, max_steps=20, labels=labels),
        "Explorer": lambda: explored(world, labels),
        "q_learning": lambda: rs.q_learning(world, episodes=3, max_steps=20),
    }
    return calls[name], f"{name} with labels={labels!r} in {about!r:.2000}"


def explored(world: OddWorld, labels: str) -> None:
    """Play as the documentation shows it, a few episodes."""
    explorer = rs.Explorer(world, labels=labels)
    for episode in range(4):
        given = world.reset(seed=episode)
        if not isinstance(given, tuple) or len(given) != 2:
            return  # a loop that cannot even begin
        seen, info = given
        for _ in range(20):
            action = explorer.act(seen, info)
            if action is None:
                break
            given = world.step(action)
            if not isinstance(given, tuple) or len(given) != 5:
                return
            seen, reward, terminated, truncated, info = given
            explorer.learn(action, seen, reward, terminated, truncated, info)
            if terminated or truncated:
                break
        else:
            explorer.truncate()
    assert explorer.guarantee()
    assert explorer.traces() is not None


def asked(draw: Random) -> tuple[Callable[[], object], str]:
    """Draw what an explorer is told by somebody's own loop, odd now and then."""
    told: list[tuple[str, tuple[Any, ...], Any]] = []
    for _ in range(draw.randint(1, 12)):
        if draw.random() < 0.5:
            told.append(("act", (_odd(draw, 0), _odd(draw, {})), _odd(draw, 0)))
        elif draw.random() < 0.9:
            step = (_odd(draw, 0), _odd(draw, draw.randrange(3)), _odd(draw, 1.0))
            ends = (_odd(draw, draw.random() < 0.3), _odd(draw, False))
            told.append(("learn", (*step, *ends, _odd(draw, {})), _odd(draw, 0)))
        else:
            told.append(("truncate", (), _odd(draw, 0)))

    def tell() -> None:
        explorer = rs.Explorer(OddWorld(Random(0)))
        for name, arguments, which in told:
            getattr(explorer, name)(*arguments, which=which)
        assert explorer.guarantee()

    return tell, "; ".join(
        f"{name}({', '.join(map(quoted, (*given, which)))})" for name, given, which in told
    )


def _odd(draw: Random, usual: Any) -> Any:
    return usual if draw.random() < 0.93 else draw.choice((draw.choice(PAID), odd_value(draw)))


TARGETS = (
    Call("odd-worlds", played, (Broke,)),
    Call("odd-loops", asked),
)

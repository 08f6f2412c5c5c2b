"""The environment to explore: its construction, its actions, its spaces, and its identity.

Input: an environment, an id or a function. Output: a Gymnasium environment and its description.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

import gymnasium as gym
import msgspec
import numpy as np

from resolvent.errors import ModelError, OptionError, ResolventError, TraceError
from resolvent.rl.collect import check_maker
from resolvent.rl.env import AnyEnv
from resolvent.rl.vector_env import one_environment

MAX_ACTIONS: Final = 1_000
"""Maximum number of actions that can be tried in every augmented state."""


def made_environment(env: AnyEnv | str | Callable[[], AnyEnv]) -> tuple[AnyEnv, bool]:
    """Return the environment, and whether it was made here."""
    if isinstance(env, gym.Env | gym.vector.VectorEnv):
        return env, False
    if isinstance(env, str):
        try:
            return gym.make(env), True
        except ResolventError:
            raise
        except Exception as error:  # of Gymnasium, or of the module that the name begins with
            raise OptionError(f"cannot make environment '{env}': {error}") from error
    if not callable(env):
        raise OptionError(
            f"solve needs a gymnasium.Env or VectorEnv, the id of one or a function that makes "
            f"one, not a {type(env).__name__}: use gym.make"
        )
    check_maker(env)
    instance = env()
    if not isinstance(instance, gym.Env | gym.vector.VectorEnv):
        raise OptionError(f"the function made a {type(instance).__name__}: it has to make an Env")
    return instance, True


def spaces_of(env: AnyEnv) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Return the action and observation spaces of an environment, or of each one in a vector."""
    prefix = "single_" if isinstance(env, gym.vector.VectorEnv) else ""
    spaces = []
    for name in (f"{prefix}action_space", f"{prefix}observation_space"):
        space = getattr(env, name, None)
        if not isinstance(space, gym.Space):
            raise OptionError(
                f"the environment {type(env.unwrapped).__name__} has no {name}: give it a "
                f"gymnasium.Space"
            )
        spaces.append(space)
    return spaces[0], spaces[1]


def check_spaces(
    before: Sequence[gym.Space[Any]], now: Sequence[gym.Space[Any]], since: str = "at the beginning"
) -> None:
    """Refuse an environment whose spaces have changed."""
    for name, was, is_now in zip(("actions", "observations"), before, now, strict=True):
        if was is not is_now and was != is_now:
            raise TraceError(
                f"the environment's {name} are {is_now} and were {was} {since}: they have to "
                f"stay the same, so let its spaces hold all that may ever come"
            )


def list_actions(space: gym.Space[Any]) -> list[Any]:
    """Return all values of an action space.

    >>> list_actions(gym.spaces.Discrete(3, start=1))
    [1, 2, 3]
    """
    parts: list[range] | None = None
    if isinstance(space, gym.spaces.Discrete):
        parts = [range(int(space.start), int(space.start + space.n))]
    elif isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        start = getattr(space, "start", np.zeros_like(space.nvec))
        parts = [range(int(s), int(s + n)) for s, n in zip(start, space.nvec, strict=True)]
    elif isinstance(space, gym.spaces.MultiBinary) and isinstance(space.n, int | np.integer):
        parts = [range(2)] * int(space.n)
    if parts is None:
        raise OptionError(
            f"the actions are {space}: exploring needs actions that can be listed, so wrap the "
            f"environment in one with a few (gymnasium.spaces.Discrete)"
        )
    if np.prod([len(choices) for choices in parts], dtype=float) > MAX_ACTIONS:
        raise OptionError(
            f"the actions are {space}, more than {MAX_ACTIONS:,}: wrap the environment in one "
            f"with fewer"
        )
    if isinstance(space, gym.spaces.Discrete):
        return list(parts[0])
    return [np.array(choices, space.dtype) for choices in product(*parts)]


class EnvironmentId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identifies an environment.

    `name` is its Gymnasium id, or its class, and `arguments` are the plain values among its
    arguments.
    """

    name: str
    arguments: str
    actions: str
    observations: str

    @classmethod
    def of(cls, env: AnyEnv) -> "EnvironmentId":
        """Return the identity of an environment, for a vector that of one of its members.

        >>> import gymnasium as gym
        >>> identity = EnvironmentId.of(gym.make("resolvent/TMaze-v0", length=5))
        >>> identity.name, identity.arguments, identity.actions
        ('resolvent/TMaze-v0', 'length=5', 'Discrete(4)')
        """
        actions, observations = map(str, spaces_of(env))
        if isinstance(env, gym.vector.VectorEnv):
            with one_environment(env) as member:
                return cls(*_named(member), actions, observations)
        return cls(*_named(env), actions, observations)

    def check(self, before: "EnvironmentId") -> None:
        """Refuse to resume in this environment from the result of another one."""
        for what, plural in (
            ("name", False),
            ("arguments", True),
            ("actions", True),
            ("observations", True),
        ):
            now, was = getattr(self, what), getattr(before, what)
            if now != was:
                verbs = ("are", "were") if plural else ("is", "was")
                raise ModelError(
                    f"this is another environment than the one to go on from: its {what} "
                    f"{verbs[0]} {now or 'none'} and {verbs[1]} {was or 'none'} then; resume with "
                    f"the same one, or begin anew in a new folder"
                )


def _named(env: AnyEnv) -> tuple[str, str]:
    spec = env.spec
    if spec is None:
        kind = type(env.unwrapped)
        return kind.__qualname__.rsplit(".", 1)[-1], ""
    plain = {
        name: argument for name, argument in sorted(spec.kwargs.items()) if _is_plain(argument)
    }
    return spec.id, ", ".join(f"{name}={argument!r}" for name, argument in plain.items())


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)

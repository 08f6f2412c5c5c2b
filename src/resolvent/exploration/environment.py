"""What an environment is called and shows, so that nobody goes on in another one by mistake."""

from typing import Any

import gymnasium as gym
import msgspec

from resolvent.errors import ModelError
from resolvent.exploration.runner import spaces_of
from resolvent.traces.live.naming import AnyEnv
from resolvent.traces.live.vector_naming import one_environment


class EnvironmentId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What tells one environment from another.

    `name` is its Gymnasium id, or its class, and `arguments` are those it was made with, as far
    as they are plain values.
    """

    name: str
    arguments: str
    actions: str
    observations: str

    @classmethod
    def of(cls, env: AnyEnv) -> "EnvironmentId":
        """Return what tells this environment from others; many side by side are as one of them.

        >>> import gymnasium as gym
        >>> world = World.of(gym.make("resolvent/TMaze-v0", length=5))
        >>> world.name, world.arguments, world.actions
        ('resolvent/TMaze-v0', 'length=5', 'Discrete(4)')
        """
        actions, observations = map(str, spaces_of(env))
        if isinstance(env, gym.vector.VectorEnv):
            with one_environment(env) as one:
                return cls(*_named(one), actions, observations)
        return cls(*_named(env), actions, observations)

    def check(self, before: "EnvironmentId") -> None:
        """Refuse to go on in this environment from what another one gave."""
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
    plain = {name: one for name, one in sorted(spec.kwargs.items()) if _is_plain(one)}
    return spec.id, ", ".join(f"{name}={one!r}" for name, one in plain.items())


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)

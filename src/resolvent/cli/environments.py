"""How commands name an environment, and its arguments."""

from collections.abc import Sequence
from typing import Annotated, Any

import gymnasium as gym
import msgspec
import typer

from resolvent.errors import OptionError
from resolvent.rl.make_env import NamedEnvironment


def built_in_worlds(incomplete: str) -> list[str]:
    """Return the worlds that come along, for shells that complete names."""
    ids = (name for name in gym.registry if name.startswith("resolvent/"))
    return sorted(name for name in ids if name.startswith(incomplete))


Environment = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help="A Gymnasium id such as resolvent/House-v0; module:Name-v0 to import the module "
        "that registers it first; or module:Class for a class, or a function, of the module.",
        autocompletion=built_in_worlds,
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An argument of the environment, such as world_seed=3; repeatable.",
        show_default=False,
    ),
]
Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Import this module first, such as minigrid, for the environments that it "
        "registers; repeatable.",
        show_default=False,
    ),
]


def named_environment(
    environment: str, settings: Sequence[str] | None, imports: Sequence[str] | None = None
) -> NamedEnvironment:
    """Return what makes the environment that a user named."""
    return NamedEnvironment(environment, dict(map(_setting, settings or ())), tuple(imports or ()))


def make_environment(
    environment: str, settings: Sequence[str] | None, imports: Sequence[str] | None = None
) -> gym.Env[Any, Any]:
    """Make the environment that a user named."""
    return named_environment(environment, settings, imports)()


def _setting(text: str) -> tuple[str, Any]:
    """Take an argument apart; its value is JSON where that can be, and otherwise text.

    >>> _setting("length=20"), _setting("task=mail"), _setting('keys=["north-west"]')
    (('length', 20), ('task', 'mail'), ('keys', ['north-west']))
    """
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise OptionError(f"--set {text}: write NAME=VALUE, such as world_seed=3")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value

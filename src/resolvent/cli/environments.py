"""The name of a Gymnasium environment → the environment, or one line that says why not."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import gymnasium as gym
import msgspec
import typer

from resolvent.errors import OptionError


def built_in_worlds(incomplete: str) -> list[str]:
    """Return the worlds that come along, for shells that complete names."""
    ids = (name for name in gym.registry if name.startswith("resolvent/"))
    return sorted(name for name in ids if name.startswith(incomplete))


Environment = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help="A Gymnasium id such as resolvent/House-v0, or module:Name-v0 to import the "
        "module that registers it first.",
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


def make_environment(environment: str, settings: Sequence[str] | None) -> gym.Env[Any, Any]:
    """Make an environment by its id, or by module:id to import the module first."""
    arguments = dict(map(_setting, settings or ()))
    module, colon, _ = environment.partition(":")
    if colon:
        sys.path.insert(0, "")  # a module beside the user counts, as with `python -m`
    try:
        return gym.make(environment, **arguments)
    except ImportError as error:
        what = f"module '{module}' of " if colon else ""
        raise OptionError(f"cannot import {what}environment '{environment}': {error}") from error
    except gym.error.Error as error:
        raise OptionError(
            f"cannot make environment '{environment}': {str(error).rstrip('.')} (give a Gymnasium "
            f"id such as resolvent/House-v0, or module:Name-v0 to import what registers it)"
        ) from error
    except TypeError as error:
        if not arguments:
            raise
        raise OptionError(
            f"cannot make environment '{environment}' with {', '.join(arguments)}: {error}"
        ) from error


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

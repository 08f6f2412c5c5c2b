"""The name of an environment → the environment, or one line that says why not."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import gymnasium as gym
import msgspec
import typer

from resolvent.errors import OptionError, ResolventError, TraceError
from resolvent.wording import listed


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


def make_environment(
    environment: str, settings: Sequence[str] | None, imports: Sequence[str] | None = None
) -> gym.Env[Any, Any]:
    """Make an environment by its id, by module:id, or by module:Class."""
    arguments = dict(map(_setting, settings or ()))
    for module in imports or ():
        _import(module, f"--import {module}")
    module, colon, name = environment.partition(":")
    if not colon:
        hint = "with --import MODULE if a module registers it, or module:Class"
        return _guarded(_registered(environment, environment, arguments, hint))
    if not (module and name):
        missing = "a class after" if module else "a module before"
        raise OptionError(f"environment '{environment}': name {missing} the colon")
    imported = _import(module, f"environment '{environment}'")
    if (defined := getattr(imported, name, None)) is not None:
        return _guarded(_made_by(defined, environment, arguments))
    return _guarded(_registered(name, environment, arguments, _offered(imported)))


def _registered(
    name: str, environment: str, arguments: dict[str, Any], hint: str
) -> gym.Env[Any, Any]:
    try:
        return gym.make(name, **arguments)
    except ResolventError:
        raise
    except gym.error.Error as error:
        raise OptionError(
            f"cannot make environment '{environment}': {str(error).rstrip('.')} "
            f"(give a Gymnasium id such as resolvent/House-v0, {hint})"
        ) from error
    except Exception as error:
        raise _not_made(environment, arguments, error) from error


def _made_by(maker: Any, environment: str, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Call what a module defines, which has to give an environment."""
    wanted = "name a class of environments (gymnasium.Env) or a function that returns one"
    if isinstance(maker, type) and not issubclass(maker, gym.Env):
        raise OptionError(
            f"environment '{environment}' is a class, but no gymnasium.Env: "
            f"derive it from gymnasium.Env, or {wanted}"
        )
    if not callable(maker):
        raise OptionError(f"environment '{environment}' is a {type(maker).__name__}: {wanted}")
    try:
        made = maker(**arguments)
    except ResolventError:
        raise
    except Exception as error:
        raise _not_made(environment, arguments, error) from error
    if not isinstance(made, gym.Env):
        raise OptionError(f"environment '{environment}' gave a {type(made).__name__}: {wanted}")
    return made


def _not_made(environment: str, arguments: dict[str, Any], error: Exception) -> OptionError:
    given = f" with {', '.join(arguments)}" if arguments else ""
    return OptionError(
        f"cannot make environment '{environment}'{given}: {_told(error)} "
        f"(give its arguments by --set NAME=VALUE)"
    )


def _import(module: str, wanted_by: str) -> ModuleType:
    if module.endswith(".py"):
        name = ".".join(part for part in Path(module).with_suffix("").parts if part.strip("./"))
        raise OptionError(f"{wanted_by}: {module} is a file: write {name}, the module's name")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside the user counts, as with `python -m`
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise OptionError(
                f"{wanted_by}: module '{module}' needs '{error.name}', which is not installed"
            ) from error
        raise OptionError(
            f"{wanted_by}: cannot import module '{module}': give the name of one, such as "
            f"my_world, that is installed or lies here"
        ) from error
    except (Exception, SystemExit) as error:
        raise OptionError(
            f"{wanted_by}: cannot import module '{module}', which raised {_told(error)}"
        ) from error


def _offered(module: ModuleType) -> str:
    """Say which environments a module defines, for whoever named another."""
    defined = [
        name
        for name, one in vars(module).items()
        if isinstance(one, type) and issubclass(one, gym.Env) and one is not gym.Env
    ]
    if not defined:
        return f"or module:Class; '{module.__name__}' has no class of environments"
    return f"or module:Class; '{module.__name__}' has {listed(defined[:5])}"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


class _Guarded(gym.Wrapper[Any, Any, Any, Any]):
    """Turns what an environment does wrong into errors of traces, which say where it happened."""

    def reset(self, **given: Any) -> Any:
        with _telling("reset"):
            answer = self.env.reset(**given)
        return _of_shape(answer, 2, "reset() has to return (observation, info)")

    def step(self, action: Any) -> Any:
        with _telling("step"):
            answer = self.env.step(action)
        shape = "(observation, reward, terminated, truncated, info)"
        return _of_shape(answer, 5, f"step() has to return {shape}")


@contextmanager
def _telling(method: str) -> Iterator[None]:
    try:
        yield
    except ResolventError:
        raise
    except Exception as error:
        raise TraceError(f"the environment's {method}() raised {_told(error)}") from error


def _of_shape(answer: Any, parts: int, wanted: str) -> Any:
    if not isinstance(answer, tuple) or len(answer) != parts:
        raise TraceError(f"the environment's {wanted}")
    return answer


def _guarded(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Guard against environments of others; those that come along are as they should be."""
    ours = type(env.unwrapped).__module__.startswith("resolvent.")
    return env if ours else _Guarded(env)


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

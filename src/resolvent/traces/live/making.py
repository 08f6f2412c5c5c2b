"""The name of an environment → the environment, or one line that says why not."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym

from resolvent.arguments import needs_arguments, shown
from resolvent.errors import OptionError, ResolventError
from resolvent.traces.live.answering import of_reset, of_step, telling
from resolvent.wording import listed


@dataclass(frozen=True)
class NamedEnvironment:
    """A name that stands for an environment, wherever it is to be made.

    >>> NamedEnvironment("resolvent/TMaze-v0", {"length": 5})().unwrapped.length
    5
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    imports: Sequence[str] = ()

    def __call__(self) -> gym.Env[Any, Any]:
        """Make it."""
        return make_environment(self.name, self.arguments, self.imports)


def check_maker(make: Any) -> None:
    """Raise `OptionError` for a function that should make an environment and needs arguments."""
    if callable(make) and needs_arguments(make):
        raise OptionError(
            f"{shown(make)} cannot make the environment, for it needs arguments: give a function "
            f"that needs none"
        )


def make_environment(
    environment: str, arguments: Mapping[str, Any] | None = None, imports: Sequence[str] = ()
) -> gym.Env[Any, Any]:
    """Make an environment by its id, by module:id, or by module:Class.

    The modules in `imports` are imported before that, for what they register.

    Raises:
        OptionError: when there is no such environment, or it cannot be made.
    """
    arguments = arguments or {}
    for module in imports:
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
    name: str, environment: str, arguments: Mapping[str, Any], hint: str
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


def _made_by(maker: Any, environment: str, arguments: Mapping[str, Any]) -> gym.Env[Any, Any]:
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


def _not_made(environment: str, arguments: Mapping[str, Any], error: Exception) -> OptionError:
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
        with telling("reset"):
            answer = self.env.reset(**given)
        return of_reset(answer)

    def step(self, action: Any) -> Any:
        with telling("step"):
            answer = self.env.step(action)
        return of_step(answer)


def _guarded(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Guard against environments of others; those that come along are as they should be."""
    ours = type(env.unwrapped).__module__.startswith("resolvent.")
    return env if ours else _Guarded(env)

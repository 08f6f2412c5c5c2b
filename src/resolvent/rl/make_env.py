"""Make environments by name, with one-line errors if that fails."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym

from resolvent._util.text import listed
from resolvent._util.validation import needs_arguments, shown
from resolvent.errors import OptionError, ResolventError
from resolvent.rl.env import checked_reset, checked_step, env_errors


@dataclass(frozen=True)
class NamedEnvironment:
    """Make an environment by name, in any process.

    >>> NamedEnvironment("resolvent/TMaze-v0", {"length": 5})().unwrapped.length
    5
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    imports: Sequence[str] = ()

    def __call__(self) -> gym.Env[Any, Any]:
        """Return a new environment."""
        return make_environment(self.name, self.arguments, self.imports)


def check_maker(make: Any) -> None:
    """Raise `OptionError` if a function that makes environments needs arguments."""
    if callable(make) and needs_arguments(make):
        raise OptionError(
            f"{shown(make)} cannot make the environment, for it needs arguments: give a function "
            f"that needs none"
        )


def make_environment(
    environment: str, arguments: Mapping[str, Any] | None = None, imports: Sequence[str] = ()
) -> gym.Env[Any, Any]:
    """Return the environment with an id, or named module:id or module:Class.

    The modules in `imports` are imported first, so that they can register environments.

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
    if (maker := getattr(imported, name, None)) is not None:
        return _guarded(_call_maker(maker, environment, arguments))
    return _guarded(_registered(name, environment, arguments, _classes_hint(imported)))


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
        raise _making_error(environment, arguments, error) from error


def _call_maker(maker: Any, environment: str, arguments: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Call an object of a module and check that it returns an environment."""
    wanted = "name a class of environments (gymnasium.Env) or a function that returns one"
    if isinstance(maker, type) and not issubclass(maker, gym.Env):
        raise OptionError(
            f"environment '{environment}' is a class, but no gymnasium.Env: "
            f"derive it from gymnasium.Env, or {wanted}"
        )
    if not callable(maker):
        raise OptionError(f"environment '{environment}' is a {type(maker).__name__}: {wanted}")
    try:
        env = maker(**arguments)
    except ResolventError:
        raise
    except Exception as error:
        raise _making_error(environment, arguments, error) from error
    if not isinstance(env, gym.Env):
        raise OptionError(f"environment '{environment}' gave a {type(env).__name__}: {wanted}")
    return env


def _making_error(environment: str, arguments: Mapping[str, Any], error: Exception) -> OptionError:
    passed = f" with {', '.join(arguments)}" if arguments else ""
    return OptionError(
        f"cannot make environment '{environment}'{passed}: {_error_text(error)} "
        f"(give its arguments by --set NAME=VALUE)"
    )


def _import(module: str, purpose: str) -> ModuleType:
    if module.endswith(".py"):
        name = ".".join(part for part in Path(module).with_suffix("").parts if part.strip("./"))
        raise OptionError(f"{purpose}: {module} is a file: write {name}, the module's name")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside the user counts, as with `python -m`
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise OptionError(
                f"{purpose}: module '{module}' needs '{error.name}', which is not installed"
            ) from error
        raise OptionError(
            f"{purpose}: cannot import module '{module}': give the name of one, such as "
            f"my_world, that is installed or lies here"
        ) from error
    except (Exception, SystemExit) as error:
        raise OptionError(
            f"{purpose}: cannot import module '{module}', which raised {_error_text(error)}"
        ) from error


def _classes_hint(module: ModuleType) -> str:
    """Say which environment classes a module defines."""
    classes = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, gym.Env) and value is not gym.Env
    ]
    if not classes:
        return f"or module:Class; '{module.__name__}' has no class of environments"
    return f"or module:Class; '{module.__name__}' has {listed(classes[:5])}"


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


class _Guarded(gym.Wrapper[Any, Any, Any, Any]):
    """Turn an environment's mistakes into trace errors, which say where they happened."""

    def reset(self, **options: Any) -> Any:
        with env_errors("reset"):
            returned = self.env.reset(**options)
        return checked_reset(returned)

    def step(self, action: Any) -> Any:
        with env_errors("step"):
            returned = self.env.step(action)
        return checked_step(returned)


def _guarded(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Guard an environment that is not ours."""
    is_ours = type(env.unwrapped).__module__.startswith("resolvent.")
    return env if is_ours else _Guarded(env)

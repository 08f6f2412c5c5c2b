"""Make environments by name, with one-line errors if that fails."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import gymnasium as gym

from resolvent._util.text import listed
from resolvent._util.validation import needs_arguments, quoted
from resolvent.errors import OptionError, ResolventError
from resolvent.rl.env import checked_reset, checked_step, env_errors

_WANTED: Final = "name a class of environments (gymnasium.Env) or a function that returns one"


@dataclass(frozen=True)
class NamedEnvironment:
    """Make the environment with an id, or named module:id or module:Class, in any process.

    The modules in `imports` are imported first, so that they can register environments. Calls
    raise `OptionError` if there is no such environment, or it cannot be made.

    >>> NamedEnvironment("resolvent/TMaze-v0", {"length": 5})().unwrapped.length
    5
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    imports: Sequence[str] = ()

    def __call__(self) -> gym.Env[Any, Any]:
        """Return a new environment."""
        for module in self.imports:
            _import(module, f"--import {module}")
        module, colon, name = self.name.partition(":")
        if not colon:
            hint = "with --import MODULE if a module registers it, or module:Class"
            return self._make(partial(gym.make, self.name), hint)
        if not (module and name):
            missing = "a class after" if module else "a module before"
            raise OptionError(f"environment '{self.name}': name {missing} the colon")
        imported = _import(module, f"environment '{self.name}'")
        maker = getattr(imported, name, None)
        if maker is None:
            return self._make(partial(gym.make, name), _classes_hint(imported))
        if isinstance(maker, type) and not issubclass(maker, gym.Env):
            raise OptionError(
                f"environment '{self.name}' is a class, but no gymnasium.Env: "
                f"derive it from gymnasium.Env, or {_WANTED}"
            )
        if not callable(maker):
            raise OptionError(f"environment '{self.name}' is a {type(maker).__name__}: {_WANTED}")
        return self._make(maker)

    def _make(self, maker: Callable[..., Any], hint: str = "") -> gym.Env[Any, Any]:
        """Call a maker, and guard an environment that is not ours."""
        try:
            env = maker(**self.arguments)
        except ResolventError:
            raise
        except Exception as error:
            if isinstance(error, gym.error.Error) and hint:
                raise OptionError(
                    f"cannot make environment '{self.name}': {str(error).rstrip('.')} "
                    f"(give a Gymnasium id such as resolvent/House-v0, {hint})"
                ) from error
            passed = f" with {', '.join(self.arguments)}" if self.arguments else ""
            raise OptionError(
                f"cannot make environment '{self.name}'{passed}: {_error_text(error)} "
                f"(give its arguments by --set NAME=VALUE)"
            ) from error
        if not isinstance(env, gym.Env):
            raise OptionError(f"environment '{self.name}' gave a {type(env).__name__}: {_WANTED}")
        is_ours = type(env.unwrapped).__module__.startswith("resolvent.")
        return env if is_ours else _Guarded(env)


def check_maker(make: Any) -> None:
    """Raise `OptionError` if a function that makes environments needs arguments."""
    if callable(make) and needs_arguments(make):
        raise OptionError(
            f"{quoted(make)} cannot make the environment, for it needs arguments: give a function "
            f"that needs none"
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

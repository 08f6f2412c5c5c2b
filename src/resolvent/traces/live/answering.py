"""What an environment's reset and step gave → the same, or an error that says what is wrong."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from resolvent.arguments import shown
from resolvent.errors import ResolventError, TraceError

_WANTED: Final = {
    "reset": "(observation, info)",
    "step": "(observation, reward, terminated, truncated, info)",
}


@contextmanager
def telling(method: str) -> Iterator[None]:
    """Turn what an environment raises into a `TraceError` of one line."""
    try:
        yield
    except ResolventError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise TraceError(f"the environment's {method}() raised {told}") from error


def of_reset(given: Any) -> tuple[Any, dict[str, Any]]:
    """Return what `reset` gave, if it is an observation and an info.

    >>> of_reset(3)
    Traceback (most recent call last):
    resolvent.errors.TraceError: the environment's reset() has to return (observation, info), not 3
    """
    observation, info = _parts(given, "reset", 2)
    return observation, info


def of_step(given: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """Return what `step` gave, if it has five parts, the last of which is an info."""
    observation, reward, terminated, truncated, info = _parts(given, "step", 5)
    return observation, reward, terminated, truncated, info


def ended(given: Any, name: str) -> bool:
    """Return what `step` says of an ending as yes or no.

    >>> ended(1, "terminated")
    True
    """
    try:
        return bool(given)
    except Exception as error:  # an array of several, or a stranger's object
        raise TraceError(
            f"the environment's step() gives {name}={shown(given)}: give True or False"
        ) from error


def _parts(given: Any, method: str, count: int) -> tuple[Any, ...]:
    if not isinstance(given, tuple) or len(given) != count:
        raise TraceError(
            f"the environment's {method}() has to return {_WANTED[method]}, not {shown(given)}"
        )
    check_info(given[-1])
    return given


def check_info(info: Any) -> None:
    """Refuse what an environment tells beside an observation if it has no names.

    >>> check_info(None)
    Traceback (most recent call last):
    resolvent.errors.TraceError: the info is None: it has to be a dict, {} where there is nothing
    """
    if not isinstance(info, Mapping):
        raise TraceError(
            f"the info is {shown(info)}: it has to be a dict, {{}} where there is nothing"
        )

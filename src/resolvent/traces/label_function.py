"""A user's labeling function → checked calls of it, with errors that show the call."""

import inspect
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from resolvent._util.text import short
from resolvent.errors import OptionError, TraceError
from resolvent.traces.symbols import NO_EVENT, Label, as_label

ONE = ("observation",)
STEP = ("observation", "action", "next_observation")
STEP_AND_INFO = ("observation", "action", "reward", "next_observation", "info")
"""Parameters of a labeling function; at a reset those of the step before are None."""

_SIGNATURES = " or ".join(f"({', '.join(names)})" for names in (ONE, STEP, STEP_AND_INFO))


class LabelFunction:
    """Call a labeling function with the parameters that it takes; `reads` names them.

    With `checked`, its errors become trace errors that show the call.

    >>> LabelFunction(lambda observation: "key").after_step(0, 1, 0.0, 2, {})
    frozenset({'key'})
    """

    def __init__(self, labeling_fn: Callable[..., Any], *, checked: bool = True) -> None:
        self._labeling_fn, self._checked = labeling_fn, checked
        self.reads = parameters_of(labeling_fn)

    @property
    def of_step(self) -> bool:
        """Whether labels depend on more than the observation that a step led to."""
        return len(self.reads) > 1

    def at_reset(self, observation: Any, info: Mapping[str, Any]) -> Label:
        """Return the label of an episode's first observation."""
        if self.reads == STEP:
            return NO_EVENT
        if self.reads == STEP_AND_INFO:
            return self._call(None, None, None, observation, info)
        return self._call(observation)

    def after_step(
        self,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any,
        info: Mapping[str, Any],
    ) -> Label:
        """Return the label of the observation that a step led to."""
        if self.reads == STEP:
            return self._call(observation, action, next_observation)
        if self.reads == STEP_AND_INFO:
            return self._call(observation, action, reward, next_observation, info)
        return self._call(next_observation)

    def _call(self, *arguments: Any) -> Label:
        if not self._checked:
            return self._labeling_fn(*arguments)  # type: ignore[no-any-return]
        try:
            label = self._labeling_fn(*arguments)
        except Exception as error:
            raise TraceError(f"{_call_text(arguments)} raised {error_text(error)}") from error
        try:
            return as_label(label)
        except TraceError as error:
            gave = f"{_call_text(arguments)} gave {reprlib.repr(label)}"
            raise TraceError(f"{gave}: {error}") from error


def error_text(error: BaseException) -> str:
    """Return an exception that a user's code raised as one line."""
    return f"{type(error).__name__}: {short(str(error), 400)}".removesuffix(": ")


def parameters_of(labeling_fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameters of a labeling function: `ONE`, `STEP` or `STEP_AND_INFO`.

    >>> parameters_of(lambda observation: "key")
    ('observation',)
    """
    if not callable(labeling_fn):
        raise OptionError(
            f"labeling_fn is a {type(labeling_fn).__name__}: give a function of {_SIGNATURES}"
        )
    try:
        parameters = inspect.signature(labeling_fn).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return ONE
    # Parameters with defaults are often constants bound to a lambda, so they do not count.
    required = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    signatures = {0: ONE, **{len(names): names for names in (ONE, STEP, STEP_AND_INFO)}}
    if len(required) not in signatures:
        raise OptionError(f"labeling_fn has {len(required)} parameters: give it {_SIGNATURES}")
    return signatures[len(required)]


def _call_text(arguments: tuple[Any, ...]) -> str:
    return f"labeling_fn({', '.join(map(reprlib.repr, arguments))})"

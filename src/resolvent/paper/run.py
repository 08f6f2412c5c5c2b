"""One run of an experiment: its call, as JSON values, and its name."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Run:
    """One method in one setting, once.

    `call` names a function as "module:function". It gets a `Clock` and the arguments,
    and returns JSON values; only its work under the clock is measured. The modules in
    `needs` are imported before that, and `extra` installs them.
    """

    experiment: str
    setting: str
    method: str
    repetition: int
    call: str
    arguments: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    extra: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that identify the run."""
        return {
            "experiment": self.experiment,
            "setting": self.setting,
            "method": self.method,
            "repetition": self.repetition,
        }

    @property
    def file(self) -> str:
        """The path of its record, in the folder of results."""
        return f"runs/{self.experiment}/{self.setting}--{self.method}--{self.repetition}.json"

    def __str__(self) -> str:
        return f"{self.experiment}, {self.setting}, {self.method}, repetition {self.repetition}"


def function_called(path: str) -> Callable[..., Any]:
    """Return the function that "module:function" names.

    >>> function_called("math:sqrt")(9)
    3.0
    """
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function

"""What a model of the bank is: rules over hidden variables, explored into a Mealy machine."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mealy_machine import Mealy

Rules = Callable[[Any, str], tuple[Any, str]]


@dataclass(frozen=True)
class Model:
    """A system by its rules: `respond(state, input)` is the next state and the output."""

    name: str
    after: str
    start: Hashable
    inputs: tuple[str, ...]
    respond: Rules

    @cached_property
    def machine(self) -> Mealy:
        """The smallest machine that does what the rules say."""
        return Mealy.explored(self.start, self.inputs, self.respond)


BANK: dict[str, Model] = {}
"""All models by name."""


def model(name: str, *, after: str, start: Hashable, inputs: str) -> Callable[[Rules], Rules]:
    """Enter rules into the bank; `inputs` are separated by commas or line breaks."""

    def enter(respond: Rules) -> Rules:
        if name in BANK:
            raise ValueError(f"there are two models called {name}: rename one")
        names = tuple(one.strip() for one in inputs.replace("\n", ",").split(",") if one.strip())
        BANK[name] = Model(name, after, start, names, respond)
        return respond

    return enter

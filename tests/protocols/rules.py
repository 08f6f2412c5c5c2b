"""What a model of the bank is: rules over hidden variables, explored into a Mealy machine."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import resolvent as rs
from mealy_machine import Mealy

Rules = Callable[[Any, str], tuple[Any, str]]

LENGTHS = (20, 60)
"""The shortest and the longest walk: real systems are set back soon, and sinks have no end."""


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

    def walks(self, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the inputs and outputs of random walks, and where each walk begins."""
        return self.machine.walks(steps, seed, LENGTHS)

    def traces(self, steps: int, seed: int) -> rs.TraceSet:
        """Return random walks as `rs.read_log` reads them, the output in column "output"."""
        return self.machine.traces(steps, seed, LENGTHS)


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

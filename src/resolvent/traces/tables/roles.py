"""Which columns of a table hold what: names that a caller gives → `Roles`, checked."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from resolvent.arguments import is_single, shown
from resolvent.errors import OptionError
from resolvent.traces.column_names import RESERVED, check_column_name
from resolvent.traces.symbols import Symbol

Names = str | Sequence[str]

Name = str | int
"""What a caller may call a column; the columns of a pandas frame often are 0, 1, 2."""

NAME_COLUMNS = (
    "say what they hold by --observation, --action, --reward and --label, or by --input and "
    "--output for a log (rs.read_table and rs.read_log in Python)"
)
"""What to do with a table that was given as if it were traces."""


@dataclass(frozen=True)
class Spelled:
    """A value as a command line spells it, of the type that the values beside it have.

    >>> five = Spelled("5")
    >>> five.like(7), five.like(7.5), five.like("7"), Spelled("[5, 1]").like(("7", 1.5))
    (5, 5.0, '5', ('5', 1.0))
    """

    text: str

    def like(self, example: Any) -> Any:
        """Return the value, of the type of an example if it can be of that type."""
        if isinstance(example, bool) and self.text.lower() in ("true", "false"):
            return self.text.lower() == "true"
        try:
            value = json.loads(self.text)
        except ValueError:
            return self.text
        if isinstance(example, str):
            return value if isinstance(value, str) else self.text
        if isinstance(example, float) and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(example, tuple) and isinstance(value, list) and len(value) == len(example):
            parts = zip(value, example, strict=True)
            return tuple(Spelled(json.dumps(part)).like(beside) for part, beside in parts)
        return value


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; the fields are the arguments of `read_table`.

    >>> roles = Roles(observation=("x", "y"), action="move", outputs={"cost": "COST_EUR"})
    >>> roles.of_steps, roles.wanted, roles.column_of_output
    (('move', 'COST_EUR'), ('x', 'y', 'move', 'COST_EUR'), {'cost': 'COST_EUR'})
    """

    episode: Names | None = None
    order: Names | None = None
    observation: Names | None = None
    action: Names | None = None
    reward: str | None = None
    label: Names | None = None
    outputs: Names | Mapping[str, str] = ()
    terminated: str | None = None
    truncated: str | None = None
    next_observation: Names | None = None
    next_label: Names | None = None
    label_separator: str | None = None
    final_observation: Symbol | Spelled | None = None

    def __post_init__(self) -> None:
        for name in self.column_of_output:
            if name in RESERVED:
                raise OptionError(
                    f"an output cannot be called `{name}`, which means something else in traces: "
                    f"give it another name, {{'answer': '{name}'}}, or answer={name} on the "
                    f"command line"
                )
            check_column_name(name)
        if not (self.observation or self.reward or self.column_of_output):
            raise OptionError(
                "nothing to predict: name a column for observation, reward or outputs"
            )
        if self.next_observation is not None:
            if self.observation is None:
                raise OptionError("next_observation needs observation: name that column, too")
            if self.final_observation is not None:
                raise OptionError(
                    "next_observation and final_observation both say what comes last: leave out one"
                )
        if self.label is not None and self.next_label is not None:
            raise OptionError("label and next_label both say what happened: leave out one")
        separator = self.label_separator
        if separator is not None and not (isinstance(separator, str) and separator):
            raise OptionError(f"label_separator={shown(separator)}: give a text such as ','")

    @property
    def column_of_output(self) -> dict[str, str]:
        """The column that holds each output, by the name that the traces give it."""
        if isinstance(self.outputs, Mapping):
            return dict(self.outputs)
        return {name: name for name in as_names(self.outputs)}

    @property
    def of_steps(self) -> tuple[str, ...]:
        """Columns with a value for each step, which the row of a final observation lacks."""
        outputs = tuple(self.column_of_output.values())
        return as_names(self.action) + as_names(self.reward) + outputs

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns that have to be read, each once."""
        named: Iterable[Any] = (
            *(self.episode, self.order, self.observation, self.of_steps),
            *(self.label, self.terminated, self.truncated),
            *(self.next_observation, self.next_label),
        )
        return tuple(dict.fromkeys(name for names in named for name in as_names(names)))


def as_names(names: Names | None) -> tuple[str, ...]:
    """Return the columns that a caller names, however many they are.

    >>> as_names("x"), as_names(["x", "y"]), as_names(None)
    (('x',), ('x', 'y'), ())
    """
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def named_one(name: Any, role: str) -> str | None:
    """Return the one column that a caller names for a role, as text; None if there is none.

    >>> named_one("pay", "reward"), named_one(0, "reward"), named_one(None, "reward")
    ('pay', '0', None)
    """
    return None if name is None else _name(name, role)


def named(names: Any, role: str, *, may_be_empty: bool = False) -> Names | None:
    """Return the column or columns that a caller names for a role, as texts; None if none.

    >>> named("see", "observation"), named([0, 1], "observation")
    ('see', ('0', '1'))
    """
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable) or is_single(names):
        return _name(names, role)
    several = tuple(_name(name, role) for name in names)
    if not (several or may_be_empty):
        raise OptionError(f"{role} is an empty list: name at least one column")
    return several


def named_outputs(outputs: Any, role: str) -> Names | dict[str, str]:
    """Return the columns that a caller names as outputs, by other names if they are given.

    >>> named_outputs({"cost": 3}, "outputs"), named_outputs(3, "outputs")
    ({'cost': '3'}, '3')
    """
    if isinstance(outputs, Mapping):
        return {name: _name(column, f"{role} {name!r}") for name, column in outputs.items()}
    return named(outputs, role, may_be_empty=True) or ()


def _name(name: Any, role: str) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, Integral) and not isinstance(name, bool):
        return str(int(name))
    raise OptionError(f"{role} is {shown(name)}, which names no column: give the name of one")

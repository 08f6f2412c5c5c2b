"""One trace: the observations, labels, actions and step columns of one episode."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from resolvent.errors import TraceError, located
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    REWARD,
    check_column_name,
    in_column_order,
)
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol, finite_reward


class FurtherColumns(Mapping[str, tuple[Symbol, ...]]):
    """Immutable, hashable named columns of a trace."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, tuple[Symbol, ...]]) -> None:
        self._columns = {name: columns[name] for name in sorted(columns)}

    def __getitem__(self, name: str) -> tuple[Symbol, ...]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __hash__(self) -> int:
        return hash(tuple(self._columns.items()))

    def __repr__(self) -> str:
        return repr(self._columns)


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """One episode: T actions between T+1 observations and labels.

    Each action may have a reward, and an entry in any number of further columns, such as
    its cost. Arguments may be NumPy values, lists and sets, as environments return them;
    fields hold plain hashable symbols.

    >>> trace = Trace(["hall", "attic"], [None, "key"], ["up"], [1], columns={"cost": [3]})
    >>> len(trace), trace.labels, trace.rewards, trace.columns["cost"]
    (1, (frozenset(), frozenset({'key'})), (1.0,), (3,))
    >>> Trace(["hall", "attic"], [None, "key"], ["up"]).rewards is None
    True
    """

    observations: tuple[Symbol, ...]
    labels: tuple[Label, ...]
    actions: tuple[Symbol, ...]
    rewards: tuple[float, ...] | None
    terminated: bool
    truncated: bool
    columns: Mapping[str, tuple[Symbol, ...]]

    def __init__(
        self,
        observations: Iterable[Any],
        labels: Iterable[Any],
        actions: Iterable[Any],
        rewards: Iterable[float] | None = None,
        terminated: bool = False,
        truncated: bool = False,
        *,
        columns: Mapping[str, Iterable[Any]] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "observations", tuple(map(as_symbol, _row("observations", observations))))
        put(self, "labels", tuple(map(as_label, _row("labels", labels))))
        put(self, "actions", tuple(map(as_symbol, _row("actions", actions))))
        numbers = None if rewards is None else each_step(finite_reward, _row("rewards", rewards))
        put(self, "rewards", None if numbers is None else tuple(numbers))
        put(self, "terminated", _flag("terminated", terminated))
        put(self, "truncated", _flag("truncated", truncated))
        if not isinstance(columns, Mapping | None):
            raise TraceError(f"columns are {type(columns).__name__}: give values by column name")
        further = {
            check_column_name(name): tuple(map(as_symbol, _row(name, values)))
            for name, values in (columns or {}).items()
        }
        put(self, "columns", FurtherColumns(further))
        check_lengths(
            len(self.observations),
            len(self.labels),
            len(self.actions),
            {name: len(values) for name, values in self.step_columns.items()},
        )

    @property
    def all_columns(self) -> dict[str, tuple[Any, ...]]:
        """All columns by name, as a `TraceSet` has them."""
        return {
            OBSERVATION: self.observations,
            LABEL: self.labels,
            ACTION: self.actions,
            **self.step_columns,
        }

    @property
    def step_columns(self) -> dict[str, tuple[Symbol, ...]]:
        """The columns of steps beside the actions: rewards, if any, and further columns."""
        rewards = {} if self.rewards is None else {REWARD: self.rewards}
        return in_column_order({**rewards, **self.columns})

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        names = (field.name for field in fields(self) if field.name != "columns" or self.columns)
        return f"Trace({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _row(name: str, values: Any) -> Iterator[Any]:
    try:
        return iter(values)
    except TypeError:
        type_name = type(values).__name__
        raise TraceError(f"{name}: {type_name} is not a list of values: give a list") from None


def each_step(function: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """Apply a function to the value of each step; a `TraceError` names the step."""
    results = []
    for step, value in enumerate(values):
        try:
            results.append(function(value))
        except TraceError as error:
            raise located(f"step {step}", error) from error
    return results


def _flag(name: str, value: Any) -> bool:
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise TraceError(f"{name} is {type(value).__name__}: give True or False") from None


def check_lengths(
    observations: int, labels: int, actions: int, step_columns: Mapping[str, int] | None = None
) -> None:
    """Raise `TraceError` unless there are T+1, T+1 and T ≥ 1 entries, and T in each step column."""
    if labels != observations:
        raise TraceError(
            f"{observations} observations but {labels} labels: each observation needs its label"
        )
    for name, count in (step_columns or {}).items():
        if count != actions:
            text = "rewards" if name == REWARD else f"in the column `{name}`"
            pronoun = "reward" if name == REWARD else "entry"
            raise TraceError(
                f"{actions} actions but {count} {text}: each action needs its {pronoun}"
            )
    if observations == 0:
        raise TraceError("the trace is empty: leave it out")
    if actions == 0 and observations == 1:
        raise TraceError("the trace has one observation and no action: leave it out")
    if observations != actions + 1:
        raise TraceError(
            f"{observations} observations for {actions} actions: "
            f"a trace has one more observation than actions (the final one)"
        )

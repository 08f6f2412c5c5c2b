"""Records: compared by content if they hold arrays, and written as JSON values."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from resolvent._util.text import listed, short
from resolvent.errors import ModelError

Record = TypeVar("Record")


def to_builtins(
    record: Any,
    attributes: Iterable[str] | None = None,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
    optional: Collection[str] = (),
) -> dict[str, Any]:
    """Return attributes of a record as JSON values, by default all fields.

    `names` are other names for JSON; attributes in `optional` are omitted if they are None. Records
    inside are written by their `as_dict`, and numbers that are not finite as None.
    """
    if attributes is None:
        attributes = (
            [field.name for field in fields(record)] if is_dataclass(record) else record._fields
        )
    return {
        names.get(name, name): builtin(getattr(record, name))
        for name in attributes
        if name not in optional or getattr(record, name) is not None
    }


def builtin(value: Any) -> Any:
    """Return a value as JSON has it: sets are sorted, other collections keep their order."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, Enum | Path):
        return str(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: builtin(item) for key, item in value.items()}
    if is_dataclass(value) or hasattr(value, "_fields"):
        return to_builtins(value)
    if isinstance(value, set | frozenset):
        return sorted(map(builtin, value))
    if isinstance(value, list | tuple):
        return list(map(builtin, value))
    return value


class ByMachine(Mapping[str, Record]):
    """Records of machines by the names of these; errors list the names."""

    @property
    @abstractmethod
    def _by_name(self) -> Mapping[str, Record]: ...

    @property
    def transition(self) -> Record:
        """The record of the Transition Machine."""
        return self._required("transition")

    @property
    def reward(self) -> Record:
        """The record of the Reward Machine."""
        return self._required("reward")

    def __getitem__(self, name: str) -> Record:
        if name not in self._by_name:
            raise KeyError(f"{name!r}: the machines are {listed(map(repr, self))}")
        return self._by_name[name]

    def _required(self, name: str) -> Record:
        if name not in self:
            raise ModelError(f"there is no {short(name)} machine here: there is {listed(self)}")
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


class ByValue:
    """Makes frozen dataclasses equal if all fields with `compare` are, arrays and NaN included."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)  # type: ignore[arg-type]
            if field.compare
        )

    def __hash__(self) -> int:
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return hash(tuple(array.shape for array in values if isinstance(array, np.ndarray)))


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if type(left) is dict and type(right) is dict:
        return list(left) == list(right) and all(_equal(left[key], right[key]) for key in left)
    return bool(left == right)

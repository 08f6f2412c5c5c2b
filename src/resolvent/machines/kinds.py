"""The column that a machine predicts → what the machine is called."""

from typing import Protocol


class _Predicts(Protocol):
    @property
    def predicts(self) -> str: ...


class Kind:
    """The word for a machine, or for a class of machines, in texts, files and mappings."""

    def __get__(self, machine: _Predicts | None, owner: type[_Predicts]) -> str:
        return kind_of(owner.predicts if machine is None else machine.predicts)  # type: ignore[arg-type]


def kind_of(predicts: str) -> str:
    """Return what the machine that predicts a column is called.

    >>> kind_of("observation"), kind_of("reward"), kind_of("cost")
    ('transition', 'reward', 'cost')
    """
    return "transition" if predicts == "observation" else predicts

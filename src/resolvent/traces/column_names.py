"""Names of columns: which are free to use, in which order they come, and which traces have.

Beside observations, labels and actions, traces have columns with an entry for
each step: `reward`, and further ones that the user names.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from resolvent.arguments import is_single, shown
from resolvent.errors import TraceError
from resolvent.traces.symbols import as_symbol
from resolvent.wording import listed, short

T = TypeVar("T")

OBSERVATION, LABEL, ACTION, REWARD = "observation", "label", "action", "reward"
SEEN = (OBSERVATION, LABEL)
"""Columns with an entry before the first step and one after each."""
BASIC = (OBSERVATION, LABEL, ACTION)
"""Columns that all traces have."""
TERMINATED = "terminated"
ALWAYS_READ = (OBSERVATION, REWARD, TERMINATED)
"""What machines can predict of any traces; all else is read only when it is named."""

_NAMED_BY_US = (*BASIC, REWARD)
RESERVED = frozenset(
    {*_NAMED_BY_US, *(f"{name}s" for name in _NAMED_BY_US)}
    | {TERMINATED, "truncated", "episode", "step"}
)


def check_column_name(name: Any) -> str:
    """Return the name if a further column may have it.

    >>> check_column_name("cost")
    'cost'
    >>> check_column_name("step")
    Traceback (most recent call last):
    resolvent.errors.TraceError: a column cannot be called `step`, which means something \
else in traces: give it another name
    """
    if not isinstance(name, str) or not name:
        raise TraceError(
            f"{shown(name)} cannot be the name of a column: use a string that is not empty"
        )
    if name in RESERVED:
        raise TraceError(
            f"a column cannot be called `{name}`, which means something else in traces: "
            f"give it another name"
        )
    return str(as_symbol(name))


def check_column_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Return the names that a caller asks for, each once, in order; a string is not a list."""
    if isinstance(names, str):
        raise TraceError(f"columns={shown(names)} is one string: give a list of names, [{names!r}]")
    if not isinstance(names, Iterable) or is_single(names):
        raise TraceError(f"columns={shown(names)}: give a list of names")
    return tuple(sorted(set(map(check_column_name, names))))


def in_column_order(columns: Mapping[str, T]) -> dict[str, T]:
    """Return step columns with rewards first and the others by name.

    >>> list(in_column_order({"fault": 0, "cost": 1, "reward": 2}))
    ['reward', 'cost', 'fault']
    """
    return {
        name: columns[name] for name in sorted(columns, key=lambda name: (name != REWARD, name))
    }


def default_outputs(columns: Iterable[str], *, observations: int) -> tuple[str, ...]:
    """Return what machines predict unless told otherwise: the next observation and the reward.

    Of a log, which has one observation throughout, no rewards and further columns, nothing
    but these columns is left to predict.

    >>> default_outputs(["reward", "cost"], observations=5)
    ('observation', 'reward')
    >>> default_outputs(["answer", "fault"], observations=1)
    ('answer', 'fault')
    """
    columns = tuple(columns)
    if columns and REWARD not in columns and observations == 1:
        return columns
    return (OBSERVATION, REWARD) if REWARD in columns else (OBSERVATION,)


def column_text(name: str) -> str:
    """Return what an error calls a column.

    >>> column_text("reward"), column_text("cost")
    ('rewards', 'column `cost`')
    """
    return f"{name}s" if name in _NAMED_BY_US else f"column `{short(name)}`"


def no_column(name: str, there: Iterable[str]) -> TraceError:
    """Return the error that says a column is missing, and which there are.

    >>> print(no_column("cots", ["cost", "fault"]))
    the traces have no column `cots`: there are cost, fault
    """
    names = list(there)
    found = "there are no further columns"
    if names:
        found = f"there {'is' if len(names) == 1 else 'are'} {listed(names)}"
    return TraceError(f"the traces have no {column_text(name)}: {found}")


def check_same_columns(names: Iterable[str], others: Iterable[str], of_others: str) -> None:
    """Raise `TraceError` unless traces have the step columns that others have.

    >>> check_same_columns(["cost"], ["reward", "cost"], "trace 0")
    Traceback (most recent call last):
    resolvent.errors.TraceError: no rewards, but trace 0 has: give them to all traces or to none
    """
    names, others = set(names), set(others)
    for name in in_column_order(dict.fromkeys(names ^ others)):
        text, them = column_text(name), "them" if name == REWARD else "it"
        here = f"no {text}, but {of_others} has"
        if name in names:
            here = f"{text} here, but {of_others} has none"
        raise TraceError(f"{here}: give {them} to all traces or to none")

"""The values of several trace sets → one code for each."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from resolvent import _core
from resolvent.errors import locating
from resolvent.traces.column_names import check_same_columns, column_text
from resolvent.traces.vocabulary import Codes, Interner

if TYPE_CHECKING:
    from resolvent.traces.trace_set import TraceSet


class CommonValues:
    """Puts the values of several trace sets together, so that one code stands for each.

    All sets have to have the same columns: those of the first.

    >>> from resolvent.traces import Trace, TraceSet
    >>> one = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
    >>> other = TraceSet([Trace(["attic", "cellar"], [None, None], ["down"], [1])])
    >>> common = CommonValues()
    >>> common.add(one.values, "one"), common.add(other.values, "other")
    (None, None)
    >>> common.values()["observation"], common.codes(other)["observation"].tolist()
    (['attic', 'hall', 'cellar'], [0, 2])
    """

    def __init__(self) -> None:
        self._interners: dict[str, Interner[Any]] = {}
        self._first = ""

    def add(self, values: Mapping[str, Sequence[Any]], called: str) -> None:
        """Take in the values of a trace set's columns; an error calls it by its name."""
        if not self._interners:
            self._first = called
            self._interners = {name: Interner() for name in values}
        with locating(called):
            check_same_columns(values, self._interners, self._first)
        for name, interner in self._interners.items():
            with locating(f"{called}, joined to those before it: {column_text(name)}"):
                interner.encode(values[name])

    def values(self) -> dict[str, list[Any]]:
        """Return the values of every column, each at the position that is its code."""
        return {name: one.values_in_order() for name, one in self._interners.items()}

    @property
    def made_floats(self) -> bool:
        """Whether some sets have ints where others have floats, so that values are not theirs."""
        return any(one.mixed for one in self._interners.values())

    def codes(self, traces: "TraceSet") -> dict[str, Codes]:
        """Return the columns of a trace set that was added, in the common codes."""
        return {
            name: _core.recode(
                codes, np.array([self._interners[name][one] for one in values], np.int32)
            )
            for name, (values, codes) in traces.all_columns.items()
        }

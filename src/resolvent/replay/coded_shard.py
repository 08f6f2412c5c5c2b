"""Traces in codes that several shards share, ready for the compiled pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.parallel import available_cores
from resolvent._util.text import listed, short
from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.preprocess.samples import rounded
from resolvent.traces import Codes, Label, Symbol, TraceSet, Vocabulary
from resolvent.traces.digest import content_hashes, core_columns
from resolvent.traces.schema import ACTION, BASIC_COLUMNS, LABEL, OBSERVATION, TERMINATED
from resolvent.traces.vocabulary import codes_of

_BOOLEANS = Vocabulary([False, True])


@dataclass(frozen=True)
class Alphabets:
    """The values of all shards together; a value's code is its position.

    `values` are those of every column, by the names of `TraceSet.all_columns`; `rounded` are the
    outputs of machines instead, for columns whose values are rounded.
    """

    values: Mapping[str, Vocabulary[Any]]
    rounded: Mapping[str, Vocabulary[Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, values: Mapping[str, Vocabulary[Any]], rounding: Mapping[str, int] | None = None
    ) -> "Alphabets":
        """Return the alphabets of values, some of which machines see rounded to some decimals."""
        rounded_columns = {
            name: Vocabulary(sorted(set(rounded(values[name], digits))))
            for name, digits in (rounding or {}).items()
            if name in values and name not in BASIC_COLUMNS
        }
        return cls(values, rounded_columns)

    @property
    def observations(self) -> Vocabulary[Symbol]:
        """All observations."""
        return self.values[OBSERVATION]

    @property
    def labels(self) -> Vocabulary[Label]:
        """All labels."""
        return self.values[LABEL]

    @property
    def actions(self) -> Vocabulary[Symbol]:
        """All actions."""
        return self.values[ACTION]

    @property
    def columns(self) -> list[str]:
        """The names of rewards and further columns."""
        return [name for name in self.values if name not in BASIC_COLUMNS]

    def outputs(self, column: str) -> Vocabulary[Any]:
        """Return the outputs of a machine that predicts a column."""
        if column == TERMINATED:
            return _BOOLEANS
        return self.rounded[column] if column in self.rounded else self.values[column]

    def column_number(self, column: str) -> int:
        """Return the number of a predicted column in the compiled core."""
        if column == OBSERVATION:
            return _core.NEXT_OBSERVATION
        if column == TERMINATED:
            return _core.WHETHER_TERMINATED
        return self.columns.index(column)


@dataclass(frozen=True, eq=False)
class CodedShard:
    """A shard in common codes, ready to be replayed.

    `first` is the number of its first trace among all traces; `codes` are the codes of every
    column by name; `rounding` is the number of decimals to which machines see a column.
    """

    first: int
    traces: TraceSet
    codes: Mapping[str, Codes]
    alphabets: Alphabets
    rounding: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def alone(cls, traces: TraceSet, rounding: Mapping[str, int] | None = None) -> "CodedShard":
        """Return a trace set as a shard in its own codes."""
        alphabets = Alphabets.of(traces.values, rounding)
        return cls(0, traces, traces.codes, alphabets, rounding or {})

    @classmethod
    def among(
        cls, first: int, traces: TraceSet, alphabets: Alphabets, rounding: Mapping[str, int]
    ) -> "CodedShard":
        """Return a trace set as a shard in shared codes."""
        codes = traces.codes
        for name, values in traces.values.items():
            if values != (shared := alphabets.values[name]):
                codes[name] = _core.recode(codes[name], codes_of(values, shared, -1))
        return cls(first, traces, codes, alphabets, rounding)

    @cached_property
    def key(self) -> NDArray[np.int64]:
        """A hash of the content of each trace."""
        columns, values = self.columns, self.alphabets.values
        if self.alphabets.rounded:  # `columns` are rounded, and traces may differ otherwise
            sizes = {name: len(column) for name, column in values.items()}
            columns = core_columns(self.traces, self.codes, sizes)
        return content_hashes(columns, values, available_cores())

    @cached_property
    def length(self) -> NDArray[np.int64]:
        """The number of steps of each trace."""
        return np.diff(self.traces.offsets)

    @cached_property
    def rank(self) -> Codes:
        """The rank of each trace by length and key, whatever the order of traces."""
        rank = np.empty(len(self.traces), np.int32)
        rank[np.lexsort((self.key, self.length))] = np.arange(len(rank), dtype=np.int32)
        return rank

    @cached_property
    def columns(self) -> _core.TraceColumns:
        """The columns as the core replays them, rounded as machines see them."""
        alphabets = self.alphabets
        sizes = {name: len(alphabets.outputs(name)) for name in alphabets.values}
        return core_columns(self.traces, self.rounded_codes, sizes)

    @cached_property
    def rounded_codes(self) -> Mapping[str, Codes]:
        """The codes of every column, rounded as machines see them."""
        alphabets, codes = self.alphabets, dict(self.codes)
        for name, outputs in alphabets.rounded.items():
            values = rounded(alphabets.values[name], self.rounding[name])
            codes[name] = _core.recode(codes[name], codes_of(values, outputs, -1))
        return codes

    def __getstate__(self) -> dict[str, Any]:
        # The core's columns cannot be pickled; they are computed again on demand.
        fields = ("first", "traces", "codes", "alphabets", "rounding")
        return {name: self.__dict__[name] for name in fields}


def rounding_of(machines: Machines) -> dict[str, int]:
    """Return the number of decimals to which machines see the columns that they predict."""
    return {
        machine.predicts: machine.digits
        for machine in machines.values()
        if machine.digits is not None
    }


def check_columns(machines: Machines, alphabets: Alphabets) -> None:
    """Refuse traces without a column that one of the machines predicts."""
    columns = (OBSERVATION, TERMINATED, *alphabets.columns)
    for name, machine in machines.items():
        if machine.predicts not in columns:
            raise ModelError(
                f"the {short(name)} machine predicts {short(machine.predicts)}, which these "
                f"traces do not have (they have {listed(columns)}): read that column with them"
            )

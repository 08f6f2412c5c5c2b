"""A set of traces as columns: integer codes over vocabularies.

Steps of all traces lie one after another. Trace `i` owns steps
`offsets[i]:offsets[i + 1]` of `action_codes` and of each of `columns`, and one
position more of `observation_codes` and `label_codes`, from
`offsets[i] + i` on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.arguments import check_arguments, shown
from resolvent.errors import MissingExtra, OptionError, TraceError, locating
from resolvent.traces.column_names import (
    ACTION,
    BASIC,
    LABEL,
    OBSERVATION,
    REWARD,
    SEEN,
    TERMINATED,
    check_column_name,
    check_same_columns,
    column_text,
    in_column_order,
    no_column,
)
from resolvent.traces.common_values import CommonValues
from resolvent.traces.digest import TraceDigest, digest_in_sequence
from resolvent.traces.given_columns import (
    Column,
    check_labels,
    coded,
    columns_of,
    flags,
    frozen,
    integers,
    list_of_traces,
    numbers_of_traces,
    own_array,
    own_column,
)
from resolvent.traces.in_notebooks import html_of_traces
from resolvent.traces.symbols import Label, Symbol, label_order, symbol_order
from resolvent.traces.trace import Trace
from resolvent.traces.vocabulary import Codes, Vocabulary, canonical
from resolvent.wording import short

_ORDERS: dict[str, Callable[[Any], Any]] = {LABEL: label_order, REWARD: float}


class StepColumn(NamedTuple):
    """One column of a trace set: its distinct values, and the code of each step's."""

    values: Vocabulary[Any]
    codes: Codes


class TraceSet(Sequence[Trace]):
    """An immutable set of traces, stored by column.

    Vocabularies are sorted and hold exactly the values that occur. `columns` has
    what there is of each step beside its action: `"reward"`, if the traces have
    rewards, and then further columns by name. All traces have the same ones.

    >>> traces = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
    >>> len(traces), traces.steps, traces.observations[0], traces[0].actions
    (1, 1, 'attic', ('up',))
    >>> traces.columns["reward"].values
    Vocabulary([1.0])
    """

    observations: Vocabulary[Symbol]
    labels: Vocabulary[Label]
    actions: Vocabulary[Symbol]
    observation_codes: Codes
    label_codes: Codes
    action_codes: Codes
    columns: Mapping[str, StepColumn]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __init__(self, traces: Iterable[Trace] = ()) -> None:
        traces = list_of_traces(traces)
        held = [columns_of(trace) for trace in traces]
        names = tuple(held[0]) if held else (*BASIC, REWARD)
        for number, columns in enumerate(held):
            with locating(f"trace {number}"):
                check_same_columns(columns, names, "trace 0")
        self._take_over(
            {name: coded(name, [columns[name] for columns in held]) for name in names},
            offsets=np.cumsum([0, *map(len, traces)]),
            terminated=[trace.terminated for trace in traces],
            truncated=[trace.truncated for trace in traces],
        )

    @classmethod
    def from_columns(
        cls,
        observations: Column,
        labels: Column,
        actions: Column,
        rewards: Column | None = None,
        *,
        columns: Mapping[str, Column] = MappingProxyType({}),
        offsets: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
    ) -> "TraceSet":
        """Build from columns that are in memory already: (values, codes) pairs.

        Values may come in any order and may include ones that no code uses.
        All arrays are copied: what becomes of the caller's own later changes nothing here.
        """
        given = {OBSERVATION: observations, LABEL: labels, ACTION: actions}
        if rewards is not None:
            given[REWARD] = rewards
        check_arguments(TraceSet.from_columns, {"columns": columns})
        given |= {check_column_name(name): column for name, column in columns.items()}
        made = cls.taking_over(
            {name: own_column(name, column) for name, column in given.items()},
            offsets=own_array("offsets", offsets),
            terminated=own_array("terminated", terminated),
            truncated=own_array("truncated", truncated),
        )
        for reward in made.rewards if rewards is not None else ():
            if not isfinite(reward):
                raise TraceError(f"column reward: {reward} is among it; rewards must be finite")
        return made

    @classmethod
    def taking_over(
        cls,
        columns: Mapping[str, Column],
        *,
        offsets: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        in_order: bool = False,
    ) -> "TraceSet":
        """Build from columns by name, and keep their arrays: nobody may write to them again.

        There must be `"observation"`, `"label"` and `"action"`; all others are of steps. Their
        values are `in_order` if they are those of another trace set.
        """
        traces = cls.__new__(cls)
        traces._take_over(
            columns,
            offsets=offsets,
            terminated=terminated,
            truncated=truncated,
            in_order=in_order,
        )
        return traces

    def _take_over(
        self,
        columns: Mapping[str, Column],
        *,
        offsets: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        in_order: bool = False,
    ) -> None:
        self.offsets = frozen(integers("offsets", offsets))
        self.terminated = frozen(flags("terminated", terminated))
        self.truncated = frozen(flags("truncated", truncated))
        found: dict[str, StepColumn] = {}
        check_labels(len(columns[LABEL][0]))
        for name, (values, codes) in columns.items():
            order = None if in_order else _ORDERS.get(name, symbol_order)
            with locating(column_text(name)):
                try:
                    vocabulary, kept = canonical(values, codes, order)
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise TraceError(f"the values are not what they should be: {error}") from error
            found[name] = StepColumn(vocabulary, frozen(kept))
        self.observations, self.observation_codes = found.pop(OBSERVATION)
        self.labels, self.label_codes = found.pop(LABEL)
        self.actions, self.action_codes = found.pop(ACTION)
        self.columns = MappingProxyType(in_column_order(found))
        self._check_lengths()

    def _check_lengths(self) -> None:
        count, steps = len(self.offsets) - 1, self.steps
        of_steps = (self.action_codes, *(column.codes for column in self.columns.values()))
        if not (
            len(self.terminated) == len(self.truncated) == count
            and all(len(codes) == steps for codes in of_steps)
            and len(self.observation_codes) == len(self.label_codes) == steps + count
            and self.offsets[0] == 0
            and bool(np.all(np.diff(self.offsets) >= 1))
        ):
            raise TraceError("the columns of a trace set do not fit its offsets")

    @property
    def rewards(self) -> Vocabulary[float]:
        """The rewards that occur; `TraceError` for traces without."""
        return self.column(REWARD).values

    @property
    def reward_codes(self) -> Codes:
        """The code of each step's reward; `TraceError` for traces without."""
        return self.column(REWARD).codes

    def column(self, name: str) -> StepColumn:
        """Return a column of steps: `"reward"`, `"terminated"`, or a further one by its name.

        >>> trace = Trace([0, 1, 0], [None] * 3, "ab", terminated=True, columns={"cost": [5, 2]})
        >>> TraceSet([trace]).column("cost")
        StepColumn(values=Vocabulary([2, 5]), codes=array([1, 0], dtype=int32))
        >>> TraceSet([trace]).column("terminated")
        StepColumn(values=Vocabulary([False, True]), codes=array([0, 1], dtype=int32))
        >>> TraceSet([trace]).column("reward")
        Traceback (most recent call last):
        resolvent.errors.TraceError: the traces have no rewards: there are cost, terminated
        """
        if name in self.columns:
            return self.columns[name]
        if name == TERMINATED:
            return self._ends
        raise no_column(name, (*self.columns, TERMINATED))

    @cached_property
    def _ends(self) -> StepColumn:
        codes = np.zeros(self.steps, np.int32)
        codes[self.offsets[1:] - 1] = self.terminated
        values, codes = canonical((False, True), codes, int)
        return StepColumn(values, frozen(codes))

    @property
    def all_columns(self) -> dict[str, StepColumn]:
        """Every column by name: observations, labels and actions, and then those of steps."""
        return {
            OBSERVATION: StepColumn(self.observations, self.observation_codes),
            LABEL: StepColumn(self.labels, self.label_codes),
            ACTION: StepColumn(self.actions, self.action_codes),
            **self.columns,
        }

    @property
    def values(self) -> dict[str, Vocabulary[Any]]:
        """The values of every column, by the names of `all_columns`."""
        return {name: column.values for name, column in self.all_columns.items()}

    @property
    def codes(self) -> dict[str, Codes]:
        """The codes of every column, by the names of `all_columns`."""
        return {name: column.codes for name, column in self.all_columns.items()}

    @property
    def steps(self) -> int:
        """How many actions were taken, over all traces."""
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Trace: ...
    @overload
    def __getitem__(self, index: slice) -> "TraceSet": ...
    def __getitem__(self, index: int | slice) -> "Trace | TraceSet":
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        number = range(len(self))[index]
        start, stop = int(self.offsets[number]), int(self.offsets[number + 1])
        seen = slice(start + number, stop + number + 1)
        columns = {
            name: [values[code] for code in codes[start:stop]]
            for name, (values, codes) in self.columns.items()
        }
        return Trace(
            [self.observations[code] for code in self.observation_codes[seen]],
            [self.labels[code] for code in self.label_codes[seen]],
            [self.actions[code] for code in self.action_codes[start:stop]],
            columns.pop(REWARD, None),
            bool(self.terminated[number]),
            bool(self.truncated[number]),
            columns=columns,
        )

    def __iter__(self) -> Iterator[Trace]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceSet) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        further = "".join(
            f", {len(column.values)} {'rewards' if name == REWARD else f'values of {short(name)}'}"
            for name, column in self.columns.items()
        )
        return (
            f"TraceSet({len(self)} traces, {self.steps} steps, "
            f"{len(self.observations)} observations, {len(self.labels)} labels, "
            f"{len(self.actions)} actions{further})"
        )

    def _repr_html_(self) -> str:
        """Show the first steps of the first traces in a notebook, and how many there are."""
        return html_of_traces(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Made anew from its columns, a copy is frozen as the original is.
        columns = {name: tuple(column) for name, column in self.all_columns.items()}
        return _restored, (columns, self.offsets, self.terminated, self.truncated)

    def __add__(self, other: "TraceSet") -> "TraceSet":
        return TraceSet.concatenate([self, other])

    def at_step(self, codes: Codes) -> Codes:
        """Drop each trace's last entry from an observation or label column: what was at step t."""
        return codes[self._not_last]

    def after_step(self, codes: Codes) -> Codes:
        """Drop each trace's first entry from an observation or label column: what came after t."""
        not_first = np.roll(self._not_last, 1)  # a last entry is followed by a first one
        return codes[not_first]

    def place(self, row: int) -> tuple[int, int]:
        """Return the trace, and the step within it, of a position in the step columns."""
        trace = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return trace, row - int(self.offsets[trace])

    @cached_property
    def _not_last(self) -> NDArray[np.bool_]:
        keep = np.ones(self.steps + len(self), bool)
        keep[self.offsets[1:] + np.arange(len(self))] = False
        return keep

    def take(self, numbers: ArrayLike) -> "TraceSet":
        """Return the traces with these numbers, in this order, repeats allowed.

        Negative numbers count from the end. A row of booleans, one for each
        trace, takes those that are marked.

        >>> traces = TraceSet([Trace([0, 1], [None, None], ["go"], [r]) for r in (0, 1, 2)])
        >>> [trace.rewards for trace in traces.take([2, 0])]
        [(2.0,), (0.0,)]
        >>> [trace.rewards for trace in traces.take([False, True, True])]
        [(1.0,), (2.0,)]
        """
        chosen = numbers_of_traces(numbers, len(self))
        lengths = np.diff(self.offsets)[chosen]
        acted = _ranges(self.offsets[chosen], lengths)
        seen = _ranges(self.offsets[chosen] + chosen, lengths + 1)
        return TraceSet.taking_over(
            {
                name: (values, codes[seen if name in SEEN else acted])
                for name, (values, codes) in self.all_columns.items()
            },
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            terminated=self.terminated[chosen],
            truncated=self.truncated[chosen],
            in_order=True,
        )

    @staticmethod
    def concatenate(sets: Iterable["TraceSet"], names: Sequence[str] | None = None) -> "TraceSet":
        """Join trace sets, one after the other; errors call them by their names.

        All need the same columns, but for a set without traces, which joins any.
        """
        check_arguments(TraceSet.concatenate, {"sets": sets, "names": names})
        sets = list(sets)
        if wrong := [one for one in sets if not isinstance(one, TraceSet)]:
            raise TraceError(f"{shown(wrong[0])} is no TraceSet: join sets of traces")
        if names is not None and len(names) != len(sets):
            raise OptionError(f"{len(names)} names for {len(sets)} sets of traces: name each")
        names = names or [f"trace set {number}" for number in range(len(sets))]
        typical = next(filter(len, sets), sets[0] if sets else TraceSet())
        common = CommonValues()
        for one, called in zip(sets, names, strict=True):
            if len(one) or one is typical:
                common.add(one.values, called)
        parts = [common.codes(one) for one in sets if len(one)] or [typical.codes]
        values = common.values() or typical.values
        starts = np.cumsum([0, *(one.steps for one in sets)])
        return TraceSet.taking_over(
            {
                name: (column, np.concatenate([part[name] for part in parts]))
                for name, column in values.items()
            },
            offsets=np.concatenate(
                [[0], *(one.offsets[1:] + start for one, start in zip(sets, starts, strict=False))]
            ),
            terminated=np.concatenate([np.empty(0, bool), *(one.terminated for one in sets)]),
            truncated=np.concatenate([np.empty(0, bool), *(one.truncated for one in sets)]),
        )

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits that stand for all that the traces hold, on every machine.

        Traces in pieces have it as well, however they are cut.
        """
        from resolvent.traces.choosing import trace_keys

        return TraceDigest.of(trace_keys(self), self.steps).hexdigest(self.values)

    @cached_property
    def digest_in_sequence(self) -> str:
        """The digest that files of machines held at first, before digests could be added up."""
        part = self.codes, np.diff(self.offsets), self.terminated, self.truncated
        return digest_in_sequence(self.values, [part])

    def save(self, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002
        """Write the traces to a file, whole or not at all.

        The format follows the name: `.parquet`, or `.jsonl` with an optional
        `.gz` or `.zst`. Pass `format="parquet"`, `"jsonl"` or `"paper"` to say
        it yourself. `minari:NAMESPACE/NAME-v0` writes a Minari dataset.
        """
        from resolvent.traces.files.any_format import write_traces

        write_traces(self, path, format=format)

    def to_arrow(self) -> Any:
        """Return the traces as a `pyarrow.Table`, laid out as in a Parquet file of them.

        >>> traces = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
        >>> traces.to_arrow().column("observation").to_pylist()
        ['hall', 'attic']
        """
        from resolvent.traces.files.parquet import arrow_table

        return arrow_table(self)

    def to_pandas(self) -> Any:
        """Return the traces as a `pandas.DataFrame`, laid out as in a Parquet file of them.

        >>> traces = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
        >>> traces.to_pandas()[["step", "observation", "action"]].values.tolist()[0]
        [0, 'hall', 'up']
        """
        try:
            import pandas  # noqa: F401 -- Arrow makes the frame, and says less without it
        except ImportError as error:
            raise MissingExtra(
                "to_pandas needs pandas: pip install pandas, or use to_arrow"
            ) from error
        return self.to_arrow().to_pandas()


def _restored(
    columns: dict[str, Column],
    offsets: NDArray[np.int64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
) -> TraceSet:
    return TraceSet.taking_over(
        columns, offsets=offsets, terminated=terminated, truncated=truncated
    )


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate `arange(start, start + length)` for each pair."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    moved: NDArray[np.int64] = np.repeat(starts - (ends - lengths), lengths)
    return np.arange(total) + moved

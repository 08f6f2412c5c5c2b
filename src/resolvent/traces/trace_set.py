"""A set of traces as columns: integer codes over vocabularies.

The steps of all traces are stored one after another. Trace `i` owns steps `offsets[i]:offsets[i +
1]` of `action_codes` and of each of `columns`, and one position more of `observation_codes` and
`label_codes`, from `offsets[i] + i` on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent._util.text import short
from resolvent._util.validation import check_arguments, is_zero_dim, quoted
from resolvent.errors import MissingExtra, OptionError, TraceError, locating
from resolvent.traces.columns import (
    Column,
    EpisodeBuilder,
    as_row,
    as_trace_numbers,
    canonical_column,
    check_labels,
    frozen,
    own_array,
    own_column,
)
from resolvent.traces.digest import TraceDigest, trace_hashes
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    OBSERVED_COLUMNS,
    REWARD,
    TERMINATED,
    check_column_name,
    in_column_order,
    missing_column_error,
)
from resolvent.traces.symbols import Label, Symbol, finite_reward
from resolvent.traces.trace import Trace
from resolvent.traces.vocabulary import Codes, JointVocabularies, Vocabulary


class StepColumn(NamedTuple):
    """One column of a trace set: its distinct values, and a code for each entry."""

    values: Vocabulary[Any]
    codes: Codes


class TraceSet(Sequence[Trace]):
    """An immutable set of traces, stored by column.

    Vocabularies are sorted and hold exactly the values that occur. `columns` has the step
    columns beside the actions: `"reward"`, if the traces have rewards, and then further
    columns by name. All traces have the same columns.

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
        if not isinstance(traces, Iterable) or is_zero_dim(traces):
            raise TraceError(f"{type(traces).__name__} is not a list of traces: give a list")
        episodes = EpisodeBuilder()
        for number, trace in enumerate(traces):
            if not isinstance(trace, Trace):
                type_name = type(trace).__name__
                raise TraceError(
                    f"trace {number} is of type {type_name}: make it a resolvent.Trace"
                )
            with locating(f"trace {number}"):
                flags = {"terminated": trace.terminated, "truncated": trace.truncated}
                episodes.add(trace.all_columns, **flags)
        vars(self).update(vars(TraceSet.from_episodes(episodes)))

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
        """Build a trace set from columns in memory: (values, codes) pairs.

        Values may be in any order and may include unused ones. All arrays are copied.
        """
        all_columns = {OBSERVATION: observations, LABEL: labels, ACTION: actions}
        if rewards is not None:
            all_columns[REWARD] = rewards
        check_arguments(TraceSet.from_columns, {"columns": columns})
        all_columns |= {check_column_name(name): column for name, column in columns.items()}
        traces = cls.taking_over(
            {name: own_column(name, column) for name, column in all_columns.items()},
            offsets=own_array("offsets", offsets),
            terminated=own_array("terminated", terminated),
            truncated=own_array("truncated", truncated),
        )
        with locating("column reward"):
            list(map(finite_reward, traces.rewards if rewards is not None else ()))
        return traces

    @classmethod
    def from_episodes(cls, episodes: EpisodeBuilder) -> "TraceSet":
        """Return the episodes that were collected so far."""
        return cls.taking_over(*episodes.parts())

    @classmethod
    def taking_over(
        cls,
        columns: Mapping[str, Column],
        offsets: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        *,
        in_order: bool = False,
    ) -> "TraceSet":
        """Build a trace set that keeps these arrays, which the caller must not write to again.

        Columns are named; `"observation"`, `"label"` and `"action"` are required and all
        others are step columns. `in_order`: the values are sorted already.
        """
        traces = cls.__new__(cls)
        traces.offsets = frozen(as_row("offsets", offsets, np.int64))
        traces.terminated = frozen(as_row("terminated", terminated, np.bool_))
        traces.truncated = frozen(as_row("truncated", truncated, np.bool_))
        stored: dict[str, StepColumn] = {}
        check_labels(len(columns[LABEL][0]))
        for name, column in columns.items():
            vocabulary, codes = canonical_column(name, column, in_order=in_order)
            stored[name] = StepColumn(vocabulary, frozen(codes))
        traces.observations, traces.observation_codes = stored.pop(OBSERVATION)
        traces.labels, traces.label_codes = stored.pop(LABEL)
        traces.actions, traces.action_codes = stored.pop(ACTION)
        traces.columns = MappingProxyType(in_column_order(stored))
        if not len(traces.offsets):
            raise TraceError("offsets is empty: give at least 0")
        count, steps = len(traces), traces.steps
        lengths = {
            name: len(codes) - (count if name in OBSERVED_COLUMNS else 0)
            for name, codes in traces.codes.items()
        }
        if not (
            len(traces.terminated) == len(traces.truncated) == count
            and {*lengths.values()} == {steps}
            and traces.offsets[0] == 0
            and bool(np.all(np.diff(traces.offsets) >= 1))
        ):
            raise TraceError("the columns of a trace set do not fit its offsets")
        return traces

    @property
    def rewards(self) -> Vocabulary[float]:
        """The rewards that occur; `TraceError` for traces without."""
        return self.column(REWARD).values

    @property
    def reward_codes(self) -> Codes:
        """The code of each step's reward; `TraceError` for traces without."""
        return self.column(REWARD).codes

    def column(self, name: str) -> StepColumn:
        """Return a step column by name: `"reward"`, `"terminated"`, or a further one.

        `"observation"` is the next observation, which machines predict under this name.

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
        if name == OBSERVATION:
            return StepColumn(self.observations, self.after_step(self.observation_codes))
        raise missing_column_error(name, (*self.columns, TERMINATED))

    @cached_property
    def _ends(self) -> StepColumn:
        codes = np.zeros(self.steps, np.int32)
        codes[self.offsets[1:] - 1] = self.terminated
        values, codes = canonical_column(TERMINATED, ((False, True), codes))
        return StepColumn(values, frozen(codes))

    @property
    def all_columns(self) -> dict[str, StepColumn]:
        """All columns by name: observations, labels, actions, and the step columns."""
        return {
            OBSERVATION: StepColumn(self.observations, self.observation_codes),
            LABEL: StepColumn(self.labels, self.label_codes),
            ACTION: StepColumn(self.actions, self.action_codes),
            **self.columns,
        }

    @property
    def values(self) -> dict[str, Vocabulary[Any]]:
        """The values of all columns by name."""
        return {name: column.values for name, column in self.all_columns.items()}

    @property
    def codes(self) -> dict[str, Codes]:
        """The codes of all columns by name."""
        return {name: column.codes for name, column in self.all_columns.items()}

    @property
    def steps(self) -> int:
        """Number of actions in all traces."""
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
        columns = self.values_of(number)
        return Trace(
            columns.pop(OBSERVATION),
            columns.pop(LABEL),
            columns.pop(ACTION),
            columns.pop(REWARD, None),
            bool(self.terminated[number]),
            bool(self.truncated[number]),
            columns=columns,
        )

    def values_of(self, trace: int) -> dict[str, list[Any]]:
        """Return the columns of a trace by name."""
        steps, observed = self.rows_of(trace)
        return {
            name: values.values(codes[observed if name in OBSERVED_COLUMNS else steps])
            for name, (values, codes) in self.all_columns.items()
        }

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
        """Return the HTML that notebooks show: sizes and the first steps of the first traces."""
        from resolvent.viz.notebook import html_of_traces

        return html_of_traces(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Built from its columns, the copy is read-only, as the original is.
        columns = {name: tuple(column) for name, column in self.all_columns.items()}
        return TraceSet.taking_over, (columns, self.offsets, self.terminated, self.truncated)

    def __add__(self, other: "TraceSet") -> "TraceSet":
        return TraceSet.concatenate([self, other])

    def at_step(self, codes: Codes) -> Codes:
        """Return the entries of an observation or label column before each step."""
        return codes[self._not_last]

    def after_step(self, codes: Codes) -> Codes:
        """Return the entries of an observation or label column after each step."""
        not_first = np.roll(self._not_last, 1)  # a last entry is followed by a first one
        return codes[not_first]

    @property
    def trace_of_step(self) -> NDArray[np.int64]:
        """The number of the trace of each step."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def rows_of(self, trace: int) -> tuple[slice, slice]:
        """Return a trace's rows in the columns of steps, and in observations and labels."""
        start, stop = self.offsets[trace : trace + 2].tolist()
        return slice(start, stop), slice(start + trace, stop + trace + 1)

    def locate(self, row: int) -> tuple[int, int]:
        """Return the trace, and the step within it, of a row of the step columns."""
        trace = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return trace, row - int(self.offsets[trace])

    @cached_property
    def _not_last(self) -> NDArray[np.bool_]:
        keep = np.ones(self.steps + len(self), bool)
        keep[self.offsets[1:] + np.arange(len(self))] = False
        return keep

    def take(self, numbers: ArrayLike) -> "TraceSet":
        """Return the traces with these numbers, in this order, repeats allowed.

        Negative numbers count from the end. A row of booleans, one for each trace, is a mask.

        >>> traces = TraceSet([Trace([0, 1], [None, None], ["go"], [r]) for r in (0, 1, 2)])
        >>> [trace.rewards for trace in traces.take([2, 0])]
        [(2.0,), (0.0,)]
        >>> [trace.rewards for trace in traces.take([False, True, True])]
        [(1.0,), (2.0,)]
        """
        chosen = as_trace_numbers(numbers, len(self))
        return self._first_steps(chosen, np.diff(self.offsets)[chosen])

    def prefixes(self, lengths: NDArray[np.int64]) -> "TraceSet":
        """Return the first steps of each trace, `lengths` of them; shortened traces are truncated.

        >>> walk = Trace(["hall", "stairs", "attic"], [None, None, "key"], ["up", "up"], [0, 1])
        >>> TraceSet([walk]).prefixes(np.array([1]))[0].observations
        ('hall', 'stairs')
        """
        return self._first_steps(np.arange(len(self)), lengths)

    def _first_steps(self, numbers: NDArray[np.int64], lengths: NDArray[np.int64]) -> "TraceSet":
        """Return the first steps of the traces with these numbers."""
        is_whole = lengths == np.diff(self.offsets)[numbers]
        steps = _ranges(self.offsets[numbers], lengths)
        observed = _ranges(self.offsets[numbers] + numbers, lengths + 1)
        return TraceSet.taking_over(
            {
                name: (values, codes[observed if name in OBSERVED_COLUMNS else steps])
                for name, (values, codes) in self.all_columns.items()
            },
            offsets=np.append(0, np.cumsum(lengths)),
            terminated=self.terminated[numbers] & is_whole,
            truncated=self.truncated[numbers] | ~is_whole,
            in_order=True,
        )

    @staticmethod
    def concatenate(sets: Iterable["TraceSet"], names: Sequence[str] | None = None) -> "TraceSet":
        """Concatenate trace sets of the same columns; `names` are their names in errors."""
        check_arguments(TraceSet.concatenate, {"sets": sets, "names": names})
        sets = list(sets)
        for traces in sets:
            if not isinstance(traces, TraceSet):
                raise TraceError(f"{quoted(traces)} is not a TraceSet: give a list of trace sets")
        if names is not None and len(names) != len(sets):
            raise OptionError(f"{len(names)} names for {len(sets)} sets of traces: name each")
        names = names or [f"trace set {number}" for number in range(len(sets))]
        named = [(traces, name) for traces, name in zip(sets, names, strict=True) if len(traces)]
        named = named or [(sets[0] if sets else TraceSet(), "")]
        parts = [traces for traces, _ in named]
        common = JointVocabularies()
        for traces, name in named:
            common.add(traces.values, name)
        codes = [common.codes(part) for part in parts]
        lengths = [np.diff(part.offsets) for part in parts]
        return TraceSet.taking_over(
            {
                name: (values, np.concatenate([part[name] for part in codes]))
                for name, values in common.values().items()
            },
            offsets=np.append(0, np.cumsum(np.concatenate(lengths))),
            terminated=np.concatenate([part.terminated for part in parts]),
            truncated=np.concatenate([part.truncated for part in parts]),
        )

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits that identify the content of the traces, on every machine.

        The same traces in shards have the same digest.
        """
        return TraceDigest.of(trace_hashes(self), self.steps).hexdigest(self.values)

    def save(self, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002
        """Write the traces to a file, completely or not at all.

        The format follows the name: `.parquet`, or `.jsonl` with an optional `.gz` or `.zst`; or
        pass `format="parquet"`, `"jsonl"` or `"paper"`. The same traces give the same bytes.
        `minari:NAMESPACE/NAME-v0` creates a Minari dataset of that id.
        """
        from resolvent.traces.io.formats import write_traces

        write_traces(self, path, format=format)

    def to_arrow(self) -> Any:
        """Return the traces as a `pyarrow.Table` with the columns of a Parquet file of them.

        >>> traces = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
        >>> traces.to_arrow().column("observation").to_pylist()
        ['hall', 'attic']
        """
        from resolvent.traces.io.table import arrow_table

        return arrow_table(self)

    def to_pandas(self) -> Any:
        """Return the traces as a `pandas.DataFrame` with the columns of a Parquet file of them.

        >>> traces = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
        >>> traces.to_pandas()[["step", "observation", "action"]].values.tolist()[0]
        [0, 'hall', 'up']
        """
        try:
            import pandas  # noqa: F401 -- Arrow needs it, and its error is less clear
        except ImportError as error:
            raise MissingExtra(
                "to_pandas needs pandas: pip install pandas, or use to_arrow"
            ) from error
        return self.to_arrow().to_pandas()


def with_column(traces: TraceSet, name: str, values: Sequence[Any], codes: Codes) -> TraceSet:
    """Return the traces with this column in place of the one of its name."""
    return TraceSet.taking_over(
        {**traces.all_columns, name: (values, codes)},
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenated ranges `start … start + length - 1`."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    shifts: NDArray[np.int64] = np.repeat(starts - (ends - lengths), lengths)
    return np.arange(total) + shifts

"""Values of episodes, or arrays of a caller → encoded columns, checked; and back to values."""

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent import _core
from resolvent._util.validation import check_limit
from resolvent.errors import TraceError, located, locating
from resolvent.traces.schema import (
    ACTION,
    BASIC_COLUMNS,
    LABEL,
    OBSERVATION,
    REWARD,
    check_same_columns,
    column_text,
)
from resolvent.traces.symbols import (
    Label,
    as_label,
    as_symbol,
    finite_reward,
    label_order,
    symbol_order,
)
from resolvent.traces.trace import check_lengths, each_step
from resolvent.traces.vocabulary import Codes, Interner, Vocabulary

Column: TypeAlias = tuple[Sequence[Any], Codes]  # values in any order, and their indices
_PLAIN = frozenset({bool, int, float, str})
_SORT_KEYS: dict[str, Callable[[Any], Any]] = {LABEL: label_order, REWARD: float}


def canonical_column(
    name: str, column: Column, *, in_order: bool = False
) -> tuple[Vocabulary[Any], Codes]:
    """Return a column without unused values, the others sorted, as they are if `in_order`."""
    values = column[0]
    try:
        codes = _as_codes(column[1], len(values))
        used = np.flatnonzero(_core.used_codes(codes, len(values))).tolist()
        if not in_order:
            order: Callable[[Any], Any] = _SORT_KEYS.get(name, symbol_order)
            used.sort(key=lambda code: order(values[code]))
        if used == list(range(len(values))):
            return values if isinstance(values, Vocabulary) else Vocabulary(values), codes
        new_codes = np.full(len(values), -1, np.int32)
        new_codes[used] = np.arange(len(used), dtype=np.int32)
        return Vocabulary([values[code] for code in used]), _core.recode(codes, new_codes)
    except TraceError as error:
        raise located(column_text(name), error) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TraceError(f"{column_text(name)}: values of wrong types: {error}") from error


def _as_codes(codes: ArrayLike, size: int) -> Codes:
    """Return an array of codes below `size`; `TraceError` if it is something else."""
    array = np.asarray(codes)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise TraceError(
            f"codes must be one row of integers, not of type {array.dtype} and shape {array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() >= size):
        position = int(np.argmax((array < 0) | (array >= size)))
        reason = f"only 0 to {size - 1} are codes of values" if size else "there are no values"
        raise TraceError(f"position {position}: the code is {array[position]}, but {reason}")
    return np.ascontiguousarray(array, np.int32)


# --- Episodes -----------------------------------------------------------------------------------


class LabelCodes(dict[Any, int]):
    """Codes of labels by their spelling: in files, propositions come in any order, as tuples."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: Interner[Label] = Interner()

    def __missing__(self, spelling: Any) -> int:
        value = spelling
        if type(value) is tuple:  # one text is the common case; there may be very many
            value = value[0] if len(value) == 1 and type(value[0]) is str else list(value)
        code = self[spelling] = self.labels[as_label(value)]
        return code


class ColumnBuilder:
    """Encodes and collects columns, one episode after another, without a Python loop over steps."""

    def __init__(self) -> None:
        self.labels = LabelCodes()
        self._interners: dict[str, Interner[Any]] = defaultdict(Interner)
        self._interners[LABEL] = self.labels.labels
        self._array_rows: dict[Any, dict[bytes, int]] = {}
        self._codes: dict[str, array[int]] = {}

    def extend(self, columns: Mapping[str, Any]) -> None:
        """Append rows to all columns, or to none: a `TraceError` names column and step."""
        codes = {name: self._encode(name, values) for name, values in columns.items()}
        check_same_columns(codes, self._codes or codes, "the first trace")
        for name, column in codes.items():
            self._codes.setdefault(name, array("i")).frombytes(column.tobytes())

    def columns(self) -> dict[str, Column]:
        """Return the columns that were collected."""
        return {
            name: (self._values(name), np.array(codes, np.int32))
            for name, codes in self._codes.items()
        }

    def _values(self, name: str) -> list[Any]:
        values = self._interners[name].values_in_order()
        return values if name == LABEL else list(map(as_symbol, values))

    def _encode(self, name: str, values: Any) -> Codes:
        interner = self._interners[name]
        try:
            if name == LABEL:
                return self._encode_labels(values)
            if name == REWARD:
                # The sum is finite if all rewards are; if it overflows, no reward is wrong.
                if not math.isfinite(sum(values)):
                    each_step(finite_reward, values)
                return interner.encode(values)
            if isinstance(values, np.ndarray) and (values.ndim > 1 and values.dtype.kind in "biuf"):
                return self._encode_rows(name, values)
            if isinstance(values, np.ndarray):
                values = values.tolist()
            types = set(map(type, values))
            if not types <= _PLAIN:
                return interner.encode(each_step(as_symbol, values))
            return interner.encode(values, types)
        except TraceError as error:
            raise located(column_text(name), error) from error

    def _encode_labels(self, labels: Sequence[Any]) -> Codes:
        try:
            codes = np.fromiter(map(self.labels.__getitem__, labels), np.int32, len(labels))
        except TraceError:
            each_step(as_label, labels)  # raises the error with its step
            raise
        check_labels(len(self.labels.labels))
        return codes

    def _encode_rows(self, name: str, values: NDArray[Any]) -> Codes:
        """Encode an array by converting each distinct row once, over all episodes."""
        codes = self._array_rows.setdefault((name, values.dtype, values.shape[1:]), {})
        rows = row_bytes(values)
        for step, row in enumerate(rows):
            if row not in codes:
                with locating(f"step {step}"):
                    codes[row] = int(self._interners[name].encode([as_symbol(values[step])])[0])
        return np.fromiter(map(codes.__getitem__, rows), np.int32, len(rows))


class EpisodeBuilder(ColumnBuilder):
    """Collects episodes as encoded columns, for `TraceSet.from_episodes`."""

    def __init__(self) -> None:
        super().__init__()
        self._lengths = array("q")
        self._terminated = bytearray()
        self._truncated = bytearray()

    def __len__(self) -> int:
        return len(self._lengths)

    def add(
        self, columns: Mapping[str, Any], *, terminated: bool = False, truncated: bool = False
    ) -> None:
        """Add the values of an episode's columns, which must be those of the first episode."""
        lengths = {name: len(values) for name, values in columns.items()}
        steps = lengths.pop(ACTION)
        check_lengths(lengths.pop(OBSERVATION), lengths.pop(LABEL), steps, lengths)
        self.extend(columns)
        self._lengths.append(steps)
        self._terminated.append(terminated)
        self._truncated.append(truncated)

    def parts(self) -> tuple[dict[str, Column], ArrayLike, ArrayLike, ArrayLike]:
        """Return the columns of all episodes, their offsets, and whether they ended."""
        nothing: Column = (), np.empty(0, np.int32)
        columns = self.columns() or dict.fromkeys((*BASIC_COLUMNS, REWARD), nothing)
        offsets = np.append(0, np.cumsum(self._lengths, dtype=np.int64))
        return columns, offsets, np.array(self._terminated, bool), np.array(self._truncated, bool)


def row_bytes(rows: NDArray[Any]) -> list[bytes]:
    """Return each row of an array as bytes, which are equal for equal rows."""
    if not rows.size:
        return [b""] * len(rows)
    rows = np.ascontiguousarray(rows).reshape(len(rows), -1)
    parts: list[bytes] = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    return parts


def check_labels(count: int) -> None:
    """Raise `TooLarge` if there are more labels than the limit."""
    check_limit("labels", count, f"{count:,} labels are", "events should have few names; ")


# --- Arrays of a caller -------------------------------------------------------------------------


def own_column(name: str, column: Any) -> Column:
    """Return a copy of a caller's column."""
    if not (isinstance(column, tuple | list) and len(column) == 2):
        raise TraceError(f"{column_text(name)}: give (values, codes), each code an index of one")
    values, codes = column
    if not isinstance(values, Sequence | np.ndarray):
        raise TraceError(f"{column_text(name)}: {type(values).__name__} is not a list of values")
    return list(values), own_array(column_text(name), codes)


def own_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return a copy of a caller's array."""
    try:
        return np.array(values)
    except ValueError:
        raise TraceError(f"{name} must be one row, not rows of different lengths") from None


def as_row(name: str, values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    """Return a row of integers, such as offsets, or of booleans, one for each trace."""
    row = np.asarray(values)
    kinds, noun = ("biu", "booleans") if dtype is np.bool_ else ("iu", "integers")
    if row.ndim != 1 or (row.dtype.kind not in kinds and row.size):
        raise TraceError(f"{name} must be one row of {noun}")
    return np.ascontiguousarray(row, dtype)


def as_trace_numbers(numbers: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the numbers of the traces that a caller selects, counted from 0."""
    try:
        selected = np.asarray(numbers)
    except ValueError:  # rows of different lengths
        selected = np.empty((0, 0))
    if selected.ndim != 1 or (selected.dtype.kind not in "biu" and selected.size):
        raise IndexError("give the numbers of traces as a list of integers, or a mask")
    if selected.dtype == bool:
        if len(selected) != count:
            raise IndexError(f"a mask of {len(selected)} for {count} traces: give one for each")
        return np.flatnonzero(selected)
    if np.any(wrong := (selected < -count) | (selected >= count)):
        raise IndexError(f"there is no trace {selected[np.argmax(wrong)]}: there are {count}")
    selected = selected.astype(np.int64)
    return np.where(selected < 0, selected + count, selected)


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    values.flags.writeable = False
    return values

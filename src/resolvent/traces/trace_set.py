"""A set of traces as columns: integer codes over four vocabularies.

Steps of all traces lie one after another. Trace `i` owns steps
`offsets[i]:offsets[i + 1]` of `action_codes` and `reward_codes`, and one
position more of `observation_codes` and `label_codes`, from
`offsets[i] + i` on.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent import _core
from resolvent.errors import TraceError, locating
from resolvent.traces.symbols import Label, Symbol, label_order, symbol_order
from resolvent.traces.trace import Trace
from resolvent.traces.vocabulary import Codes, Interner, Vocabulary, canonical

Column = tuple[Sequence[Any], Codes]

_COLUMNS = ("observation", "label", "action", "reward")


class TraceSet(Sequence[Trace]):
    """An immutable set of traces, stored by column.

    Vocabularies are sorted and hold exactly the values that occur.

    >>> traces = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
    >>> len(traces), traces.steps, traces.observations[0], traces[0].actions
    (1, 1, 'attic', ('up',))
    """

    observations: Vocabulary[Symbol]
    labels: Vocabulary[Label]
    actions: Vocabulary[Symbol]
    rewards: Vocabulary[float]
    observation_codes: Codes
    label_codes: Codes
    action_codes: Codes
    reward_codes: Codes
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __init__(self, traces: Iterable[Trace] = ()) -> None:
        traces = list(traces)
        columns: list[Column] = []
        for name in ("observations", "labels", "actions", "rewards"):
            interner: Interner[Any] = Interner()
            parts = [np.empty(0, np.int32)]
            for number, trace in enumerate(traces):
                with locating(f"trace {number}, {name}"):
                    parts.append(interner.encode(getattr(trace, name)))
            columns.append((interner.values_in_order(), np.concatenate(parts)))
        self._set(
            *columns,
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
        rewards: Column,
        *,
        offsets: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
    ) -> "TraceSet":
        """Build from columns that are in memory already: (values, codes) pairs.

        Values may come in any order and may include ones that no code uses.
        """
        traces = cls.__new__(cls)
        traces._set(
            observations,
            labels,
            actions,
            rewards,
            offsets=offsets,
            terminated=terminated,
            truncated=truncated,
        )
        return traces

    def _set(
        self,
        observations: Column,
        labels: Column,
        actions: Column,
        rewards: Column,
        *,
        offsets: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
    ) -> None:
        self.offsets = _frozen(np.asarray(offsets, dtype=np.int64))
        self.terminated = _frozen(np.asarray(terminated, dtype=bool))
        self.truncated = _frozen(np.asarray(truncated, dtype=bool))
        for name, column, order in (
            ("observation", observations, symbol_order),
            ("label", labels, label_order),
            ("action", actions, symbol_order),
            ("reward", rewards, float),
        ):
            vocabulary, codes = canonical(*column, order)
            setattr(self, f"{name}s", vocabulary)
            setattr(self, f"{name}_codes", _frozen(codes))
        count, steps = len(self.offsets) - 1, int(self.offsets[-1])
        if not (
            len(self.terminated) == len(self.truncated) == count
            and len(self.action_codes) == len(self.reward_codes) == steps
            and len(self.observation_codes) == len(self.label_codes) == steps + count
            and bool(np.all(np.diff(self.offsets) >= 1))
        ):
            raise TraceError("the columns of a trace set do not fit its offsets")

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
        return Trace(
            [self.observations[code] for code in self.observation_codes[seen]],
            [self.labels[code] for code in self.label_codes[seen]],
            [self.actions[code] for code in self.action_codes[start:stop]],
            [self.rewards[code] for code in self.reward_codes[start:stop]],
            bool(self.terminated[number]),
            bool(self.truncated[number]),
        )

    def __iter__(self) -> Iterator[Trace]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceSet) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return (
            f"TraceSet({len(self)} traces, {self.steps} steps, "
            f"{len(self.observations)} observations, {len(self.labels)} labels, "
            f"{len(self.actions)} actions, {len(self.rewards)} rewards)"
        )

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

        >>> traces = TraceSet([Trace([0, 1], [None, None], ["go"], [r]) for r in (0, 1, 2)])
        >>> [trace.rewards for trace in traces.take([2, 0])]
        [(2.0,), (0.0,)]
        """
        chosen = np.asarray(numbers, dtype=np.int64)
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        acted = _ranges(self.offsets[chosen], lengths)
        seen = _ranges(self.offsets[chosen] + chosen, lengths + 1)
        return TraceSet.from_columns(
            (self.observations, self.observation_codes[seen]),
            (self.labels, self.label_codes[seen]),
            (self.actions, self.action_codes[acted]),
            (self.rewards, self.reward_codes[acted]),
            offsets=offsets,
            terminated=self.terminated[chosen],
            truncated=self.truncated[chosen],
        )

    @staticmethod
    def concatenate(sets: Iterable["TraceSet"], names: Sequence[str] | None = None) -> "TraceSet":
        """Join trace sets, one after the other; errors call them by their names."""
        sets = list(sets)
        names = names or [f"trace set {number}" for number in range(len(sets))]
        common = CommonValues()
        for one, called in zip(sets, names, strict=True):
            common.add(one, called)
        coded = [[np.empty(0, np.int32)] * 4, *map(common.codes, sets)]
        columns = zip(common.values(), map(np.concatenate, zip(*coded, strict=True)), strict=True)
        starts = np.cumsum([0, *(one.steps for one in sets)])
        return TraceSet.from_columns(
            *columns,
            offsets=np.concatenate(
                [[0], *(one.offsets[1:] + start for one, start in zip(sets, starts, strict=False))]
            ),
            terminated=np.concatenate([np.empty(0, bool), *(one.terminated for one in sets)]),
            truncated=np.concatenate([np.empty(0, bool), *(one.truncated for one in sets)]),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all that the traces hold, the same on every machine."""
        digest = TraceDigest((self.observations, self.labels, self.actions, self.rewards))
        columns = (self.observation_codes, self.label_codes, self.action_codes, self.reward_codes)
        digest.add(columns, np.diff(self.offsets), self.terminated, self.truncated)
        return digest.hexdigest()

    def save(self, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002
        """Write the traces to a file, whole or not at all.

        The format follows the name: `.parquet`, or `.jsonl` with an optional
        `.gz` or `.zst`. Pass `format="parquet"`, `"jsonl"` or `"paper"` to say
        it yourself. `minari:NAMESPACE/NAME-v0` writes a Minari dataset.
        """
        from resolvent.traces.files import write_traces

        write_traces(self, path, format=format)


class CommonValues:
    """Puts the values of several trace sets together, so that one code stands for each.

    >>> one = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
    >>> other = TraceSet([Trace(["attic", "cellar"], [None, None], ["down"], [1])])
    >>> common = CommonValues()
    >>> common.add(one, "one"), common.add(other, "other")
    (None, None)
    >>> common.values()[0], common.codes(other)[0].tolist()
    (['attic', 'hall', 'cellar'], [0, 2])
    """

    def __init__(self) -> None:
        self._interners: dict[str, Interner[Any]] = {name: Interner() for name in _COLUMNS}

    def add(self, traces: TraceSet, called: str) -> None:
        """Take in the values of a trace set; an error calls it by its name."""
        for name, interner in self._interners.items():
            with locating(f"{called}, joined to those before it: {name}s"):
                interner.encode(getattr(traces, f"{name}s"))

    def values(self) -> list[list[Any]]:
        """Return the values of the four columns, each at the position that is its code."""
        return [interner.values_in_order() for interner in self._interners.values()]

    def codes(self, traces: TraceSet) -> list[Codes]:
        """Return the columns of a trace set that was added, in the common codes."""
        return [
            _core.recode(
                getattr(traces, f"{name}_codes"),
                np.array([interner[value] for value in getattr(traces, f"{name}s")], np.int32),
            )
            for name, interner in self._interners.items()
        ]


class TraceDigest:
    """SHA-256 over all that traces hold; they may come in pieces, one after the other."""

    def __init__(self, vocabularies: tuple[Vocabulary[Any], ...]) -> None:
        observations, labels, actions, rewards = map(list, vocabularies)
        values = [observations, [sorted(label) for label in labels], actions, rewards]
        self._whole = hashlib.sha256(msgspec.json.encode(values))
        # In the fewest bytes that hold the vocabulary: hashing takes time by the byte.
        self._types = [np.min_scalar_type(len(one)).newbyteorder("<") for one in values]
        self._columns = [hashlib.sha256() for _ in range(7)]

    def add(
        self,
        columns: Sequence[Codes],
        lengths: NDArray[np.int64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
    ) -> None:
        """Take in the next traces, as codes of the vocabularies."""
        narrow = (codes.astype(kind) for codes, kind in zip(columns, self._types, strict=True))
        parts = (*narrow, lengths.astype("<i8"), terminated, truncated)
        for digest, part in zip(self._columns, parts, strict=True):
            digest.update(part.tobytes())

    def hexdigest(self) -> str:
        """Return the digest of all that came so far."""
        whole = self._whole.copy()
        for digest in self._columns:
            whole.update(digest.digest())
        return whole.hexdigest()


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate `arange(start, start + length)` for each pair."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    moved: NDArray[np.int64] = np.repeat(starts - (ends - lengths), lengths)
    return np.arange(total) + moved

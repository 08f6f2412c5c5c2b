"""Choosing some of many traces by what they hold, not by where they stand."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.traces.column_names import BASIC, SEEN
from resolvent.traces.symbols import in_writing
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


def choose_traces(traces: TraceSet, share: float) -> NDArray[np.bool_]:
    """Mark about this share of the traces, chosen by their content.

    The order of the traces makes no difference, and equal traces are all marked
    or none is.

    >>> from resolvent.traces.trace import Trace
    >>> traces = TraceSet([Trace([0, 1], [None, None], ["go"], [pay % 20]) for pay in range(40)])
    >>> chosen = choose_traces(traces, 0.8)
    >>> int(chosen.sum()), bool((chosen[:20] == chosen[20:]).all())
    (32, True)
    """
    if len(traces) == 0:
        return np.empty(0, bool)
    keys = trace_keys(traces)
    most = np.sort(keys)[max(round(share * len(traces)), 1) - 1]
    chosen: NDArray[np.bool_] = keys <= most
    return chosen


def beginnings(traces: TraceSet, lengths: NDArray[np.int64]) -> TraceSet:
    """Return so many of the first steps of each trace; one that is cut did not end there.

    >>> from resolvent.traces.trace import Trace
    >>> walk = Trace(["hall", "stairs", "attic"], [None, None, "key"], ["up", "up"], [0, 1])
    >>> beginnings(TraceSet([walk]), np.array([1]))[0].observations
    ('hall', 'stairs')
    """
    all_lengths = np.diff(traces.offsets)
    keep = np.arange(traces.steps) - np.repeat(traces.offsets[:-1], all_lengths)
    acted = keep < np.repeat(lengths, all_lengths)
    seen = np.insert(acted, traces.offsets[:-1], True)  # what is seen before the first step
    whole = lengths == all_lengths
    return TraceSet.taking_over(
        {
            name: (values, codes[seen if name in SEEN else acted])
            for name, (values, codes) in traces.all_columns.items()
        },
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        terminated=traces.terminated & whole,
        truncated=traces.truncated | ~whole,
    )


def trace_keys(traces: TraceSet) -> NDArray[np.int64]:
    """Return a number for each trace that equal traces share and others almost never do."""
    return content_keys(core_columns(traces, traces.codes), traces.values)


def core_columns(
    traces: TraceSet, codes: Mapping[str, Codes], sizes: Mapping[str, int] | None = None
) -> _core.TraceColumns:
    """Return traces as the core takes them.

    `codes` are those of every column by name, and `sizes` how many codes each has, where
    they are not the traces' own.
    """
    if sizes is None:
        sizes = {name: len(values) for name, values in traces.values.items()}
    outputs = [name for name in codes if name not in BASIC]
    return _core.TraceColumns(
        observation=codes["observation"],
        label=codes["label"],
        action=codes["action"],
        outputs=[codes[name] for name in outputs],
        offsets=traces.offsets,
        ended=traces.terminated + 2 * traces.truncated.astype(np.int32),
        observations=sizes["observation"],
        labels=sizes["label"],
        actions=sizes["action"],
        output_sizes=[sizes[name] for name in outputs],
    )


def content_keys(
    columns: _core.TraceColumns, values: Mapping[str, Sequence[Any]], threads: int = 1
) -> NDArray[np.int64]:
    """Return a number for each trace that equal traces share and others almost never do.

    `values` are those behind the codes of every column. The number depends on
    nothing but what a trace holds, so also not on which codes stand for it.
    """
    observation, label, action, *outputs = (
        _value_keys(column, salt) for salt, column in enumerate(values.values())
    )
    return columns.keys(
        observation=observation, label=label, action=action, outputs=outputs, threads=threads
    )


def _value_keys(values: Sequence[Any], salt: int) -> NDArray[np.int64]:
    """Return a number for each value that depends on the value and the salt alone."""
    if set(map(type, values)) == {int}:
        try:
            return scrambled(np.fromiter(values, np.int64, len(values)), salt)
        except OverflowError:
            pass  # beyond 64 bits they are taken one by one, as text
    # One that has taken in the salt is copied for each value: there may be very many.
    salted = hashlib.blake2b(digest_size=8, salt=salt.to_bytes(2, "little")).copy

    def digest(value: Any) -> bytes:
        one = salted()
        one.update(_value_text(value))
        return one.digest()

    return np.frombuffer(b"".join(map(digest, values)), "<i8").astype(np.int64)


def scrambled(numbers: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    """SplitMix64: neighbouring numbers become unlike ones."""
    mixed = numbers.view(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed.view(np.int64)


def _value_text(value: Any) -> bytes:
    if isinstance(value, frozenset):
        return msgspec.json.encode(in_writing(value))
    return msgspec.json.encode(_as_equal(value) if isinstance(value, tuple) else value)


def _as_equal(value: Any) -> Any:
    """Return one and the same for values that are equal, as (1,), (1.0,) and (True,) are.

    Of such only one is in a vocabulary, and which one may depend on how traces are cut.
    """
    if isinstance(value, tuple):
        return tuple(map(_as_equal, value))
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value

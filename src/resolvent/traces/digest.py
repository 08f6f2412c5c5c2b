"""Trace sets → a hash of each trace, a digest that adds up over shards, and samples by hash."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.traces.schema import ACTION, BASIC_COLUMNS, LABEL, OBSERVATION
from resolvent.traces.symbols import ordered_propositions
from resolvent.traces.vocabulary import Codes, Vocabulary

if TYPE_CHECKING:
    from resolvent.traces.trace_set import TraceSet

_MODULUS = 2**61 - 1
_BASES = 0x0B1E0A5C3D7F92E5, 0x13C6EF372FE94F82


@dataclass(frozen=True)
class TraceDigest:
    """The number of traces and of steps, and a hash of the traces in their order.

    `residues` are two polynomials of the traces' keys, modulo a prime. A key depends only on
    the content of its trace, so digests of shards add up in any grouping.
    """

    traces: int = 0
    steps: int = 0
    residues: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, keys: NDArray[np.int64], steps: int) -> "TraceDigest":
        """Return the digest of traces with these keys, which `content_hashes` returns."""
        return cls(len(keys), steps, _core.key_residues(keys, *_BASES))

    def __add__(self, later: "TraceDigest") -> "TraceDigest":
        first, second = (
            (residue * pow(base, later.traces, _MODULUS) + later_residue) % _MODULUS
            for residue, later_residue, base in zip(
                self.residues, later.residues, _BASES, strict=True
            )
        )
        return TraceDigest(self.traces + later.traces, self.steps + later.steps, (first, second))

    def hexdigest(self, vocabularies: Mapping[str, Vocabulary[Any]]) -> str:
        """Return the digest of all traces, given the values of every column by name."""
        values = {name: list(column) for name, column in vocabularies.items()}
        values[LABEL] = list(map(ordered_propositions, values[LABEL]))
        content = [*values.items()], self.traces, self.steps, self.residues
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def trace_hashes(traces: "TraceSet") -> NDArray[np.int64]:
    """Return a hash of each trace: equal for equal traces, different for almost all others."""
    return content_hashes(core_columns(traces, traces.codes), traces.values)


def core_columns(
    traces: "TraceSet", codes: Mapping[str, Codes], sizes: Mapping[str, int] | None = None
) -> _core.TraceColumns:
    """Return traces as the core takes them; `sizes` are by default those of the traces' values."""
    if sizes is None:
        sizes = {name: len(values) for name, values in traces.values.items()}
    outputs = [name for name in codes if name not in BASIC_COLUMNS]
    return _core.TraceColumns(
        observation=codes[OBSERVATION],
        label=codes[LABEL],
        action=codes[ACTION],
        outputs=[codes[name] for name in outputs],
        offsets=traces.offsets,
        ended=traces.terminated + 2 * traces.truncated.astype(np.int32),
        observations=sizes[OBSERVATION],
        labels=sizes[LABEL],
        actions=sizes[ACTION],
        output_sizes=[sizes[name] for name in outputs],
    )


def sample_traces(traces: "TraceSet", share: float) -> NDArray[np.bool_]:
    """Mark about this share of the traces by their content: of equal traces, all or none."""
    if len(traces) == 0:
        return np.empty(0, bool)
    keys = trace_hashes(traces)
    largest = np.sort(keys)[max(round(share * len(traces)), 1) - 1]
    chosen: NDArray[np.bool_] = keys <= largest
    return chosen


def content_hashes(
    columns: _core.TraceColumns, values: Mapping[str, Sequence[Any]], threads: int = 1
) -> NDArray[np.int64]:
    """Return hashes as `trace_hashes` does; `values` are those of the codes of every column.

    A hash depends only on the content of its trace, not on which codes stand for it.
    """
    observation, label, action, *outputs = (
        _value_keys(column, salt) for salt, column in enumerate(values.values())
    )
    return columns.keys(
        observation=observation, label=label, action=action, outputs=outputs, threads=threads
    )


def _value_keys(values: Sequence[Any], salt: int) -> NDArray[np.int64]:
    """Return a hash of each value that depends only on the value and the salt."""
    if set(map(type, values)) == {int}:
        with suppress(OverflowError):  # beyond 64 bits they are hashed as text
            return splitmix64(np.fromiter(values, np.int64, len(values)), salt)
    # A salted hash is copied for each value, because there may be very many.
    salted = hashlib.blake2b(digest_size=8, salt=salt.to_bytes(2, "little")).copy

    def value_digest(value: Any) -> bytes:
        digest = salted()
        digest.update(_value_text(value))
        return digest.digest()

    return np.frombuffer(b"".join(map(value_digest, values)), "<i8").astype(np.int64)


def splitmix64(numbers: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    """Return a hash of each number (SplitMix64): neighboring numbers become unlike."""
    mixed = numbers.view(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed.view(np.int64)


def _value_text(value: Any) -> bytes:
    if isinstance(value, frozenset):
        return msgspec.json.encode(ordered_propositions(value))
    # A vocabulary has one of several equal tuples, and which one may depend on the shards.
    return msgspec.json.encode(_normalized(value) if isinstance(value, tuple) else value)


def _normalized(value: Any) -> Any:
    """Return the same value for all equal values, such as (1,), (1.0,) and (True,)."""
    if isinstance(value, tuple):
        return tuple(map(_normalized, value))
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value

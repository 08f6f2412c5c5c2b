"""Hashes of traces: one for each trace, and a digest of all that adds up over shards."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.traces.schema import BASIC_COLUMNS, LABEL, REWARD
from resolvent.traces.symbols import ordered_propositions
from resolvent.traces.vocabulary import Codes, Vocabulary

_MODULUS = 2**61 - 1
_BASES = 0x0B1E0A5C3D7F92E5, 0x13C6EF372FE94F82

Part = tuple[Mapping[str, Codes], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]
"""Some traces: codes of every column, lengths, whether each was terminated, and truncated."""


@dataclass(frozen=True)
class TraceDigest:
    """The number of traces and of steps, and a hash of the traces in their order.

    `residues` are two polynomials of the traces' keys, modulo a prime. A key depends only on
    the content of its trace, so digests of shards add up in any grouping.

    >>> a, b, c = (TraceDigest.of(np.array([key]), steps=7) for key in (1, 2, 3))
    >>> (a + b) + c == a + (b + c) == TraceDigest.of(np.array([1, 2, 3]), steps=21)
    True
    >>> a + b == b + a
    False
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
        content = [*_plain(vocabularies).items()], self.traces, self.steps, self.residues
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def digest_in_sequence(vocabularies: Mapping[str, Vocabulary[Any]], parts: Iterable[Part]) -> str:
    """Return the first form of the digest: SHA-256 over all codes, in the order of the traces.

    Unlike `TraceDigest`, it does not add up. The codes are those of the values of all parts.
    """
    values = _plain(vocabularies)
    step_values = {name: column for name, column in values.items() if name not in BASIC_COLUMNS}
    outputs = [*step_values.values()] if [*step_values] == [REWARD] else [step_values]
    digest = hashlib.sha256(
        msgspec.json.encode([*(values[name] for name in BASIC_COLUMNS), *outputs])
    )
    types = {
        name: np.min_scalar_type(len(column)).newbyteorder("<") for name, column in values.items()
    }
    column_digests = [hashlib.sha256() for _ in range(len(types) + 3)]
    for codes, lengths, terminated, truncated in parts:
        narrow = (codes[name].astype(dtype) for name, dtype in types.items())
        arrays = (*narrow, lengths.astype("<i8"), terminated, truncated)
        for column_digest, array in zip(column_digests, arrays, strict=True):
            column_digest.update(array.tobytes())
    for column_digest in column_digests:
        digest.update(column_digest.digest())
    return digest.hexdigest()


def _plain(vocabularies: Mapping[str, Vocabulary[Any]]) -> dict[str, list[Any]]:
    values = {name: list(column) for name, column in vocabularies.items()}
    values[LABEL] = list(map(ordered_propositions, values[LABEL]))
    return values


def content_hashes(
    columns: _core.TraceColumns, values: Mapping[str, Sequence[Any]], threads: int = 1
) -> NDArray[np.int64]:
    """Return a hash of each trace: equal for equal traces, different for almost all others.

    `values` are those of the codes of every column. A hash depends only on the content of
    its trace, not on which codes stand for it.
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
        try:
            return splitmix64(np.fromiter(values, np.int64, len(values)), salt)
        except OverflowError:
            pass  # beyond 64 bits: hashed as text
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
    return msgspec.json.encode(_normalized(value) if isinstance(value, tuple) else value)


def _normalized(value: Any) -> Any:
    """Return the same value for all equal values, such as (1,), (1.0,) and (True,).

    A vocabulary has only one of them, and which one may depend on the shards.
    """
    if isinstance(value, tuple):
        return tuple(map(_normalized, value))
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value

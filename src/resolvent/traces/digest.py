"""All that traces hold → 64 hexadecimal digits; those of traces in pieces can be added up."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.traces.column_names import BASIC, LABEL, REWARD
from resolvent.traces.symbols import in_writing
from resolvent.traces.vocabulary import Codes, Vocabulary

_MODULUS = 2**61 - 1
_BASES = 0x0B1E0A5C3D7F92E5, 0x13C6EF372FE94F82

Part = tuple[Mapping[str, Codes], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]
"""Some traces: codes of every column, lengths, whether each was terminated, and truncated."""


@dataclass(frozen=True)
class TraceDigest:
    """What is kept of traces to tell them from others: their number, and that of their steps.

    `residues` are two polynomials of the traces' keys in order, modulo a prime. A key depends
    on nothing but what its trace holds, so that a piece needs no other to be taken in, and
    pieces are added in their order but in any grouping.

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
        """Take in traces by their keys, as `trace_keys` gives them."""
        return cls(len(keys), steps, _core.key_residues(keys, *_BASES))

    def __add__(self, later: "TraceDigest") -> "TraceDigest":
        one, other = (
            (mine * pow(base, later.traces, _MODULUS) + theirs) % _MODULUS
            for mine, theirs, base in zip(self.residues, later.residues, _BASES, strict=True)
        )
        return TraceDigest(self.traces + later.traces, self.steps + later.steps, (one, other))

    def hexdigest(self, vocabularies: Mapping[str, Vocabulary[Any]]) -> str:
        """Return the digest of all traces, given all values of every column by name."""
        held = [*_plain(vocabularies).items()], self.traces, self.steps, self.residues
        return hashlib.sha256(msgspec.json.encode(held)).hexdigest()


def digest_in_sequence(vocabularies: Mapping[str, Vocabulary[Any]], parts: Iterable[Part]) -> str:
    """Return the digest that files of machines held at first: SHA-256 over all codes.

    It has to go through traces from the first to the last, in codes of all their values.
    """
    values = _plain(vocabularies)
    of_steps = {name: column for name, column in values.items() if name not in BASIC}
    told = [*of_steps.values()] if [*of_steps] == [REWARD] else [of_steps]
    whole = hashlib.sha256(msgspec.json.encode([*(values[name] for name in BASIC), *told]))
    types = {
        name: np.min_scalar_type(len(column)).newbyteorder("<") for name, column in values.items()
    }
    columns = [hashlib.sha256() for _ in range(len(types) + 3)]
    for codes, lengths, terminated, truncated in parts:
        narrow = (codes[name].astype(kind) for name, kind in types.items())
        held = (*narrow, lengths.astype("<i8"), terminated, truncated)
        for digest, part in zip(columns, held, strict=True):
            digest.update(part.tobytes())
    for digest in columns:
        whole.update(digest.digest())
    return whole.hexdigest()


def _plain(vocabularies: Mapping[str, Vocabulary[Any]]) -> dict[str, list[Any]]:
    values = {name: list(column) for name, column in vocabularies.items()}
    values[LABEL] = list(map(in_writing, values[LABEL]))
    return values

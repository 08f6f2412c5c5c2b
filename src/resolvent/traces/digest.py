"""All that traces hold → one SHA-256, piece by piece."""

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent.traces.column_names import BASIC, LABEL, REWARD
from resolvent.traces.vocabulary import Codes, Vocabulary


class TraceDigest:
    """SHA-256 over all that traces hold; they may come in pieces, one after the other.

    `vocabularies` are those of every column by name.
    """

    def __init__(self, vocabularies: Mapping[str, Vocabulary[Any]]) -> None:
        values = {name: list(column) for name, column in vocabularies.items()}
        values[LABEL] = [sorted(label) for label in values[LABEL]]
        of_steps = {name: column for name, column in values.items() if name not in BASIC}
        # Files hold digests of traces that have rewards and nothing else: these must not change.
        told = [*of_steps.values()] if [*of_steps] == [REWARD] else [of_steps]
        self._whole = hashlib.sha256(
            msgspec.json.encode([*(values[name] for name in BASIC), *told])
        )
        # In the fewest bytes that hold the vocabulary: hashing takes time by the byte.
        self._types = {
            name: np.min_scalar_type(len(column)).newbyteorder("<")
            for name, column in values.items()
        }
        self._columns = [hashlib.sha256() for _ in range(len(self._types) + 3)]

    def add(
        self,
        columns: Mapping[str, Codes],
        lengths: NDArray[np.int64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
    ) -> None:
        """Take in the next traces, as codes of the vocabularies."""
        narrow = (columns[name].astype(kind) for name, kind in self._types.items())
        parts = (*narrow, lengths.astype("<i8"), terminated, truncated)
        for digest, part in zip(self._columns, parts, strict=True):
            digest.update(part.tobytes())

    def copy(self) -> "TraceDigest":
        """Return a digest that goes on from here by itself."""
        other = copy.copy(self)
        other._columns = [digest.copy() for digest in self._columns]
        return other

    def hexdigest(self) -> str:
        """Return the digest of all that came so far."""
        whole = self._whole.copy()
        for digest in self._columns:
            whole.update(digest.digest())
        return whole.hexdigest()

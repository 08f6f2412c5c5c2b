"""Minari datasets on this machine ↔ `TraceSet`.

A dataset is named `minari:NAMESPACE/NAME-v0`. Labels are read from the infos,
from the first of `labels`, `label`, `events` that is there, as one of

- a string a step: "" is no event, and "door & key" two propositions at once;
- a mapping from proposition to booleans;
- a table of booleans, whose columns become the propositions "0", "1", ….

`rs.read_traces("minari:…", label_of=…)` makes them from the observations instead.

Minari records infos only when told to, and then they need the same keys at reset
and at every step. It can store no sets, so an environment whose `info["labels"]`
is a set, as the house's is, stops `DataCollector` with an error about its type.
The short way round is `rs.collect(env, …).save("minari:…")`; the other is to spell
the sets out while Minari collects::

    class SpellLabels(minari.StepDataCallback):
        def __call__(self, env, info, **step):
            labels = " & ".join(sorted(info["labels"]))
            return super().__call__(env, info={"labels": labels}, **step)

    minari.DataCollector(env, step_data_callback=SpellLabels, record_infos=True)

Images of 32 by 32 and more it squeezes into JPEG, and then images that differ little
may become one symbol: pass it `jpeg_encoding=False`.

`DataCollector` needs `pip install "minari[create]"`, which brings JAX; nothing
here does.

Further columns are read from the infos of the same names, from the row after each
step; `rs.read_traces("minari:…", columns=["cost"])` names them. Those that were
written here are listed in the metadata, and come back unasked.

Written are labels as strings; ints as `Discrete`, strings as `Text`, numbers and
arrays of numbers as `Box`. Any other symbols, such as tuples of names and numbers,
become codes whose meaning stands in the dataset's metadata. Minari's
`combine_datasets` drops that; add trace sets instead.
"""

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import MissingExtra, ResolventError, TraceError
from resolvent.traces.symbols import NO_EVENT_TEXT

PREFIX = "minari:"
SEPARATOR = " & "
METADATA_KEY = "resolvent"
_ID = re.compile(r"([-\w][-\w/]*[-\w]/)?[-\w]+-v\d+")  # as Minari has it


def minari_id(path: str | Path) -> str | None:
    """Return the id of the dataset that is named, or None for the name of a file.

    >>> minari_id("minari:house/random-v0"), minari_id("house.jsonl")
    ('house/random-v0', None)
    """
    name = str(path)
    if not name.startswith(PREFIX):
        return None
    dataset_id = name.removeprefix(PREFIX)
    if not _ID.fullmatch(dataset_id):
        raise TraceError(
            f"{name} does not name a Minari dataset: write minari:NAMESPACE/NAME-v0, in letters, "
            f"digits, - and _, the namespace at least two of them"
        )
    return dataset_id


def import_minari(module: str = "minari") -> Any:
    """Import Minari or a part of it, or say which extra is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing_extra() from error


def _missing_extra() -> MissingExtra:
    return MissingExtra(
        'Minari datasets need Minari and its storage: pip install "resolvent[minari]"'
    )


@contextmanager
def plain_errors(where: str) -> Iterator[None]:
    """Turn whatever Minari raises into one line."""
    try:
        yield
    except ResolventError:
        raise
    except ImportError as error:  # Minari loads what reads and writes files only when asked to
        raise _missing_extra() from error
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise TraceError(f"{where}: Minari fails: {reason}") from error


def propositions_of(text: str | bytes) -> tuple[str, ...]:
    """Return the propositions that a label written as a string stands for."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise TraceError(f"the label {text!r} is not UTF-8") from None
    if text in ("", NO_EVENT_TEXT):
        return ()
    propositions = tuple(text.split(SEPARATOR))
    if "" in propositions:
        raise TraceError(f"the label {text!r} has a proposition without a name")
    return propositions


def row_bytes(array: NDArray[Any]) -> list[bytes]:
    """Return each row of an array as bytes, which are equal where rows are.

    >>> [list(row) for row in row_bytes(np.array([[True, False], [True, True]]))]
    [[1, 0], [1, 1]]
    """
    if not array.size:
        return [b""] * len(array)
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    parts: list[bytes] = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    return parts

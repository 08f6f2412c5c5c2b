"""`TraceSet` → a new Minari dataset on this machine; `minari_datasets.py` says what is in one."""

import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TraceError, locating
from resolvent.traces.column_names import REWARD, column_text
from resolvent.traces.minari.datasets import (
    METADATA_KEY,
    PREFIX,
    SEPARATOR,
    import_minari,
    plain_errors,
    propositions_of,
)
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary


def write_minari(traces: TraceSet, dataset_id: str) -> None:
    """Write a new dataset, whole or not at all; one that exists is never replaced."""
    minari = import_minari("minari")
    where = PREFIX + dataset_id
    if not len(traces):
        raise TraceError(f"there are no traces to write to {where}")
    with locating(where):
        labels = [_label_text(label) for label in traces.labels]
        further = _further_columns(traces)
    observations, actions = _Written(traces.observations), _Written(traces.actions)
    meanings = {
        "observations": observations.meanings,
        "actions": actions.meanings,
        "columns": {name: written.meanings for name, written in further.items()},
    }
    with plain_errors(where):
        folder = import_minari("minari.storage").get_dataset_path(dataset_id)
        if folder.exists():
            raise TraceError(
                f"{where} exists already: raise its version, "
                f"or remove it first by `minari delete {dataset_id}`"
            )
        try:
            with warnings.catch_warnings():
                # Minari warns of each unknown: no author, no environment, no code, …
                warnings.filterwarnings("ignore", category=UserWarning, module="minari")
                dataset = minari.create_dataset_from_buffers(
                    dataset_id,
                    list(_buffers(traces, observations, labels, actions, further)),
                    observation_space=observations.space,
                    action_space=actions.space,
                    description="Traces written by Resolvent; labels are in the infos.",
                )
            dataset.storage.update_metadata(
                {METADATA_KEY: {name: values for name, values in meanings.items() if values}}
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _further_columns(traces: TraceSet) -> dict[str, "_Written"]:
    """Return how each further column is written; `TraceError` where there is no way to."""
    if REWARD not in traces.columns:
        raise TraceError("the traces have no rewards, and Minari needs them: write jsonl instead")
    further = {
        name: _Written(column.values) for name, column in traces.columns.items() if name != REWARD
    }
    for name in further:
        # HDF5 takes these for paths, or ends the name there.
        if "/" in name or "\0" in name or name == ".":
            raise TraceError(f"Minari cannot hold a {column_text(name)}: write jsonl instead")
    return further


def _label_text(label: Label) -> str:
    """Write a label so that `propositions_of` reads it back."""
    text = SEPARATOR.join(sorted(label))
    # HDF5 ends a string at its first NUL.
    if "\0" in text or frozenset(propositions_of(text)) != label:
        raise TraceError(
            f"the label {sorted(label)!r} cannot be told apart once it is written as "
            f"{text!r}: write jsonl instead"
        )
    return text


class _Written:
    """How a column of symbols is written: its space, and what stands for each symbol.

    >>> _Written(Vocabulary(["attic", "hall"])).space
    Text(0, 5, charset=achilt)
    >>> mixed = _Written(Vocabulary([("key", 1), ("key", 2)]))
    >>> mixed.space, mixed.meanings
    (Discrete(2), [('key', 1), ('key', 2)])
    """

    def __init__(self, symbols: Vocabulary[Any]) -> None:
        from gymnasium import spaces

        self.meanings: list[Any] | None = None
        values = list(symbols)
        if all(isinstance(value, str) and "\0" not in value for value in values):
            self._values = np.array(values, object)
            self.space: Any = spaces.Text(
                max_length=max(1, *map(len, values)),
                min_length=0,
                charset="".join(sorted(set().union(*values))),
            )
        elif (numbers := _as_numbers(values)) is None:
            self.meanings = values
            self._values = np.arange(len(values))
            self.space = spaces.Discrete(len(values))
        elif type(values[0]) is int and values[-1] - values[0] < np.iinfo(np.int64).max:
            self._values = numbers
            self.space = spaces.Discrete(values[-1] - values[0] + 1, start=values[0])
        else:
            self._values = numbers
            low, high, shape = numbers.min(axis=0), numbers.max(axis=0), numbers.shape[1:]
            self.space = spaces.Box(low, high, shape, numbers.dtype.type)

    def column(self, codes: Codes) -> NDArray[Any] | list[str]:
        """Return what Minari stores for symbols given by their codes."""
        column = self._values[codes]
        return column.tolist() if column.dtype == object else column


def _as_numbers(symbols: list[Any]) -> NDArray[Any] | None:
    """Return symbols as one array of int64 or float64, if that loses nothing."""
    try:
        array = np.array(symbols)
    except (ValueError, OverflowError):
        return None
    if array.dtype not in (np.int64, np.float64) or not array.size:
        return None
    # JSON tells 1 from 1.0 and from true, which Python's == does not.
    same = msgspec.json.encode(array.tolist()) == msgspec.json.encode(symbols)
    return array if same else None


def _buffers(
    traces: TraceSet,
    observations: _Written,
    labels: Sequence[str],
    actions: _Written,
    further: Mapping[str, _Written],
) -> Iterator[Any]:
    """Yield each trace as Minari takes it."""
    buffer = import_minari("minari.data_collector").EpisodeBuffer
    rewards = np.array(list(traces.rewards))
    label_of = labels.__getitem__
    for number in range(len(traces)):
        acted = slice(traces.offsets[number], traces.offsets[number + 1])
        seen = slice(acted.start + number, acted.stop + number + 1)
        # Infos have a row for the reset, too, where there is no step to tell of.
        after_reset = np.maximum(np.arange(acted.start - 1, acted.stop), acted.start)
        ends = np.arange(acted.start, acted.stop) == acted.stop - 1
        yield buffer(
            observations=observations.column(traces.observation_codes[seen]),
            actions=actions.column(traces.action_codes[acted]),
            rewards=rewards[traces.reward_codes[acted]],
            terminations=ends & traces.terminated[number],
            truncations=ends & traces.truncated[number],
            infos={
                "labels": list(map(label_of, traces.label_codes[seen].tolist())),
                **{
                    name: written.column(traces.columns[name].codes[after_reset])
                    for name, written in further.items()
                },
            },
        )

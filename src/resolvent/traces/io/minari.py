"""Minari datasets on this machine ↔ `TraceSet`.

Labels are read from the infos, from the first of `labels`, `label`, `events` that exists, as one of

- a string a step: "" is no event, and "door & key" two propositions at once;
- a mapping from proposition to booleans;
- a table of booleans, whose columns become the propositions "0", "1", ….

Further columns are infos, too, from the row after each step; the metadata list those written here.
Labels are written as strings, ints as `Discrete`, strings as `Text`, numbers and arrays of numbers
as `Box`. Other symbols become codes, and the metadata list their meanings.
"""

import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import compress
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent._util.files import first_line
from resolvent._util.parallel import FractionListener
from resolvent.errors import MissingExtra, ResolventError, TraceError, located, locating
from resolvent.traces.columns import EpisodeBuilder, row_bytes
from resolvent.traces.io.formats import MINARI_PREFIX
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    RESERVED,
    REWARD,
    column_text,
    missing_column_error,
)
from resolvent.traces.symbols import (
    INFO_KEYS,
    NO_EVENT_TEXT,
    Label,
    LabelFunction,
    as_array,
    as_symbol,
)
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary

_SEPARATOR = " & "
_METADATA_KEY = "resolvent"
_MISSING_EXTRA = 'Minari datasets need Minari and its storage: pip install "resolvent[minari]"'
_HOW_TO_RECORD = (
    'record them by DataCollector(env, record_infos=True), where info["labels"] is a string '
    "('' for no event, 'door & key' for two) or a dict of booleans by proposition; "
    "or in Python pass labeling_fn= to make them from the observations"
)


def read_minari(
    dataset_id: str,
    progress: FractionListener | None = None,
    labeling_fn: Callable[..., Any] | None = None,
    columns: Sequence[str] = (),
) -> TraceSet:
    """Read a dataset that is on this machine, as `read_traces` does; nothing is downloaded."""
    name = MINARI_PREFIX + dataset_id
    with _plain_errors(name):
        minari = import_module("minari")
        try:
            dataset = minari.load_dataset(dataset_id, download=False)
        except FileNotFoundError as error:
            raise TraceError(
                f"{name} is not on this machine: `minari list local` lists what is, "
                f"`minari download {dataset_id}` fetches it if it was published"
            ) from error
        meanings = dataset.storage.metadata.get(_METADATA_KEY, {})
        total = int(dataset.total_episodes)
        episodes = iter(dataset.iterate_episodes())
    if not total:
        raise TraceError(f"{name} holds no episodes")
    reader = _EpisodeReader(meanings, labeling_fn, columns)
    for number in range(total):
        with _plain_errors(f"{name}, episode {number}"):
            episode = next(episodes)
        with locating(f"{name}, episode {number}"):
            reader.add(episode)
        if progress:
            progress((number + 1) / total)
    with locating(name):
        return TraceSet.from_episodes(reader.episodes)


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    """Turn all errors of Minari into a `TraceError` of one line."""
    try:
        yield
    except ResolventError:
        raise
    except ImportError as error:
        raise MissingExtra(_MISSING_EXTRA) from error
    except Exception as error:
        raise TraceError(f"{name}: Minari fails: {first_line(error)}") from error


class _EpisodeReader:
    """Adds one Minari episode after another to the episodes of a trace set."""

    def __init__(
        self,
        meanings: Mapping[str, Any],
        labeling_fn: Callable[..., Any] | None,
        columns: Sequence[str],
    ) -> None:
        self.episodes = EpisodeBuilder()
        self._label_function = None if labeling_fn is None else LabelFunction(labeling_fn)
        self._has_labels: bool | None = None
        of_columns = meanings.get("columns", {})
        self._further = sorted({*of_columns, *columns})
        listed = of_columns | {
            OBSERVATION: meanings.get("observations"),
            ACTION: meanings.get("actions"),
        }
        self._meanings = {
            name: list(map(as_symbol, values))
            for name, values in listed.items()
            if values is not None
        }

    def add(self, episode: Any) -> None:
        """Add an `EpisodeData`."""
        infos: Mapping[str, Any] = episode.infos or {}
        observations = self._steps(OBSERVATION, episode.observations)
        actions = self._steps(ACTION, episode.actions)
        rewards = np.asarray(episode.rewards)
        if rewards.ndim != 1 or rewards.dtype.kind not in "biuf":
            raise TraceError("rewards: give each step one number")
        rewards = (rewards.astype(np.float64) + 0.0).tolist()  # turns -0.0 into 0.0
        labels = self._labels(observations, actions, rewards, infos)
        columns = {OBSERVATION: observations, LABEL: labels, ACTION: actions, REWARD: rewards}
        for name in self._further:
            if name not in infos:
                raise missing_column_error(name, sorted(set(infos) - RESERVED))
            columns[name] = self._steps(name, _after_reset(infos[name]))
        self.episodes.add(
            columns,
            terminated=bool(np.asarray(episode.terminations)[-1]),
            truncated=bool(np.asarray(episode.truncations)[-1]),
        )

    def _labels(
        self, observations: Any, actions: Any, rewards: list[float], infos: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Return the labels of an episode: computed, recorded, or none at all."""
        has_labels = any(key in infos for key in INFO_KEYS)
        if self._has_labels is None:  # all episodes have labels, or none has
            self._has_labels = has_labels
        function = self._label_function
        if function is None:
            if self._has_labels or has_labels:
                return _recorded_labels(infos)
            return [()] * len(observations)
        step, info = -1, _by_step(infos) or [{}] * len(observations)
        try:
            labels = [function.at_reset(observations[0], info[0])]
            for step in range(min(len(actions), len(observations) - 1)):
                before, after = observations[step], observations[step + 1]
                labels.append(
                    function.after_step(before, actions[step], rewards[step], after, info[step + 1])
                )
        except TraceError as error:
            raise located("reset" if step < 0 else f"step {step}", error) from error
        return labels

    def _steps(self, name: str, values: Any) -> Any:
        """Return the values of a column by step, as the environment returned them."""
        meanings = self._meanings.get(name)
        if meanings is None:
            return _by_step(values)
        codes = np.asarray(values)
        with locating(column_text(name)):
            if codes.ndim != 1 or codes.dtype.kind not in "iu":
                raise TraceError("the metadata list the meanings of codes, but these are not codes")
            if np.any(wrong := (codes < 0) | (codes >= len(meanings))):
                step = int(np.argmax(wrong))
                raise TraceError(
                    f"step {step}: the code is {codes[step]}, but the metadata list only the "
                    f"meanings of 0 to {len(meanings) - 1}"
                )
        return [meanings[code] for code in codes.tolist()]


def _recorded_labels(infos: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the propositions of each step."""
    key = next((key for key in INFO_KEYS if key in infos), None)
    if key is None:
        raise TraceError(f"the infos hold no labels: {_HOW_TO_RECORD}")
    column = infos[key]
    if not isinstance(column, Mapping):
        column = np.asarray(column)
        if column.dtype == object and set(map(type, column.flat)) == {dict}:
            # Minari's Arrow and Parquet storages return one mapping for each step.
            column = {name: [step.get(name) for step in column] for name in column[0]}
    if isinstance(column, Mapping):
        by_name = dict(_flattened(column))
        truths = list(by_name.values())
        if truths and all(truth.ndim == 1 and len(truth) == len(truths[0]) for truth in truths):
            return _true_names(np.stack(truths, axis=1), list(by_name), key)
    elif column.ndim == 2:
        return _true_names(column, [str(number) for number in range(column.shape[1])], key)
    elif column.ndim == 1 and {str, bytes}.issuperset(map(type, texts := column.tolist())):
        propositions = {text: _propositions(text) for text in set(texts)}
        return [propositions[text] for text in texts]
    raise _unreadable_labels(key)


def _flattened(truths: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield propositions and their truths; HDF5 stores "hall/key" as "key" within "hall"."""
    for name, truth in truths.items():
        if isinstance(truth, Mapping):
            yield from _flattened(truth, f"{path}{name}/")
        else:
            yield path + name, np.asarray(truth)


def _true_names(truths: NDArray[Any], names: list[str], key: str) -> list[tuple[str, ...]]:
    if truths.dtype.kind not in "biuf" or not np.isin(truths, (0, 1)).all():
        raise _unreadable_labels(key)
    rows = row_bytes(truths.astype(np.bool_))
    propositions = {row: tuple(compress(names, row)) for row in set(rows)}
    return [propositions[row] for row in rows]


def _unreadable_labels(key: str) -> TraceError:
    return TraceError(f'info["{key}"] does not hold labels that can be read: {_HOW_TO_RECORD}')


def _propositions(text: str | bytes) -> tuple[str, ...]:
    """Return the propositions of a label written as a string."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise TraceError(f"the label {text!r} is not UTF-8") from None
    if text in ("", NO_EVENT_TEXT):
        return ()
    propositions = tuple(text.split(_SEPARATOR))
    if "" in propositions:
        raise TraceError(f"the label {text!r} has a proposition without a name")
    return propositions


def _after_reset(values: Any) -> Any:
    """Return an info without its first row, with bytes, as HDF5 returns texts, decoded."""
    if isinstance(values, Mapping):
        return {name: _after_reset(part) for name, part in values.items()}
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OSU":
        return values[1:]
    return [value.decode() if isinstance(value, bytes) else value for value in list(values)[1:]]


def _by_step(values: Any) -> Any:
    """Return columns, nested as in their space, as one value a step; a single array stays one."""
    if isinstance(values, Mapping):
        rows = _by_step(tuple(values.values()))
        return [dict(zip(values, row, strict=True)) for row in rows]
    if isinstance(values, tuple):
        return list(zip(*map(_by_step, values), strict=False))
    return values


def write_minari(traces: TraceSet, dataset_id: str) -> None:
    """Write a new dataset, completely or not at all; an existing one is never replaced."""
    name = MINARI_PREFIX + dataset_id
    if not len(traces):
        raise TraceError(f"there are no traces to write to {name}")
    with locating(name):
        labels = list(map(_label_text, traces.labels))
        if REWARD not in traces.columns:
            raise TraceError(
                "the traces have no rewards, and Minari needs them: write jsonl instead"
            )
        further = [column for column in traces.columns if column != REWARD]
        for column in further:
            # HDF5 takes these names for paths, or ends them there.
            if "/" in column or "\0" in column or column == ".":
                raise TraceError(f"Minari cannot hold a {column_text(column)}: write jsonl instead")
    encodings = {name: _Encoding(traces.values[name]) for name in (OBSERVATION, ACTION, *further)}
    meanings = {
        "observations": encodings[OBSERVATION].meanings,
        "actions": encodings[ACTION].meanings,
        "columns": {column: encodings[column].meanings for column in further},
    }
    with _plain_errors(name):
        minari = import_module("minari")
        folder = import_module("minari.storage").get_dataset_path(dataset_id)
        if folder.exists():
            raise TraceError(
                f"{name} exists already: raise its version, "
                f"or remove it first by `minari delete {dataset_id}`"
            )
        try:
            with warnings.catch_warnings():
                # Minari warns of each missing field: author, environment, code, …
                warnings.filterwarnings("ignore", category=UserWarning, module="minari")
                dataset = minari.create_dataset_from_buffers(
                    dataset_id,
                    list(_buffers(traces, labels, encodings)),
                    observation_space=encodings[OBSERVATION].space,
                    action_space=encodings[ACTION].space,
                    description="Traces written by Resolvent; labels are in the infos.",
                )
            dataset.storage.update_metadata(
                {_METADATA_KEY: {key: values for key, values in meanings.items() if values}}
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _label_text(label: Label) -> str:
    """Return a label as a string that `_propositions` reads back."""
    text = _SEPARATOR.join(sorted(label))
    # HDF5 ends a string at its first NUL.
    if "\0" in text or frozenset(_propositions(text)) != label:
        raise TraceError(
            f"the label {sorted(label)!r} would be written as {text!r}, as another label is: "
            f"write jsonl instead"
        )
    return text


class _Encoding:
    """The space of a column of symbols, and the stored value of each symbol."""

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
        """Return the stored values of symbols given by their codes."""
        column = self._values[codes]
        return column.tolist() if column.dtype == object else column


def _as_numbers(symbols: list[Any]) -> NDArray[Any] | None:
    """Return symbols as one array of int64 or float64; None if that would change them."""
    array = as_array(tuple(symbols))
    if array is None or array.dtype not in (np.int64, np.float64):
        return None
    # JSON distinguishes 1 from 1.0 and from true, which Python's == does not.
    is_same = msgspec.json.encode(array.tolist()) == msgspec.json.encode(symbols)
    return array if is_same else None


def _buffers(
    traces: TraceSet, labels: Sequence[str], encodings: Mapping[str, _Encoding]
) -> Iterator[Any]:
    """Yield each trace as an `EpisodeBuffer` of Minari."""
    buffer = import_module("minari.data_collector").EpisodeBuffer
    rewards = np.array(list(traces.rewards))
    for number in range(len(traces)):
        steps_of_trace, observed = traces.rows_of(number)
        steps = np.arange(steps_of_trace.start, steps_of_trace.stop)
        # Infos also have a row for the reset, where there is no step yet.
        after_reset = np.append(steps_of_trace.start, steps)
        is_last = steps == steps_of_trace.stop - 1
        rows = {OBSERVATION: observed, ACTION: steps_of_trace}
        values = {
            name: encoding.column(traces.codes[name][rows.get(name, after_reset)])
            for name, encoding in encodings.items()
        }
        yield buffer(
            observations=values.pop(OBSERVATION),
            actions=values.pop(ACTION),
            rewards=rewards[traces.reward_codes[steps_of_trace]],
            terminations=is_last & traces.terminated[number],
            truncations=is_last & traces.truncated[number],
            infos={
                "labels": [labels[code] for code in traces.label_codes[observed].tolist()],
                **values,
            },
        )

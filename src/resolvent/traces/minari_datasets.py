"""Minari datasets on this machine ↔ `TraceSet`.

A dataset is named `minari:NAMESPACE/NAME-v0`. Labels are read from the infos,
from the first of `labels`, `label`, `events` that is there, as one of

- a string a step: "" is no event, and "door & key" two propositions at once;
- a mapping from proposition to booleans;
- a table of booleans, whose columns become the propositions "0", "1", ….

Minari records infos only when told to, and can store no sets, so an environment
whose `info["labels"]` is a set, as the house's is, stops `DataCollector` with an
error about its type. The short way round is `rs.collect(env, …).save("minari:…")`;
the other is to spell the sets out while Minari collects::

    class SpellLabels(minari.StepDataCallback):
        def __call__(self, env, info, **step):
            labels = " & ".join(sorted(info["labels"]))
            return super().__call__(env, info={"labels": labels}, **step)

    minari.DataCollector(env, step_data_callback=SpellLabels, record_infos=True)

`DataCollector` needs `pip install "minari[create]"`, which brings JAX; nothing
here does.

Written are labels as strings; ints as `Discrete`, strings as `Text`, numbers and
arrays of numbers as `Box`. Any other symbols, such as tuples of names and numbers,
become codes whose meaning stands in the dataset's metadata. Minari's
`combine_datasets` drops that; add trace sets instead.
"""

import importlib
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent.errors import MissingExtra, ResolventError, TraceError, locating
from resolvent.traces.columns import LabelCodes, code_symbols
from resolvent.traces.lines import Progress
from resolvent.traces.symbols import NO_EVENT_TEXT, Label, Symbol, as_symbol
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner, Vocabulary

_PREFIX = "minari:"
_ID = re.compile(r"([-\w][-\w/]*[-\w]/)?[-\w]+-v\d+")  # as Minari has it
_INFO_KEYS = ("labels", "label", "events")
_SEPARATOR = " & "
_METADATA_KEY = "resolvent"
_HOW_TO_RECORD = (
    'record them by DataCollector(env, record_infos=True), where info["labels"] is a string '
    "('' for no event, 'door & key' for two) or a dict of booleans by proposition"
)


def minari_id(path: str | Path) -> str | None:
    """Return the id of the dataset that is named, or None for the name of a file.

    >>> minari_id("minari:house/random-v0"), minari_id("house.jsonl")
    ('house/random-v0', None)
    """
    name = str(path)
    if not name.startswith(_PREFIX):
        return None
    dataset_id = name.removeprefix(_PREFIX)
    if not _ID.fullmatch(dataset_id):
        raise TraceError(
            f"{name} does not name a Minari dataset: write minari:NAMESPACE/NAME-v0, in letters, "
            f"digits, - and _, the namespace at least two of them"
        )
    return dataset_id


def read_minari(dataset_id: str, progress: Progress | None = None) -> TraceSet:
    """Read a dataset that is on this machine; nothing is ever downloaded."""
    minari = _import("minari")
    where = _PREFIX + dataset_id
    with _plain_errors(where):
        try:
            dataset = minari.load_dataset(dataset_id, download=False)
        except FileNotFoundError as error:
            raise TraceError(
                f"{where} is not on this machine: `minari list local` lists what is, "
                f"`minari download {dataset_id}` fetches it if it was published"
            ) from error
        names = dataset.storage.metadata.get(_METADATA_KEY, {})
        total = int(dataset.total_episodes)
        episodes = iter(dataset.iterate_episodes())
    if not total:
        raise TraceError(f"{where} holds no episodes")
    columns = _Columns(names)
    for number in range(total):
        with _plain_errors(f"{where}, episode {number}"):
            episode = next(episodes)
        with locating(f"{where}, episode {number}"):
            columns.add(episode)
        if progress:
            progress((number + 1) / total)
    with locating(where):
        return columns.trace_set()


def write_minari(traces: TraceSet, dataset_id: str) -> None:
    """Write a new dataset, whole or not at all; one that exists is never replaced."""
    minari = _import("minari")
    where = _PREFIX + dataset_id
    if not len(traces):
        raise TraceError(f"there are no traces to write to {where}")
    with locating(where):
        labels = [_label_text(label) for label in traces.labels]
    observations, actions = _Written(traces.observations), _Written(traces.actions)
    meanings = {"observations": observations.meanings, "actions": actions.meanings}
    with _plain_errors(where):
        folder = _import("minari.storage").get_dataset_path(dataset_id)
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
                    list(_buffers(traces, observations, labels, actions)),
                    observation_space=observations.space,
                    action_space=actions.space,
                    description="Traces written by Resolvent; labels are in the infos.",
                )
            dataset.storage.update_metadata(
                {_METADATA_KEY: {name: values for name, values in meanings.items() if values}}
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing_extra() from error


def _missing_extra() -> MissingExtra:
    return MissingExtra(
        'Minari datasets need Minari and its storage: pip install "resolvent[minari]"'
    )


@contextmanager
def _plain_errors(where: str) -> Iterator[None]:
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


class _Columns:
    """Grows the columns of a trace set, one Minari episode at a time."""

    def __init__(self, meanings: Mapping[str, Sequence[Any]]) -> None:
        self._observations = _Symbols(meanings.get("observations"))
        self._labels = LabelCodes()
        self._actions = _Symbols(meanings.get("actions"))
        self._rewards: Interner[float] = Interner()
        self._parts: tuple[list[Codes], ...] = ([], [], [], [])
        self._flags: list[tuple[bool, bool]] = []

    def add(self, episode: Any) -> None:
        """Code an `EpisodeData`."""
        with locating("observations"):
            observations = self._observations.code(episode.observations)
        labels = _labels(episode.infos)
        label_codes = np.fromiter(map(self._labels.__getitem__, labels), np.int32, len(labels))
        with locating("actions"):
            actions = self._actions.code(episode.actions)
        with locating("rewards"):
            rewards = self._rewards.encode(_rewards(episode.rewards))
        codes = observations, label_codes, actions, rewards
        check_lengths(*map(len, codes))
        for part, column in zip(self._parts, codes, strict=True):
            part.append(column)
        self._flags.append((_last(episode.terminations), _last(episode.truncations)))

    def trace_set(self) -> TraceSet:
        """Return what was added."""
        values: tuple[list[Any], ...] = (
            self._observations.interner.values_in_order(),
            self._labels.sets.values_in_order(),
            self._actions.interner.values_in_order(),
            self._rewards.values_in_order(),
        )
        observations, labels, actions, rewards = zip(
            values, map(np.concatenate, self._parts), strict=True
        )
        terminated, truncated = zip(*self._flags, strict=True)
        return TraceSet.from_columns(
            observations,
            labels,
            actions,
            rewards,
            offsets=np.cumsum([0, *map(len, self._parts[2])]),
            terminated=terminated,
            truncated=truncated,
        )


class _Symbols:
    """Codes the observations, or the actions, of one episode after another."""

    def __init__(self, meanings: Sequence[Any] | None) -> None:
        self.interner: Interner[Symbol] = Interner()
        self._meanings: Codes | None = None
        if meanings is not None:
            self._meanings = code_symbols(self.interner, meanings)
        self._rows: dict[Any, dict[bytes, int]] = {}

    def code(self, values: Any) -> Codes:
        """Return the codes of an episode's values, in whatever form their space gives them."""
        if self._meanings is not None:
            return self._meanings.take(_positions(values, len(self._meanings)))
        if isinstance(values, np.ndarray) and values.ndim > 1 and values.dtype.kind in "biuf":
            return self._code_rows(values)
        return code_symbols(self.interner, _steps(values))

    def _code_rows(self, values: NDArray[Any]) -> Codes:
        """Code an array by making a symbol of each distinct row once, over all episodes."""
        known = self._rows.setdefault((values.dtype, values.shape[1:]), {})
        rows = _row_bytes(values)
        for step, row in enumerate(rows):
            if row not in known:
                with locating(f"step {step}"):
                    symbol = as_symbol(values[step])
                known[row] = int(self.interner.encode([symbol])[0])
        return np.fromiter(map(known.__getitem__, rows), np.int32, len(rows))


def _positions(values: Any, count: int) -> NDArray[np.integer[Any]]:
    positions = np.asarray(values)
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        raise TraceError("the metadata tell what codes mean, but these are not codes")
    if np.any(wrong := (positions < 0) | (positions >= count)):
        step = int(np.argmax(wrong))
        raise TraceError(
            f"step {step}: the code is {positions[step]}, but the metadata tell only "
            f"what 0 to {count - 1} mean"
        )
    return positions


def _row_bytes(array: NDArray[Any]) -> list[bytes]:
    """Return each row of an array as bytes, which are equal where rows are.

    >>> [list(row) for row in _row_bytes(np.array([[True, False], [True, True]]))]
    [[1, 0], [1, 1]]
    """
    if not array.size:
        return [b""] * len(array)
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    row_bytes: list[bytes] = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    return row_bytes


def _steps(values: Any) -> Sequence[Any]:
    """Turn columns, nested as in their space, into one value a step.

    >>> _steps({"image": np.array([[0, 1], [1, 1]]), "mission": ["go", "go"]})
    [{'image': [0, 1], 'mission': 'go'}, {'image': [1, 1], 'mission': 'go'}]
    """
    if isinstance(values, Mapping):
        columns = map(_steps, values.values())
        return [dict(zip(values, row, strict=True)) for row in zip(*columns, strict=False)]
    if isinstance(values, tuple):
        return list(zip(*map(_steps, values), strict=False))
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return list(values)


def _rewards(values: Any) -> list[float]:
    rewards = np.asarray(values)
    if rewards.ndim != 1 or rewards.dtype.kind not in "biuf":
        raise TraceError("give each step one number")
    if np.any(wrong := ~np.isfinite(rewards)):
        step = int(np.argmax(wrong))
        raise TraceError(f"step {step}: the reward is {rewards[step]}; rewards must be finite")
    finite: list[float] = (rewards.astype(np.float64) + 0.0).tolist()  # one zero, not two
    return finite


def _last(flags: Any) -> bool:
    return bool(np.asarray(flags)[-1])


def _labels(infos: Mapping[str, Any] | None) -> list[tuple[str, ...]]:
    """Return the propositions of each step.

    >>> _labels({"labels": np.array([b"", b"door & key"], object)})
    [(), ('door', 'key')]
    >>> _labels({"events": {"key": np.array([0, 1]), "door": np.array([1, 1])}})
    [('door',), ('key', 'door')]
    """
    key = next((key for key in _INFO_KEYS if key in (infos or {})), None)
    if infos is None or key is None:
        raise TraceError(f"the infos hold no labels: {_HOW_TO_RECORD}")
    column = infos[key]
    if not isinstance(column, Mapping):
        column = np.asarray(column)
        if column.dtype == object and set(map(type, column.flat)) == {dict}:
            # Minari's Arrow and Parquet storages give a mapping a step.
            column = {name: [step.get(name) for step in column] for name in column[0]}
    if isinstance(column, Mapping):
        named = dict(_named(column))
        truths = list(named.values())
        if truths and all(truth.ndim == 1 and len(truth) == len(truths[0]) for truth in truths):
            return _true_names(np.stack(truths, axis=1), list(named), key)
    elif column.ndim == 2:
        return _true_names(column, [str(number) for number in range(column.shape[1])], key)
    elif column.ndim == 1 and {str, bytes}.issuperset(map(type, texts := column.tolist())):
        propositions = {text: _propositions(text) for text in set(texts)}
        return [propositions[text] for text in texts]
    raise _not_labels(key)


def _named(truths: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield propositions and their truths; HDF5 puts "hall/key" as "key" into "hall"."""
    for name, truth in truths.items():
        if isinstance(truth, Mapping):
            yield from _named(truth, f"{path}{name}/")
        else:
            yield path + name, np.asarray(truth)


def _true_names(truths: NDArray[Any], names: list[str], key: str) -> list[tuple[str, ...]]:
    if truths.dtype.kind not in "biuf" or not np.isin(truths, (0, 1)).all():
        raise _not_labels(key)
    rows = _row_bytes(truths.astype(np.bool_))
    propositions = {row: tuple(compress(names, row)) for row in set(rows)}
    return [propositions[row] for row in rows]


def _not_labels(key: str) -> TraceError:
    return TraceError(f'info["{key}"] does not hold labels that can be read: {_HOW_TO_RECORD}')


def _propositions(text: str | bytes) -> tuple[str, ...]:
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


def _label_text(label: Label) -> str:
    """Write a label so that `_propositions` reads it back."""
    text = _SEPARATOR.join(sorted(label))
    # HDF5 ends a string at its first NUL.
    if "\0" in text or frozenset(_propositions(text)) != label:
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
    traces: TraceSet, observations: _Written, labels: Sequence[str], actions: _Written
) -> Iterator[Any]:
    """Yield each trace as Minari takes it."""
    buffer = _import("minari.data_collector").EpisodeBuffer
    rewards = np.array(list(traces.rewards))
    label_of = labels.__getitem__
    for number in range(len(traces)):
        acted = slice(traces.offsets[number], traces.offsets[number + 1])
        seen = slice(acted.start + number, acted.stop + number + 1)
        ends = np.arange(acted.start, acted.stop) == acted.stop - 1
        yield buffer(
            observations=observations.column(traces.observation_codes[seen]),
            actions=actions.column(traces.action_codes[acted]),
            rewards=rewards[traces.reward_codes[acted]],
            terminations=ends & traces.terminated[number],
            truncations=ends & traces.truncated[number],
            infos={"labels": list(map(label_of, traces.label_codes[seen].tolist()))},
        )

"""A Minari dataset on this machine → `TraceSet`; `minari_datasets.py` says what is in one."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TraceError, locating
from resolvent.traces.columns import CodedEpisodes, LabelCodes, code_symbols
from resolvent.traces.lines import Progress
from resolvent.traces.minari_datasets import (
    METADATA_KEY,
    PREFIX,
    import_minari,
    plain_errors,
    propositions_of,
)
from resolvent.traces.symbols import INFO_KEYS, Symbol, as_symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner

_HOW_TO_RECORD = (
    'record them by DataCollector(env, record_infos=True), where info["labels"] is a string '
    "('' for no event, 'door & key' for two) or a dict of booleans by proposition"
)


def read_minari(dataset_id: str, progress: Progress | None = None) -> TraceSet:
    """Read a dataset that is on this machine; nothing is ever downloaded."""
    minari = import_minari("minari")
    where = PREFIX + dataset_id
    with plain_errors(where):
        try:
            dataset = minari.load_dataset(dataset_id, download=False)
        except FileNotFoundError as error:
            raise TraceError(
                f"{where} is not on this machine: `minari list local` lists what is, "
                f"`minari download {dataset_id}` fetches it if it was published"
            ) from error
        names = dataset.storage.metadata.get(METADATA_KEY, {})
        total = int(dataset.total_episodes)
        episodes = iter(dataset.iterate_episodes())
    if not total:
        raise TraceError(f"{where} holds no episodes")
    columns = _Columns(names)
    for number in range(total):
        with plain_errors(f"{where}, episode {number}"):
            episode = next(episodes)
        with locating(f"{where}, episode {number}"):
            columns.add(episode)
        if progress:
            progress((number + 1) / total)
    with locating(where):
        return columns.trace_set()


class _Columns:
    """Codes one Minari episode after another."""

    def __init__(self, meanings: Mapping[str, Sequence[Any]]) -> None:
        self._observations = _Symbols(meanings.get("observations"))
        self._labels = LabelCodes()
        self._actions = _Symbols(meanings.get("actions"))
        self._rewards: Interner[float] = Interner()
        self._episodes = CodedEpisodes()

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
        self._episodes.add(
            observations,
            label_codes,
            actions,
            rewards,
            terminated=_last(episode.terminations),
            truncated=_last(episode.truncations),
        )

    def trace_set(self) -> TraceSet:
        """Return what was added."""
        return self._episodes.trace_set(
            (
                self._observations.interner.values_in_order(),
                self._labels.sets.values_in_order(),
                self._actions.interner.values_in_order(),
                self._rewards.values_in_order(),
            )
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
    key = next((key for key in INFO_KEYS if key in (infos or {})), None)
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
        propositions = {text: propositions_of(text) for text in set(texts)}
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

"""A Minari dataset on this machine → `TraceSet`; `minari_datasets.py` says what is in one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TraceError, locating
from resolvent.progress import FractionListener
from resolvent.traces.column_names import (
    ACTION,
    LABEL,
    OBSERVATION,
    RESERVED,
    REWARD,
    column_text,
    no_column,
)
from resolvent.traces.columns import CodedEpisodes, LabelCodes, code_symbols
from resolvent.traces.minari.datasets import (
    METADATA_KEY,
    PREFIX,
    import_minari,
    plain_errors,
    row_bytes,
)
from resolvent.traces.minari.labels import MadeLabels, tells_labels, told_labels
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner


def read_minari(
    dataset_id: str,
    progress: FractionListener | None = None,
    label_of: Callable[..., Any] | None = None,
    named: Sequence[str] = (),
) -> TraceSet:
    """Read a dataset that is on this machine; nothing is ever downloaded.

    Further columns are those that the metadata list, and the infos named here.
    """
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
    columns = _Columns(names, label_of, named)
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

    def __init__(
        self,
        meanings: Mapping[str, Any],
        label_of: Callable[..., Any] | None,
        named: Sequence[str],
    ) -> None:
        self._made = None if label_of is None else MadeLabels(label_of)
        self._labelled: bool | None = None
        self._observations = _Symbols(meanings.get("observations"))
        self._labels = LabelCodes()
        self._actions = _Symbols(meanings.get("actions"))
        self._rewards: Interner[float] = Interner()
        own = meanings.get("columns", {})
        self._further = {name: _Symbols(own.get(name)) for name in sorted({*own, *named})}
        self._episodes = CodedEpisodes()

    def add(self, episode: Any) -> None:
        """Code an `EpisodeData`."""
        with locating("observations"):
            observations = self._observations.code(episode.observations)
        with locating("actions"):
            actions = self._actions.code(episode.actions)
        with locating("rewards"):
            paid = _rewards(episode.rewards)
            rewards = self._rewards.encode(paid)
        labels: Sequence[Any]
        if self._made is not None:
            seen = self._observations.shown(episode.observations, observations)
            done = self._actions.shown(episode.actions, actions)
            infos = episode.infos and _Shown(episode.infos, len(observations))
            labels = self._made.labels(seen, done, paid, infos, observations)
        elif self._is_labelled(episode.infos):
            labels = told_labels(episode.infos)
        else:
            labels = [()] * len(observations)
        label_codes = np.fromiter(map(self._labels.__getitem__, labels), np.int32, len(labels))
        further = {
            name: self._code_info(name, symbols, episode.infos or {})
            for name, symbols in self._further.items()
        }
        self._episodes.add(
            {
                OBSERVATION: observations,
                LABEL: label_codes,
                ACTION: actions,
                REWARD: rewards,
                **further,
            },
            terminated=_last(episode.terminations),
            truncated=_last(episode.truncations),
        )

    def _is_labelled(self, infos: Mapping[str, Any] | None) -> bool:
        """Whether episodes tell labels: all do, or none does."""
        if self._labelled is None:
            self._labelled = tells_labels(infos)
        return self._labelled or tells_labels(infos)

    def _code_info(self, name: str, symbols: "_Symbols", infos: Mapping[str, Any]) -> Codes:
        """Code what the infos say after each step; their first row is of the reset."""
        if name not in infos:
            raise no_column(name, sorted(set(infos) - RESERVED))
        with locating(column_text(name)):
            return symbols.code(_after_reset(infos[name]))

    def trace_set(self) -> TraceSet:
        """Return what was added."""
        return self._episodes.trace_set(
            {
                OBSERVATION: self._observations.interner.values_in_order(),
                LABEL: self._labels.sets.values_in_order(),
                ACTION: self._actions.interner.values_in_order(),
                REWARD: self._rewards.values_in_order(),
                **{
                    name: symbols.interner.values_in_order()
                    for name, symbols in self._further.items()
                },
            }
        )


def _after_reset(values: Any) -> Any:
    """Drop the first row of an info, nested as it may be, and decode what HDF5 holds as bytes."""
    if isinstance(values, Mapping):
        return {name: _after_reset(part) for name, part in values.items()}
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OSU":
        return values[1:]
    return [value.decode() if isinstance(value, bytes) else value for value in list(values)[1:]]


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

    def shown(self, values: Any, codes: Codes) -> Sequence[Any]:
        """Return an episode's values as the environment shows them, one a step."""
        if self._meanings is None:
            return _Shown(values, len(codes))
        symbols = self.interner.values_in_order()
        return [symbols[code] for code in codes.tolist()]

    def _code_rows(self, values: NDArray[Any]) -> Codes:
        """Code an array by making a symbol of each distinct row once, over all episodes."""
        known = self._rows.setdefault((values.dtype, values.shape[1:]), {})
        rows = row_bytes(values)
        for step, row in enumerate(rows):
            if row not in known:
                with locating(f"step {step}"):
                    symbol = as_symbol(values[step])
                known[row] = int(self.interner.encode([symbol])[0])
        return np.fromiter(map(known.__getitem__, rows), np.int32, len(rows))


class _Shown(Sequence[Any]):
    """Columns, nested as in their space, as one value a step; arrays stay arrays.

    >>> steps = _Shown({"image": np.array([[0, 1], [1, 1]]), "word": ["go", "on"]}, 2)
    >>> steps[1]
    {'image': array([1, 1]), 'word': 'on'}
    """

    def __init__(self, values: Any, count: int) -> None:
        self._values, self._count = values, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, step: Any) -> Any:
        def at(values: Any) -> Any:
            if isinstance(values, Mapping):
                return {name: at(part) for name, part in values.items()}
            if isinstance(values, tuple):
                return tuple(map(at, values))
            return values[step]

        return at(self._values)


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

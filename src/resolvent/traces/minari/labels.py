"""The labels of a Minari episode: from its infos, or by a function of what was seen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TraceError, locating
from resolvent.traces.label_function import LabelFunction
from resolvent.traces.minari.datasets import propositions_of, row_bytes
from resolvent.traces.symbols import INFO_KEYS, Label
from resolvent.traces.vocabulary import Codes

_HOW_TO_RECORD = (
    'record them by DataCollector(env, record_infos=True), where info["labels"] is a string '
    "('' for no event, 'door & key' for two) or a dict of booleans by proposition; "
    "or in Python pass label_of= to make them from the observations"
)


class MadeLabels:
    """Makes the labels of one episode after another by a function of what was seen."""

    def __init__(self, label_of: Callable[..., Any]) -> None:
        self._made = LabelFunction(label_of)
        self._known: dict[int, Label] = {}

    def labels(
        self,
        seen: Sequence[Any],
        done: Sequence[Any],
        paid: Sequence[Any],
        infos: Sequence[Mapping[str, Any]] | None,
        codes: Codes,
    ) -> list[Label]:
        """Return a label for each observation; the codes tell which observations are the same."""
        if self._made.of_step:
            told = infos or [{}] * len(seen)
            with locating("reset"):
                labels = [self._made.at_reset(seen[0], told[0])]
            for step in range(min(len(done), len(seen) - 1)):
                after = step + 1
                with locating(f"step {step}"):
                    labels.append(
                        self._made.after_step(
                            seen[step], done[step], paid[step], seen[after], told[after]
                        )
                    )
            return labels
        for step, code in enumerate(codes.tolist()):
            if code not in self._known:
                with locating(f"step {step}"):
                    self._known[code] = self._made.at_reset(seen[step], {})
        return [self._known[code] for code in codes.tolist()]


def tells_labels(infos: Mapping[str, Any] | None) -> bool:
    """Whether the infos of an episode hold labels at all."""
    return any(key in (infos or {}) for key in INFO_KEYS)


def told_labels(infos: Mapping[str, Any] | None) -> list[tuple[str, ...]]:
    """Return the propositions of each step.

    >>> told_labels({"labels": np.array([b"", b"door & key"], object)})
    [(), ('door', 'key')]
    >>> told_labels({"events": {"key": np.array([0, 1]), "door": np.array([1, 1])}})
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
    rows = row_bytes(truths.astype(np.bool_))
    propositions = {row: tuple(compress(names, row)) for row in set(rows)}
    return [propositions[row] for row in rows]


def _not_labels(key: str) -> TraceError:
    return TraceError(f'info["{key}"] does not hold labels that can be read: {_HOW_TO_RECORD}')

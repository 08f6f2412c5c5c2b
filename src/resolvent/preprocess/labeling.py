"""Labels derived from observations and actions, for worlds without recorded labels.

Input: `TraceSet`, or single live steps. Output: the same traces with other labels, or a label.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount
from resolvent._util.validation import quoted
from resolvent.errors import OptionError, TraceError
from resolvent.traces.schema import LABEL
from resolvent.traces.symbols import (
    NO_EVENT,
    Label,
    Symbol,
    as_symbol,
    event_text,
    label_text,
    symbol_order,
)
from resolvent.traces.trace_set import TraceSet, with_column
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_pairs

LabelOrigin: TypeAlias = Literal["given", "observation", "action", "action+observation"]
"""Origin of labels: recorded with the traces, or derived from the last observation or action."""

LABEL_ORIGINS: tuple[str, ...] = get_args(LabelOrigin)

_NOUNS = {
    "observation": ("observation", "observations"),
    "action": ("action", "actions"),
    "action+observation": ("pair of action and observation", "pairs of action and observation"),
}
"""Singular and plural of the sources of derived labels."""


@dataclass(frozen=True)
class LabelingFunction:
    """Labels as recorded with each step, or derived from observations and actions.

    The label of a step is derived from the next observation, the action, or both; the label of
    an episode's start from its first observation, if observations count. The *source* of a
    label is an observation, an action, or a pair `(action, observation)`, which is
    `(observation,)` at the start.

    `events` maps sources to their labels; all other sources are no event. Without it, each
    source is a separate label. A label of several propositions is a set.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace(["hall", "attic"], [None, None], ["up"])])
    >>> for labeling in (
    ...     LabelingFunction("observation"),
    ...     LabelingFunction("action+observation"),
    ...     LabelingFunction("observation", {"attic": "key"}),
    ... ):
    ...     print([sorted(label) for label in labeling.transform(traces)[0].labels])
    [['hall'], ['attic']]
    [['→ hall'], ['up → attic']]
    [[], ['key']]
    """

    reads: LabelOrigin = "given"
    events: Mapping[Symbol, str | Label] | None = None

    def __post_init__(self) -> None:
        _check_origin(self.reads, LABEL_ORIGINS)
        if self.events is not None:
            if self.is_given:
                raise OptionError("given labels cannot have events: derive labels to name events")
            object.__setattr__(self, "events", _checked_events(self.events))

    def __hash__(self) -> int:
        return hash((self.reads, None if self.events is None else tuple(self.events.items())))

    @property
    def is_given(self) -> bool:
        """Whether labels are recorded with the steps and not derived."""
        return self.reads == "given"

    def at_reset(self, observation: Symbol) -> Label:
        """Return the label of an episode's first observation."""
        if self.reads == "action":
            return NO_EVENT
        return self._label(observation if self.reads == "observation" else (observation,))

    def after_step(self, action: Symbol, next_observation: Symbol) -> Label:
        """Return the label after a step."""
        if self.reads == "observation":
            return self._label(next_observation)
        return self._label(action if self.reads == "action" else (action, next_observation))

    def transform(self, traces: TraceSet) -> TraceSet:
        """Return the traces with derived labels; unchanged if labels are as recorded."""
        if self.is_given:
            return traces
        sources, codes = self.sources(traces)
        labels: dict[Label, int] = {}
        label_codes = [labels.setdefault(self._label(source), len(labels)) for source in sources]
        if self.reads == "action":
            label_codes.append(labels.setdefault(NO_EVENT, len(labels)))  # of code −1
        return with_column(traces, LABEL, list(labels), np.array(label_codes, np.int32)[codes])

    def sources(self, traces: TraceSet) -> tuple[list[Symbol], Codes]:
        """Return the distinct sources of labels, and the index of the source of each label.

        There is a label for each observation. If labels are derived from actions, the first
        label of an episode has no source: its index is −1.

        >>> from resolvent.traces import Trace
        >>> traces = TraceSet([Trace([0, 1], [None] * 2, ["up"]), Trace([0, 0], [None] * 2, "x")])
        >>> LabelingFunction("action+observation").sources(traces)
        ([(0,), ('up', 1), ('x', 0)], array([0, 1, 0, 2], dtype=int32))
        """
        if self.reads == "observation":
            return list(traces.observations), traces.observation_codes
        action_codes = preceding_actions(traces.offsets, traces.action_codes)
        if self.reads == "action":
            return list(traces.actions), action_codes
        pairs, codes = distinct_pairs(
            action_codes + np.int32(1),
            traces.observation_codes,
            len(traces.actions) + 1,
            len(traces.observations),
        )
        return pair_sources(pairs, traces.actions, traces.observations), codes

    def _label(self, source: Symbol) -> Label:
        if self.events is None:
            return frozenset((self.source_name(source),))
        name = self.events.get(source)
        return NO_EVENT if name is None else label_of_event(name)

    def event_pairs(self) -> list[tuple[Symbol, str | list[str]]]:
        """Return the events as stored in files; labels of several propositions are lists.

        >>> LabelingFunction("observation", {"attic": {"key", "red"}}).event_pairs()
        [('attic', ['key', 'red'])]
        """
        return [
            (source, name if isinstance(name, str) else sorted(name))
            for source, name in (self.events or {}).items()
        ]

    def source_name(self, source: Symbol) -> str:
        """Return the name of a source; different sources have different names.

        >>> LabelingFunction("action+observation").source_name(("up", 3))
        'up → 3'
        """
        if self.reads != "action+observation":
            return event_text(source)
        pair: Any = source
        action = "" if len(pair) == 1 else event_text(pair[0])
        return f"{action} → {event_text(pair[-1])}".strip()

    def __str__(self) -> str:
        if self.is_given:
            return "as recorded with each step"
        noun, plural = _NOUNS[self.reads]
        if self.events is None:
            return f"each {noun} is a separate event"
        if not self.events:
            return f"no {noun} is an event"
        names: dict[str, list[str]] = {}
        for source, name in self.events.items():
            names.setdefault(label_text(label_of_event(name)), []).append(self.source_name(source))
        lines = (f"{name}: {', '.join(sources)}" for name, sources in names.items())
        return "\n".join([f"{amount(len(names), 'event')}, made of {plural}", *lines])


def preceding_actions(offsets: NDArray[np.int64], action_codes: Codes) -> Codes:
    """Return the code of the action that led to each observation, −1 at starts of episodes."""
    return np.insert(action_codes, offsets[:-1], -1)


def pair_sources(
    pairs: NDArray[np.int64], actions: Vocabulary[Symbol], observations: Vocabulary[Symbol]
) -> list[Symbol]:
    """Return the sources for numbers (action code + 1) · number of observations + observation."""
    sources: list[Symbol] = []
    for pair in pairs.tolist():
        action, observation = divmod(pair, len(observations))
        before = (actions[action - 1],) if action else ()
        sources.append((*before, observations[observation]))
    return sources


def label_of_event(event: str | Label) -> Label:
    """Return the label of an event: one proposition, or the set of them."""
    return frozenset((event,)) if isinstance(event, str) else event


def _checked_events(events: Any) -> dict[Symbol, str | Label]:
    """Return the label of each source, sorted by source; `OptionError` if one is invalid."""
    if not isinstance(events, Mapping):
        raise OptionError(
            f"events is a {type(events).__name__}: give a mapping of observations or actions to "
            "events, such as {'attic': 'key'}"
        )
    checked: dict[Symbol, str | Label] = {}
    for source, name in events.items():
        propositions = (name,) if isinstance(name, str) else name
        is_valid = isinstance(propositions, tuple | list | Set) and len(propositions) > 0
        if not is_valid or not all(isinstance(part, str) and part for part in propositions):
            raise OptionError(
                f"events: {quoted(source)} is named {quoted(name)}: "
                "give each event a name, such as 'key'"
            )
        label = frozenset(propositions)
        try:
            checked[as_symbol(source)] = label if len(label) > 1 else next(iter(label))
        except TraceError as error:
            raise OptionError(f"events: {error}") from error
    return {source: checked[source] for source in sorted(checked, key=symbol_order)}


def _check_origin(labels: object, choices: tuple[str, ...]) -> None:
    if not isinstance(labels, str) or labels not in LABEL_ORIGINS:
        raise OptionError(f"labels={quoted(labels)}: use one of {', '.join(map(repr, choices))}")


AS_RECORDED = LabelingFunction()  # labels as recorded with the steps


def as_labeling_function(
    labels: str | LabelingFunction, labeling_fn: object = None, *, allow_auto: bool = False
) -> LabelingFunction:
    """Return the labeling function for an option's value.

    `allow_auto`: whether the error for a wrong word suggests "auto", which the caller handles.
    """
    if not isinstance(labels, LabelingFunction):
        _check_origin(labels, (*LABEL_ORIGINS, "auto") if allow_auto else LABEL_ORIGINS)
        labels = LabelingFunction(labels)  # type: ignore[arg-type]
    if labeling_fn is not None and not labels.is_given:
        raise OptionError(
            f"labels={labels.reads!r} and labeling_fn both define labels: leave out one"
        )
    return labels

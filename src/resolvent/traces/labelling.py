"""What is seen and done → labels, for worlds in which nobody names events."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from resolvent._util.text import amount
from resolvent._util.validation import shown
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
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, distinct_pairs

Reads: TypeAlias = Literal["given", "observation", "action", "action+observation"]
"""What a label is made of: that of the traces, or what was just seen or done."""

_MADE_OF = {
    "observation": ("observation", "observations"),
    "action": ("action", "actions"),
    "action+observation": ("pair of action and observation", "pairs of action and observation"),
}

LABELLINGS: tuple[str, ...] = get_args(Reads)


@dataclass(frozen=True)
class Labelling:
    """How machines come by labels: those given with each step, or made of what was seen and done.

    The label of a step is made of the observation that the step led to, of its action, or
    of both; that of an episode's beginning of its first observation, where it counts.
    What it is made of is its source: an observation, an action, or a pair
    `(action, observation)`, and `(observation,)` for the beginning.

    With `events`, sources have the label that stands there, and any other is no event.
    Without, each source is a label of its own. A label of several propositions stands there
    as the set of them.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace(["hall", "attic"], [None, None], ["up"])])
    >>> [sorted(label) for label in Labelling("observation").on(traces)[0].labels]
    [['hall'], ['attic']]
    >>> [sorted(label) for label in Labelling("action+observation").on(traces)[0].labels]
    [['→ hall'], ['up → attic']]
    >>> [sorted(label) for label in Labelling("observation", {"attic": "key"}).on(traces)[0].labels]
    [[], ['key']]
    """

    reads: Reads = "given"
    events: Mapping[Symbol, str | Label] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.reads, str) or self.reads not in LABELLINGS:
            raise OptionError(
                f"labels={shown(self.reads)}: use one of {', '.join(map(repr, LABELLINGS))}"
            )
        if self.events is not None:
            if self.reads == "given":
                raise OptionError("labels that are given have no events to be made of")
            object.__setattr__(self, "events", _checked(self.events))

    def __hash__(self) -> int:
        return hash((self.reads, None if self.events is None else tuple(self.events.items())))

    @property
    def is_given(self) -> bool:
        """Whether labels come with the steps, so that there is nothing to make."""
        return self.reads == "given"

    def at_reset(self, observation: Symbol) -> Label:
        """Return the label of an episode's first observation."""
        if self.reads == "action":
            return NO_EVENT
        return self._label(observation if self.reads == "observation" else (observation,))

    def after_step(self, action: Symbol, following: Symbol) -> Label:
        """Return the label of the observation that a step led to."""
        return self._label(self._source(action, following))

    def on(self, traces: TraceSet) -> TraceSet:
        """Return the traces with labels made in this way; those given are kept as they are."""
        if self.is_given:
            return traces
        sources, codes = self.sources(traces)
        labels: dict[Label, int] = {}
        of_source = [labels.setdefault(self._label(one), len(labels)) for one in sources]
        if self.reads == "action":
            of_source.append(labels.setdefault(NO_EVENT, len(labels)))
        columns: dict[str, Any] = dict(traces.all_columns)
        columns[LABEL] = (list(labels), np.array(of_source, np.int32)[codes])
        return TraceSet.taking_over(
            columns,
            offsets=traces.offsets,
            terminated=traces.terminated,
            truncated=traces.truncated,
        )

    def sources(self, traces: TraceSet) -> tuple[list[Symbol], Codes]:
        """Return what labels of these traces are made of, and the place of each label's source.

        There is a place for each observation. Where an episode begins and labels are made
        of actions, there is no source, and it is −1.

        >>> from resolvent.traces import Trace
        >>> traces = TraceSet([Trace([0, 1], [None] * 2, ["up"]), Trace([0, 0], [None] * 2, "x")])
        >>> Labelling("action+observation").sources(traces)
        ([(0,), ('up', 1), ('x', 0)], array([0, 1, 0, 2], dtype=int32))
        """
        if self.reads == "observation":
            return list(traces.observations), traces.observation_codes
        begins = traces.offsets[:-1] + np.arange(len(traces))
        done = np.full(len(traces.observation_codes), -1, np.int32)
        later = np.ones(len(done), bool)
        later[begins] = False
        done[later] = traces.action_codes
        if self.reads == "action":
            return list(traces.actions), done
        observations = len(traces.observations)
        kept, codes = distinct_pairs(
            done + np.int32(1), traces.observation_codes, len(traces.actions) + 1, observations
        )
        pairs = (divmod(int(pair), observations) for pair in kept)
        sources: list[Symbol] = [
            (traces.actions[action - 1], traces.observations[seen])
            if action
            else (traces.observations[seen],)
            for action, seen in pairs
        ]
        return sources, codes

    def _source(self, action: Symbol, following: Symbol) -> Symbol:
        if self.reads == "observation":
            return following
        return action if self.reads == "action" else (action, following)

    def _label(self, source: Symbol) -> Label:
        if self.events is None:
            return frozenset((self.name_of(source),))
        name = self.events.get(source)
        return NO_EVENT if name is None else whole_label(name)

    def plain_events(self) -> list[tuple[Symbol, str | list[str]]]:
        """Return the events as files hold them; labels of several propositions are lists.

        >>> Labelling("observation", {"attic": {"key", "red"}}).plain_events()
        [('attic', ['key', 'red'])]
        """
        return [
            (source, name if isinstance(name, str) else sorted(name))
            for source, name in (self.events or {}).items()
        ]

    def name_of(self, source: Symbol) -> str:
        """Return how a source is called: two that differ have different names.

        >>> Labelling("action").name_of("up"), Labelling("action+observation").name_of(("up", 3))
        ('up', 'up → 3')
        """
        if self.reads != "action+observation":
            return event_text(source)
        pair: Any = source
        return " → ".join(
            ["" if len(pair) == 1 else event_text(pair[0]), event_text(pair[-1])]
        ).strip()

    def __str__(self) -> str:
        """Say in words what makes which event."""
        if self.is_given:
            return "as given with each step"
        made_of, several = _MADE_OF[self.reads]
        if self.events is None:
            return f"each {made_of} is an event of its own"
        if not self.events:
            return f"no {made_of} is an event"
        classes: dict[str, list[Symbol]] = {}
        for source, name in self.events.items():
            classes.setdefault(label_text(whole_label(name)), []).append(source)
        told = [
            f"{name}: {', '.join(map(self.name_of, members))}" for name, members in classes.items()
        ]
        return f"{amount(len(classes), 'event')}, made of {several}\n" + "\n".join(told)


def whole_label(event: str | Label) -> Label:
    """Return the label of an event: one proposition, or the set of them.

    >>> sorted(whole_label("key")), sorted(whole_label(frozenset({"key", "red"})))
    (['key'], ['key', 'red'])
    """
    return frozenset((event,)) if isinstance(event, str) else event


def _checked(events: Any) -> dict[Symbol, str | Label]:
    """Return a table of events in the order of its sources, each a symbol with a name."""
    if not isinstance(events, Mapping):
        raise OptionError(
            f"events is a {type(events).__name__}: give a mapping of what is seen or done to "
            "the event that it is, such as {'attic': 'key'}"
        )
    named: dict[Symbol, str | Label] = {}
    for source, given in events.items():
        names = (given,) if isinstance(given, str) else given
        valid = isinstance(names, tuple | list | Set) and len(names) > 0
        if not valid or not all(isinstance(name, str) and name for name in names):
            raise OptionError(
                f"events: {shown(source)} is named {shown(given)}: "
                "give each event a name, such as 'key'"
            )
        label = frozenset(names)
        try:
            named[as_symbol(source)] = label if len(label) > 1 else next(iter(label))
        except TraceError as error:
            raise OptionError(f"events: {error}") from error
    return {source: named[source] for source in sorted(named, key=symbol_order)}


GIVEN = Labelling()
"""Labels come with the steps."""


def as_labelling(
    labels: str | Labelling, label_of: object = None, *, found: bool = False
) -> Labelling:
    """Return how labels are made, by a word for it.

    `found` says that the caller knows what to do with "auto", which is no such word.

    >>> as_labelling("observation").reads
    'observation'
    >>> as_labelling("obs")
    Traceback (most recent call last):
    resolvent.errors.OptionError: labels='obs': use one of 'given', 'observation', 'action', \
'action+observation'
    """
    if not isinstance(labels, Labelling) and not (isinstance(labels, str) and labels in LABELLINGS):
        words = (*LABELLINGS, "auto") if found else LABELLINGS
        raise OptionError(f"labels={shown(labels)}: use one of {', '.join(map(repr, words))}")
    labelling = labels if isinstance(labels, Labelling) else Labelling(labels)  # type: ignore[arg-type]
    if label_of is not None and not labelling.is_given:
        raise OptionError(
            f"labels={labelling.reads!r} and label_of both say how labels are made: leave out one"
        )
    return labelling

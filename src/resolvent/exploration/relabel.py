"""What was seen and done → few events to read as labels, where nobody names any.

Labels made of all that is seen, and of all that is done, leave much to test: each of them may
lead anywhere from each state. So events are looked for, now and then, among all steps there are.
"""

from dataclasses import replace
from typing import Any, Final

from resolvent.errors import ContradictoryTraces
from resolvent.events import FoundEvents, find_events
from resolvent.options import Options
from resolvent.pipeline import infer_with
from resolvent.result import InferenceResult
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.column_names import OBSERVATION, REWARD
from resolvent.traces.labelling import GIVEN, Labelling
from resolvent.traces.symbols import as_symbol

OBSERVATIONS: Final = Labelling("observation")

FIRST_EVENTS: Final = 64
"""From so many steps on events are looked for."""

EVENTS_APART, AFTER_NONE = 1.5, 3.0
"""They are looked for again when there are so many times as many steps; later if there are none."""

MANY_MOVES: Final = 150
"""With more moves than these to test, it is worth having fewer labels."""

OUTGROWN: Final = 1.5
"""Machines with so many times as many states as at first show that other events count."""

EFFORT, ON_MACHINES = 0.02, 0.1
"""How much to spend on that, and on the machines that read them, beside what `infer` does."""


IN_PASSING: Final = 0.005
"""How much to spend on machines that read all that is seen and done, to see how large they are."""


def discover_labels(traces: TraceSet, options: Options) -> FoundEvents[InferenceResult] | None:
    """Return few events that explain all traces, and machines that read them; None if none do.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.environments.House(), episodes=60, seed=0, labels="observation")
    >>> found = few_events(traces, Options(noise="none"))
    >>> sorted(found.labelling.events), found.inferred.machines.reward.states
    (['cyanroom', 'orangeroom'], 2)
    """

    def infer(labelled: TraceSet, timing: LabelTiming) -> InferenceResult:
        return infer_with(replace(options, timing=timing, effort=ON_MACHINES), labelled)

    try:
        found = find_events(traces, (OBSERVATION, REWARD), infer, seed=options.seed, effort=EFFORT)
    except ContradictoryTraces:
        return None
    return found if found.labelling.events else None


def count_states(labelling: Labelling, traces: TraceSet, options: Options) -> int | None:
    """Return how many states machines have that read these labels; None if none explain all.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.environments.House(), episodes=60, seed=0)
    >>> states_with(OBSERVATIONS, traces, Options(noise="none"))
    4
    """
    wanted = replace(options, labels=labelling, timing=LabelTiming.CURRENT, effort=IN_PASSING)
    try:
        found = infer_with(wanted, traces)
    except ContradictoryTraces:
        return None
    return sum(one.states for one in found.machines.values())


def stored_sources(labelling: Labelling) -> list[tuple[Any, Any]] | None:
    """Return the events of a labelling as JSON values; None where each source is one."""
    return None if labelling.events is None else labelling.plain_events()


def restored_labelling(reads: str, events: list[tuple[Any, Any]] | None) -> Labelling:
    """Return the labelling that was stored like this.

    >>> stored_labelling("observation", [("attic", "key")]).events
    {'attic': 'key'}
    """
    named = None if events is None else {as_symbol(source): name for source, name in events}
    return Labelling(reads, named)  # type: ignore[arg-type]


def describe_labeling(labelling: Labelling) -> str:
    """Say in a few words what labels are made of; nothing where they are given.

    >>> labels_in_words(Labelling("observation", {"attic": "key"}))
    '1 event, made of observations (key)'
    """
    if labelling == GIVEN:
        return ""
    first, *rest = str(labelling).splitlines()
    names = [line.partition(": ")[0] for line in rest]
    return f"{first} ({', '.join(names)})" if names else first

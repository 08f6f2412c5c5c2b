"""The fields of a machine file, as `json` writes it and the schema in docs/formats describes it."""

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from resolvent.machines.augmented_state import LabelNoise, Share, StateUncertainty
from resolvent.machines.machine_set import Machines, Provenance
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor, RewardLevels
from resolvent.traces.symbols import Label, as_symbol

MAX_COUNT: Final = 1 << 40  # largest count of one output: sums of such counts fit into 64 bits
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Symbols: TypeAlias = Annotated[list[Any], Meta(min_length=1)]
StoredShares: TypeAlias = list[tuple[list[str], Share]]  # labels with shares, which add up to 1
_SHARE_TOLERANCE = 1e-6  # largest deviation from 1 of a sum of shares


class Tables(msgspec.Struct, forbid_unknown_fields=True):
    """Tables over positions in the lists `labels`, `observations`, `actions`, `outputs`."""

    states: Annotated[int, Meta(ge=1)]
    labels: Annotated[list[list[str]], Meta(min_length=1)]
    observations: Symbols
    actions: Symbols
    outputs: Symbols
    trivial: list[int]
    transitions: list[tuple[int, int, int]]  # state, label, next state
    by_state: list[tuple[int, int, int, int]]  # state, observation, action, output
    constant: list[tuple[int, int, int]]  # observation, action, output


class ObservedConstants(msgspec.Struct, forbid_unknown_fields=True):
    """For each row of `constant`, the number of the set of states with this query.

    Many rows share one set, so each set is written once, in the order of its first row.
    """

    sets: list[list[int]]
    rows: list[int]


class Support(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How often the traces showed each row of the tables.

    `constant_by_state` counts the pairs of state and query of `observed_constants`, sorted by
    both. `alternatives` are other targets of `transitions` under noise: the row, the likeliest
    other state, and the logarithm of the odds of the present target against that state.
    """

    transitions: list[Count]
    by_state: list[Count]
    constant: list[Count]
    constant_by_state: list[Count] = []
    alternatives: list[tuple[int, int, float]] = []


class Decisions(msgspec.Struct, forbid_unknown_fields=True):
    """In order, the rows of `transitions` that were decided, and the evidence for each."""

    transitions: list[int]
    agreeing: list[Count]
    folded: list[Count]


OutputCount = tuple[int, int, Annotated[int, Meta(ge=1, le=MAX_COUNT)]]


class Machine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A machine: the column it predicts, how it reads observations, and its tables.

    `output_counts` lists all outputs of the rows of `by_state` that have more than one: the row,
    the output, and its count. The row itself holds the most frequent of them.
    """

    predicts: str
    supplemented: bool
    digits: int | None
    tables: Tables
    observed_constants: ObservedConstants | None = None
    output_counts: Annotated[list[OutputCount], Meta(min_length=1)] = []
    support: Support | None = None
    decisions: Decisions | None = None


class Termination(msgspec.Struct, forbid_unknown_fields=True):
    """The steps that ended an episode, always or sometimes.

    Each is an observation and an action of the first machine, with the states of all
    machines between them.
    """

    ends: list[list[int]]
    ambiguous: list[list[int]]


class StoredUncertainty(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Why states are uncertain.

    `label_noise` holds the share of events that are missed, the share of steps without an event
    that are recorded with one, and the share of events that are recorded as another;
    `label_shares` the share of each true label. `starts` is the probability of each hidden
    initial state, given as the label that leads there.
    """

    label_noise: LabelNoise | None = None
    label_shares: StoredShares = []
    starts: StoredShares = []


class StoredPreprocessor(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The preprocessing of raw steps before the machines read them.

    `labels` names the source of labels; `events` groups these sources, as pairs of a source and
    the name, or names, of its event. Without `events`, each source is a separate event.
    `discretize` describes the intervals that numbers are put into before that, and `rewards`
    the levels of rewards that vary.
    """

    labels: str
    events: list[tuple[Any, str | list[str]]] | None = None
    discretize: dict[str, Any] | None = None
    rewards: dict[str, Any] | None = None


class Header(msgspec.Struct):
    """The fields that decide whether the rest can be read."""

    format: str = ""
    version: int = 0


class File(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The whole file."""

    format: str
    version: int
    timing: LabelTiming
    machines: list[Machine]
    termination: Termination
    preprocessor: StoredPreprocessor | None = None
    state_uncertainty: StoredUncertainty | None = None
    provenance: Provenance | None


def stored_preprocessor(preprocessor: Preprocessor) -> StoredPreprocessor | None:
    """Return the preprocessing as a file holds it; None if raw steps are read as they are."""
    if preprocessor.is_identity:
        return None
    labeling = preprocessor.labeling
    discretizer, levels = preprocessor.discretize, preprocessor.rewards
    return StoredPreprocessor(
        labels=labeling.reads,
        events=None if labeling.events is None else labeling.event_pairs(),
        discretize=None if discretizer is None else discretizer.as_dict(),
        rewards=None if levels is None else levels.as_dict(),
    )


def preprocessor_in(stored: StoredPreprocessor | None) -> Preprocessor:
    """Return the preprocessing that `stored_preprocessor` encoded; an error if it is damaged."""
    if stored is None:
        return Preprocessor()
    events: Any = None
    if stored.events is not None:
        events = {as_symbol(source): name for source, name in stored.events}
        if len(events) < len(stored.events):
            raise ValueError("preprocessor names an event twice")
    return Preprocessor(
        LabelingFunction(stored.labels, events),  # type: ignore[arg-type]  # it checks
        None if stored.discretize is None else Discretizer.from_dict(stored.discretize),
        None if stored.rewards is None else RewardLevels.from_dict(stored.rewards),
    )


def stored_uncertainty(uncertainty: StateUncertainty) -> StoredUncertainty | None:
    """Return the uncertainty of states as a file holds it; None if there is none."""
    if not uncertainty:
        return None
    label_shares, starts = (
        [(sorted(label), share) for label, share in shares.items()]
        for shares in (uncertainty.label_shares, uncertainty.starts)
    )
    return StoredUncertainty(uncertainty.label_noise, label_shares, starts)


def uncertainty_in(stored: StoredUncertainty | None, machines: Machines) -> StateUncertainty:
    """Return the uncertainty that `stored_uncertainty` encoded; `ValueError` if it is invalid."""
    if stored is None:
        return StateUncertainty()
    labels = {label for machine in machines.values() for label in machine.labels}
    noise = stored.label_noise
    if noise is not None and max(noise.missed + noise.swapped, noise.false) > 1:
        raise ValueError("label_noise holds shares above 1")
    if (noise is None) != (not stored.label_shares):
        raise ValueError("label_noise and label_shares must be given together")
    label_shares = _shares(stored.label_shares, labels, "label_shares")
    return StateUncertainty(noise, label_shares, _shares(stored.starts, labels, "starts"))


def _shares(stored: StoredShares, labels: set[Label], name: str) -> dict[Label, float]:
    shares = {frozenset(label): share for label, share in stored}
    if len(shares) < len(stored):
        raise ValueError(f"{name} names a label twice")
    if unknown := [sorted(label) for label in shares if label and label not in labels]:
        raise ValueError(f"{name} names a label that no machine knows: {unknown[0]}")
    if shares and abs(sum(shares.values()) - 1) > _SHARE_TOLERANCE:
        raise ValueError(f"{name} does not add up to 1")
    return shares

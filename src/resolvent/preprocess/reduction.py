"""Reduction: blank out rows of samples that the search for a machine does not need.

Input: `SampleSet` or `Histories`. Output: a smaller one, and a record of the removed parts, which
the machine gets back. Redundant alphas have one output everywhere. Trivial labels change no state;
`assess_labels` tests this by deleting them. A contradiction proves that a label is needed. The
absence of contradictions proves little, since most histories occur once: a label is dropped only if
its deletion made histories equal and their outputs agreed (docs/decisions/preprocess.md).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.records import to_builtins
from resolvent._util.text import visible
from resolvent.errors import OptionError
from resolvent.preprocess.samples import Histories, SampleBuilder, SampleSet, find_contradiction
from resolvent.preprocess.timing import NONE, LabelTiming
from resolvent.traces.symbols import NO_EVENT, Label, label_text
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary

MIN_EVIDENCE_BITS: Final = 64.0  # least evidence in every common context for dropping a label
COMMON_CONTEXT: Final = 0.02  # least share of a label's occurrences for a common context
MAX_LABELS: Final = 16  # number of labels tested together; each costs a pass over the tree
_MAX_LABELS_NAMED: Final = 20  # maximum number of labels that an error lists

Location: TypeAlias = tuple[int, int]  # trace and step


@dataclass(frozen=True, slots=True, eq=False)
class ConstantOutputs:
    """Alphas with a single output: their ids, outputs, and numbers of rows."""

    alpha: Codes
    output: Codes
    count: NDArray[np.int64]

    @classmethod
    def nothing(cls) -> "ConstantOutputs":
        """Return the record of a removal that removed nothing."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))


def remove_redundant(samples: SampleSet) -> tuple[SampleSet, ConstantOutputs]:
    """Blank out every alpha whose output is the same in all of its rows.

    Paper: "Redundant α-Input Removal".
    """
    alphas = len(samples.alpha_keys)
    output, count, varies = _core.tally_outputs(samples.alpha, samples.output, alphas)
    constant = np.flatnonzero((count > 0) & (varies == 0)).astype(np.int32)
    new_codes = np.where(varies, np.arange(alphas, dtype=np.int32), np.int32(NONE))
    return (
        replace(samples, alpha=_core.recode(samples.alpha, new_codes)),
        ConstantOutputs(constant, output[constant], count[constant]),
    )


def trivial_codes(labels: Vocabulary[Label], named: Iterable[Label | str] = ()) -> tuple[int, ...]:
    """Return the codes of the trivial labels: "no event" if it occurs, and the named ones.

    A name is a label or its text. A name that does not occur raises `OptionError`.
    """
    by_text = {label_text(label): code for code, label in enumerate(labels)}
    codes = {labels.code(NO_EVENT)} if NO_EVENT in labels else set()
    for name in named:
        code = by_text.get(visible(name)) if isinstance(name, str) else labels.get(frozenset(name))
        if code is None:
            text = visible(name) if isinstance(name, str) else label_text(frozenset(name))
            existing = ", ".join([*by_text][:_MAX_LABELS_NAMED])
            if len(by_text) > _MAX_LABELS_NAMED:
                existing += f" and {len(by_text) - _MAX_LABELS_NAMED:,} more"
            raise OptionError(
                f"trivial label '{text}' never occurs in the traces; their labels are: {existing}"
            )
        if isinstance(name, str) and [*map(label_text, labels)].count(visible(name)) > 1:
            raise OptionError(
                f"trivial label '{name}' can be read in two ways: name it as a set of propositions"
            )
        codes.add(code)
    return tuple(sorted(codes))


def remove_trivial(histories: Histories, trivial: Iterable[int]) -> Histories:
    """Blank out the labels with these codes.

    A repeated call returns the same histories, whose tree is built once.

    Paper: "Trivial β-Input Removal".
    """
    codes = tuple(sorted(trivial))
    if not codes:
        return histories
    if codes not in histories.reduced:
        new_codes = np.arange(len(histories.labels), dtype=np.int32)
        new_codes[list(codes)] = NONE
        histories.reduced[codes] = replace(histories, beta=_core.recode(histories.beta, new_codes))
    return histories.reduced[codes]


def fitting_timing(
    traces: TraceSet, build_samples: SampleBuilder, timing: LabelTiming, trivial: tuple[int, ...]
) -> LabelTiming | None:
    """Return another label timing under which the traces do not contradict each other."""
    for candidate in LabelTiming:
        histories = remove_trivial(Histories.of(traces, candidate), trivial)
        if candidate is not timing and find_contradiction(build_samples(traces, histories)) is None:
            return candidate
    return None


class Triviality(StrEnum):
    """Whether a machine can do without a label."""

    TRIVIAL = "trivial"
    NEEDED = "needed"
    UNDECIDED = "undecided"


class TrivialityBasis(StrEnum):
    """The basis of a triviality test's result."""

    EVIDENCE = "evidence"
    SEARCH = "search"
    DEFAULT = "default"
    GIVEN = "given"


@dataclass(frozen=True)
class TrivialityTest:
    """Whether one machine can do without a label, and the evidence.

    `agreements` counts outputs that agree after the deletion of the label made their histories
    equal; `witness` are two steps that contradict each other after it.
    """

    label: Label
    triviality: Triviality
    basis: TrivialityBasis = TrivialityBasis.EVIDENCE
    agreements: int = 0
    witness: tuple[Location, Location] | None = None

    def renumbered(self, numbers: NDArray[np.int64]) -> "TrivialityTest":
        """Return the result with new trace numbers."""
        if self.witness is None:
            return self
        (first, first_step), (second, second_step) = self.witness
        witness = (int(numbers[first]), first_step), (int(numbers[second]), second_step)
        return replace(self, witness=witness)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        witness = self.witness and [{"trace": trace, "step": step} for trace, step in self.witness]
        return to_builtins(self) | {"witness": witness}


def declared_trivial(
    labels: Vocabulary[Label], trivial: Iterable[int]
) -> tuple[TrivialityTest, ...]:
    """Return the results for labels that the user named trivial, and for "no event"."""
    default, given = TrivialityBasis.DEFAULT, TrivialityBasis.GIVEN
    return tuple(
        TrivialityTest(label, Triviality.TRIVIAL, default if label == NO_EVENT else given)
        for label in (labels[code] for code in dict.fromkeys(trivial))
    )


def assess_labels(
    samples: SampleSet,
    *,
    beyond_no_event: bool = True,
    among: NDArray[np.bool_] | None = None,
    in_time: Callable[[], bool] = lambda: True,
) -> tuple[TrivialityTest, ...]:
    """Return for every label whether the machine of these samples can do without it.

    "No event" is trivial unless its deletion proves otherwise. Others are tested if
    `beyond_no_event`, and until `in_time` returns False; samples that contradict each other with
    all labels prove nothing. `among` marks the traces to use; all if None.
    """
    numbers = np.arange(len(samples.offsets) - 1)
    if among is not None:
        samples, numbers = _select_traces(samples, among), np.flatnonzero(among)
    offsets = samples.offsets

    def location(row: int) -> Location:
        trace = int(np.searchsorted(offsets, row, side="right")) - 1
        return int(numbers[trace]), row - int(offsets[trace])

    deletion = _LabelDeletion(samples)
    is_consistent = deletion.test_no_event()
    if is_consistent and beyond_no_event and in_time():
        deletion.test_events(in_time)
    # With many labels, most are not tested.
    undecided, default = Triviality.UNDECIDED, TrivialityBasis.DEFAULT
    tests = [TrivialityTest(label, undecided, default) for label in samples.labels]
    for code, count in deletion.agreements.items():
        tests[code] = TrivialityTest(samples.labels[code], undecided, agreements=count)
    for code, (first, second) in deletion.contradictions.items():
        tests[code] = replace(
            tests[code],
            triviality=Triviality.NEEDED,
            basis=TrivialityBasis.EVIDENCE,
            witness=(location(first), location(second)),
        )
    for code in deletion.trivial:
        tests[code] = replace(tests[code], triviality=Triviality.TRIVIAL)
    return tuple(tests)


class _LabelDeletion:
    """Deletes labels one after another; labels found trivial stay deleted."""

    def __init__(self, samples: SampleSet) -> None:
        self.samples = samples
        self.trivial: list[int] = []
        self.contradictions: dict[int, tuple[int, int]] = {}
        self.agreements: dict[int, int] = {}

    @property
    def histories(self) -> Histories:
        """The histories without the trivial labels."""
        return remove_trivial(self.samples.histories, self.trivial)

    def test_no_event(self) -> bool:
        """Delete "no event"; return whether samples with or without it are consistent."""
        code = self.samples.labels.get(NO_EVENT)
        if code is None:
            return self._contradiction() is None
        self.trivial = [code]
        if (rows := self._contradiction()) is None:
            return True
        self.trivial = []
        if self._contradiction() is not None:
            self.trivial = [code]
            return False
        self.contradictions[code] = rows
        return True

    def test_events(self, in_time: Callable[[], bool]) -> None:
        _, _, read = _core.history_columns(self.histories.tree)
        # Distinct histories are counted, so that repeated traces change nothing.
        count = np.bincount(read[1:], minlength=len(self.samples.labels))
        order = sorted(np.flatnonzero(count).tolist(), key=lambda code: (-count[code], code))
        # The next labels are tested only if one of these was dropped.
        for first in range(0, len(order), MAX_LABELS):
            n_trivial = len(self.trivial)
            undecided = order[first : first + MAX_LABELS]
            # Dropping labels makes more histories equal, which may decide others.
            while droppable := self._delete_each(undecided):
                self._drop(droppable)
                decided = {*self.trivial, *self.contradictions}
                undecided = [code for code in order[: first + MAX_LABELS] if code not in decided]
            if len(self.trivial) == n_trivial or not in_time():
                return

    def _delete_each(self, codes: list[int]) -> list[int]:
        """Delete each label alone; return those with enough evidence for dropping them."""
        droppable = []
        columns = self.samples.alpha, self.samples.output
        n_labels = len(self.samples.labels)
        results = _core.delete_labels(self.histories.tree, *columns, codes, n_labels)
        for code, (rows, agreements, bits, occurrences) in zip(codes, results, strict=True):
            if rows is not None:
                self.contradictions[code] = rows
                continue
            self.agreements[code] = agreements
            is_common = occurrences >= max(COMMON_CONTEXT * occurrences.sum(), 1)
            # With many labels all contexts may be rare; they are then joined into one.
            evidence = bits[is_common].min() if is_common.any() else bits.sum()
            if evidence >= MIN_EVIDENCE_BITS:
                droppable.append(code)
        return droppable

    def _drop(self, codes: list[int]) -> None:
        """Drop these labels; only the first if dropping all causes a contradiction."""
        before = self.trivial
        self.trivial = [*before, *codes]
        if len(codes) > 1 and self._contradiction() is not None:
            self.trivial = [*before, codes[0]]

    def _contradiction(self) -> tuple[int, int] | None:
        samples = self.samples
        return _core.find_conflict(self.histories.tree, samples.alpha, samples.output)


def _select_traces(samples: SampleSet, among: NDArray[np.bool_]) -> SampleSet:
    """Return the samples of the marked traces."""
    lengths = np.diff(samples.offsets)
    rows = np.repeat(among, lengths)
    offsets = np.cumsum([0, *lengths[among]], dtype=np.int64)
    histories = replace(samples.histories, beta=samples.beta[rows], offsets=offsets)
    alpha, output = samples.alpha[rows], samples.output[rows]
    return replace(samples, alpha=alpha, output=output, histories=histories)

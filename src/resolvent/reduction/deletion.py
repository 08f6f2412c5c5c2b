"""Which labels are trivial, judged by deleting them: samples → a verdict per label.

A label that changes no state can be deleted from all histories, and nothing
contradicts. A contradiction proves the label needed, for good: what contradicts
without it contradicts without it and others, so labels can be judged one by one.
That nothing contradicts proves little, since most histories are met once. A
label is therefore dropped on positive evidence only: its deletion brought
histories together, and they agreed. See docs/decisions/preprocess.md.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.reduction.trivial import remove_trivial
from resolvent.samples import SampleSet
from resolvent.traces.symbols import NO_EVENT, Label, label_text
from resolvent.traces.vocabulary import Vocabulary

ENOUGH_BITS: Final = 64.0
"""How much agreement must say, in every context that matters, for a label to be dropped."""

COMMON_CONTEXT: Final = 0.02
"""The share of a label's occurrences from which on a context matters."""

MOST_LABELS: Final = 16
"""So many labels are judged at a time, the most frequent first, and others only if one of these
was dropped; each costs a pass over the tree."""

Place = tuple[int, int]
"""Trace and step."""


class Verdict(StrEnum):
    """What is known of a label."""

    TRIVIAL = "trivial"
    NEEDED = "needed"
    UNDECIDED = "undecided"


class Basis(StrEnum):
    """Why a verdict stands."""

    EVIDENCE = "evidence"
    SEARCH = "search"
    DEFAULT = "default"
    GIVEN = "given"


@dataclass(frozen=True)
class LabelVerdict:
    """Whether one machine can do without a label, and what says so.

    `agreements` counts answers that agree once the label is deleted, and came
    together by that; `witness` are two steps that contradict each other then.

    >>> print(LabelVerdict(frozenset({"sofa"}), Verdict.TRIVIAL, agreements=1204))
    sofa: trivial: 1,204 answers agree without it, none disagrees
    >>> print(LabelVerdict(frozenset({"key"}), Verdict.NEEDED, witness=((3, 5), (9, 2))))
    key: needed: deleting it makes trace 3, step 5 and trace 9, step 2 contradict each other
    """

    label: Label
    verdict: Verdict
    basis: Basis = Basis.EVIDENCE
    agreements: int = 0
    witness: tuple[Place, Place] | None = None

    def renumbered(self, numbers: NDArray[np.int64]) -> "LabelVerdict":
        """Return the verdict with other numbers for the traces."""
        if self.witness is None:
            return self
        (one, step), (other, its_step) = self.witness
        witness = ((int(numbers[one]), step), (int(numbers[other]), its_step))
        return replace(self, witness=witness)

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        return {
            "label": sorted(self.label),
            "verdict": str(self.verdict),
            "basis": str(self.basis),
            "agreements": self.agreements,
            "witness": None
            if self.witness is None
            else [{"trace": trace, "step": step} for trace, step in self.witness],
        }

    def __str__(self) -> str:
        name = f"{label_text(self.label)}: {self.verdict}"
        if self.witness is not None:
            one, other = (f"trace {trace}, step {step}" for trace, step in self.witness)
            return f"{name}: deleting it makes {one} and {other} contradict each other"
        if self.basis is Basis.GIVEN:
            return f"{name}: named as such"
        if self.basis is Basis.DEFAULT:
            if self.verdict is Verdict.UNDECIDED:
                return f"{name}: kept, and not judged"
            return f"{name}, unless shown otherwise"
        agree = "answer agrees" if self.agreements == 1 else "answers agree"
        told = f"{self.agreements:,} {agree} without it, none disagrees"
        if self.basis is Basis.SEARCH:
            if self.verdict is Verdict.TRIVIAL:
                return f"{name}: {told}, and the machine found without it is smaller"
            return f"{name}, so it is kept: {told}, but the machine found without it is larger"
        if self.verdict is Verdict.UNDECIDED:
            return f"{name}, so it is kept: {told}, but that is too little to go by"
        return f"{name}: {told}"


def given_verdicts(labels: Vocabulary[Label], trivial: Iterable[int]) -> tuple[LabelVerdict, ...]:
    """Return the verdicts on labels that the user named, and on "no event"."""
    return tuple(
        LabelVerdict(
            labels[code],
            Verdict.TRIVIAL,
            Basis.DEFAULT if labels[code] == NO_EVENT else Basis.GIVEN,
        )
        for code in trivial
    )


def judge_labels(
    samples: SampleSet,
    *,
    beyond_no_event: bool = True,
    among: NDArray[np.bool_] | None = None,
    in_time: Callable[[], bool] = lambda: True,
) -> tuple[LabelVerdict, ...]:
    """Say of every label whether the machine of these samples can do without it.

    "No event" is trivial unless deleting it proves otherwise. With
    `beyond_no_event` off, no other label is called trivial. `among` marks the
    traces to look at, all if it is None. Samples that contradict each other with
    all labels kept prove nothing. Labels that are left when it is no longer `in_time`
    are not judged.
    """
    offsets, rows = samples.offsets, None
    if among is not None:
        rows = np.flatnonzero(np.repeat(among, np.diff(offsets)))
        samples = some_traces(samples, among)

    def place(row: int) -> Place:
        row = row if rows is None else int(rows[row])
        trace = int(np.searchsorted(offsets, row, side="right")) - 1
        return trace, row - int(offsets[trace])

    judge = _Judge(samples)
    judge.no_event()
    if beyond_no_event:
        judge.other_labels(in_time)
    # Of very many labels hardly any is judged.
    undecided, default = Verdict.UNDECIDED, Basis.DEFAULT
    verdicts = [LabelVerdict(label, undecided, default) for label in samples.labels]
    trivial = set(judge.trivial)
    for code in {*trivial, *judge.contradicting, *judge.agreements}:
        witness = judge.contradicting.get(code)
        verdict = Verdict.UNDECIDED if witness is None else Verdict.NEEDED
        judged = witness is not None or code in judge.agreements
        verdicts[code] = LabelVerdict(
            samples.labels[code],
            Verdict.TRIVIAL if code in trivial else verdict,
            Basis.EVIDENCE if judged else Basis.DEFAULT,
            judge.agreements.get(code, 0),
            None if witness is None else (place(witness[0]), place(witness[1])),
        )
    return tuple(verdicts)


class _Judge:
    """Deletes labels one after another; those found trivial stay deleted."""

    def __init__(self, samples: SampleSet) -> None:
        self.samples = samples
        self.trivial: list[int] = []
        self.contradicting: dict[int, tuple[int, int]] = {}
        self.agreements: dict[int, int] = {}
        self.without = samples.histories  # the trivial labels deleted
        self.consistent = True

    def no_event(self) -> None:
        code = self.samples.labels.get(NO_EVENT)
        if code is not None:
            kept = self.without
            self._drop([code])
            rows = self._contradiction()
            if rows is None:
                return
            self.without = kept
            if self._contradiction() is None:
                self.trivial.remove(code)
                self.contradicting[code] = rows
                return
        self.consistent = self._contradiction() is None

    def other_labels(self, in_time: Callable[[], bool]) -> None:
        if not self.consistent or not in_time():
            return
        _, _, read = _core.history_columns(self.without.tree)
        # Distinct histories are counted, so that repeated traces change nothing.
        count = np.bincount(read[1:], minlength=len(self.samples.labels))
        order = sorted(np.flatnonzero(count).tolist(), key=lambda code: (-count[code], code))
        for first in range(0, len(order), MOST_LABELS):
            before = len(self.trivial)
            undecided = order[first : first + MOST_LABELS]
            # Labels found trivial bring more histories together, which may settle others.
            while found := self._delete_each(undecided):
                self._drop(found)
                known = {*self.trivial, *self.contradicting}
                undecided = [code for code in order[: first + MOST_LABELS] if code not in known]
            if len(self.trivial) == before or not in_time():
                return

    def _delete_each(self, codes: list[int]) -> list[int]:
        """Delete each label by itself; return those that much speaks for dropping."""
        found = []
        told = _core.delete_labels(
            self.without.tree,
            self.samples.alpha,
            self.samples.output,
            codes,
            len(self.samples.labels),
        )
        for code, (rows, agreements, bits, occurrences) in zip(codes, told, strict=True):
            if rows is not None:
                self.contradicting[code] = rows
                continue
            self.agreements[code] = agreements
            common = occurrences >= max(COMMON_CONTEXT * occurrences.sum(), 1)
            # Of many labels each may make a rare context: then all are one.
            least = bits[common].min() if common.any() else bits.sum()
            if least >= ENOUGH_BITS:
                found.append(code)
        return found

    def _drop(self, codes: list[int]) -> None:
        """Drop labels that nothing contradicts without; only the first if all at once do."""
        kept = list(self.trivial)
        self.trivial = [*kept, *codes]
        self.without = remove_trivial(self.samples.histories, self.trivial)
        if len(codes) > 1 and self._contradiction() is not None:
            self.trivial = [*kept, codes[0]]
            self.without = remove_trivial(self.samples.histories, self.trivial)

    def _contradiction(self) -> tuple[int, int] | None:
        return _core.find_contradiction(self.without.tree, self.samples.alpha, self.samples.output)


def some_traces(samples: SampleSet, among: NDArray[np.bool_]) -> SampleSet:
    """Return the samples of the traces that are marked."""
    lengths = np.diff(samples.offsets)
    rows = np.repeat(among, lengths)
    histories = replace(
        samples.histories,
        beta=samples.beta[rows],
        offsets=np.cumsum([0, *lengths[among]], dtype=np.int64),
    )
    return replace(
        samples, alpha=samples.alpha[rows], output=samples.output[rows], histories=histories
    )

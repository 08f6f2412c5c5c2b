"""Evidence of traces for machines, as records that read as text, JSON and in notebooks.

Input: counts and separations of each machine. Output: the support of each transition, output
and state, the least supported first.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from resolvent._util import html as notebook
from resolvent._util.records import ByMachine, builtin
from resolvent._util.text import amount, short, visible
from resolvent.evaluation.completeness import Completeness, TransitionSupport, supports_of
from resolvent.evaluation.experiments import Experiment
from resolvent.evaluation.holdout import Holdout
from resolvent.evaluation.observed import LazySequence, most_frequent
from resolvent.evaluation.separation import OutputSupport, Separation, Separations
from resolvent.evaluation.weakness import Weakness
from resolvent.machines import Machine
from resolvent.machines.tables import AlternativeTransitions
from resolvent.replay import CountTable, ReplayCounts

if TYPE_CHECKING:
    from resolvent.evaluation.collection import EvidenceCounts, NotableExamples

_MAX_WEAK_STATES: Final = 1_000
"""Maximum number of weak states in JSON."""

_SEPARATIONS_SHOWN: Final = 3
"""Number of pairs of states that the text lists."""


@dataclass(frozen=True, eq=False)
class MachineEvidence:
    """The evidence of some traces for one machine.

    `observed_outputs` and `observed_transitions` have a row for each output and transition of the
    traces, with its count and first location. `alternatives` are None without noise.
    """

    machine: Machine = field(repr=False)
    observed_outputs: CountTable = field(repr=False)
    observed_transitions: CountTable = field(repr=False)
    separations: Separations
    completeness: Completeness
    experiments: LazySequence[Experiment]
    alternatives: AlternativeTransitions | None = field(default=None, repr=False)
    weakness: Weakness = field(default_factory=Weakness, repr=False)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same figures; separations follow from the outputs."""
        names = ("machine", "observed_outputs", "observed_transitions", "completeness")
        return isinstance(other, MachineEvidence) and all(
            getattr(self, name) == getattr(other, name) for name in names
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces distinguishes."""
        return self.separations.inseparable

    @property
    def generalized(self) -> int:
        """The number of generalized outputs: those that the traces never show in that state."""
        machine, outputs = self.machine, self.observed_outputs
        is_constant = np.isin(outputs["query"], machine.constant_query)
        cells = np.stack([outputs["state"], outputs["query"]])[:, is_constant]
        observed = len(np.unique(cells, axis=1).T)
        return machine.states * len(machine.constant_query) - observed

    def transitions(self, most: int | None = None) -> list[TransitionSupport]:
        """Return the nontrivial transitions of the traces, the least supported first.

        For a noisy machine, the least certain ones come first.
        """
        table, alternatives = self.observed_transitions, self.alternatives
        rows = np.flatnonzero(~np.isin(table["label"], self.machine.trivial))
        rows = rows[np.argsort(table.count[rows], kind="stable")]
        if alternatives is not None:
            cells = table["state"][rows], table["label"][rows]
            rows = rows[np.lexsort((alternatives.log_odds[cells], alternatives.target[cells] < 0))]
        return supports_of(self.machine, table, rows[:most], alternatives)

    def outputs(self, most: int | None = None) -> list[OutputSupport]:
        """Return the outputs of the traces that depend on the state, the least supported first.

        For a noisy machine these are the most frequent outputs, those with the smallest lead
        over the next frequent one first.
        """
        table = self.observed_outputs
        rows = np.flatnonzero(~np.isin(table["query"], self.machine.constant_query))
        support = table.count[rows]
        if self.machine.is_noisy:
            rows, support = most_frequent(table, rows)
        rows = rows[np.argsort(support, kind="stable")[:most]]
        return [OutputSupport.of(self.machine, table, row) for row in rows.tolist()]

    def as_dict(self, most: int = 20) -> dict[str, Any]:
        """Return JSON values with at most `most` of the least supported outputs."""
        figures = {
            "states": self.machine.states,
            "separations": list(self.separations),
            "separations_skipped": self.separations.skipped,
            "completeness": self.completeness,
            "generalized_outputs": self.generalized,
            "transitions": self.transitions(),
            "least_supported_outputs": self.outputs(most),
            "weak": self.weakness.as_dict(_MAX_WEAK_STATES),
            "next": list(self.experiments),
        }
        return {name: builtin(figure) for name, figure in figures.items()}

    def __str__(self) -> str:
        lines = [f"{visible(self.machine.name)} machine: {amount(self.machine.states, 'state')}"]
        lines += [f"  {line}" for line in self._separation_lines()]
        lines += [f"  {line}" for line in str(self.completeness).splitlines()]
        least = [*self.transitions(1), *self.outputs(1)]
        lines += [f"  least support: {support}" for support in least]
        lines += [f"  next: {experiment}" for experiment in self.experiments[:1]]
        return "\n".join(lines)

    def _separation_lines(self) -> list[str]:
        """Return lines about the pairs of states with the weakest separation."""
        separations = self.separations
        if separations.skipped:
            return [f"pairs of states were skipped: {separations.skipped}"]
        lines = [str(separation) for separation in separations.weakest(_SEPARATIONS_SHOWN)]
        more = len(separations) - _SEPARATIONS_SHOWN
        if more > 0:
            support = "more support" if separations.log_odds is None else "higher odds"
            lines.append(f"and {amount(more, 'pair')} of states with {support}")
        return lines


@dataclass(frozen=True)
class Evidence(ByMachine[MachineEvidence]):
    """The evidence of some traces for machines, by machine.

    `holdout` is None if nothing could be held out. `counts` are those of all traces, `examples`
    are notable traces, and `is_training_set` is whether the machines were inferred from exactly
    these traces.
    """

    traces: int
    steps: int
    machines: dict[str, MachineEvidence]
    holdout: Holdout | None
    counts: "EvidenceCounts" = field(repr=False, compare=False)
    examples: "NotableExamples" = field(repr=False, compare=False)
    is_training_set: bool = field(repr=False, compare=False)

    @property
    def _by_name(self) -> dict[str, MachineEvidence]:
        return self.machines

    @property
    def replay(self) -> ReplayCounts:
        """The replay of the traces."""
        return self.counts.replay

    @property
    def transition(self) -> MachineEvidence:
        """The evidence for the Transition Machine."""
        return self.machines["transition"]

    @property
    def reward(self) -> MachineEvidence:
        """The evidence for the Reward Machine."""
        return self.machines["reward"]

    def as_dict(self) -> dict[str, Any]:
        """Return the evidence as JSON values."""
        return {
            **{name: evidence.as_dict() for name, evidence in self.machines.items()},
            "holdout": None if self.holdout is None else self.holdout.as_dict(),
        }

    def __repr__(self) -> str:
        states = ", ".join(f"{name} {evidence.machine.states}" for name, evidence in self.items())
        held = "nothing held out"
        if self.holdout is not None:
            held = f"{self.holdout.failures} of {self.holdout.traces} held-out traces fail"
            if self.holdout.calibration is not None:
                held = "right within noise" if self.holdout.within_noise else "not within noise"
        return short(f"Evidence({self._size}; states: {states}; {held})", 250)

    def _repr_html_(self) -> str:
        """Show a table with a row for each machine, and the details as text."""
        header = ["machine", "states", "distinguished", "converging", "structure complete"]
        rows = (
            [
                name,
                evidence.machine.states,
                "no" if evidence.inseparable else "yes",
                evidence.completeness.convergence,
                "yes" if evidence.completeness.structure_complete else "no",
            ]
            for name, evidence in self.items()
        )
        return notebook.panel(
            "the evidence for the machines",
            notebook.table(header, rows, len(self)),
            notebook.lines(str(self)),
        )

    def __str__(self) -> str:
        bound = "no traces could be held out" if self.holdout is None else str(self.holdout)
        return "\n".join([self._size, *map(str, self.machines.values()), f"hold-out: {bound}"])

    @property
    def _size(self) -> str:
        return f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"

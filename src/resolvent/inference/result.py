"""The result of `infer`: the machines, and how they were inferred."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from resolvent._util.math import exp
from resolvent._util.records import builtin, to_builtins
from resolvent._util.text import amount, listed, short
from resolvent.errors import ModelError
from resolvent.evaluation.diagnosis.findings import Finding
from resolvent.inference.fit import (
    Attempt,
    Fold,
    InferenceState,
    MachineFit,
    MachineStatistics,
    MinimalityProof,
    Refinement,
)
from resolvent.inference.options import InferenceOptions
from resolvent.inference.summary import html_of, text_of
from resolvent.machines import Alternative, Machines
from resolvent.machines.augmented_state import LabelNoise
from resolvent.machines.compare import LabelClasses
from resolvent.noise import NoiseCandidate
from resolvent.preprocess.reduction import TrivialityTest
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay.corpus import Corpus
from resolvent.traces import TraceSet

if TYPE_CHECKING:
    from resolvent.evaluation.evidence import Evidence


_MAX_LOG: Final = 700.0
"""Logarithm of about the largest number that a float can hold."""


@dataclass(frozen=True)
class InferenceResult:
    """The machines, and how they were inferred.

    It is plain data: it can be pickled, copied and compared. Equality ignores seconds and attempts.

    Attributes:
        machines: The machines by name: "transition", "reward", and others that were requested.
        options: The options of `infer`.
        traces: Number of traces.
        steps: Number of steps in these.
        statistics: The effort for each machine, by name.
        refinement: Number of traces learned from, and number of rounds.
        seconds: Time of each stage.
        inference_state: All traces and their replay, for `update` and `evidence`.
        warnings: Reasons not to rely on the machines, such as traces that hardly ever
            repeat; `diagnose` looks for more.
        outliers: The numbers of traces that were excluded, since they do not fit the others.
        noise_rates: Rates of noise that no machine models, such as that of labels.
        noise_candidates: The explanations of the traces that were considered, with and without
            noise, and why each was chosen or rejected.
        folds: The scores of each machine in cross-validation; empty if there was none.
    """

    machines: Machines
    options: InferenceOptions
    traces: int
    steps: int
    statistics: dict[str, MachineStatistics]
    refinement: Refinement
    seconds: dict[str, float] = field(compare=False)
    inference_state: InferenceState = field(repr=False, compare=False)
    warnings: tuple[Finding, ...] = ()
    outliers: tuple[int, ...] = ()
    noise_rates: dict[str, float] = field(default_factory=dict)
    noise_candidates: tuple[NoiseCandidate, ...] = field(default=(), repr=False, compare=False)
    folds: dict[str, tuple[Fold, ...]] = field(default_factory=dict, repr=False, compare=False)

    # ---- how machines were inferred ------------------------------------------

    @property
    def trivial(self) -> dict[str, tuple[TrivialityTest, ...]]:
        """The labels that each machine does without, and why."""
        return {name: fit.trivial for name, fit in self._fits.items()}

    @property
    def tried(self) -> dict[str, tuple[Attempt, ...]]:
        """The attempts at each machine: strategies, and parts of these that ran in parallel.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> [attempt.outcome for attempt in rs.infer(house).tried["transition"]]
        ['chosen']
        """
        return {name: fit.attempts for name, fit in self._fits.items()}

    @property
    def certificates(self) -> dict[str, MinimalityProof]:
        """With strategy "exact", the proof for each machine."""
        proofs = {name: fit.proof for name, fit in self._fits.items() if fit.proof is not None}
        if self.refinement.traces < self.refinement.all_traces:
            # They hold for a part of the traces; an alternative may fit that alone.
            for name, proof in proofs.items():
                states, unique = self.machines[name].states, proof.unique or None
                proofs[name] = replace(proof, states=states, unique=unique, alternative=None)
        return proofs

    @property
    def lower_bounds(self) -> dict[str, int]:
        """A proven lower bound on the number of states, by machine; none for machines with noise.

        It is the number of label sequences with pairwise different outputs, which need different
        states; with strategy "exact" it is the bound of the certificate. A machine with this number
        of states is minimal. Machines other than the Transition Machine are assumed to observe its
        states.

        >>> import gymnasium as gym, resolvent as rs
        >>> rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)).lower_bounds
        {'transition': 2, 'reward': 2}
        """
        return {
            name: max(fit.statistics.at_least, fit.proof.lower_bound if fit.proof else 1)
            for name, fit in self._fits.items()
            if not self.machines[name].is_noisy
        }

    @property
    def unfinished(self) -> dict[str, float]:
        """The machines for which time ran out, with the share of outputs that they get wrong.

        They are the best found by then: some states are not distinguished, and a state with
        several outputs for a query predicts the most frequent one. Empty if time sufficed.
        """
        names = self.inference_state.fit.unfinished
        return {name: machine.noise for name, machine in self.machines.items() if name in names}

    @property
    def explains_all_traces(self) -> bool:
        """Whether the machines explain every step: no noise, no outliers, and time enough."""
        return not self.is_noisy and not self.outliers and not any(self.unfinished.values())

    @property
    def learned_from(self) -> str:
        """The number of traces learned from, as text, and whether all traces are explained."""
        text = str(self.refinement)
        if any(self.unfinished.values()) and not self.is_noisy:
            return text.replace("all traces are explained", "not all traces are explained")
        return text

    @property
    def transition(self) -> MachineStatistics:
        """The effort for the Transition Machine."""
        return self._statistics_of("transition")

    @property
    def reward(self) -> MachineStatistics:
        """The effort for the Reward Machine."""
        return self._statistics_of("reward")

    def _statistics_of(self, name: str) -> MachineStatistics:
        if name not in self.statistics:
            raise ModelError(
                f"there is no {short(name)} machine: these were inferred for "
                f"{listed(self.statistics)}; name more in outputs"
            )
        return self.statistics[name]

    @property
    def _fits(self) -> dict[str, MachineFit]:
        return self.inference_state.fit.by_name

    # ---- labels and noise ----------------------------------------------------

    @property
    def preprocessor(self) -> Preprocessor:
        """The preprocessing of raw steps before the machines read them; `machines.preprocessor`."""
        return self.machines.preprocessor

    @property
    def events(self) -> LabelClasses:
        """The labels that change a state of each machine; those with the same effect are one event.

        If labels are made of observations and actions, an event names these.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> print(rs.infer(house, labels="observation").events)
        transition: 1 event, 3 labels change nothing
          orangeroom: state 0 → 1
        reward: 1 event, 3 labels change nothing
          cyanroom: state 0 → 1
        """
        return LabelClasses(self.machines)

    @property
    def is_noisy(self) -> bool:
        """Whether the machines explain the traces except for noise."""
        return self.refinement.noisy

    @property
    def noise(self) -> dict[str, float]:
        """The amount of noise, as shares.

        By machine the share of outputs that are not the most frequent one; then other noise, if
        there is any: "outliers" is the share of traces that were left out.

        >>> import gymnasium as gym, resolvent as rs
        >>> rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)).noise
        {'transition': 0.0, 'reward': 0.0}
        """
        shares = {name: machine.noise for name, machine in self.machines.items()}
        if self.outliers:
            shares["outliers"] = len(self.outliers) / self.traces
        return {**shares, **self.noise_rates}

    @property
    def label_noise(self) -> LabelNoise | None:
        """The rate of wrong labels, if they were corrected by observations; None otherwise."""
        return LabelNoise.of_shares(self.noise_rates)

    @property
    def alternatives(self) -> dict[str, tuple[Alternative, ...]]:
        """The machines that are nearly as likely as those inferred, with their odds; by name.

        Empty if every other machine found is at least 100 times less likely, and without noise,
        where `certificates` hold the proofs. At most ten differ in one transition.
        """
        return {name: fit.alternatives for name, fit in self._fits.items()}

    def odds(self, name: str) -> dict[int, float]:
        """Return the odds of machines of other sizes to the inferred one; with noise only.

        For each number of states that was tried, it is the likelihood of the best machine of that
        size divided by that of the inferred machine.
        """
        return {states: exp(min(odds, _MAX_LOG)) for states, odds in self.log_odds(name).items()}

    def log_odds(self, name: str) -> dict[int, float]:
        """Return the logarithms of `odds`, which may be too small to represent themselves."""
        by_size = self._fits[name].log_evidence
        best = by_size.get(self.machines[name].states, 0.0)
        return {states: evidence - best for states, evidence in sorted(by_size.items())}

    # ---- evidence, updates and reports ----------------------------------------

    @cached_property
    def evidence(self) -> "Evidence":
        """The support of the traces, and its gaps; the same as `resolvent.evidence(result)`.

        It is computed at the first use: machines are inferred once more from four fifths of the
        traces and tested on the rest. Scanned files are read once.
        """
        from resolvent.inference.cross_validation import evidence

        return evidence(self, self._traces())

    def update(self, traces: TraceSet) -> "InferenceResult":
        """Add traces: replay them, and repair the machines only if they fail.

        Return machines that explain all traces so far: those that `infer` would find from all of
        them, if the traces are structure complete. If nothing fails, the time is that of replaying
        the new traces, whatever the number of earlier ones.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> few = rs.infer(house[:5])
        >>> few.update(house[5:]).machines.transition == rs.infer(house).machines.transition
        True
        """
        from resolvent.inference.infer import update

        return update(self, traces)

    def report(
        self, path: str | Path, *, policy: Any = None, draw_of: Callable[[Any], Any] | None = None
    ) -> None:
        """Write one HTML page: the machines drawn, traces replayed, and the evidence.

        The same as `resolvent.report`, which describes the arguments.

        >>> import tempfile, gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rs.infer(house).report(f"{folder}/house.html")
        ...     Path(f"{folder}/house.html").read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'
        """
        from resolvent.viz.report.page import report

        report(self, self._traces(), path, evidence=self.evidence, policy=policy, draw_of=draw_of)

    def _traces(self) -> TraceSet | Corpus:
        """Return all traces, without reading those in files."""
        corpus = self.inference_state.corpus
        return self.all_traces() if corpus.in_memory else corpus

    def all_traces(self) -> TraceSet:
        """Return the traces that the machines were inferred from, those of updates included.

        Raises:
            ModelError: when they were scanned, not read.
        """
        if not self.inference_state.corpus.in_memory:
            raise ModelError(
                "the traces were scanned, not read: read some of their files with read_traces, or "
                "all of them with the method `read_all` of the result of scan_traces"
            )
        return self.inference_state.corpus.as_traces()

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as `resolvent infer --json` prints them."""

        def by_machine(figure: str) -> dict[str, int]:
            return {name: getattr(values, figure) for name, values in self.statistics.items()}

        states = by_machine("states")
        short_names = {"transition": "tm_states", "reward": "rm_states"}
        return {
            "states": states,
            **{short_names[name]: states[name] for name in short_names if name in states},
            "lower_bounds": self.lower_bounds,
            "traces": self.traces,
            "steps": self.steps,
            "seconds": {stage: round(value, 6) for stage, value in self.seconds.items()},
            "prefix_tree_nodes": by_machine("prefix_tree_nodes"),
            "merges": by_machine("merges"),
            "folds_tried": by_machine("attempts"),
            "constant_outputs": by_machine("constant_outputs"),
            "trivial": builtin(self.trivial),
            "certificates": builtin(self.certificates),
            "terminal_situations": len(self.machines.termination.ends),
            "ambiguous_terminations": len(self.machines.termination.ambiguous),
            "learned_from": to_builtins(self.refinement, ["rounds", "traces", "steps"]),
            "explains_all_traces": self.explains_all_traces,
            "tried": builtin(self.tried),
            "unfinished": self.unfinished,
            "noise": self.noise,
            "outliers": list(self.outliers),
            "log_odds": {
                name: {str(size): odds for size, odds in self.log_odds(name).items()}
                for name in self.machines
            },
            "alternatives": builtin(self.alternatives),
            "labels": str(self.machines.preprocessor.labeling.reads),
            "events": self.events.as_dict(),
            "cross_validation": builtin(self.folds),
            "warnings": builtin(self.warnings),
            "options": {**self.options.as_dict(), "engine": self.options.engine},
        }

    def __repr__(self) -> str:
        states = ", ".join(f"{name} {figures.states}" for name, figures in self.statistics.items())
        text = f"states: {states}; {amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"
        return short(f"InferenceResult({text})", 250)

    def _repr_html_(self) -> str:
        """Return the figures for a notebook."""
        return html_of(self)

    def __str__(self) -> str:
        return text_of(self)


def machines_of_result(machines: Machines | InferenceResult) -> Machines:
    """Return the machines of a result, or the machines themselves; anything else is an error."""
    if isinstance(machines, InferenceResult):
        return machines.machines
    if isinstance(machines, Machines):
        return machines
    is_path = isinstance(machines, str | PathLike)
    remedy = "load the file with rs.load" if is_path else "pass machines or a result of rs.infer"
    raise ModelError(f"a {type(machines).__name__} is not a set of machines: {remedy}")

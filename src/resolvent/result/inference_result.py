"""The machines, and how they were found: what `infer` gives back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolvent.arithmetic import exp
from resolvent.diagnosis import Finding
from resolvent.errors import ModelError
from resolvent.exact import Certificate
from resolvent.machines import Alternative, Machine, Machines
from resolvent.machines.event_classes import Events
from resolvent.inference.attempts import Tried
from resolvent.noise import LabelNoise
from resolvent.options import Options
from resolvent.reduction import LabelVerdict
from resolvent.replay import Corpus
from resolvent.result.found import MachineStatistics, MergeEvent, Refinement, Standing
from resolvent.result.in_words import html_of, noise_lines, text_of, tried_lines, trivial_lines
from resolvent.senses import Senses
from resolvent.traces import TraceSet
from resolvent.wording import amount, listed, short

if TYPE_CHECKING:
    from resolvent.trust import Evidence


_MOST_LOG = 700.0
"""The logarithm of about the largest number there is."""


@dataclass(frozen=True)
class InferenceResult:
    """The machines, and how they were found.

    It is plain data: it can be pickled, copied and compared. Two results are equal if
    they differ in seconds alone.

    Attributes:
        machines: The machines by kind: "transition", "reward", and what else was asked for.
        options: What `infer` was asked to do.
        traces: How many were given.
        steps: How many steps these have.
        statistics: What it took to find each machine, by kind.
        refinement: How many traces were learned from, in how many rounds.
        seconds: How long each stage took.
        trivial: For each machine, which labels it does without, and why.
        certificates: With strategy "exact", what was proven of each machine.
        standing: All traces and what they show, for `update` and `evidence`.
        warnings: What speaks against relying on the machines, such as traces in which hardly
            anything repeats; `diagnose` looks for more.
        broken: The numbers of traces that were left out, since they do not fit the others.
        more_noise: Kinds of noise that are in no machine, such as that of labels, as shares.
    """

    machines: Machines
    options: Options
    traces: int
    steps: int
    statistics: dict[str, MachineStatistics]
    refinement: Refinement
    seconds: dict[str, float] = field(compare=False)
    trivial: dict[str, tuple[LabelVerdict, ...]]
    certificates: dict[str, Certificate[Machine]]
    standing: Standing = field(repr=False, compare=False)
    warnings: tuple[Finding, ...] = ()
    broken: tuple[int, ...] = ()
    more_noise: dict[str, float] = field(default_factory=dict)

    @property
    def noise(self) -> dict[str, float]:
        """How much noise of which kind was found, as shares.

        By machine the share of answers that are not the most frequent one; then other kinds,
        as far as there are any: "broken" is the share of traces that were left out.

        >>> import gymnasium as gym, resolvent as rs
        >>> rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)).noise
        {'transition': 0.0, 'reward': 0.0}
        """
        found = {kind: machine.noise for kind, machine in self.machines.items()}
        if self.broken:
            found["broken"] = len(self.broken) / self.traces
        return {**found, **self.more_noise}

    @property
    def lower_bounds(self) -> dict[str, int]:
        """How many states are proven to be needed, by machine; those with noise have no proof.

        That many label histories are followed by answers that pairwise differ, so that each needs
        a state of its own; with strategy "exact", what its certificate says. A machine with as
        many states is as small as any that explains the traces. Machines other than the Transition
        Machine are taken to be told its states.

        >>> import gymnasium as gym, resolvent as rs
        >>> rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)).lower_bounds
        {'transition': 2, 'reward': 2}
        """
        bounds = {}
        for kind, one in self.statistics.items():
            proven = self.certificates.get(kind)
            if not self.machines[kind].is_noisy:
                bounds[kind] = max(one.at_least, 1 if proven is None else proven.lower_bound)
        return bounds

    @property
    def label_noise(self) -> LabelNoise | None:
        """How often labels lied, where they were corrected by what is seen; None where not."""
        return LabelNoise.of_shares(self.more_noise)

    @property
    def tried(self) -> dict[str, tuple[Tried, ...]]:
        """Which strategies were tried for each machine, and what came of each; by kind.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> [one.outcome for one in rs.infer(house).tried["transition"]]
        ['chosen']
        """
        return {kind: self.standing.found.tried.get(kind, ()) for kind in self.machines}

    @property
    def unfinished(self) -> dict[str, float]:
        """The machines for which time ran out, with the share of answers that they get wrong.

        They are the best that was found by then: states are not told apart where there was no
        time to, and a state that answers a question in several ways answers with what
        came most often. Empty where there was time enough.
        """
        cut = self.standing.found.unfinished
        return {kind: one.noise for kind, one in self.machines.items() if kind in cut}

    def tried_text(self) -> list[str]:
        """Say which strategies were tried where there were several, and why one won, in lines."""
        return tried_lines(self)

    def ran_text(self) -> list[str]:
        """Say what was tried side by side, and by which workers, in lines."""
        return [
            f"{short(kind)} machine, {one.where}: {one}"
            for kind, statistics in self.statistics.items()
            for one in statistics.ran
        ]

    @property
    def is_noisy(self) -> bool:
        """Whether the machines explain the traces but for noise."""
        return self.refinement.noisy

    def odds(self, kind: str) -> dict[int, float]:
        """Return how likely machines of other sizes are, beside the one found; with noise only.

        For each number of states that was tried, how many times as likely the best machine
        of that size is as the one that was found.
        """
        return {states: exp(min(one, _MOST_LOG)) for states, one in self.log_odds(kind).items()}

    def log_odds(self, kind: str) -> dict[int, float]:
        """Return the logarithms of `odds`, which may be too small to write down themselves."""
        tried = self.standing.found.log_evidence.get(kind, {})
        best = tried.get(self.machines[kind].states, 0.0)
        return {states: one - best for states, one in sorted(tried.items())}

    @property
    def alternatives(self) -> dict[str, tuple[Alternative, ...]]:
        """The machines that the traces hardly tell from those found, with their odds; by kind.

        Nothing where every other machine that was met is at least 100 times less likely, and
        where there is no noise: then the traces are explained, and `certificates` say
        what is proven. Of machines that differ in one move there are at most ten.
        """
        return {kind: self.standing.found.alternatives.get(kind, ()) for kind in self.machines}

    def noise_text(self) -> list[str]:
        """Say how much noise there is, and how sure the numbers of states are, in lines."""
        return noise_lines(self)

    @property
    def explains_all_traces(self) -> bool:
        """Whether the machines explain every step: no noise, none left out, and time enough."""
        return not self.is_noisy and not self.broken and not any(self.unfinished.values())

    @property
    def learned_from(self) -> str:
        """From how many traces the machines were learned, in words, and what became of the rest."""
        told = str(self.refinement)
        if any(self.unfinished.values()) and not self.is_noisy:
            return told.replace("all traces are explained", "not all traces are explained")
        return told

    @property
    def transition(self) -> MachineStatistics:
        """What it took to find the Transition Machine."""
        return self._statistics_of("transition")

    @property
    def reward(self) -> MachineStatistics:
        """What it took to find the Reward Machine."""
        return self._statistics_of("reward")

    def _statistics_of(self, kind: str) -> MachineStatistics:
        if kind not in self.statistics:
            raise ModelError(
                f"there is no {short(kind)} machine: these were inferred for "
                f"{listed(self.statistics)}; name more in outputs"
            )
        return self.statistics[kind]

    @cached_property
    def evidence(self) -> "Evidence":
        """What the traces say about the machines, and what they leave open.

        The short way to `resolvent.evidence`. Gathered when first asked for; a fifth of
        the traces is held out then, and machines are inferred from the others once more. A place
        that was scanned is gone through once for it.
        """
        from resolvent.pipeline import evidence

        return evidence(self, self._given())

    def update(self, traces: TraceSet) -> "InferenceResult":
        """Take in more traces: replay them, and repair the machines only where they fail.

        Gives the machines that explain the traces so far and these. They are
        those that `infer` would find from all of them, whenever the traces are
        structure complete. Where nothing fails it costs what replaying the new traces
        costs, however many there were before.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> few = rs.infer(house[:5])
        >>> few.update(house[5:]).machines.transition == rs.infer(house).machines.transition
        True
        """
        from resolvent.pipeline import update

        return update(self, traces)

    def report(
        self,
        path: str | Path,
        *,
        policy: Any = None,
        draw_of: Callable[[Any], Any] | None = None,
    ) -> None:
        """Write one HTML page: the machines drawn, traces replayed, and the evidence.

        The short way to `resolvent.report`. The page needs no network and nothing beside
        it. Give as `policy` what `q_learning` or `plan` came to, and it is shown as well. `draw_of`
        draws observations: an array of H×W×3 numbers from 0 to 255 for each, or None.

        >>> import tempfile, gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rs.infer(house).report(f"{folder}/house.html")
        ...     Path(f"{folder}/house.html").read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'
        """
        from resolvent.display.report import report

        report(self, self._given(), path, evidence=self.evidence, policy=policy, draw_of=draw_of)

    def _given(self) -> TraceSet | Corpus:
        """Return all traces, of which those in files are not read."""
        corpus = self.standing.corpus
        return self.all_traces() if corpus.in_memory else corpus

    def all_traces(self) -> TraceSet:
        """Return the traces that the machines were inferred from, those of updates included.

        Raises:
            ModelError: when they were scanned, not read.
        """
        if not self.standing.corpus.in_memory:
            raise ModelError(
                "the traces were scanned, not read: read some of their files with read_traces, or "
                "all of them with the method read_all of what scan_traces returned"
            )
        return self.standing.corpus.together()

    @property
    def senses(self) -> Senses:
        """What is done to raw steps before the machines read them; `machines.senses`."""
        return self.machines.senses

    @property
    def events(self) -> Events:
        """Which labels change a state of each machine, those that act alike as one event.

        Where labels are made of what is seen and done, an event says of what.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> print(rs.infer(house, labels="observation").events)
        transition: 1 event, 3 labels change nothing
          orangeroom: state 0 → 1
        reward: 1 event, 3 labels change nothing
          cyanroom: state 0 → 1
        """
        return Events.of(self.machines)

    def merge_events(self, machine: str) -> tuple[MergeEvent, ...]:
        """Return the log of merges and promotions for a machine, such as "transition".

        `machines.transition.decisions` tells the same in the machine's states.
        """
        return self.standing.found.logs[machine].told()

    def trivial_labels(self) -> list[str]:
        """Say which labels were taken to change nothing, one line unless the machines differ."""
        return trivial_lines(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as `resolvent infer --json` prints them."""

        def by_machine(figure: str) -> dict[str, int]:
            return {kind: getattr(one, figure) for kind, one in self.statistics.items()}

        states = by_machine("states")
        return {
            "states": states,
            **{
                name: states[kind]
                for name, kind in (("tm_states", "transition"), ("rm_states", "reward"))
                if kind in states
            },
            "lower_bounds": self.lower_bounds,
            "traces": self.traces,
            "steps": self.steps,
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "prefix_tree_nodes": by_machine("prefix_tree_nodes"),
            "merges": by_machine("merges"),
            "folds_tried": by_machine("attempts"),
            "constant_outputs": by_machine("constant_outputs"),
            "trivial": {
                name: [verdict.as_dict() for verdict in verdicts]
                for name, verdicts in self.trivial.items()
            },
            "certificates": {
                name: certificate.as_dict() for name, certificate in self.certificates.items()
            },
            "terminal_situations": len(self.machines.termination.ends),
            "ambiguous_terminations": len(self.machines.termination.ambiguous),
            "learned_from": {
                "rounds": self.refinement.rounds,
                "traces": self.refinement.traces,
                "steps": self.refinement.steps,
            },
            "explains_all_traces": self.explains_all_traces,
            "tried": {kind: [one.as_dict() for one in all_] for kind, all_ in self.tried.items()},
            "side_by_side": {
                kind: [one.as_dict() for one in statistics.ran]
                for kind, statistics in self.statistics.items()
                if statistics.ran
            },
            "unfinished": self.unfinished,
            "noise": self.noise,
            "broken": list(self.broken),
            "log_odds": {
                kind: {str(states): one for states, one in self.log_odds(kind).items()}
                for kind in self.machines
            },
            "alternatives": {
                kind: [one.as_dict() for one in found] for kind, found in self.alternatives.items()
            },
            "labels": str(self.machines.senses.labelling.reads),
            "events": self.events.as_dict(),
            "warnings": [warning.as_dict() for warning in self.warnings],
            "options": {**self.options.as_dict(), "engine": self.options.engine},
        }

    def __repr__(self) -> str:
        states = ", ".join(f"{kind} {one.states}" for kind, one in self.statistics.items())
        told = f"states: {states}; {amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"
        return short(f"InferenceResult({told})", 250)

    def _repr_html_(self) -> str:
        """Show the figures in a notebook; the machines themselves draw there, too."""
        return html_of(self)

    def __str__(self) -> str:
        return text_of(self)


def machines_in(given: Machines | InferenceResult) -> Machines:
    """Return the machines that a caller gives, be it as such or in a result.

    >>> machines_in("machines.json")
    Traceback (most recent call last):
    resolvent.errors.ModelError: a str is no machines: load the file with rs.load, and give those

    Raises:
        ModelError: when it is something else.
    """
    if isinstance(given, InferenceResult):
        return given.machines
    if isinstance(given, Machines):
        return given
    remedy = "give machines or a result of rs.infer"
    if isinstance(given, str | PathLike):
        remedy = "load the file with rs.load, and give those"
    raise ModelError(f"a {type(given).__name__} is no machines: {remedy}")

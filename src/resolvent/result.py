"""What `infer` gives back: the machines, and how they were found."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from resolvent.evidence import Evidence
from resolvent.exact import Certificate
from resolvent.machines import Machine, MachinePair
from resolvent.merging import STRATEGIES, Automaton, Strategy
from resolvent.reduction import LabelVerdict, Verdict
from resolvent.samples import Histories, LabelTiming
from resolvent.traces import Label, TraceSet, label_text
from resolvent.wording import amount


@dataclass(frozen=True)
class MergeEvent:
    """One decision of the search, by the label histories of the states it was about.

    `into` is None when the state became one of its own.
    """

    history: tuple[Label, ...]
    into: tuple[Label, ...] | None
    agreeing: int
    folded: int


@dataclass(frozen=True)
class MachineStatistics:
    """What it took to find one machine."""

    states: int
    prefix_tree_nodes: int
    merges: int
    promotions: int
    attempts: int
    constant_outputs: int
    outputs_by_state: int
    seconds: float


@dataclass(frozen=True)
class Options:
    """What `infer` was asked to do; stored with the machines."""

    strategy: Strategy = STRATEGIES["edsm"]
    timing: LabelTiming = LabelTiming.CURRENT
    trivial: tuple[Label | str, ...] | Literal["auto"] = "auto"
    supplement: bool = True
    remove_redundant: bool = True
    remove_trivial: bool = True
    reward_digits: int | None = None
    engine: str = "native"
    time_limit: float | None = None
    refine: bool | None = None
    seed: int = 0
    effort: float = 1.0

    def stored(self) -> dict[str, Any]:
        """Return the options that shape the machines, as JSON values."""
        return {
            "strategy": self.strategy.name,
            "timing": str(self.timing),
            "trivial": self.trivial
            if self.trivial == "auto"
            else sorted(
                name if isinstance(name, str) else label_text(frozenset(name))
                for name in self.trivial
            ),
            "supplement": self.supplement,
            "remove_redundant": self.remove_redundant,
            "remove_trivial": self.remove_trivial,
            "reward_digits": self.reward_digits,
            "seed": self.seed,
            "effort": self.effort,
        }


@dataclass(frozen=True)
class Refinement:
    """How many of the traces were learned from, and in how many rounds.

    After each round all traces were replayed through the machines, and some that
    these could not explain were learned from as well; the last replay found
    none. So the machines explain every trace: that was checked.
    """

    rounds: int
    traces: int
    steps: int
    all_traces: int

    def __str__(self) -> str:
        rounds = amount(self.rounds, "round")
        if self.traces == self.all_traces:
            learned = f"all traces in {rounds}"
        else:
            learned = f"{amount(self.traces, 'trace')} ({amount(self.steps, 'step')}) in {rounds}"
        return f"{learned}; replayed, all traces are explained"


@dataclass(frozen=True)
class InferenceResult:
    """The machines, and how they were found.

    Attributes:
        machines: The Transition Machine and the Reward Machine.
        options: What `infer` was asked to do.
        traces: How many were given.
        steps: How many steps these have.
        transition: What it took to find the Transition Machine.
        reward: What it took to find the Reward Machine.
        refinement: How many traces were learned from, in how many rounds.
        seconds: By stage.
        trivial: For "transition" and "reward", what was judged of the labels.
        certificates: With strategy "exact", what was proven of each machine.
    """

    machines: MachinePair
    options: Options
    traces: int
    steps: int
    transition: MachineStatistics
    reward: MachineStatistics
    refinement: Refinement
    seconds: dict[str, float]
    trivial: dict[str, tuple[LabelVerdict, ...]]
    certificates: dict[str, Certificate[Machine]]
    _histories: dict[str, Histories] = field(repr=False)
    _automata: dict[str, Automaton] = field(repr=False)
    _updated: "Callable[[TraceSet], InferenceResult]" = field(repr=False)
    _gather: Callable[[], Evidence] = field(repr=False)
    _traces: Callable[[], TraceSet] = field(repr=False)

    # Pages are made further down, out of sight from here: the package puts the writer in.
    _write_report: "ClassVar[Callable[[InferenceResult, str | Path, TraceSet, Any], None]]"

    @cached_property
    def evidence(self) -> Evidence:
        """What the traces say about the machines, and what they leave open.

        Gathered when first asked for; a fifth of the traces is held out then, and
        machines are inferred from the others once more.
        """
        return self._gather()

    def update(self, traces: TraceSet) -> "InferenceResult":
        """Take in more traces: replay them, and repair the machines only where they fail.

        Gives the machines that explain the traces so far and these. They are
        those that `infer` would find from all of them, whenever the traces are
        structure complete.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> few = rs.infer(house[:5])
        >>> few.update(house[5:]).machines.transition == rs.infer(house).machines.transition
        True
        """
        return self._updated(traces)

    def report(self, path: str | Path, *, policy: Any = None) -> None:
        """Write one HTML page: both machines drawn, traces replayed, and the evidence.

        The page needs no network and nothing beside it. Give as `policy` what
        `q_learning` or `plan` came to, and it is shown as well.

        >>> import tempfile, gymnasium as gym, resolvent as rs
        >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rs.infer(house).report(f"{folder}/house.html")
        ...     Path(f"{folder}/house.html").read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'

        Raises:
            ModelError: when the traces were scanned, not read.
        """
        type(self)._write_report(self, path, self._traces(), policy)

    def events(self, machine: str) -> tuple[MergeEvent, ...]:
        """Return the log of merges and promotions for "transition" or "reward".

        `machines.transition.decisions` tells the same in the machine's states.
        """
        labels, tree = self._histories[machine].labels, self._histories[machine].tree

        def history(node: int) -> tuple[Label, ...]:
            return tuple(labels[code] for code in tree.history(node))

        return tuple(
            MergeEvent(
                history(event.blue),
                None if event.red is None else history(event.red),
                event.score,
                event.folded,
            )
            for event in self._automata[machine].events
        )

    def trivial_labels(self) -> list[str]:
        """Say which labels were taken to change nothing, one line unless the machines differ."""
        taken = {
            name: ", ".join(
                label_text(one.label) for one in verdicts if one.verdict is Verdict.TRIVIAL
            )
            for name, verdicts in self.trivial.items()
        }
        if len(set(taken.values())) == 1:
            names = set(taken.values()) - {""}
            return [f"taken to change nothing: {name}" for name in names]
        return [
            f"taken to change nothing in the {machine} machine: {names or 'none'}"
            for machine, names in taken.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as `resolvent infer --json` prints them."""
        return {
            "tm_states": self.transition.states,
            "rm_states": self.reward.states,
            "traces": self.traces,
            "steps": self.steps,
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "prefix_tree_nodes": {
                "transition": self.transition.prefix_tree_nodes,
                "reward": self.reward.prefix_tree_nodes,
            },
            "merges": {"transition": self.transition.merges, "reward": self.reward.merges},
            "folds_tried": {"transition": self.transition.attempts, "reward": self.reward.attempts},
            "constant_outputs": {
                "transition": self.transition.constant_outputs,
                "reward": self.reward.constant_outputs,
            },
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
            "explains_all_traces": True,
            "options": {**self.options.stored(), "engine": self.options.engine},
        }

    def __str__(self) -> str:
        lines = [f"{self.traces} traces, {self.steps} steps"]
        for name, one in (("Transition Machine", self.transition), ("Reward Machine", self.reward)):
            lines.append(
                f"{name:<19} {amount(one.states, 'state')}, from {one.prefix_tree_nodes} "
                f"prefix-tree nodes by {amount(one.merges, 'merge')}, in {one.seconds:.3f} s"
            )
        lines += [f"{'labels':<19} {line}" for line in self.trivial_labels()]
        lines += [
            f"{f'{name} machine':<19} {certificate}"
            for name, certificate in self.certificates.items()
        ]
        lines.append(f"{'learned from':<19} {self.refinement}")
        lines.append(f"{'termination':<19} {self.machines.termination}")
        lines.append(f"{'total':<19} {self.seconds['total']:.3f} s")
        return "\n".join(lines)

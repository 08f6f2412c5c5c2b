"""What `infer` gives back: the machines, and how they were found."""

from dataclasses import asdict, dataclass, field
from typing import Any

from resolvent.machines import MachinePair
from resolvent.machines.drawing import count
from resolvent.merging import Automaton
from resolvent.samples import Histories, LabelTiming
from resolvent.traces import Label, label_text


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

    strategy: str = "edsm"
    timing: LabelTiming = LabelTiming.CURRENT
    trivial: tuple[Label | str, ...] = ()
    supplement: bool = True
    remove_redundant: bool = True
    remove_trivial: bool = True
    reward_digits: int | None = None
    engine: str = "native"
    time_limit: float | None = None
    refine: bool | None = None

    def stored(self) -> dict[str, Any]:
        """Return the options that shape the machines, as JSON values."""
        return {
            "strategy": self.strategy,
            "timing": str(self.timing),
            "trivial": sorted(
                name if isinstance(name, str) else label_text(frozenset(name))
                for name in self.trivial
            ),
            "supplement": self.supplement,
            "remove_redundant": self.remove_redundant,
            "remove_trivial": self.remove_trivial,
            "reward_digits": self.reward_digits,
        }


@dataclass(frozen=True)
class Refinement:
    """How machines were learned from few traces, and checked on all.

    In each round machines were learned and all traces replayed through them; the
    last round found nothing that they do not explain.
    """

    rounds: int
    traces: int
    steps: int

    def __str__(self) -> str:
        return (
            f"learned from {count(self.traces, 'trace')} ({count(self.steps, 'step')}) "
            f"in {count(self.rounds, 'round')}; explains every trace, by replay"
        )


@dataclass(frozen=True)
class InferenceResult:
    """The machines, and how they were found."""

    machines: MachinePair
    options: Options
    traces: int
    steps: int
    transition: MachineStatistics
    reward: MachineStatistics
    refinement: Refinement | None
    seconds: dict[str, float]
    _histories: Histories = field(repr=False)
    _automata: dict[str, Automaton] = field(repr=False)

    def events(self, machine: str) -> tuple[MergeEvent, ...]:
        """Return the log of merges and promotions for "transition" or "reward"."""
        labels, tree = self._histories.labels, self._histories.tree

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
            "terminal_situations": len(self.machines.termination.ends),
            "ambiguous_terminations": len(self.machines.termination.ambiguous),
            "refinement": None if self.refinement is None else asdict(self.refinement),
            "options": {**self.options.stored(), "engine": self.options.engine},
        }

    def __str__(self) -> str:
        lines = [f"{self.traces} traces, {self.steps} steps"]
        for name, one in (("Transition Machine", self.transition), ("Reward Machine", self.reward)):
            lines.append(
                f"{name:<19} {count(one.states, 'state')}, from {one.prefix_tree_nodes} "
                f"prefix-tree nodes by {count(one.merges, 'merge')}, in {one.seconds:.3f} s"
            )
        if self.refinement is not None:
            lines.append(f"{'refinement':<19} {self.refinement}")
        lines.append(f"{'termination':<19} {self.machines.termination}")
        lines.append(f"{'total':<19} {self.seconds['total']:.3f} s")
        return "\n".join(lines)

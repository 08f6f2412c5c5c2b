"""The result of `solve`: the plan, its machines and traces, and the reason to stop."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from resolvent._util import html as notebook
from resolvent._util.files import atomic_folder, decode_json, recover
from resolvent._util.records import ByValue, builtin
from resolvent._util.text import amount, listed, short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError
from resolvent.exploration.checkpoint import Checkpoint
from resolvent.exploration.environment import EnvironmentId
from resolvent.exploration.stopping import Guarantee
from resolvent.machines import Machines, load
from resolvent.planning.plan import Plan, plan
from resolvent.rl.paid import Paid
from resolvent.rl.run_plan import BoundViolation
from resolvent.traces import TraceSet, read_traces

FORMAT, VERSION = "resolvent-solved", 1
MACHINES, TRACES, POLICY, ABOUT = "machines.json", "traces.jsonl", "policy.json", "solved.json"

CLAIMS: Final = ("optimal", "target", "equal rewards", "unreachable")  # nothing is left to try
ROUNDING: Final = 1e-9  # share of a value below which a difference is rounding


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The progress after some step, and the purpose of the test at that time."""

    steps: int
    episodes: int
    states: dict[str, int]
    value: float
    bound: float | None
    after: str


class About(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The content of a folder beside machines, traces and the policy."""

    format: str
    version: int
    seed: int
    gamma: float
    reward_range: tuple[float, float] | None
    guarantee: dict[str, Any]
    history: tuple[Round, ...]
    point: Checkpoint | None
    ends: tuple[int, ...]
    places: tuple[int, ...] = ()
    world: EnvironmentId | None = None
    paid: Paid | None = None


# The fields of a solution that a folder has as they are.
_STORED = "seed", "reward_range", "history", "point", "ends", "places", "world", "paid"


@dataclass(frozen=True, eq=False)
class Solution(ByValue):
    """The best plan found in an environment, its machines and traces, and why exploration stopped.

    Attributes:
        plan: The action in every augmented state, and its value.
        machines: The machines that explain all traces.
        traces: Everything recorded.
        history: The progress, round by round.
        guarantee: Why it stopped, with the numbers.
        seed: The seed of all episodes.
        point: The checkpoint from which it can be resumed.
        ends: The kind of end of each closed episode, by the numbers of `exploration.buffer`.
        places: The number of each trace's environment, if there are several.
        world: The identity of the environment; None if it is not known.
        paid: What the plan returned in fresh episodes, discounted; None if it was not played.
    """

    plan: Plan
    machines: Machines
    traces: TraceSet
    history: tuple[Round, ...]
    guarantee: Guarantee
    seed: int = 0
    reward_range: tuple[float, float] | None = None
    point: Checkpoint | None = field(default=None, repr=False)
    ends: tuple[int, ...] = field(default=(), repr=False)
    places: tuple[int, ...] = field(default=(), repr=False)
    world: EnvironmentId | None = field(default=None, repr=False)
    paid: Paid | None = None

    @property
    def steps(self) -> int:
        """Number of steps learned from."""
        return self.traces.steps

    @property
    def value(self) -> float:
        """The value of the plan by the model, averaged over the starts; see `paid`."""
        return self.plan.value

    @property
    def bound(self) -> float:
        """The largest possible improvement over the plan, averaged over the starts.

        It is infinite if all rewards are equal.
        """
        return self.plan.bound if self.guarantee.gap < float("inf") else float("inf")

    @property
    def optimal(self) -> bool:
        """Whether no plan is better, under the conditions in `why_stopped`."""
        return self.guarantee.reason == "optimal"

    @property
    def why_stopped(self) -> str:
        """Why exploration stopped, in words."""
        return str(self.guarantee)

    @property
    def states(self) -> dict[str, int]:
        """Number of states of each machine."""
        return {kind: machine.states for kind, machine in self.machines.items()}

    @property
    def doubt(self) -> str | None:
        """Say in a sentence that the plan was paid less than the model promises, if it was."""
        tolerance = ROUNDING * max(abs(self.value), 1.0)
        if self.paid is None or self.value <= self.paid.high + tolerance:
            return None
        return f"the model promises {self.value:.4g}, which is more than was paid: count on that"

    def contradicted(self, violations: Sequence[BoundViolation]) -> "Solution":
        """Return the solution without its claim if episodes of the plan violate its bounds."""
        if not violations or self.guarantee.reason not in CLAIMS:
            return self
        guarantee = replace(self.guarantee, reason="contradicted", contradiction=str(violations[0]))
        return replace(self, guarantee=guarantee)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as `resolvent solve --json` prints them."""
        return {
            "steps": self.steps,
            "episodes": len(self.traces),
            "paid": None if self.paid is None else self.paid.as_dict(),
            "value": builtin(self.value),
            "bound": builtin(self.bound),
            "optimal": self.optimal,
            "why_stopped": self.why_stopped,
            "states": self.states,
            "guarantee": self.guarantee.as_dict(),
            "gamma": self.plan.gamma,
            "seed": self.seed,
            "rounds": len(self.history),
        }

    def save(self, folder: str | Path) -> None:
        """Write machines, traces, the policy and the rest to a folder, atomically."""
        check_arguments(Solution.save, {"folder": folder})
        with atomic_folder(Path(folder), (MACHINES, TRACES, POLICY, ABOUT)) as partial:
            self.machines.save(partial / MACHINES)
            self.traces.save(partial / TRACES)
            self.plan.save(partial / POLICY)
            about = About(
                format=FORMAT,
                version=VERSION,
                gamma=self.plan.gamma,
                guarantee=self.guarantee.as_dict(),
                **{name: getattr(self, name) for name in _STORED},
            )
            content = msgspec.json.format(msgspec.json.encode(about), indent=1)
            (partial / ABOUT).write_bytes(content + b"\n")

    @classmethod
    def load(cls, folder: str | Path) -> "Solution":
        """Read what `save` wrote."""
        check_arguments(Solution.load, {"folder": folder})
        folder = Path(folder)
        path = folder / ABOUT
        try:
            recover(folder)
            about = decode_json(path.read_bytes(), About)
            known_gap = {"gap": float("inf")} if about.guarantee.get("gap") is None else {}
            guarantee = msgspec.convert(about.guarantee | known_gap, Guarantee)
        except FileNotFoundError:
            raise ModelError(f"{path}: no such file; pass a folder that `solve` wrote") from None
        except OSError as error:
            raise ModelError(f"{short(str(path))} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise ModelError(
                f"{path}: not what Resolvent wrote: {error}; remove the folder or name another"
            ) from error
        if (about.format, about.version) != (FORMAT, VERSION):
            raise ModelError(
                f"{path}: this is {about.format} {about.version}, not {FORMAT} {VERSION}"
            )
        machines, traces = load(folder / MACHINES), read_traces(folder / TRACES)
        return cls(
            plan(machines, traces, gamma=about.gamma, reward_range=about.reward_range),
            machines,
            traces,
            guarantee=guarantee,
            **{name: getattr(about, name) for name in _STORED},
        )

    def __repr__(self) -> str:
        steps = amount(self.steps, "step")
        value = f"value {self.value:.4g}" if self.paid is None else f"paid {self.paid.mean:.4g}"
        return f"Solution({steps}, {value}, {self.guarantee.reason})"

    def __str__(self) -> str:
        return "\n".join(f"{name:<12} {text}" for name, text in self._figures())

    def _repr_html_(self) -> str:
        """Show the figures and the history in a notebook."""
        rows = (
            [
                f"{record.steps:,}",
                listed([f"{n} {kind}" for kind, n in record.states.items()]),
                f"{record.value:.4g}",
                "" if record.bound is None else f"{record.bound:.4g}",
                record.after,
            ]
            for record in self.history
        )
        header = ["steps", "states", "value", "bound", "test"]
        return notebook.panel(
            "solution",
            notebook.figures(self._figures()),
            notebook.table(header, rows, len(self.history)),
        )

    def _figures(self) -> list[tuple[str, str]]:
        states = listed([f"{kind} {size}" for kind, size in self.states.items()])
        value = f"{self.value:.4g} from the starts, discounted by {self.plan.gamma:g}"
        return [
            ("paid", "not known: not played" if self.paid is None else f"{self.paid}"),
            ("value", f"{value}; {self.doubt}" if self.doubt else value),
            ("bound", f"{self.bound:.4g}" if self.bound < float("inf") else "not known"),
            ("states", states),
            ("steps", f"{self.steps:,} in {amount(len(self.traces), 'episode')}"),
            ("stopped", self.why_stopped),
        ]

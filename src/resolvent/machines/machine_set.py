"""Sets of machines over the same labels: the memory that makes the environment Markovian."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from resolvent._util.files import atomic_write
from resolvent._util.parallel import Workers
from resolvent._util.records import ByMachine
from resolvent._util.text import listed, short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError
from resolvent.machines.augmented_state import StateUncertainty, Termination
from resolvent.machines.machine import Machine, RewardMachine, TransitionMachine
from resolvent.machines.memory import UNSEEN, State
from resolvent.machines.score import Score
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces.source import TraceDataset
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet

if TYPE_CHECKING:
    from resolvent.evaluation.experiments import Experiment

_PAIR = ("transition", "reward")


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of machines: version, traces and options.

    Nothing here depends on the clock, so the same traces and options give the same file.
    """

    version: str
    traces: int
    steps: int
    traces_sha256: str
    options: dict[str, Any]

    def is_of(self, traces: TraceSet) -> bool:
        """Return whether machines were inferred from these traces, as the machines read them."""
        is_same_size = (len(traces), traces.steps) == (self.traces, self.steps)
        return is_same_size and self.traces_sha256 == traces.digest


@dataclass(frozen=True, repr=False)
class Machines(ByMachine[Machine]):
    """Any number of machines that read labels in the same way, by name.

    The order is fixed: the Transition Machine, the Reward Machine, then the others by name.
    `preprocessor` is the preprocessing of raw steps; `state_uncertainty` is set if
    states are uncertain: labels are noisy or initial states hidden.

    >>> from resolvent.worlds import House
    >>> machines = House().machines()
    >>> list(machines), machines["reward"].states
    (['transition', 'reward'], 2)

    Raises:
        ModelError: when there is no machine, two predict the same, or one is
            supplemented with the states of a Transition Machine that is not there.
    """

    machines: tuple[Machine, ...]
    timing: LabelTiming = LabelTiming.CURRENT
    termination: Termination = field(default_factory=Termination)
    provenance: Provenance | None = None
    preprocessor: Preprocessor = field(default_factory=Preprocessor)
    state_uncertainty: StateUncertainty = field(default_factory=StateUncertainty)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.machines, key=lambda machine: output_order(machine.predicts)))
        object.__setattr__(self, "machines", ordered)
        if not ordered:
            raise ModelError("there are no machines: give at least one")
        if len(self._by_name) < len(ordered):
            raise ModelError("two machines predict the same column: give one machine for each")
        for machine in ordered:
            if machine.supplemented:
                _check_supplemented(machine, self._by_name.get("transition"))
        for step in (*self.termination.ends, *self.termination.ambiguous):
            if len(step) != len(ordered) + 2:
                raise ModelError(
                    f"termination has steps of {len(step)} values, but a step is an observation, "
                    f"the states of {len(ordered)} machines and an action"
                )

    @property
    def transition(self) -> TransitionMachine:
        """The machine that predicts the next observation."""
        return cast("TransitionMachine", self._required("transition"))

    @property
    def reward(self) -> RewardMachine:
        """The machine that predicts the reward."""
        return cast("RewardMachine", self._required("reward"))

    def as_pair(self) -> "MachinePair":
        """Return these machines as a pair.

        Raises:
            ModelError: when they are not exactly a Transition and a Reward Machine.
        """
        if set(self) != set(_PAIR):
            raise ModelError(
                f"exactly a Transition Machine and a Reward Machine are needed: there is "
                f"{listed(self)}"
            )
        return MachinePair(self.transition, self.reward, **self._settings)

    def guessing(self) -> Self:
        """Return these machines with a guess wherever something is `UNSEEN` in a state.

        Use it if any output is better than none; see `Machine.guessing`.

        >>> import gymnasium as gym, resolvent as rs
        >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=30, seed=0)
        >>> fresh = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=1)
        >>> machines = rs.infer(traces[:4]).machines
        >>> machines.score(fresh)["transition"].unseen
        18
        >>> machines.guessing().score(fresh)["transition"].unseen
        0
        """
        return self.replacing(*(machine.guessing() for machine in self.machines))

    def predict_all(
        self,
        observation: Symbol,
        action: Symbol,
        states: Mapping[str, State],
        *,
        generalized: bool = True,
    ) -> dict[str, Any]:
        """Return the output of each machine by name; `UNSEEN` where there is none.

        `states` holds the state of each machine. With `generalized=False`, outputs that were not
        observed in these states are `UNSEEN`, too.

        >>> from resolvent.worlds import House
        >>> machines = House().machines()
        >>> machines.predict_all("corridor", "up", {"transition": 1, "reward": 0})
        {'transition': 'cyanroom', 'reward': 0.0}
        """
        if not isinstance(states, Mapping) or not isinstance(generalized, bool):
            check_arguments(Machines.predict_all, locals())
        for name in self:
            if name not in states:
                raise ModelError(
                    f"the state of the {short(name)} machine is missing: give one, or UNSEEN"
                )
        predicted: dict[str, Any] = {}
        for name, machine in self.items():
            symbol = observation
            if machine.supplemented:
                if states["transition"] is UNSEEN:
                    predicted[name] = UNSEEN
                    continue
                symbol = (observation, states["transition"])
            predicted[name] = machine.output(states[name], symbol, action, generalized=generalized)
        return predicted

    def score(self, traces: TraceSet | TraceDataset, on: str | Workers = "threads") -> Score:
        """Return the number of steps that each machine predicts right, wrong, or not at all.

        A scanned folder is replayed file by file. See `resolvent.replay.score`.
        """
        from resolvent.replay.score import score

        return score(self, traces, on)

    def difference(self, other: "Machines") -> "Experiment | None":
        """Return the shortest experiment on which other machines predict otherwise, or None.

        The experiment decides between two sets of machines that explain the same traces, such as
        `result.machines` and `result.machines.replacing(certificate.alternative)`.
        """
        from resolvent.evaluation.experiments import distinguishing_sequence

        return distinguishing_sequence(self, other)

    def save(self, path: str | Path) -> None:
        """Write the machines to a JSON file, whole or not at all."""
        from resolvent.machines.io.json import encode

        check_arguments(Machines.save, locals())
        with atomic_write(path) as file:
            file.write(encode(self))

    def replacing(self, *machines: Machine, **fields: Any) -> Self:
        """Return a copy with some of the machines or fields replaced.

        Each machine takes the place of the one with its name; fields are `timing`,
        `termination`, `provenance`, `preprocessor` and `state_uncertainty`.

        >>> from resolvent.worlds import House
        >>> House().machines().replacing(provenance=None).provenance is None
        True
        """
        by_name = {machine.name: machine for machine in machines}
        for name in by_name:
            self._required(name)
        together = {**self._by_name, **by_name}.values()
        return cast("Self", machines_of(together, **{**self._settings, **fields}))

    def __hash__(self) -> int:
        return hash((self.machines, self.timing))

    def __repr__(self) -> str:
        machines = ", ".join(f"{short(name)}={machine!r}" for name, machine in self.items())
        return f"{type(self).__name__}({machines}, timing={self.timing!r})"

    def __str__(self) -> str:
        return "\n".join(map(str, self.values()))

    def _repr_html_(self) -> str | None:
        """Draw the machines for a notebook, which shows text where this returns None."""
        from resolvent.viz.svg import html_of_machines

        return html_of_machines(self.values())

    @cached_property
    def _by_name(self) -> dict[str, Machine]:
        return {machine.name: machine for machine in self.machines}

    @property
    def _settings(self) -> dict[str, Any]:
        """All fields but the machines."""
        return {field.name: getattr(self, field.name) for field in fields(Machines)[1:]}


def _check_supplemented(machine: Machine, transition: Machine | None) -> None:
    """Raise `ModelError` unless all observations come with a state of the Transition Machine."""
    if transition is None:
        raise ModelError(
            f"the {short(machine.name)} machine is supplemented with states of a Transition "
            f"Machine, which is missing: give that one, too, or infer with supplement=False"
        )
    states = range(transition.states)
    for symbol in machine.observations:
        is_pair = isinstance(symbol, tuple) and len(symbol) == 2
        if not (is_pair and type(symbol[1]) is int and symbol[1] in states):  # type: ignore[index]
            raise ModelError(
                f"the {short(machine.name)} machine is supplemented, but {short(repr(symbol))} is "
                f"no observation with a state of the Transition Machine, 0 to {len(states) - 1}"
            )


class MachinePair(Machines):
    """A Transition Machine and a Reward Machine that read labels in the same way.

    `settings` are the other fields of `Machines`.
    """

    def __init__(
        self,
        transition: TransitionMachine,
        reward: RewardMachine,
        timing: LabelTiming = LabelTiming.CURRENT,
        **settings: Any,
    ) -> None:
        super().__init__((transition, reward), timing, **settings)


def machines_of(
    machines: Iterable[Machine], timing: LabelTiming = LabelTiming.CURRENT, **settings: Any
) -> Machines:
    """Return machines as a set: a `MachinePair` if they are a Transition and a Reward Machine.

    >>> from resolvent.worlds import House
    >>> type(machines_of(House().machines().values())).__name__
    'MachinePair'
    """
    collection = Machines(tuple(machines), timing, **settings)
    return collection.as_pair() if set(collection) == set(_PAIR) else collection


def output_order(predicts: str) -> tuple[int, str]:
    """Return the sort key of a column, by which a set orders the machines that predict them."""
    first = ("observation", "reward")
    return (first.index(predicts) if predicts in first else len(first), predicts)

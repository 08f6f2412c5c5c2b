"""Machines over the same labels together: the memory that makes the world Markovian."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from resolvent._util.parallel import Workers
from resolvent._util.text import listed, short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError
from resolvent.machines.machine import Machine, RewardMachine, TransitionMachine
from resolvent.machines.score import Score
from resolvent.machines.termination import Termination
from resolvent.machines.uncertainty import StateUncertainty
from resolvent.machines.unseen import UNSEEN, State
from resolvent.samples import LabelTiming
from resolvent.senses import Senses
from resolvent.traces.scan.dataset import TraceDataset
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet

if TYPE_CHECKING:
    from resolvent.evaluation.experiments import Experiment

_FIRST = ("transition", "reward")


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where machines came from.

    Nothing here depends on the clock, so that the same traces and options give
    the same file.
    """

    version: str
    traces: int
    steps: int
    traces_sha256: str
    options: dict[str, Any]

    def is_of(self, traces: TraceSet) -> bool:
        """Whether machines were inferred from these traces, as the machines read them.

        Files may hold the digest of before, which went through all codes in sequence.
        """
        if (len(traces), traces.steps) != (self.traces, self.steps):
            return False
        made = self.traces_sha256
        return traces.digest == made or traces.digest_in_sequence == made


@dataclass(frozen=True, eq=False, repr=False)
class Machines(Mapping[str, Machine]):
    """Any number of machines that read labels in the same way, each by its kind.

    They come in a fixed order: the Transition Machine, the Reward Machine, then the
    others by name. `senses` say what is done to raw steps before the machines read them;
    `doubt` says why states are not certain, where labels lie or starts are hidden.

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
    senses: Senses = field(default_factory=Senses)
    doubt: StateUncertainty = field(default_factory=StateUncertainty)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.machines, key=lambda one: output_order(one.predicts)))
        object.__setattr__(self, "machines", ordered)
        if not ordered:
            raise ModelError("there are no machines: give at least one")
        if len(self._by_kind) < len(ordered):
            raise ModelError("two machines predict the same column: give one machine for each")
        alone = [one.kind for one in ordered if one.supplemented]
        if alone and "transition" not in self:
            raise ModelError(
                f"the {short(alone[0])} machine is supplemented with states of a Transition "
                f"Machine, which is missing: give that one, too, or infer with supplement=False"
            )
        for one in ordered:
            if one.supplemented:
                _check_supplemented(one, self._by_kind["transition"].states)
        width = len(ordered) + 2
        for situation in (*self.termination.ends, *self.termination.ambiguous):
            if len(situation) != width:
                raise ModelError(
                    f"termination tells of {len(situation)} things, but a situation is an "
                    f"observation, the states of {len(ordered)} machines and an action"
                )

    def __getitem__(self, kind: str) -> Machine:
        return self._by_kind[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)

    @property
    def transition(self) -> TransitionMachine:
        """The machine that predicts the next observation."""
        return cast("TransitionMachine", self._required("transition"))

    @property
    def reward(self) -> RewardMachine:
        """The machine that predicts the reward."""
        return cast("RewardMachine", self._required("reward"))

    def as_pair(self) -> "MachinePair":
        """Return these machines as the pair they are.

        Raises:
            ModelError: when they are others than Transition and Reward Machine.
        """
        if set(self) != set(_FIRST):
            raise ModelError(
                f"this takes a Transition Machine and a Reward Machine and no others: here are "
                f"{listed(self)}"
            )
        return MachinePair(
            self.transition,
            self.reward,
            self.timing,
            self.termination,
            self.provenance,
            self.senses,
            self.doubt,
        )

    def guessing(self) -> Self:
        """Return these machines with a guess wherever something is `UNSEEN` in a state.

        For predictions where any answer is better than none: of fresh traces more steps are
        right, and none is unseen but what no state was ever shown. `Machine.guessing` says how.

        >>> import gymnasium as gym, resolvent as rs
        >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=30, seed=0)
        >>> fresh = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=1)
        >>> machines = rs.infer(traces[:4]).machines
        >>> machines.score(fresh)["transition"].unseen
        18
        >>> machines.guessing().score(fresh)["transition"].unseen
        0
        """
        return self.replacing(*(one.guessing() for one in self.machines))

    def predict_all(
        self,
        observation: Symbol,
        action: Symbol,
        states: Mapping[str, State],
        *,
        assumed: bool = True,
    ) -> dict[str, Any]:
        """Return what each machine predicts, by kind; `UNSEEN` where it was never shown.

        `states` holds the state of each machine. With `assumed=False`, what was not
        witnessed in these states is `UNSEEN`, too.

        >>> from resolvent.worlds import House
        >>> machines = House().machines()
        >>> machines.predict_all("corridor", "up", {"transition": 1, "reward": 0})
        {'transition': 'cyanroom', 'reward': 0.0}
        """
        if not isinstance(states, Mapping) or not isinstance(assumed, bool):
            check_arguments(Machines.predict_all, locals())
        for kind in self:
            if kind not in states:
                raise ModelError(
                    f"the state of the {short(kind)} machine is missing: give one, or UNSEEN"
                )
        predicted = {}
        for kind, machine in self.items():
            seen = observation
            if machine.supplemented:
                if states["transition"] is UNSEEN:
                    predicted[kind] = UNSEEN
                    continue
                seen = (observation, states["transition"])
            predicted[kind] = machine.output(states[kind], seen, action, assumed=assumed)
        return predicted

    def score(self, traces: TraceSet | TraceDataset, on: str | Workers = "threads") -> Score:
        """Replay traces through all machines: how many steps are right, wrong, unseen.

        The short way to `resolvent.replay.score`; a scanned folder is gone through file by
        file.
        """
        from resolvent.replay import score

        return score(self, traces, on)

    def difference(self, other: "Machines") -> "Experiment | None":
        """Return the shortest experiment on which others answer differently, if there is one.

        Two sets of machines may both explain all traces: this says what the world has to be
        asked. `result.machines.replacing(certificate.alternative)` makes a set of a machine that
        an exact inference has found beside its own.
        """
        from resolvent.evaluation.experiments import distinguishing_sequence

        return distinguishing_sequence(self, other)

    def save(self, path: str | Path) -> None:
        """Write the machines to a JSON file, whole or not at all."""
        from resolvent.machines.files.storage import save

        save(self, path)

    def replacing(self, *machines: Machine, **fields: Any) -> Self:
        """Return a copy with some of the machines or fields replaced.

        Each machine takes the place of the one of its kind; fields are `timing`,
        `termination`, `provenance`, `senses` and `doubt`.

        >>> from resolvent.worlds import House
        >>> House().machines().replacing(timing=LabelTiming.LAGGED).timing
        <LabelTiming.LAGGED: 'lagged'>
        """
        given = {one.kind: one for one in machines}
        for kind in given:
            self._required(kind)
        kept = {
            "timing": self.timing,
            "termination": self.termination,
            "provenance": self.provenance,
            "senses": self.senses,
            "doubt": self.doubt,
        }
        return self._made_of({**self._by_kind, **given}, **{**kept, **fields})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Machines):
            return NotImplemented
        return (
            self.machines == other.machines
            and self.timing is other.timing
            and self.termination == other.termination
            and self.provenance == other.provenance
            and self.senses == other.senses
            and self.doubt == other.doubt
        )

    def __hash__(self) -> int:
        return hash((self.machines, self.timing))

    def __repr__(self) -> str:
        machines = ", ".join(f"{short(kind)}={machine!r}" for kind, machine in self.items())
        return f"{type(self).__name__}({machines}, timing={self.timing!r})"

    def __str__(self) -> str:
        return "\n".join(map(str, self.values()))

    def _repr_html_(self) -> str | None:
        """Draw the machines for a notebook, which shows text where this gives None."""
        from resolvent.machines.picture import html_of_machines

        return html_of_machines(self.values())

    @cached_property
    def _by_kind(self) -> dict[str, Machine]:
        return {machine.kind: machine for machine in self.machines}

    def _required(self, kind: str) -> Machine:
        if kind not in self:
            raise ModelError(f"there is no {short(kind)} machine here: there is {listed(self)}")
        return self[kind]

    def _made_of(self, machines: Mapping[str, Machine], **fields: Any) -> Self:
        return type(self)(tuple(machines.values()), **fields)


def _check_supplemented(machine: Machine, states: int) -> None:
    """Raise `ModelError` unless all observations come with a state of the Transition Machine."""
    if _all_with_states(machine.observations, states):
        return
    for seen in machine.observations:
        if not (
            isinstance(seen, tuple)
            and len(seen) == 2
            and type(seen[1]) is int
            and 0 <= seen[1] < states
        ):
            raise ModelError(
                f"the {short(machine.kind)} machine is supplemented, but {short(repr(seen))} is no "
                f"observation with a state of the Transition Machine, 0 to {states - 1}"
            )


def _all_with_states(observations: Iterable[Any], states: int) -> bool:
    """Whether all are plain pairs with a state; there are thousands, and often they are checked."""
    seen = list(observations)
    if set(map(type, seen)) != {tuple} or set(map(len, seen)) != {2}:
        return False
    beside = list(map(itemgetter(1), seen))
    return set(map(type, beside)) == {int} and min(beside) >= 0 and max(beside) < states


class MachinePair(Machines):
    """A Transition Machine and a Reward Machine that read labels in the same way."""

    def __init__(
        self,
        transition: TransitionMachine,
        reward: RewardMachine,
        timing: LabelTiming = LabelTiming.CURRENT,
        termination: Termination | None = None,
        provenance: Provenance | None = None,
        senses: Senses | None = None,
        doubt: StateUncertainty | None = None,
    ) -> None:
        super().__init__(
            (transition, reward),
            timing,
            termination or Termination(),
            provenance,
            senses or Senses(),
            doubt or StateUncertainty(),
        )

    def predict(
        self, observation: Symbol, action: Symbol, transition_state: State, reward_state: State
    ) -> tuple[Any, Any]:
        """Return the next observation and the reward, each `UNSEEN` where never shown."""
        states = {"transition": transition_state, "reward": reward_state}
        predicted = self.predict_all(observation, action, states)
        return predicted["transition"], predicted["reward"]

    def as_pair(self) -> "MachinePair":
        """Return the pair itself."""
        return self

    def _made_of(self, machines: Mapping[str, Machine], **fields: Any) -> Self:
        both: dict[str, Any] = dict(machines)
        return type(self)(**both, **fields)


def machines_of(
    machines: Iterable[Machine],
    timing: LabelTiming = LabelTiming.CURRENT,
    termination: Termination | None = None,
    provenance: Provenance | None = None,
    senses: Senses | None = None,
) -> Machines:
    """Return machines as a set: a `MachinePair` if they are a Transition and a Reward Machine.

    >>> from resolvent.worlds import House
    >>> type(machines_of(House().machines().values())).__name__
    'MachinePair'
    """
    found = Machines(
        tuple(machines), timing, termination or Termination(), provenance, senses or Senses()
    )
    return found.as_pair() if set(found) == set(_FIRST) else found


def output_order(predicts: str) -> tuple[int, str]:
    """Sort key for columns, in the order in which a set holds the machines that predict them."""
    first = ("observation", "reward")
    return (first.index(predicts) if predicts in first else len(first), predicts)

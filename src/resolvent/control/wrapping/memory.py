"""The memory of a live episode: labels, one after the other → the states of all machines."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from resolvent.arguments import shown
from resolvent.errors import ModelError, OptionError
from resolvent.machines import Machine, Machines
from resolvent.samples import LabelReader
from resolvent.traces.symbols import Label, as_label, label_text
from resolvent.wording import listed, short

OnUnseen: TypeAlias = Literal["stay", "raise"]
"""What to do about a label that a machine was never shown in its state."""


class Memory:
    """The states of all machines of a set in a live episode.

    Call `reset` with the label of an episode's first observation and `step` with
    that of each observation a step leads to. `states` are then those in which the
    machines answer for that observation, by the set's own label timing.

    A label that a machine was never shown in its state leaves that state as it
    is and is counted in `unseen`, or raises a `ModelError` if `on_unseen` is
    "raise". After an episode has terminated nobody asks the machines anything,
    so no trace shows them its last label: say `terminated` with that one, and it
    is neither counted nor raised.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> memory = Memory(rs.infer(traces).machines)
    >>> memory.reset(None)
    >>> memory.step({"key"})
    >>> memory.states, memory.transition_state, memory.unseen
    ({'transition': 1, 'reward': 0}, 1, 0)
    """

    def __init__(self, machines: Machines, *, on_unseen: OnUnseen = "stay") -> None:
        check_on_unseen(on_unseen)
        self.machines = machines
        self.values: tuple[int, ...] = (0,) * len(machines)
        """The states in the order of the machines."""
        self.unseen = 0
        self._raises = on_unseen == "raise"
        self._reader = LabelReader(machines.timing)
        self._moves = {
            label: tuple(next_states(machine, label) for machine in machines.values())
            for label in known_labels(machines)
        }
        self._nowhere = tuple([-1] * machine.states for machine in machines.values())
        # Where each label led from all states together: as few as are met, and found at once.
        self._led: dict[tuple[Label, tuple[int, ...]], tuple[int, ...]] = {}

    @property
    def states(self) -> dict[str, int]:
        """The state of each machine, by its kind."""
        return dict(zip(self.machines, self.values, strict=True))

    @property
    def transition_state(self) -> int:
        """The state of the Transition Machine; `ModelError` if there is none."""
        return self.values[place_of(self.machines, "transition")]

    @property
    def reward_state(self) -> int:
        """The state of the Reward Machine; `ModelError` if there is none."""
        return self.values[place_of(self.machines, "reward")]

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.values = (0,) * len(self.values)
        self.unseen = 0
        read = self._reader.reset(as_label(label))
        if read is not None and not self.machines.doubt.starts:
            self._read(read, False)

    def step(self, label: Any, terminated: bool = False) -> None:
        """Take the label of the observation that a step led to."""
        if type(label) is not frozenset:
            label = as_label(label)
        self._read(self._reader.step(label), terminated)

    def _read(self, label: Label, terminated: bool) -> None:
        following = self._led.get((label, self.values))
        if following is None:
            following = self._followed(label, terminated)
        self.values = following

    def _followed(self, label: Label, terminated: bool) -> tuple[int, ...]:
        """Return where a label leads all machines, and count it if one was never shown it."""
        moves = self._moves.get(label, self._nowhere)
        following = tuple(map(list.__getitem__, moves, self.values))
        if min(following) >= 0:
            self._led[label, self.values] = following
            return following
        if not terminated:
            if self._raises:
                raise unseen_error(self.machines, label, self.values)
            self.unseen += 1
        both = zip(self.values, following, strict=True)
        return tuple(before if after < 0 else after for before, after in both)


def check_on_unseen(on_unseen: str) -> None:
    """Refuse anything but the known ways to treat an unseen label."""
    if not isinstance(on_unseen, str) or on_unseen not in get_args(OnUnseen):
        raise OptionError(f"on_unseen={shown(on_unseen)}: use 'stay' or 'raise'")


def place_of(machines: Machines, kind: str) -> int:
    """Return which of the machines is of a kind, as a place in their order."""
    if kind not in machines:
        raise ModelError(
            f"there is no {short(kind)} machine here, so that it has no state: there is "
            f"{listed(machines)}"
        )
    return list(machines).index(kind)


def known_labels(machines: Machines) -> list[Label]:
    """Return the labels that any of the machines knows, each once."""
    return list(dict.fromkeys(label for one in machines.values() for label in one.labels))


def next_states(machine: Machine, label: Label) -> list[int]:
    """Return where a label leads from each state; −1 where that was never seen."""
    code = machine.labels.get(label)
    if code is None:
        return [-1] * machine.states
    column: list[int] = machine.transitions[:, code].tolist()
    return column


def unseen_error(machines: Machines, label: Label, states: Sequence[int]) -> ModelError:
    """Return an error that says which label was never seen where, and what to do."""
    never = [
        f"state {state} of the {short(kind)} machine"
        for (kind, machine), state in zip(machines.items(), states, strict=True)
        if next_states(machine, label)[state] < 0
    ]
    known = any(label in machine.labels for machine in machines.values())
    return ModelError(
        f"label '{label_text(label)}' was never seen "
        f"{'in ' + ' and '.join(never) if known else 'at all'}: collect traces that show it "
        'there and infer again, or go on with on_unseen="stay"'
    )

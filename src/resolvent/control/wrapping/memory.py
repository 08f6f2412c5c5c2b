"""The memory of a live episode: labels, one after the other → the states of both machines."""

from typing import Any, Literal, TypeAlias, get_args

from resolvent.errors import ModelError, OptionError
from resolvent.machines import Machine, MachinePair
from resolvent.samples import LabelReader
from resolvent.traces.symbols import Label, as_label, label_text

OnUnseen: TypeAlias = Literal["stay", "raise"]
"""What to do about a label that a machine was never shown in its state."""


class Memory:
    """The states of both machines in a live episode.

    Call `reset` with the label of an episode's first observation and `step` with
    that of each observation a step leads to. `transition_state` and
    `reward_state` are then those in which the machines answer for that
    observation, by the pair's own label timing.

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
    >>> memory.transition_state, memory.reward_state, memory.unseen
    (1, 0, 0)
    """

    def __init__(self, machines: MachinePair, *, on_unseen: OnUnseen = "stay") -> None:
        check_on_unseen(on_unseen)
        self.machines = machines
        self.transition_state = 0
        self.reward_state = 0
        self.unseen = 0
        self._raises = on_unseen == "raise"
        self._reader = LabelReader(machines.timing)
        self._moves = _moves(machines)

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.transition_state = self.reward_state = self.unseen = 0
        read = self._reader.reset(as_label(label))
        if read is not None:
            self._read(read, False)

    def step(self, label: Any, terminated: bool = False) -> None:
        """Take the label of the observation that a step led to."""
        if type(label) is not frozenset:
            label = as_label(label)
        self._read(self._reader.step(label), terminated)

    def _read(self, label: Label, terminated: bool) -> None:
        moves = self._moves.get(label)
        if moves is None:
            self._unseen(label, -1, -1, terminated)
            return
        transition_state = moves[0][self.transition_state]
        reward_state = moves[1][self.reward_state]
        if transition_state < 0 or reward_state < 0:
            self._unseen(label, transition_state, reward_state, terminated)
            return
        self.transition_state = transition_state
        self.reward_state = reward_state

    def _unseen(
        self, label: Label, transition_state: int, reward_state: int, terminated: bool
    ) -> None:
        if not terminated:
            if self._raises:
                raise unseen_error(self.machines, label, self.transition_state, self.reward_state)
            self.unseen += 1
        if transition_state >= 0:
            self.transition_state = transition_state
        if reward_state >= 0:
            self.reward_state = reward_state


def check_on_unseen(on_unseen: str) -> None:
    """Refuse anything but the known ways to treat an unseen label."""
    if on_unseen not in get_args(OnUnseen):
        raise OptionError(f"on_unseen={on_unseen!r}: use 'stay' or 'raise'")


def known_labels(machines: MachinePair) -> list[Label]:
    """Return the labels that either machine knows, each once."""
    return list(dict.fromkeys([*machines.transition.labels, *machines.reward.labels]))


def next_states(machine: Machine, label: Label) -> list[int]:
    """Return where a label leads from each state; −1 where that was never seen."""
    code = machine.labels.get(label)
    if code is None:
        return [-1] * machine.states
    column: list[int] = machine.transitions[:, code].tolist()
    return column


def unseen_error(
    machines: MachinePair, label: Label, transition_state: int, reward_state: int
) -> ModelError:
    """Return an error that says which label was never seen where, and what to do."""
    states = ((machines.transition, transition_state), (machines.reward, reward_state))
    never = [
        f"state {state} of the {machine.kind} machine"
        for machine, state in states
        if next_states(machine, label)[state] < 0
    ]
    known = any(label in machine.labels for machine, _ in states)
    return ModelError(
        f"label '{label_text(label)}' was never seen "
        f"{'in ' + ' and '.join(never) if known else 'at all'}: collect traces that show it "
        'there and infer again, or go on with on_unseen="stay"'
    )


def _moves(machines: MachinePair) -> dict[Label, tuple[list[int], list[int]]]:
    """Return for each known label where it leads from each state of either machine."""
    return {
        label: (next_states(machines.transition, label), next_states(machines.reward, label))
        for label in known_labels(machines)
    }

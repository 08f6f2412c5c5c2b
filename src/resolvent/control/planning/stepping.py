"""Machines without noise → what happens in situations, and every situation that can be reached."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.ending import ENDS, GOES_ON, SOMETIMES, UNKNOWN, Ending
from resolvent.control.planning.labelling import Labelling
from resolvent.control.planning.steps import Keys, Lookup, Space, are_known, moves_of
from resolvent.limits import check_table
from resolvent.machines import Machine, Machines
from resolvent.traces import Label, Vocabulary
from resolvent.traces.column_names import TERMINATED
from resolvent.traces.vocabulary import Codes, codes_of

Flags = NDArray[np.bool_]

_STEP_BYTES = 40
"""What an action in a situation takes: its row of `Answers`, and as much until it is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What happens in some situations, a row for each, under every action, a column for each.

    `following` holds the numbers that a `Space` gives, −1 where there is none. `read` is the
    label that is read then, −1 where none is, or any of several.
    """

    following: Keys
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    read: Codes


class Stepping:
    """Asks all machines about all actions in many situations at once."""

    def __init__(
        self,
        machines: Machines,
        labels: Vocabulary[Label],
        space: Space,
        labelling: Labelling,
        ending: Ending | None,
        assumed: bool,
    ) -> None:
        self.machines, self.space, self.assumed = machines, space, assumed
        self.labelling, self.ending = labelling, ending
        self.asking = {kind: _Asking(one, machines, space) for kind, one in machines.items()}
        self.moves = [moves_of(machine, labels) for machine in machines.values()]
        # In what follows, −1 is the last one.
        transition, reward = machines.transition, machines.reward
        self.arrived = np.append(codes_of(transition.outputs, space.observations, -1), -1)
        self.rewards = np.array([*reward.outputs, np.nan])
        ends = machines[TERMINATED].outputs if ending is None else ()
        self.verdicts = np.array([*(ENDS if one else GOES_ON for one in ends), UNKNOWN], np.int32)

    def __call__(self, situations: Keys) -> Answers:
        """Return what happens in each situation under each action."""
        actions = len(self.space.actions)
        shape = len(situations), actions
        observation, states = self.space.parts(situations)
        o, s = np.repeat(observation, actions), [np.repeat(one, actions) for one in states]
        a = np.tile(np.arange(actions, dtype=np.int32), len(situations))
        answers = {
            kind: machine.answer_many(own, self.asking[kind](o, s[0], a), assumed=self.assumed)
            for (kind, machine), own in zip(self.machines.items(), s, strict=True)
        }
        following = self.arrived[answers["transition"]]
        paid = self.rewards[answers["reward"]]
        ending = self._ending(o, s, a, answers)
        label = self.labelling((o, s, a, following))
        after = [moves[own, label] for moves, own in zip(self.moves, s, strict=True)]
        ends = (ending == ENDS) & ~np.isnan(paid)
        goes_on = (ending == GOES_ON) & ~np.isnan(paid) & (following >= 0) & are_known(after)
        known = ends | goes_on
        return Answers(
            np.where(goes_on, self.space.situation(following, after), -1).reshape(shape),
            np.where(known, paid, np.nan).reshape(shape),
            ends.reshape(shape),
            known.reshape(shape),
            (ending == SOMETIMES).reshape(shape),
            np.where(goes_on, label, -1).astype(np.int32).reshape(shape),
        )

    def _ending(
        self, observation: Codes, states: list[Codes], action: Codes, answers: dict[str, Codes]
    ) -> Codes:
        if self.ending is None:  # a machine tells
            return self.verdicts[answers[TERMINATED]]
        return self.ending(observation, states, action)


class _Asking:
    """Turns observations, states of the Transition Machine and actions into one's questions."""

    def __init__(self, machine: Machine, machines: Machines, space: Space) -> None:
        self._actions = len(machine.actions)
        self._done = codes_of(space.actions, machine.actions, -1)
        self._paired = machines.transition.states if machine.supplemented else None
        if self._paired is None:
            self._seen = Lookup.of(
                np.arange(len(space.observations)),
                codes_of(space.observations, machine.observations, -1),
            )
        else:
            pairs: list[Any] = list(machine.observations)
            seen = codes_of((one for one, _ in pairs), space.observations, -1)
            keys = np.int64(seen) * self._paired + np.array([state for _, state in pairs], np.int64)
            codes = np.arange(len(pairs), dtype=np.int32)
            self._seen = Lookup.of(keys[seen >= 0], codes[seen >= 0])

    def __call__(self, observation: Codes, transition_state: Codes, action: Codes) -> Keys:
        """Return the numbers of the machine's questions, −1 where it never met them."""
        keys = observation.astype(np.int64)
        if self._paired is not None:
            keys = keys * self._paired + transition_state
        seen, done = self._seen(keys), self._done[action]
        questions = np.int64(seen) * self._actions + done
        questions[(seen < 0) | (done < 0)] = -1
        return questions


def explored(starts: Keys, stepping: Stepping) -> tuple[Keys, Answers]:
    """Return every situation that known steps lead to, and what happens there."""
    met: set[int] = set()
    frontier, layers, answers = starts, [], []
    while len(frontier):
        met.update(frontier.tolist())
        layers.append(frontier)
        check_table(len(met), len(stepping.space.actions), _STEP_BYTES, "situations by actions")
        answers.append(stepping(frontier))
        reached = np.unique(answers[-1].following)
        frontier = np.array([one for one in reached.tolist() if one not in met and one >= 0], int)
    return np.concatenate(layers), Answers(
        *(np.concatenate([getattr(layer, name) for layer in answers]) for name in Answers.__slots__)
    )

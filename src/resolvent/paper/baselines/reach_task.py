"""Traces of a task that pays once, at its end → places, and which traces got there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TraceError
from resolvent.traces.symbols import Label, label_text
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True)
class ReachTask:
    """The view of a hidden Markov model on traces: places, and whether the task was done.

    Trace `i` visits `places[offsets[i] + i : offsets[i + 1] + i + 1]`, one more than
    it has steps. Actions are left out: under the policy that made the traces, the
    place and the state of the task are a Markov chain.
    """

    places: Codes
    offsets: NDArray[np.int64]
    paid: NDArray[np.bool_]
    labels: tuple[Label, ...]
    reward: float

    @classmethod
    def of(cls, traces: TraceSet) -> "ReachTask":
        """Read traces of such a task.

        Raises:
            TraceError: when the traces are of another kind of task.
        """
        paid, reward = _payment(traces)
        return cls(
            traces.observation_codes, traces.offsets, paid, _labels_of_places(traces), reward
        )

    @property
    def moves_from(self) -> Codes:
        """The place before each step."""
        return np.delete(self.places, self.offsets[1:] + np.arange(len(self.paid)))

    @property
    def moves_to(self) -> Codes:
        """The place after each step."""
        return np.delete(self.places, self.offsets[:-1] + np.arange(len(self.paid)))

    @property
    def starts(self) -> Codes:
        """The first place of each trace."""
        starts: Codes = self.places[self.offsets[:-1] + np.arange(len(self.paid))]
        return starts


def _payment(traces: TraceSet) -> tuple[NDArray[np.bool_], float]:
    """Return the traces with a final reward, and that reward."""
    if not len(traces):
        raise TraceError("there are no traces: give some of a task that pays at its end")
    rewards = np.array(list(traces.rewards))[traces.reward_codes]
    last = np.zeros(traces.steps, bool)
    last[traces.offsets[1:] - 1] = True
    paid = rewards[last] > 0
    for wrong, why in (
        (rewards < 0, "no step may cost anything"),
        ((rewards != 0) & ~last, "only the last step may pay"),
        (
            (rewards > 0) & (rewards != rewards.max()),
            f"each end must pay the same, here {rewards.max():g}",
        ),
    ):
        if np.any(wrong):
            row = int(np.argmax(wrong))
            trace, step = traces.place(row)
            raise TraceError(
                f"trace {trace}, step {step} pays {rewards[row]:g}: hidden Markov models learn "
                f"tasks whose only reward is at the end, so {why}"
            )
    unpaid = traces.terminated & ~paid
    if np.any(unpaid):
        raise TraceError(
            f"trace {int(np.argmax(unpaid))} ends unpaid without being cut: hidden Markov models "
            f"learn tasks that end only when they are done"
        )
    if not np.any(paid):
        raise TraceError("no trace is paid: give some in which the task is done")
    return paid, float(rewards.max())


def _labels_of_places(traces: TraceSet) -> tuple[Label, ...]:
    """Return the one label of each observation."""
    label_of = np.empty(len(traces.observations), np.int32)
    label_of[traces.observation_codes] = traces.label_codes
    differs = label_of[traces.observation_codes] != traces.label_codes
    if np.any(differs):
        at = int(np.argmax(differs))
        place = int(traces.observation_codes[at])
        both = (traces.labels[int(code)] for code in (traces.label_codes[at], label_of[place]))
        texts = " and ".join(repr(label_text(label)) for label in both)
        raise TraceError(
            f"the observation {traces.observations[place]!r} comes with the labels {texts}: "
            f"hidden Markov models read the label off the place, so give each its own observation"
        )
    return tuple(traces.labels[int(code)] for code in label_of)

"""Noisy samples → the moves of the most likely machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.progress import Listener, Progress
from resolvent.samples import SampleSet
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

PART = 200_000
"""Rows that machines are grown on. The one that is found is polished and weighed on all."""


@dataclass(frozen=True, eq=False)
class Likely:
    """The most likely machine that was met, and how likely the others are.

    `transitions` is [state, label], with −1 where a label was never read in a state; state 0
    is initial, and the others stand in the order in which labels first lead to them.
    `log_evidence` is the logarithm of the marginal likelihood of all answers and of the
    machine, `sizes` the greatest that was met for each number of states, and `noise` the
    share of answers that are not the main one of their state and question. `finished` is
    false if time ran out before the search ended by itself. `by_size` holds the moves of the
    likeliest machine of each size, and `price` is what each state must be worth.
    """

    transitions: Codes
    log_evidence: float
    sizes: Mapping[int, float]
    noise: float
    finished: bool = True
    by_size: Mapping[int, Codes] = field(default_factory=dict)
    price: float = 0.0

    @property
    def states(self) -> int:
        """How many states the machine has."""
        return len(self.transitions)

    @property
    def log_odds(self) -> dict[int, float]:
        """For each number of states, ln of how many times as likely its best machine is.

        Compared with the machine that was found, and with the price of states taken as
        what is known of them in advance.
        """
        return {
            states: found - self.log_evidence - self.price * (states - self.states)
            for states, found in self.sizes.items()
        }


def most_likely(
    samples: SampleSet,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    most_states: int = 40,
    listener: Listener | None = None,
) -> Likely:
    """Return the most likely machine that a search finds for samples whose answers are noisy.

    A machine grows from one state by splitting, and is merged back; machines are compared by
    the marginal likelihood of all answers, so a state that noise alone would explain is not
    worth its moves. More `effort` grows more machines. When `time_limit` seconds are over,
    the best machine so far is returned. The order of traces makes no difference.

    >>> import gymnasium as gym, resolvent as rs
    >>> from resolvent.samples import Histories, LabelTiming, output_samples
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> found = most_likely(output_samples(traces, histories, "observation"))
    >>> found.states, found.noise
    (2, 0.0)
    """
    if not effort > 0:
        raise OptionError(f"effort is {effort}: choose a number above 0")
    if most_states < 1:
        raise OptionError(f"most_states is {most_states}: a machine has at least 1 state")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"time_limit is {time_limit}: choose seconds above 0, or None")
    quiet, labels = _quiet_labels(samples), len(samples.labels)

    def tell(states: int, undecided: int, done: int, total: int) -> None:
        if listener is not None:
            listener("noise", Progress(states, undecided, done, total))

    found = _core.grow_noisy_machine(
        samples.alpha,
        samples.output,
        samples.beta,
        samples.offsets,
        quiet=quiet,
        seed=seed,
        effort=effort,
        most_states=most_states,
        part=PART,
        time_limit=time_limit or 0.0,
        progress=tell,
    )

    def table(moves: Codes) -> Codes:
        return moves.reshape(-1, len(quiet))[:, :labels]

    return Likely(
        transitions=table(found["transitions"]),
        log_evidence=found["log_evidence"],
        sizes=dict(sorted(found["sizes"].items())),
        noise=found["noise"],
        finished=found["finished"],
        by_size={states: table(moves) for states, moves in sorted(found["by_size"].items())},
        price=found["price"],
    )


def _quiet_labels(samples: SampleSet) -> Codes:
    """Return for each label whether it is taken to change nothing until more is known: 1 or 0.

    Without any label there is one that is never read.
    """
    quiet = np.zeros(max(len(samples.labels), 1), np.int32)
    if (code := samples.labels.get(NO_EVENT)) is not None:
        quiet[code] = 1
    return quiet

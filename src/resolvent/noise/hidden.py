"""Noisy samples whose labels lie, or whose starts are random → the most likely machine."""

from dataclasses import dataclass

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.noise.label_noise import LabelNoise
from resolvent.noise.likely import Likely
from resolvent.progress import Listener, Progress
from resolvent.samples import NONE, SampleSet
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

_PART = 100_000
"""Rows that machines of different sizes are compared on; the best are settled on all."""

MOST_STATES = 16
"""Machines whose state is hidden are looked for up to this size."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LikelyHidden(Likely):
    """The most likely machine whose state has to be inferred, and what was inferred of it.

    Besides what `Likely` tells: `label_noise` says how often recorded labels differ from the
    true ones, which the machine reads, `label_shares` how frequent each true label is, and
    `starts` how often an episode begins in each state. `true_labels` are the most likely ones
    at each row, and `path` the states in which rows are answered, all rows of a trace together.
    `log_evidence` is that of the answers and of the machine, given the labels as recorded.
    """

    label_noise: LabelNoise
    label_shares: tuple[float, ...]
    starts: tuple[float, ...]
    true_labels: Codes
    path: Codes


def most_likely_hidden(
    samples: SampleSet,
    *,
    labels: bool = True,
    starts: bool = False,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    most_states: int = MOST_STATES,
    listener: Listener | None = None,
) -> LikelyHidden:
    """Return the most likely machine for samples that do not tell for sure which state it is in.

    With `labels`, recorded labels are noisy copies of those that the machine reads: events are
    missed, or swapped for others, and steps without an event are recorded with one. With
    `starts`, an episode begins in any of several states, drawn anew each time. "No event"
    changes no state. What is hidden is inferred from all answers of a trace by expectation
    maximisation; machines are compared by marginal likelihood, as in `most_likely`.

    >>> import gymnasium as gym, resolvent as rs
    >>> from resolvent.samples import Histories, LabelTiming, output_samples
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> found = most_likely_hidden(output_samples(traces, histories, "observation"))
    >>> found.states, found.label_noise.missed < 0.01
    (2, True)
    """
    if not effort > 0:
        raise OptionError(f"effort is {effort}: choose a number above 0")
    if not 1 <= most_states <= MOST_STATES:
        raise OptionError(f"most_states is {most_states}: choose a number from 1 to {MOST_STATES}")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"time_limit is {time_limit}: choose seconds above 0, or None")
    if not labels and not starts:
        raise OptionError("nothing is hidden: choose labels=True, starts=True or both")

    def tell(states: int, undecided: int, done: int, total: int) -> None:
        if listener is not None:
            listener("noise", Progress(states, undecided, done, total))

    width = max(len(samples.labels), 1)
    silence = samples.labels.get(NO_EVENT)
    found = _core.grow_hidden_machine(
        samples.alpha,
        samples.output,
        samples.beta,
        samples.offsets,
        labels=width,
        silence=NONE if silence is None else silence,
        labels_lie=labels,
        random_starts=starts,
        seed=seed,
        effort=effort,
        most_states=most_states,
        part=_PART,
        time_limit=time_limit or 0.0,
        progress=tell,
    )
    return LikelyHidden(
        transitions=found["transitions"].reshape(-1, width)[:, : len(samples.labels)],
        log_evidence=found["log_evidence"],
        sizes=dict(sorted(found["sizes"].items())),
        noise=found["noise"],
        finished=found["finished"],
        label_noise=LabelNoise(*found["label_noise"]) if labels else LabelNoise(0.0, 0.0, 0.0),
        label_shares=tuple(found["shares"][: len(samples.labels)].tolist()),
        starts=tuple(found["starts"].tolist()),
        true_labels=found["labels"],
        path=found["states"],
    )

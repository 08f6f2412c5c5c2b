"""Fit machines whose outputs are noisy, by marginal likelihood.

Input: samples. Output: the transitions of the most likely machine and of the best of each size,
the likelihood of given transitions, and how outputs vary over the queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import geometric, log, log1p, log_of_sum
from resolvent._util.progress import Listener, Progress
from resolvent.errors import ModelError, OptionError
from resolvent.preprocess.samples import SampleSet
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

SUBSAMPLE_ROWS = 200_000
"""Number of rows that machines are grown on; the best one is then fitted to all rows."""

_SHARES: Final = np.linspace(0.05, 1.0, 20)
_CHANCES: Final = np.concatenate([geometric(0.002, 0.1, 20), np.linspace(0.12, 0.6, 25)])

_LOCALIZED_SHARE: Final = 0.3
"""Largest share of the queries that depends on memory in worlds without noise."""

_LEAST_QUERIES: Final = 40
"""Number of repeated queries below which memory may matter to all of them."""

_LEAST_SHARE: Final = 0.45
_LEAST_NATS: Final = 6.0
_MOST_CHANCE: Final = 0.35
"""Largest rate at which outputs vary by chance; above it, memory or a lottery explains them."""


@dataclass(frozen=True, eq=False)
class LikelyMachine:
    """The most likely machine found, and the likelihood of others.

    `transitions` is [state, label], −1 for a label never read in a state. State 0 is initial; the
    others are numbered in the order of their first visit.
    `log_evidence` is the log marginal likelihood of all outputs and of the machine, `sizes` its
    maximum for each number of states, and `noise` the share of outputs other than the main one of
    their state and query. `finished` is False if the time limit ended the search. `by_size` holds
    the best transitions for each number of states, and `price` is the prior cost of a state.
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
        """Number of states."""
        return len(self.transitions)

    @property
    def log_odds(self) -> dict[int, float]:
        """Log odds of the best machine of each size against this one, with the price of states."""
        return {
            states: log_evidence - self.log_evidence - self.price * (states - self.states)
            for states, log_evidence in self.sizes.items()
        }


def fit_likely_machine(
    samples: SampleSet,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    most_states: int = 40,
    listener: Listener | None = None,
) -> LikelyMachine:
    """Return the most likely machine that a search finds for samples with noisy outputs.

    A machine grows from one state by splitting and is merged back; machines are compared by the
    marginal likelihood of all outputs, so that a state that noise alone explains is not worth its
    transitions. More `effort` grows more machines. After `time_limit` seconds the best machine so
    far is returned. The order of traces makes no difference.

    >>> import gymnasium as gym, resolvent as rs
    >>> from resolvent.preprocess.samples import Histories, LabelTiming, output_samples
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> likely = fit_likely_machine(output_samples(traces, histories, "observation"))
    >>> likely.states, likely.noise
    (2, 0.0)
    """
    check_search_limits(effort, time_limit)
    if most_states < 1:
        raise OptionError(f"most_states is {most_states}: a machine has at least 1 state")
    labels = len(samples.labels)
    # "No event" changes no state until the evidence says otherwise. Without any label, the search
    # gets one that is never read.
    quiet = np.zeros(max(labels, 1), np.int32)
    if (silence := samples.labels.get(NO_EVENT)) is not None:
        quiet[silence] = 1
    grown = _core.grow_noisy_machine(
        samples.alpha,
        samples.output,
        samples.beta,
        samples.offsets,
        quiet=quiet,
        seed=seed,
        effort=effort,
        most_states=most_states,
        part=SUBSAMPLE_ROWS,
        time_limit=time_limit or 0.0,
        progress=ProgressForwarder(listener),
    )

    def as_table(transitions: Codes) -> Codes:
        return transitions.reshape(-1, len(quiet))[:, :labels]

    return LikelyMachine(
        transitions=as_table(grown["transitions"]),
        log_evidence=grown["log_evidence"],
        sizes=dict(sorted(grown["sizes"].items())),
        noise=grown["noise"],
        finished=grown["finished"],
        by_size={states: as_table(table) for states, table in sorted(grown["by_size"].items())},
        price=grown["price"],
    )


def check_search_limits(effort: float, time_limit: float | None) -> None:
    """Refuse an effort or a time limit that is not above 0."""
    if not effort > 0:
        raise OptionError(f"effort is {effort}: choose a number above 0")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"time_limit is {time_limit}: choose seconds above 0, or None")


@dataclass(frozen=True)
class ProgressForwarder:
    """Forwards the progress of a search in the core to a listener, if there is one."""

    listener: Listener | None

    def __call__(self, states: int, undecided: int, done: int, total: int) -> None:
        """Forward the figures that the core reports."""
        if self.listener is not None:
            self.listener("noise", Progress(states, undecided, done, total))


@dataclass(frozen=True)
class NoisyEvidence:
    """The likelihood of outputs given transitions, and the noise at which it is largest.

    Rows are pairs of a state and a query. `share` of the outputs of a row are independent of its
    main output; the larger `strength` is, the less rows differ in that. `noise` is the share of
    all outputs that are not the most frequent one of their row.
    """

    log_evidence: float
    noise: float
    strength: float
    share: float


def marginal_likelihood(samples: SampleSet, transitions: Codes) -> NoisyEvidence:
    """Return the likelihood of samples under a machine with these transitions.

    `transitions` is [state, label], −1 where a label is never read. The result is the log marginal
    likelihood of all outputs, with the main outputs and their shares integrated out, plus the log
    prior of the transitions; docs/decisions/noise.md states the priors.

    >>> import numpy as np, resolvent as rs
    >>> from resolvent.preprocess.samples import Histories, LabelTiming, output_samples
    >>> step = lambda seen: rs.Trace(["a", "b", seen], [None, "x", None], ["go", "go"], [0, 0])
    >>> traces = rs.TraceSet([step("c")] * 9 + [step("d")])
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> samples = output_samples(traces, histories, "observation")
    >>> marginal_likelihood(samples, np.zeros((1, len(samples.labels)), np.int32)).noise
    0.05
    """
    if transitions.ndim != 2 or transitions.shape[1] != len(samples.labels):
        raise ModelError(
            f"transitions has the shape {transitions.shape}: give one row for each state, and in "
            f"it one column for each of the {len(samples.labels)} labels"
        )
    try:
        figures = _core.weigh_noisy_machine(
            samples.alpha,
            samples.output,
            samples.beta,
            samples.offsets,
            transitions=np.ascontiguousarray(transitions, np.int32).ravel(),
            labels=transitions.shape[1],
        )
    except ValueError as error:
        raise ModelError(f"the moves do not fit the samples: {error}") from None
    return NoisyEvidence(*figures)


@dataclass(frozen=True)
class QueryNoise:
    """The `share` of the queries that have deviating outputs, and the rate `chance` of these.

    `nats` is the log likelihood ratio against a share of at most three in ten, `against_all` that
    against all queries. `questions` is the number of repeated queries.
    """

    share: float
    chance: float
    nats: float
    against_all: float = 0.0
    questions: int = 0

    @property
    def everywhere(self) -> bool:
        """Whether most queries deviate beyond doubt, each of them rarely: as by chance."""
        return (
            self.questions >= _LEAST_QUERIES
            and self.share >= _LEAST_SHARE
            and self.nats >= _LEAST_NATS
            and self.chance <= _MOST_CHANCE
        )

    def in_most(self, rate: float) -> bool:
        """Return whether most queries may deviate, and at more than this rate."""
        return self.questions < _LEAST_QUERIES or (
            self.share >= _LEAST_SHARE and self.chance > rate
        )

    @property
    def in_few(self) -> bool:
        """Whether only few queries deviate beyond doubt, each of them often: as with memory."""
        return self.share <= _LOCALIZED_SHARE and self.against_all >= _LEAST_NATS


def estimate_query_noise(outputs: NDArray[np.int64], odd: NDArray[np.int64]) -> QueryNoise:
    """Estimate the share of the queries that have deviating outputs, and their rate.

    In a random world every query deviates now and then. If memory is missing, some queries have
    several outputs and all others a single one.

    Args:
        outputs: For each query, the number of outputs that could deviate.
        odd: For each query, the number of outputs that do.

    >>> estimate_query_noise(np.full(40, 19), np.full(40, 1)).everywhere  # now and then anywhere
    True
    >>> memory = estimate_query_noise(np.full(40, 19), np.repeat([9, 0], [8, 32]))
    >>> memory.everywhere, memory.in_few
    (False, True)
    """
    if not len(outputs):
        return QueryNoise(0.0, 0.0, 0.0)
    queries = int(np.count_nonzero(outputs))
    pairs, times = np.unique(np.stack([outputs, odd]), axis=1, return_counts=True)
    outputs, odd = pairs
    varying = (odd[:, None] * log(_CHANCES) + (outputs - odd)[:, None] * log1p(-_CHANCES))[
        :, :, None
    ] + log(_SHARES)
    constant = np.where((odd == 0)[:, None], log(np.maximum(1 - _SHARES, 1e-300)), -np.inf)
    each = log_of_sum(varying, constant[:, None, :])  # row, chance, share
    likelihood = (times[:, None, None] * each).sum(0).T
    best = likelihood.max(1)
    at = int(np.argmax(best))
    localized = float(best[_SHARES <= _LOCALIZED_SHARE].max())
    chance = float(_CHANCES[int(np.argmax(likelihood[at]))])
    top = float(best[at])
    return QueryNoise(float(_SHARES[at]), chance, top - localized, top - float(best[-1]), queries)

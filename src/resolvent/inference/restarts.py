"""More than one run of the compiled search: restarts with other seeds, repair, and lower bounds.

Input: samples, and for repair an automaton that explains them. Output: an automaton that is not
larger. The result of restarts does not depend on which search ends first
(docs/decisions/inference.md).
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from resolvent import _core
from resolvent._util.parallel import Workers
from resolvent.inference.attempts import FOUND, STOPPED, UNDECIDED, WorkerRun
from resolvent.inference.engine import check_seed_and_effort, learn_natively, search
from resolvent.inference.state_merging import Watcher
from resolvent.machines.automaton import RawAutomaton
from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.traces.vocabulary import Codes, Vocabulary

SEEDS: Final = 4
"""Number of searches. A constant: if it were the number of workers, machines would depend on it."""

EASY: Final = 1 / 64
"""Share of the effort that is first spent in one search: half a second at most. If that proves its
machine smallest, no worker is needed."""

REPAIR_BUDGET: Final = 30_000_000
"""Maximum number of nodes that a repair visits: about a second."""

PROOF_WORK: Final = 200_000
"""Number of nodes compared for a lower bound, besides one for each node of the tree."""

_LEAST_SECONDS: Final = 1e-9


def repair_automaton(
    samples: SampleSet,
    automaton: RawAutomaton,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    listener: Watcher | None = None,
) -> RawAutomaton:
    """Return a smaller automaton near this one that explains the samples too, if there is one.

    States are removed one by one, the weakest first: another state takes their place, and the few
    transitions that this makes wrong are changed, the rarest first. A state stays if outputs agree
    no better without it than by chance. The same samples, seed and effort give the same automaton;
    a time limit gives the best so far. docs/decisions/inference.md has more.

    Raises:
        OptionError: when the seed or the effort is out of range.
        ValueError: when the automaton does not explain the samples.
    """
    check_seed_and_effort(seed, effort)
    learner = partial(
        _core.repair,
        states=automaton.states,
        state=automaton.transition_state,
        label=automaton.transition_label,
        target=automaton.transition_target,
        seed=seed,
        budget=int(effort * REPAIR_BUDGET),
    )
    smaller = learn_natively(samples, time_limit, listener, learner)
    return smaller if smaller.states < automaton.states else automaton


def min_states_bound(samples: SampleSet, automaton: RawAutomaton) -> int:
    """Return a lower bound on the number of states of any automaton that explains the samples.

    This number of label histories, of different states of the automaton, have outputs that differ
    pairwise. The automaton guides the search for them and is no part of the proof; labels that it
    does not read are taken for loops.
    """
    return _core.fewest_states(
        samples.histories.tree,
        samples.alpha,
        samples.output,
        states=automaton.states,
        state=automaton.transition_state,
        label=automaton.transition_label,
        target=automaton.transition_target,
        work=PROOF_WORK + len(samples.histories.tree),
    )


def search_with_restarts(
    samples: SampleSet,
    workers: Workers,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    listener: Watcher | None = None,
    known: Codes | None = None,
) -> tuple[RawAutomaton, list[WorkerRun]]:
    """Search with several seeds in parallel; return the smallest automaton and all attempts.

    The first seed is `seed` itself, so the result is never larger than that of `search`; if it has
    the same size, it is the same. A search whose automaton is proven smallest stops those after it.
    """
    check_seed_and_effort(seed, effort)
    started = time.perf_counter()
    deadline = None if time_limit is None else time.time() + time_limit
    probe = search(samples, seed=seed, effort=effort * EASY, time_limit=time_limit, known=known)
    if _is_smallest(samples, probe):
        seconds = None
        if time_limit is not None:
            seconds = max(time_limit - (time.perf_counter() - started), _LEAST_SECONDS)
        automaton = search(
            samples, seed=seed, effort=effort, time_limit=seconds, listener=listener, known=known
        )
        return automaton, []
    seeds = seeds_from(seed)
    task = _SearchTask(_without_names(samples), effort, deadline, known)
    outcomes = workers.first(task, seeds, _StopRule(seeds).is_over, called="searching")
    attempts = [
        WorkerRun(f"search, seed {number}", workers.name, STOPPED)
        if outcome is None
        else WorkerRun(f"search, seed {number}", workers.name, outcome.outcome, outcome.seconds)
        for number, outcome in zip(seeds, outcomes, strict=True)
    ]
    automata = [outcome.automaton for outcome in outcomes if outcome is not None]
    best = min(automata, key=lambda automaton: (not automaton.finished, automaton.states))
    return best, attempts  # the first of equals


def seeds_from(seed: int) -> list[int]:
    """Return a seed and the seeds of the other searches, which follow from it.

    >>> seeds_from(7)[0], len(set(seeds_from(7)) | set(seeds_from(8)))
    (7, 8)
    """
    drawn = np.random.SeedSequence((seed, 3)).generate_state(SEEDS - 1, np.uint64)
    return [seed, *drawn.tolist()]


@dataclass(frozen=True, eq=False)
class _SearchOutcome:
    seed: int
    automaton: RawAutomaton
    smallest: bool
    seconds: float

    @property
    def outcome(self) -> str:
        return FOUND if self.automaton.finished else UNDECIDED


@dataclass(frozen=True, eq=False)
class _SearchTask:
    """Searches with a seed; sent to workers."""

    samples: SampleSet
    effort: float
    deadline: float | None
    known: Codes | None

    def __call__(self, seed: int) -> _SearchOutcome:
        started = time.perf_counter()
        seconds = None
        if self.deadline is not None:
            seconds = max(self.deadline - time.time(), _LEAST_SECONDS)
        automaton = search(
            self.samples, seed=seed, effort=self.effort, time_limit=seconds, known=self.known
        )
        smallest = _is_smallest(self.samples, automaton)
        return _SearchOutcome(seed, automaton, smallest, time.perf_counter() - started)


class _StopRule:
    """Decides when no search that is still running could win.

    A tie goes to the first seed. So a proof ends the race once all searches before it have ended.
    """

    def __init__(self, seeds: list[int]) -> None:
        self._seeds = seeds
        self._smallest: dict[int, bool] = {}

    def is_over(self, outcome: _SearchOutcome) -> bool:
        """Record an outcome, and return whether it was the last that matters."""
        self._smallest[outcome.seed] = outcome.smallest
        for seed in self._seeds:
            if seed not in self._smallest:
                return False
            if self._smallest[seed]:
                return True
        return True


def _is_smallest(samples: SampleSet, automaton: RawAutomaton) -> bool:
    return automaton.finished and min_states_bound(samples, automaton) >= automaton.states


def _without_names(samples: SampleSet) -> SampleSet:
    """Return the part of the samples that a search needs: no vocabularies and no derived data."""
    histories = samples.histories
    return SampleSet(
        samples.alpha,
        samples.output,
        Histories(histories.beta, histories.offsets, Vocabulary(range(len(histories.labels)))),  # type: ignore[arg-type]
        np.empty(0, np.int64),
        Vocabulary(()),
        Vocabulary(()),
        Vocabulary(()),
    )

"""One search along several paths, over workers: samples → the smallest automaton of all seeds.

What comes out does not depend on which search ends first (docs/decisions/portfolio.md).
"""

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from resolvent.merging.automaton import Automaton
from resolvent.merging.engines import check_seed_and_effort, search
from resolvent.merging.ran import FOUND, STOPPED, UNDECIDED, Ran
from resolvent.merging.repair import fewest_states
from resolvent.merging.watch import Watcher
from resolvent.samples import Histories, SampleSet
from resolvent.traces.vocabulary import Codes, Vocabulary
from resolvent.workers import Workers

SEEDS: Final = 4
"""Searches that are begun. A number of its own: with that of the workers, so would machines
depend on it."""

EASY: Final = 1 / 64
"""The share of the effort that is spent alone at first: half a second at most. What that proves
to be smallest needs nobody else."""

_LEAST: Final = 1e-9


def search_side_by_side(
    samples: SampleSet,
    workers: Workers,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    listener: Watcher | None = None,
    known: Codes | None = None,
) -> tuple[Automaton, list[Ran]]:
    """Search along several paths at once, and return the smallest automaton and what ran.

    The first path is that of `seed` itself, so that what is found is never larger than what
    `search` finds; where it is as small, it is the same. The others have seeds that follow from
    it. A search whose automaton is proven to be the smallest stops those after it.
    """
    check_seed_and_effort(seed, effort)
    started, deadline = (
        time.perf_counter(),
        None if time_limit is None else time.time() + time_limit,
    )
    probe = search(samples, seed=seed, effort=effort * EASY, time_limit=time_limit, known=known)
    if _is_smallest(samples, probe):
        left = None
        if time_limit is not None:
            left = max(time_limit - (time.perf_counter() - started), _LEAST)
        alone = search(
            samples, seed=seed, effort=effort, time_limit=left, listener=listener, known=known
        )
        return alone, []
    seeds = seeds_from(seed)
    searching = _Searching(_alone(samples), effort, deadline, known)
    answers = workers.first(searching, seeds, _Race(seeds).is_over, called="searching")
    ran = [
        Ran(f"search, seed {one}", workers.name, STOPPED)
        if answer is None
        else Ran(f"search, seed {one}", workers.name, answer.outcome, answer.seconds)
        for one, answer in zip(seeds, answers, strict=True)
    ]
    came = [one.automaton for one in answers if one is not None]
    return min(came, key=lambda one: (not one.finished, one.states)), ran  # the first of equals


def seeds_from(seed: int) -> list[int]:
    """Return a seed and those of the other paths, which are its own.

    >>> seeds_from(7)[0], len(set(seeds_from(7)) | set(seeds_from(8)))
    (7, 8)
    """
    drawn = np.random.SeedSequence((seed, 3)).generate_state(SEEDS - 1, np.uint64)
    return [seed, *drawn.tolist()]


@dataclass(frozen=True, eq=False)
class _Answer:
    seed: int
    automaton: Automaton
    smallest: bool
    seconds: float

    @property
    def outcome(self) -> str:
        return FOUND if self.automaton.finished else UNDECIDED


@dataclass(frozen=True, eq=False)
class _Searching:
    """Searches along the path of a seed."""

    samples: SampleSet
    effort: float
    deadline: float | None
    known: Codes | None

    def __call__(self, seed: int) -> _Answer:
        started = time.perf_counter()
        left = None if self.deadline is None else max(self.deadline - time.time(), _LEAST)
        found = search(
            self.samples, seed=seed, effort=self.effort, time_limit=left, known=self.known
        )
        smallest = _is_smallest(self.samples, found)
        return _Answer(seed, found, smallest, time.perf_counter() - started)


class _Race:
    """Knows when no search that is still under way could win.

    A tie goes to the first seed. So a proof ends the race when all before it have come in.
    """

    def __init__(self, seeds: list[int]) -> None:
        self._seeds = seeds
        self._came: dict[int, bool] = {}

    def is_over(self, answer: _Answer) -> bool:
        """Take note of an answer, and say whether it was the last that counts."""
        self._came[answer.seed] = answer.smallest
        for seed in self._seeds:
            if seed not in self._came:
                return False
            if self._came[seed]:
                return True
        return True


def _is_smallest(samples: SampleSet, found: Automaton) -> bool:
    return found.finished and fewest_states(samples, found) >= found.states


def _alone(samples: SampleSet) -> SampleSet:
    """Return samples as a search needs them: nothing that is built of them, and no names."""
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

"""Some of the steps of traces that are too many for what has to look at single traces."""

from typing import NamedTuple

from resolvent.replay import Corpus
from resolvent.replay.corpus import POOL_STEPS
from resolvent.traces import TraceSet


class Part(NamedTuple):
    """How many of all steps something was found from.

    >>> print(Part(1_000_211, 12_000_000))
    from 1,000,211 of 12,000,000 steps
    """

    steps: int
    of: int

    def as_dict(self) -> dict[str, int]:
        """Return it as JSON values."""
        return self._asdict()

    def __str__(self) -> str:
        return f"from {self.steps:,} of {self.of:,} steps"


def part_of(corpus: Corpus) -> tuple[TraceSet, Part | None]:
    """Return traces to look at one by one: all in memory, or some of those in files.

    Of files with more than `POOL_STEPS` steps these are some traces that differ, chosen by what
    they hold, however they are shuffled or repeated. The second value is None for all.
    """
    if corpus.in_memory:
        return corpus.together(), None
    if corpus.steps <= POOL_STEPS:
        return corpus.fetch(corpus.all), None
    some = corpus.fetch(corpus.sample(POOL_STEPS))
    return some, Part(some.steps, corpus.steps)

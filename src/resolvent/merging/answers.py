"""What a strategy is shown: the answers of two nodes, and what agrees in a merge, read-only.

Questions are numbers here, as everywhere in merging; `question` tells the
observation and action behind one. All of it is a view of the tree that is being
folded, so it holds only until the strategy's method returns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from resolvent.merging.folding import Fold
from resolvent.merging.prefix_tree import PrefixTree
from resolvent.samples import SampleSet
from resolvent.traces.symbols import Symbol


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question, and how often that was seen."""

    output: Any
    count: int


class Agreement(NamedTuple):
    """A question that two nodes answer alike: how often each of them was seen to."""

    question: int
    output: Any
    known: int
    new: int


class Answers(Mapping[int, Answer]):
    """All that is known of one node of the prefix tree: question → `Answer`.

    A node into which others were merged has their answers too, and the counts add up.

    >>> from resolvent.merging.prefix_tree import build_prefix_tree
    >>> from resolvent.samples import Histories, LabelTiming, output_samples
    >>> from resolvent.traces import Trace, TraceSet
    >>> traces = TraceSet([Trace(["hall", "hall", "attic"], [None] * 3, ["up", "up"], [0, 1])])
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> samples = output_samples(traces, histories, "observation")
    >>> node = Answers(samples, build_prefix_tree(samples), 1)
    >>> for question, answer in node.items():
    ...     print(node.question(question), answer)
    ('hall', 'up') Answer(output='attic', count=1)
    """

    __slots__ = ("_counts", "_outputs", "_samples")

    def __init__(self, samples: SampleSet, tree: PrefixTree, node: int) -> None:
        self._samples = samples
        self._outputs = tree.answers[node]
        self._counts = tree.counts[node]

    def __getitem__(self, question: int) -> Answer:
        output = self._samples.outputs[self._outputs[question]]
        return Answer(output, self._counts[question])

    def __iter__(self) -> Iterator[int]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def question(self, number: int) -> tuple[Symbol, Symbol]:
        """Return the observation and action that a number stands for."""
        return _question(self._samples, number)


class ProposedMerge:
    """A merge that could be made, with all the merges that it forces further down the tree.

    It goes as far as the strategy's horizon; the merge itself goes to the end.
    """

    __slots__ = ("_fold", "_samples")

    def __init__(self, samples: SampleSet, fold: Fold) -> None:
        self._samples = samples
        self._fold = fold

    @property
    def agreeing(self) -> int:
        """How many answers agree, each counted once however often it was seen."""
        return self._fold.agreeing

    @property
    def folded(self) -> int:
        """How many nodes of the prefix tree would be done away with."""
        return len(self._fold.merged)

    def agreements(self) -> Iterator[Agreement]:
        """Yield the answers that agree, `agreeing` of them, those nearest to the merge first."""
        for alpha, output, known, new in self._fold.agreements():
            yield Agreement(alpha, self._samples.outputs[output], known, new)

    def question(self, number: int) -> tuple[Symbol, Symbol]:
        """Return the observation and action that a number stands for."""
        return _question(self._samples, number)


def _question(samples: SampleSet, number: int) -> tuple[Symbol, Symbol]:
    observation, action = divmod(int(samples.alpha_keys[number]), len(samples.actions))
    return samples.observations[observation], samples.actions[action]

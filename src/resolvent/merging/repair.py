"""Samples + an automaton that explains them → a smaller one; and how few states are needed."""

from functools import partial
from typing import Final

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.merging.automaton import Automaton
from resolvent.merging.engines import LARGEST_EFFORT, learn_natively
from resolvent.merging.watch import Watcher
from resolvent.samples import SampleSet

REPAIR_BUDGET: Final = 30_000_000
"""Nodes that a repair looks at, at most: about a second."""

PROOF_WORK: Final = 200_000
"""Nodes compared to prove how few states are needed, beside one for each node of the tree."""


def repaired(
    samples: SampleSet,
    automaton: Automaton,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    listener: Watcher | None = None,
) -> Automaton:
    """Return an automaton with fewer states that explains the samples too, if one is near.

    States are taken out one by one, the weakest first: another stands for them, and the few
    transitions that this leaves wrong are changed, those taken least. A state stays where answers
    agree no better without it than they would by chance. The same samples, seed and effort give
    the same automaton; a time limit gives the best so far. docs/decisions/repair.md says more.

    Raises:
        OptionError: when the seed or the effort is out of range.
        ValueError: when the automaton does not explain the samples.
    """
    if not 0 <= seed < 2**64:
        raise OptionError(f"the seed is {seed}: it must be at least 0 and below 2^64")
    if not 0 <= effort <= LARGEST_EFFORT:
        raise OptionError(f"the effort is {effort:g}: choose a number from 0 to {LARGEST_EFFORT:g}")
    learner = partial(
        _core.repair,
        states=automaton.states,
        state=automaton.transition_state,
        label=automaton.transition_label,
        target=automaton.transition_target,
        seed=seed,
        budget=int(effort * REPAIR_BUDGET),
    )
    better = learn_natively(samples, time_limit, listener, learner)
    return better if better.states < automaton.states else automaton


def fewest_states(samples: SampleSet, automaton: Automaton) -> int:
    """Return a number of states that no automaton which explains the samples is below.

    That many label histories, of different states of the automaton, are followed by answers
    that pairwise differ. The automaton says where to look and is no part of the proof; labels
    that it does not know are taken for loops.
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

"""Merging that ran out of time → an automaton all the same, which may answer some rows wrongly."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from resolvent import _core
from resolvent.merging.automaton import Automaton, Event, automaton_from_columns
from resolvent.samples import SampleSet


def completed(
    samples: SampleSet,
    access: Sequence[int],
    settled: Sequence[int],
    events: Sequence[Event],
    attempts: int,
) -> Automaton:
    """Send what is not settled to the states with which it agrees most, in one cheap pass.

    `access` are the nodes that states began as, `settled` is the state of each node of the
    prefix tree, or −1; what is above a settled node is settled. States answer with what they
    answered most often, and the automaton says how many rows that is wrong for.
    """
    tree = samples.histories.tree
    found = _core.complete(
        tree, samples.alpha, samples.output, np.array(access, np.int32), np.array(settled, np.int32)
    )
    automaton = automaton_from_columns(found, len(tree))
    return replace(automaton, events=(*events, *automaton.events), attempts=attempts)

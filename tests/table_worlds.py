"""Worlds written down as tables, for tests that need to know every entry."""

import numpy as np
from hypothesis import strategies as st

from resolvent.machines import MachinePair
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Vocabulary
from resolvent.worlds.env import World
from resolvent.worlds.mechanics import Mechanics
from strategies import moving_machine


def world(following, reward, ends, *, seen=None, labels=None, starts=(0,)):
    """An environment of tables by state and action; by default each state shows itself."""
    states, actions = np.shape(following)
    seen = list(range(states)) if seen is None else seen
    labels = [NO_EVENT] * states if labels is None else [frozenset(one) for one in labels]
    kinds = sorted(set(labels), key=sorted)
    return World(
        Mechanics(
            observations=tuple(f"o{number}" for number in range(max(seen) + 1)),
            labels=tuple(kinds),
            actions=tuple(f"a{number}" for number in range(actions)),
            observation_of=np.array(seen, np.int32),
            label_of=np.array([kinds.index(label) for label in labels], np.int32),
            next_state=np.array(following, np.int32),
            reward=np.array(reward, float),
            ends=np.array(ends, bool),
            starts=np.array(starts, np.int32),
            transition_memory=np.zeros(states, np.int32),
            reward_memory=np.zeros(states, np.int32),
            live=states,
        )
    )


def pair(transition, reward, labels, timing):
    known = Vocabulary(frozenset(label) for label in labels)
    return MachinePair(
        moving_machine("observation", known, transition),
        moving_machine("reward", known, reward),
        timing,
    )


@st.composite
def worlds(draw, states=6, actions=3):
    """Any tables at all; episodes may go on for ever."""
    count, choices = draw(st.integers(1, states)), draw(st.integers(1, actions))

    def table(values):
        row = st.lists(values, min_size=choices, max_size=choices)
        return draw(st.lists(row, min_size=count, max_size=count))

    def column(values):
        return draw(st.lists(values, min_size=count, max_size=count))

    return world(
        table(st.integers(0, count - 1)),
        table(st.sampled_from([0.0, 0.0, 1.0, -0.5, 0.1])),
        table(st.sampled_from([False, False, False, True])),
        seen=column(st.integers(0, 2)),
        labels=column(st.sampled_from(["", "a", "b", "ab"])),
        starts=draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3)),
    )


@st.composite
def pairs(draw, timing):
    """Any machines at all, over some of the labels; −1 is unseen."""
    labels = draw(st.sampled_from([["", "a"], ["", "a", "b"], ["b"]]))
    tables = []
    for _ in range(2):
        count = draw(st.integers(1, 3))
        targets = st.lists(st.integers(-1, count - 1), min_size=len(labels), max_size=len(labels))
        tables.append(draw(st.lists(targets, min_size=count, max_size=count)))
    return pair(*tables, labels, timing)

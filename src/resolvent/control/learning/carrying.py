"""Machines of before and of now + traces → which states are met at the same steps.

What was learned about states of before is worth something for those of now: machines
that are updated split some states and number others anew.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.control.wrapping.augment_observation import AugmentObservation, augmented_inside
from resolvent.errors import OptionError
from resolvent.machines import Machines
from resolvent.samples.timing import labels_read
from resolvent.traces import TraceSet
from resolvent.traces.live.naming import Names
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes, codes_of

States = tuple[int, ...]

NONE = -1
"""A label that is not read."""


def met_at_steps(machines: Machines, traces: TraceSet) -> dict[str, Codes]:
    """Return the state of each machine at every step of traces as recorded, as live ones show it.

    So a label that a machine was never shown leaves its state as it is.

    >>> from resolvent.environments import House
    >>> from resolvent.traces import Trace
    >>> told = [None, "flood", "key", "flood"]
    >>> walk = TraceSet([Trace(["corridor"] * 4, told, ["up"] * 3, [0] * 3)])
    >>> met_at_steps(House().machines(), walk)["transition"].tolist()
    [0, 0, 1]
    """
    sensed = machines.senses.on(traces)
    read = labels_read(sensed, machines.timing)
    found = {}
    for kind, machine in machines.items():
        codes = np.append(codes_of(sensed.labels, machine.labels, NONE), NONE)
        stay = np.arange(machine.states, dtype=np.int32)[:, None]
        moves = np.where(machine.transitions < 0, stay, machine.transitions).astype(np.int32)
        found[kind] = _core.walk_states(
            np.ascontiguousarray(moves.ravel()),
            len(machine.labels),
            codes[read].astype(np.int32),
            sensed.offsets,
        )
    return found


def met_together(before: Codes, after: Codes, sizes: tuple[int, int]) -> NDArray[np.int64]:
    """Return how often each state of one machine is met at a step with each of another.

    >>> met_together(np.int32([0, 0, 1]), np.int32([0, 1, 1]), (2, 2)).tolist()
    [[1, 1], [0, 1]]
    """
    pairs = before.astype(np.int64) * sizes[1] + after
    return np.bincount(pairs, minlength=sizes[0] * sizes[1]).reshape(sizes)


def carried_values(
    rows: Mapping[Symbol, int],
    before: gym.Env[Any, Any],
    after: gym.Env[Any, Any],
    traces: TraceSet,
) -> tuple[tuple[Symbol, ...], NDArray[np.int64]]:
    """Return the situations of now about which something is known, and in which row of before."""
    old, new = _in_view(before), _in_view(after)
    under, anywhere = _most_often(old.machines, new.machines, traces)
    names = Names(new.env, "observation")
    found: dict[Symbol, int] = {}
    for code, observation in enumerate(traces.observations):
        value = names.value(observation)
        for states, likely in anywhere.items():
            for earlier in (under.get((code, states)), likely):
                if earlier is None:
                    continue
                row = rows.get(as_symbol(old.encode(value, *earlier)))
                if row is not None:
                    found[as_symbol(new.encode(value, *states))] = row
                    break
    return tuple(found), np.array(list(found.values()), np.int64)


def _most_often(
    old: Machines, new: Machines, traces: TraceSet
) -> tuple[dict[tuple[int, States], States], dict[States, States]]:
    """Return the states of before that are met most often with those of now.

    By observation and states of now, and by states alone. Of equally many the lowest count.
    """
    earlier = np.stack(list(met_at_steps(old, traces).values()), axis=1)
    later = np.stack(list(met_at_steps(new, traces).values()), axis=1)
    seen = traces.at_step(traces.observation_codes)
    steps = np.column_stack([seen, later, earlier])
    kinds, counts = np.unique(steps, axis=0, return_counts=True)
    width = 1 + later.shape[1]
    under: dict[tuple[int, States], States] = {}
    often: dict[tuple[int, States], int] = {}
    together: dict[States, dict[States, int]] = {}
    for row, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        states, past = tuple(row[1:width]), tuple(row[width:])
        if count > often.get((row[0], states), 0):
            often[row[0], states], under[row[0], states] = count, past
        of_past = together.setdefault(states, {})
        of_past[past] = of_past.get(past, 0) + count
    anywhere = {
        states: min(of_past, key=lambda past: (-of_past[past], past))
        for states, of_past in together.items()
    }
    return under, anywhere


def _in_view(env: gym.Env[Any, Any]) -> AugmentObservation:
    augmented = augmented_inside(env)
    if augmented is None or env.observation_space is not augmented.observation_space:
        raise OptionError(
            f"{env} does not show the states of machines as AugmentObservation does: wrap both "
            "environments in it, and nothing around it that changes what it shows"
        )
    if augmented.name_of is not None or augmented.machines.senses.discretise is not None:
        raise OptionError(
            "values cannot be carried over where observations have other names than what is "
            "shown (name_of, discretise): learn anew"
        )
    return augmented

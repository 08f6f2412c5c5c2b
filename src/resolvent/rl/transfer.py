"""Transfer values from the states of old machines to those of new ones, by replaying traces.

Updated machines split some states and renumber others. A new state takes the values of the old
state that traces visit at the same steps.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.machines import Machines
from resolvent.preprocess.timing import labels_read
from resolvent.rl.env import SymbolEncoder
from resolvent.rl.wrappers.augment import AugmentObservation, augmented_inside
from resolvent.traces import TraceSet
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes, codes_of

States: TypeAlias = tuple[int, ...]

_NONE = -1
"""Code of a label that is not read."""


def states_at_steps(machines: Machines, traces: TraceSet) -> dict[str, Codes]:
    """Return the state of each machine at every step of recorded traces, as when tracked live.

    A label that a machine has not seen leaves its state unchanged.

    >>> from resolvent.worlds import House
    >>> from resolvent.traces import Trace
    >>> labels = [None, "flood", "key", "flood"]
    >>> walk = TraceSet([Trace(["corridor"] * 4, labels, ["up"] * 3, [0] * 3)])
    >>> states_at_steps(House().machines(), walk)["transition"].tolist()
    [0, 0, 1]
    """
    traces = machines.senses.on(traces)
    read = labels_read(traces, machines.timing)
    states = {}
    for name, machine in machines.items():
        codes = np.append(codes_of(traces.labels, machine.labels, _NONE), _NONE)
        stay = np.arange(machine.states, dtype=np.int32)[:, None]
        table = np.where(machine.transitions < 0, stay, machine.transitions).astype(np.int32)
        states[name] = _core.walk_states(
            np.ascontiguousarray(table.ravel()),
            len(machine.labels),
            codes[read].astype(np.int32),
            traces.offsets,
        )
    return states


def joint_counts(before: Codes, after: Codes, sizes: tuple[int, int]) -> NDArray[np.int64]:
    """Return the counts of steps by the states of two machines.

    >>> joint_counts(np.int32([0, 0, 1]), np.int32([0, 1, 1]), (2, 2)).tolist()
    [[1, 1], [0, 1]]
    """
    pairs = before.astype(np.int64) * sizes[1] + after
    return np.bincount(pairs, minlength=sizes[0] * sizes[1]).reshape(sizes)


def transferred_rows(
    rows: Mapping[Symbol, int],
    before: gym.Env[Any, Any],
    after: gym.Env[Any, Any],
    traces: TraceSet,
) -> tuple[tuple[Symbol, ...], NDArray[np.int64]]:
    """Return the new augmented states that have an old counterpart, and the row of each."""
    old, new = _augmented(before), _augmented(after)
    by_observation, by_states = _counterparts(old.machines, new.machines, traces)
    names = SymbolEncoder(new.env, "observation")
    new_rows: dict[Symbol, int] = {}
    for code, observation in enumerate(traces.observations):
        value = names.value(observation)
        for states, likeliest in by_states.items():
            for old_states in (by_observation.get((code, states)), likeliest):
                if old_states is None:
                    continue
                row = rows.get(as_symbol(old.encode(value, *old_states)))
                if row is not None:
                    new_rows[as_symbol(new.encode(value, *states))] = row
                    break
    return tuple(new_rows), np.array(list(new_rows.values()), np.int64)


def _counterparts(
    old: Machines, new: Machines, traces: TraceSet
) -> tuple[dict[tuple[int, States], States], dict[States, States]]:
    """Return the old states that occur most often with new ones; ties go to the lowest.

    The first dict is by observation and new states, the second by new states alone.
    """
    old_states = np.stack(list(states_at_steps(old, traces).values()), axis=1)
    new_states = np.stack(list(states_at_steps(new, traces).values()), axis=1)
    observations = traces.at_step(traces.observation_codes)
    steps = np.column_stack([observations, new_states, old_states])
    rows, counts = np.unique(steps, axis=0, return_counts=True)
    width = 1 + new_states.shape[1]
    by_observation: dict[tuple[int, States], States] = {}
    highest: dict[tuple[int, States], int] = {}
    totals: dict[States, dict[States, int]] = {}
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        states, old_row = tuple(row[1:width]), tuple(row[width:])
        if count > highest.get((row[0], states), 0):
            highest[row[0], states], by_observation[row[0], states] = count, old_row
        of_states = totals.setdefault(states, {})
        of_states[old_row] = of_states.get(old_row, 0) + count
    by_states = {
        states: min(of_states, key=lambda old_row: (-of_states[old_row], old_row))
        for states, of_states in totals.items()
    }
    return by_observation, by_states


def _augmented(env: gym.Env[Any, Any]) -> AugmentObservation:
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

"""What was given as machines → `Machines` that fit the environment, or a plain refusal."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym

from resolvent.errors import ModelError, OptionError
from resolvent.machines import Machine, Machines, load
from resolvent.result import InferenceResult
from resolvent.senses.live import LiveSenses
from resolvent.traces.symbols import Symbol

GivenMachines: TypeAlias = Machines | InferenceResult | str | Path
"""Machines, the result that holds them, or the file that they were saved to."""


def machines_from(given: GivenMachines) -> Machines:
    """Return the machines, from a file if need be."""
    if isinstance(given, Machines):
        return given
    if isinstance(given, InferenceResult):
        return given.machines
    if isinstance(given, str | Path):
        return load(given)
    raise OptionError(
        f"machines is a {type(given).__name__}: give a MachinePair or other Machines, what infer "
        "returned, or the path of a model file"
    )


def check_fit(
    machines: Machines,
    live: LiveSenses,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
) -> None:
    """Refuse machines that were learned in another environment, as far as can be told.

    Machines need not know all actions and observations, for traces need not show
    all, and may know observations of a larger world. But they cannot know actions
    that the environment lacks, nor share no observation with it. What cannot be listed
    is not checked.

    >>> from resolvent.environments import House
    >>> from resolvent.pipeline import infer
    >>> from resolvent.traces import Trace, TraceSet
    >>> shop = infer(TraceSet([Trace(["street", "shop"], [None, "bell"], ["enter"], [0])]))
    >>> live = LiveSenses(House(), shop.machines.senses)
    >>> check_fit(shop.machines, live, House().observation_space, House().action_space)
    Traceback (most recent call last):
    resolvent.errors.ModelError: the machines know the action 'enter', which the environment lacks \
(it has 'up', 'down', 'left', …): they were learned in another one
    """
    actions = live.actions.of_space(action_space)
    if actions is not None:
        known = dict.fromkeys(action for one in machines.values() for action in one.actions)
        lacking = [action for action in known if action not in actions]
        if lacking:
            raise ModelError(
                f"the machines know the action {_examples(lacking)}, which the environment lacks "
                f"(it has {_examples(actions)}): they were learned in another one"
            )
    seen = dict.fromkeys(one for machine in machines.values() for one in _observed(machine))
    observations = live.observations.of_space(observation_space)
    if observations is not None and len(seen) and not any(one in seen for one in observations):
        raise ModelError(
            f"the machines know none of the environment's observations "
            f"(they know {_examples(seen)}; it has {_examples(observations)}): "
            f"they were learned in another one"
        )


def _observed(machine: Machine) -> Iterable[Symbol]:
    """Return the observations that a machine knows, without the states they are paired with."""
    if not machine.supplemented:
        return machine.observations
    pairs: Iterable[Any] = machine.observations
    return (observation for observation, _ in pairs)


def _examples(symbols: Iterable[Symbol]) -> str:
    first = list(islice(symbols, 4))
    return ", ".join([*map(repr, first[:3]), *("…" for _ in first[3:])])

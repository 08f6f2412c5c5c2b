"""Collecting from many environments at once: episodes in pieces, over workers.

A piece of episodes is played as if it were all there is: in an environment of its own, which
nobody has played before, by a seed that follows from its number. So traces do not depend on
who plays what, nor on how many do.
"""

import copy
import pickle
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent.errors import OptionError
from resolvent.traces.live.making import NamedEnvironment
from resolvent.traces.live.naming import AnyEnv
from resolvent.traces.live.playing import Play
from resolvent.traces.trace_set import TraceSet
from resolvent.workers import Workers, at_work
from resolvent.workers.ray import part_of_ray

EPISODES: Final = 16
"""Episodes of a piece. Another number would give other traces for the same seed."""

_SEEDS: Final = 2**32
"""How many seeds there are: some environments take no larger ones."""


def play_side_by_side(
    env: AnyEnv | Callable[[], AnyEnv],
    play: Play,
    episodes: int,
    seed: int | None,
    on: str | Workers,
    progress: Callable[[float], object] | None,
) -> TraceSet:
    """Play episodes piece by piece, wherever workers are.

    Raises:
        OptionError: when an environment or a policy cannot be copied, or be sent to workers.
    """
    if isinstance(env, gym.vector.VectorEnv):
        raise OptionError(
            f"on={_name(on)!r} is for single environments, of which each worker has its own: "
            f"give one of those in the {type(env).__name__}, its name, or leave out on"
        )
    make = _Copies(env) if isinstance(env, gym.Env) else env
    if not callable(make):
        raise OptionError(
            f"collect needs a gymnasium.Env, its name or a function that makes it, "
            f"not a {type(env).__name__}: use gym.make"
        )
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    elif seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
    pieces = range(0, episodes, EPISODES)

    def report(done: int) -> None:
        if progress is not None:
            progress(done / len(pieces))

    with at_work(on) as workers:
        work = _Piece(make, play, episodes, seed, apart=workers.name != "threads")
        _check_copies(work, workers.name)
        return TraceSet.concatenate(workers.each(work, pieces, called="collecting", report=report))


def seed_of_piece(seed: int, number: int) -> int:
    """Return the seed of a piece of episodes; no two pieces have the same.

    >>> seed_of_piece(0, 1) - seed_of_piece(0, 0)
    1
    """
    first = int(np.random.SeedSequence((seed, 2)).generate_state(1)[0])
    return (first + number) % _SEEDS


@dataclass(frozen=True)
class _Copies:
    """Gives copies of an environment."""

    env: gym.Env[Any, Any]

    def __call__(self) -> gym.Env[Any, Any]:
        return copy.deepcopy(self.env)


@dataclass(frozen=True)
class _Piece:
    """Plays the episodes of a piece, given the number of its first one."""

    make: Callable[[], Any]
    play: Play
    episodes: int
    seed: int
    apart: bool

    def __call__(self, first: int) -> TraceSet:
        numbers = range(first, min(first + EPISODES, self.episodes))
        # Standard output belongs to whoever started the workers.
        with redirect_stdout(sys.stderr) if self.apart else nullcontext():
            env = self.make()
            if not isinstance(env, gym.Env):
                raise OptionError(
                    f"the function that makes the environment gave a {type(env).__name__}: "
                    f"with workers it has to return a gymnasium.Env"
                )
            try:
                play = replace(self.play, policy=copy.deepcopy(self.play.policy))
                return play.episodes(env, numbers, seed_of_piece(self.seed, first // EPISODES))
            finally:
                env.close()


def _check_copies(work: _Piece, where: str) -> None:
    """Refuse by name what cannot be copied for each piece, or sent to where pieces are played."""
    copied: dict[str, object] = {"the policy": work.play.policy}
    if isinstance(work.make, _Copies):
        copied["the environment"] = work.make.env
    sent = {**copied, "label_of": work.play.label_of, "name_of": work.play.name_of}
    if not isinstance(work.make, _Copies | NamedEnvironment):
        sent["the function that makes the environment"] = work.make
    # Ray sends functions by what they do, processes by their names.
    pickler = part_of_ray("ray.cloudpickle") if where.startswith("ray") else pickle
    for name, value in sent.items():
        try:
            if where != "threads":
                pickler.dumps(value)
            elif name in copied:
                copy.deepcopy(value)
        except Exception as error:  # pickling raises whatever the objects inside do
            advice = "define it in a module, by a name of its own"
            if name == "the environment":
                advice = 'give its name, such as "module:Class", or a function that makes it'
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise OptionError(
                f"on={where!r}: {name} cannot be copied to where episodes are played "
                f"({why}): {advice}"
            ) from error


def _name(on: str | Workers) -> str:
    return on if isinstance(on, str) else on.name

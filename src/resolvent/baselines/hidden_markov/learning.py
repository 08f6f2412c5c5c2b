"""Task automata by hidden Markov models: traces of a task and its number of states → an automaton.

The method of Abate, Almulla, Fox, Hyland and Wooldridge, "Learning task automata
for reinforcement learning using hidden Markov models" (2023).
"""

import time
from collections.abc import Iterable
from typing import Any, Final, Literal

import numpy as np

from resolvent.arguments import shown
from resolvent.baselines.hidden_markov.attempt import Attempt
from resolvent.baselines.hidden_markov.baum_welch import Listener, baum_welch
from resolvent.baselines.hidden_markov.expectation import (
    Deadline,
    DenseEngine,
    Numbers,
    SparseEngine,
)
from resolvent.baselines.hidden_markov.reach_task import ReachTask
from resolvent.baselines.outcome import Outcome, Status
from resolvent.errors import OptionError
from resolvent.traces.symbols import as_label
from resolvent.traces.trace_set import TraceSet

_MOST_HIDDEN_STATES: Final = 5_000

EngineName = Literal["sparse", "dense"]
_ENGINES: Final[dict[str, type[SparseEngine] | type[DenseEngine]]] = {
    "sparse": SparseEngine,
    "dense": DenseEngine,
}


def hmm(
    traces: TraceSet,
    *,
    states: int,
    irrelevant: Iterable[Any] = (None,),
    seed: int = 0,
    restarts: int = 10,
    tolerance: float = 1e-6,
    iterations: int = 25_000,
    engine: EngineName = "sparse",
    time_limit: float | None = None,
    progress: Listener | None = None,
) -> Outcome:
    """Learn the automaton of a task that pays once, at its end, by expectation-maximisation.

    `states` counts all states of the automaton, as published: those the task goes on
    in and the one in which it is done. So it is one more than a Reward Machine of the
    same task has, where nothing is read after the end: 3, 4 and 5 on the three phase
    grids, whose Reward Machines have 2, 3 and 4 states.

    Actions are left out. The hidden state is a state of the automaton, called a
    layer, and a place; seen are the place and, at the end, that the task is done.
    Transitions start as the chain over places that the traces show, once in every
    layer, with a small mass on all else; then the likelihood is raised until it
    hardly changes. `distil` says how the automaton is read off.

    Departures from the publication, each so that it finds more:

    - Under one small mass for all, two layers in the middle stay equal for ever. From
      4 states on the mass of each entry is drawn, from an exponential distribution,
      and up to `restarts` such guesses are tried. The first one whose automaton
      gets all rewards right is taken, else the one that gets fewest wrong.
    - Where the automaton contradicts itself at the published threshold, or gets rewards
      wrong, others are tried: `Attempt.of` says which. The likeliest transitions
      overfit states that are seldom left, and one wrong edge is enough.
    - The sparse engine looks only at the hidden states that fit what is seen. It
      computes the same numbers as the dense one, which is as published.

    Args:
        traces: what a random policy did; rewards are 0 but for the last step.
        states: the number of states of the automaton, with the one at the end.
        irrelevant: labels known to change nothing; by default, no event.
        seed: what the small masses are drawn from.
        restarts: how many first guesses to try.
        tolerance: when to stop; see `baum_welch`.
        iterations: when to stop at the latest, for each guess.
        engine: "sparse" or "dense".
        time_limit: in seconds, for everything.
        progress: called with the iteration, counted anew for each guess, and the
            log-likelihood.

    Returns:
        The machine has the status "found" even where it gets rewards wrong: see
        `details["wrong_rewards"]`. Without a machine the status is "no solution",
        for at every threshold a label both ends the task and does not.

    >>> import gymnasium as gym
    >>> import resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=275, seed=0)
    >>> found = hmm(traces, states=3)
    >>> found.status, found.states, found.details["wrong_rewards"]
    ('found', 2, 0)
    >>> found.machine.step(0, {"Coffee"}), found.machine.step(1, {"Stair"})
    ((1, 0.0), (2, 1.0))

    Raises:
        TraceError: when the traces are not of such a task.
        OptionError: when an option cannot be honoured.
    """
    began = time.perf_counter()
    deadline = Deadline(time_limit)
    task = ReachTask.of(traces)
    _check_options(task, states, restarts, iterations, engine, time_limit)
    labels = {as_label(label) for label in irrelevant}
    expectation = _ENGINES[engine](task, states)
    attempts: list[Attempt] = []
    out_of_time = False
    for number in range(restarts):
        guessed = time.perf_counter()
        draws = _draws(states, seed, number)
        fit = baum_welch(
            expectation,
            first_guess(task, states, draws),
            tolerance=tolerance,
            iterations=iterations,
            deadline=deadline,
            progress=progress,
        )
        out_of_time = fit.out_of_time
        if fit.iterations:
            seconds = time.perf_counter() - guessed
            attempts.append(Attempt.of(traces, task, fit, labels, seconds))
        if out_of_time or attempts[-1].wrong_rewards == 0:
            break
    best = min(attempts, key=Attempt.rank, default=None)
    return Outcome(
        "hmm",
        _status(best, out_of_time),
        time.perf_counter() - began,
        None if best is None else best.distillation.machine,
        {
            "states": states,
            "hidden_states": states * len(task.labels),
            "symbols": 2 * len(task.labels),
            "engine": engine,
            **({} if best is None else best.report()),
            "attempts": [attempt.report() for attempt in attempts],
        },
    )


def first_guess(task: ReachTask, states: int, draws: np.random.Generator | None) -> Numbers:
    """Return transitions that stay in their layer, but for a small mass on all that is not seen.

    That mass is 1 / (N - 4) before rows are normalised, as published, times a number
    that is drawn for each entry where there is a generator for it.
    """
    places = len(task.labels)
    steps = np.zeros((places, places))
    np.add.at(steps, (task.moves_from, task.moves_to), 1.0)
    visits = steps.sum(axis=1, keepdims=True)
    guess = np.kron(np.eye(states), steps / np.maximum(visits, 1.0))
    size = len(guess)
    drawn = np.ones((size, size)) if draws is None else draws.exponential(size=(size, size))
    guess = np.where(guess == 0, drawn / max(size - 4, 1), guess)
    normalised: Numbers = guess / guess.sum(axis=1, keepdims=True)
    return normalised


def _draws(states: int, seed: int, start: int) -> np.random.Generator | None:
    """Return what the first guess is drawn from, if it is: the published one comes first."""
    separable = states < 4
    return None if separable and start == 0 else np.random.default_rng([seed, start])


def _status(best: Attempt | None, out_of_time: bool) -> Status:
    if out_of_time:
        return "time limit"
    return "no solution" if best is None or best.distillation.machine is None else "found"


def _check_options(
    task: ReachTask,
    states: int,
    restarts: int,
    iterations: int,
    engine: str,
    time_limit: float | None,
) -> None:
    for name, value, least in (
        ("states", states, 2),
        ("restarts", restarts, 1),
        ("iterations", iterations, 1),
    ):
        if value < least:
            raise OptionError(f"{name}={value}: it must be at least {least}")
    if engine not in _ENGINES:
        raise OptionError(f"engine={shown(engine)}: use {' or '.join(map(repr, _ENGINES))}")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"the time limit is {time_limit:g} s: it must be above 0")
    hidden = states * len(task.labels)
    if hidden > _MOST_HIDDEN_STATES:
        raise OptionError(
            f"{states} states at {len(task.labels):,} places are {hidden:,} hidden states: at most "
            f"{_MOST_HIDDEN_STATES:,} are tried; use fewer states or traces of a smaller world"
        )

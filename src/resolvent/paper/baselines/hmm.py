"""Fitted transitions → the automaton that explains the traces best, at which threshold."""

import time
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Final, Literal

import numpy as np

from resolvent import _core
from resolvent._util.validation import shown
from resolvent.errors import OptionError
from resolvent.machines.io.edge_rewards import EdgeRewardMachine
from resolvent.paper.baselines.hmm_distillation import Distillation, distil
from resolvent.paper.baselines.hmm_em import (
    Deadline,
    DenseEngine,
    Fit,
    Listener,
    Numbers,
    SparseEngine,
    baum_welch,
)
from resolvent.paper.baselines.outcome import Outcome, Status
from resolvent.paper.baselines.reach_task import ReachTask
from resolvent.traces.symbols import Label, as_label
from resolvent.traces.trace_set import TraceSet

PUBLISHED_THRESHOLD: Final = 1e-3
"""The published probability up to which a transition is taken for noise."""

_THRESHOLDS: Final = tuple(PUBLISHED_THRESHOLD * 2 ** (rung / 2) for rung in range(17))


@dataclass(frozen=True)
class Attempt:
    """The result from one initial guess.

    `published` is the contradiction at the published threshold, if any; `of_moves` says that
    the threshold applied to shares of moves, not of rows; without a machine, `wrong_rewards`
    is None.
    """

    fit: Fit
    seconds: float
    published: str | None
    of_moves: bool
    threshold: float
    distillation: Distillation
    wrong_rewards: int | None

    @classmethod
    def of(
        cls,
        traces: TraceSet,
        task: ReachTask,
        fit: Fit,
        irrelevant: Collection[Label],
        seconds: float,
    ) -> "Attempt":
        """Distil at the first threshold whose automaton gets fewest rewards wrong.

        The published one comes first, then higher ones of the same probabilities. Then
        come thresholds on each transition's share in the move between its two places: a
        rarely left state may have likely transitions that are wrong, but their share is small.
        """
        attempts: list[Attempt] = []
        for of_moves, threshold in product((False, True), _THRESHOLDS):
            weights = shares_of_moves(fit.counts, task) if of_moves else fit.transitions
            distillation = distil(weights, task, threshold=threshold, irrelevant=irrelevant)
            wrong = (
                None
                if distillation.machine is None
                else count_wrong_rewards(distillation.machine, traces)
            )
            published = attempts[0].published if attempts else distillation.contradiction
            attempts.append(cls(fit, seconds, published, of_moves, threshold, distillation, wrong))
            if wrong == 0:
                break
        return min(attempts, key=cls.rank)

    def rank(self) -> tuple[bool, int, float]:
        """Sort the best first: one that explains the traces, then one that is likely."""
        wrong = self.wrong_rewards
        return wrong is None, wrong or 0, -self.fit.log_likelihood

    def report(self) -> dict[str, Any]:
        """Return the attempt's details as JSON values."""
        steps = asdict(self.distillation)
        del steps["machine"]
        return {
            "iterations": self.fit.iterations,
            "log_likelihood": self.fit.log_likelihood,
            "converged": self.fit.converged,
            "seconds_per_iteration": self.seconds / self.fit.iterations,
            "wrong_rewards": self.wrong_rewards,
            "threshold": self.threshold,
            "threshold_of": "moves" if self.of_moves else "rows",
            "contradiction_at_published_threshold": self.published,
            "distillation": steps,
        }


def shares_of_moves(counts: Numbers, task: ReachTask) -> Numbers:
    """Divide each expected count by that of all transitions between the same places."""
    places = len(task.labels)
    by_place = counts.reshape(len(counts) // places, places, -1, places)
    moves = by_place.sum(axis=(0, 2), keepdims=True)
    shares: Numbers = by_place / np.where(moves > 0, moves, 1.0)
    return shares.reshape(counts.shape)


def count_wrong_rewards(machine: EdgeRewardMachine, traces: TraceSet) -> int:
    """Return the same as `wrong_rewards`, in compiled code, for a machine of `distil`."""
    (end,) = machine.terminal
    table = np.full((end + 1, len(traces.labels)), -1, np.int32)
    reward = max((edge.reward for edge in machine.edges), default=0.0)
    for state in range(end):
        for code, label in enumerate(traces.labels):
            table[state, code], _ = machine.step(state, label)
    reached = _core.walk_states(
        table.ravel(), len(traces.labels), traces.after_step(traces.label_codes), traces.offsets
    )
    rewards = np.array(list(traces.rewards))[traces.reward_codes]
    return int(np.count_nonzero(np.where(reached == end, reward, 0.0) != rewards))


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

    `states` counts all states of the automaton including the end, as published. So it is
    one more than a Reward Machine of the same task has: 3, 4 and 5 on the three phase
    grids, whose Reward Machines have 2, 3 and 4 states.

    Actions are left out. The hidden state is a state of the automaton, called a
    layer, and a place; the place and, at the end, the completion are observed.
    Transitions start as the empirical chain over places, once in every layer, with a
    small mass on all else; then the likelihood is raised until it hardly changes.
    `distil` describes how the automaton is read off.

    Departures from the publication, made to find more automata:

    - With one small mass for all entries, two layers in the middle stay equal. From
      4 states on, the mass of each entry is drawn from an exponential distribution,
      and up to `restarts` such guesses are tried. The first one whose automaton
      predicts all rewards is used, otherwise the one with the fewest wrong rewards.
    - If the automaton contradicts itself at the published threshold, or predicts wrong
      rewards, other thresholds are tried; see `Attempt.of`. The likeliest transitions
      overfit rarely left states, and one wrong edge is enough.
    - The sparse engine considers only hidden states consistent with the observations. It
      computes the same numbers as the dense one, which is as published.

    Args:
        traces: traces of a random policy; rewards are 0 except in the last step.
        states: the number of states of the automaton, including the end.
        irrelevant: labels known to change nothing; by default, no event.
        seed: the seed of the small masses.
        restarts: the number of initial guesses to try.
        tolerance: the convergence threshold; see `baum_welch`.
        iterations: the maximal number of iterations for each guess.
        engine: "sparse" or "dense".
        time_limit: in seconds, for everything.
        progress: called with the iteration of the current guess and the log-likelihood.

    Returns:
        A machine has the status "found" even if it predicts wrong rewards: see
        `details["wrong_rewards"]`. Without a machine the status is "no solution":
        at every threshold a label both ends the task and does not.

    >>> import gymnasium as gym
    >>> import resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=275, seed=0)
    >>> outcome = hmm(traces, states=3)
    >>> outcome.status, outcome.states, outcome.details["wrong_rewards"]
    ('found', 2, 0)
    >>> outcome.machine.step(0, {"Coffee"}), outcome.machine.step(1, {"Stair"})
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
    """Return transitions that stay in their layer, with a small mass on all unseen ones.

    That mass is 1 / (N - 4) before rows are normalised, as published, times a random
    number for each entry if there is a generator.
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
    """Return the generator of an initial guess; None for the published one, which comes first."""
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

"""Hidden Markov models: traces of a task with one final reward → its automaton.

Abate, Almulla, Fox, Hyland and Wooldridge, "Learning Task Automata for Reinforcement Learning
Using Hidden Markov Models" (2023).
"""

from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from resolvent._util.validation import check_at_least
from resolvent.errors import OptionError
from resolvent.machines import EdgeRewardMachine
from resolvent.paper.baselines.hmm_em import Expectation, FinalRewardTask, Fit, Numbers, baum_welch
from resolvent.paper.baselines.outcome import Clock, Outcome, Status, wrong_rewards
from resolvent.traces.symbols import NO_EVENT, Label, label_order, label_text
from resolvent.traces.trace_set import TraceSet

PUBLISHED_THRESHOLD: Final = 1e-3  # probability up to which a transition is taken for noise
_THRESHOLDS: Final = tuple(PUBLISHED_THRESHOLD * 2 ** (rung / 2) for rung in range(17))
_TOLERANCE: Final = 1e-6  # change below which the fit has converged; see `baum_welch`
_MAX_HIDDEN_STATES: Final = 5_000


def hmm(
    traces: TraceSet,
    *,
    states: int,
    seed: int = 0,
    restarts: int = 10,
    iterations: int = 25_000,
    time_limit: float | None = None,
) -> Outcome:
    """Learn the automaton of a task with one reward, at its end, by expectation-maximization.

    `states` counts all states of the automaton including the end, as published. So it is
    one more than a Reward Machine of the same task has: 3, 4 and 5 on the three phase
    grids, whose Reward Machines have 2, 3 and 4 states.

    Actions are omitted. The hidden state is a state of the automaton, called a layer, and an
    observation; the observation and, at the end, the completion are emitted. Transitions start as
    the empirical chain over observations, once in every layer, with a small mass on all others;
    then the likelihood is raised until it hardly changes. `distill` describes how the automaton is
    read off. Random guesses with restarts and further thresholds are departures from the
    publication that find more automata (docs/decisions/worlds-and-paper.md).

    Args:
        traces: Traces of a random policy; rewards are 0 except in the last step.
        states: The number of states of the automaton, including the end.
        seed: The seed of the small masses.
        restarts: The number of initial guesses to try.
        iterations: The maximal number of iterations for each guess.
        time_limit: Seconds for everything.

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
        OptionError: when an option is out of range.
    """
    clock = Clock(time_limit)
    task = FinalRewardTask.of(traces)
    _check_options(task, states, restarts, iterations)
    expectation = Expectation(task, states)
    attempts: list[Attempt] = []
    out_of_time = False
    for number in range(restarts):
        started = clock.seconds
        # The published guess comes first, but with 4 or more states its middle layers stay equal.
        is_published = states < 4 and number == 0
        generator = None if is_published else np.random.default_rng([seed, number])
        guess = first_guess(task, states, generator)
        fit = baum_welch(expectation, guess, clock, tolerance=_TOLERANCE, iterations=iterations)
        out_of_time = fit.out_of_time
        if fit.iterations:
            attempts.append(Attempt.of(traces, task, fit, clock.seconds - started))
        if out_of_time or attempts[-1].wrong_rewards == 0:
            break
    best = min(attempts, key=Attempt.rank, default=None)
    machine = None if best is None else best.distillation.machine
    status: Status = "found" if machine is not None else "no solution"
    details = {
        "states": states,
        "hidden_states": states * len(task.labels),
        "seed": seed,
        **({} if best is None else best.report()),
        "attempts": [attempt.report() for attempt in attempts],
    }
    return Outcome("hmm", "time limit" if out_of_time else status, clock.seconds, machine, details)


def _check_options(task: FinalRewardTask, states: int, restarts: int, iterations: int) -> None:
    check_at_least(2, states=states)
    check_at_least(1, restarts=restarts, iterations=iterations)
    hidden = states * len(task.labels)
    if hidden > _MAX_HIDDEN_STATES:
        raise OptionError(
            f"{states} states with {len(task.labels):,} observations are {hidden:,} hidden states, "
            f"more than {_MAX_HIDDEN_STATES:,}: use fewer states or traces of a smaller world"
        )


def first_guess(
    task: FinalRewardTask, states: int, generator: np.random.Generator | None
) -> Numbers:
    """Return transitions that stay in their layer, with a small mass on all unseen ones.

    That mass is 1 / (N - 4) before rows are normalized, as published, times a random
    number for each entry if there is a generator.
    """
    n_observations = len(task.labels)
    steps = np.zeros((n_observations, n_observations))
    np.add.at(steps, (task.sources, task.targets), 1.0)
    visits = steps.sum(axis=1, keepdims=True)
    guess = np.kron(np.eye(states), steps / np.maximum(visits, 1.0))
    size = len(guess)
    drawn = np.ones((size, size)) if generator is None else generator.exponential(size=(size, size))
    guess = np.where(guess == 0, drawn / max(size - 4, 1), guess)
    normalized: Numbers = guess / guess.sum(axis=1, keepdims=True)
    return normalized


@dataclass(frozen=True)
class Attempt:
    """The result from one initial guess.

    `published` is the contradiction at the published threshold, if any; `of_pairs` says that
    the threshold applied to `pair_shares`, not to probabilities.
    """

    fit: Fit
    seconds: float
    published: str | None
    of_pairs: bool
    threshold: float
    distillation: "Distillation"
    wrong_rewards: int | None

    @classmethod
    def of(cls, traces: TraceSet, task: FinalRewardTask, fit: Fit, seconds: float) -> "Attempt":
        """Distill at the first threshold whose automaton predicts fewest rewards wrongly.

        First come the published one and higher ones of the same probabilities, then those of
        `pair_shares`: wrong transitions of a rarely left state may be likely, of a small share.
        """
        attempts: list[Attempt] = []
        for of_pairs, threshold in product((False, True), _THRESHOLDS):
            weights = pair_shares(fit.counts, task) if of_pairs else fit.transitions
            distillation = distill(weights, task, threshold)
            machine = distillation.machine
            wrong = None if machine is None else wrong_rewards(machine, traces)
            published = attempts[0].published if attempts else distillation.contradiction
            attempts.append(cls(fit, seconds, published, of_pairs, threshold, distillation, wrong))
            if wrong == 0:
                break
        return min(attempts, key=cls.rank)

    def rank(self) -> tuple[bool, int, float]:
        """Return the sorting key, best first: few wrong rewards, then a high likelihood."""
        wrong = self.wrong_rewards
        return wrong is None, wrong or 0, -self.fit.log_likelihood

    def report(self) -> dict[str, Any]:
        """Return the attempt's details as JSON values."""
        merges = asdict(self.distillation)
        del merges["machine"]
        return {
            "iterations": self.fit.iterations,
            "log_likelihood": self.fit.log_likelihood,
            "converged": self.fit.converged,
            "seconds_per_iteration": self.seconds / self.fit.iterations,
            "wrong_rewards": self.wrong_rewards,
            "threshold": self.threshold,
            "threshold_of": "pairs" if self.of_pairs else "rows",
            "contradiction_at_published_threshold": self.published,
            "distillation": merges,
        }


def pair_shares(counts: Numbers, task: FinalRewardTask) -> Numbers:
    """Divide each expected count by that of all transitions between the same observations."""
    n_observations = len(task.labels)
    layers = len(counts) // n_observations
    by_observation = counts.reshape(layers, n_observations, layers, n_observations)
    totals = by_observation.sum(axis=(0, 2), keepdims=True)
    shares: Numbers = by_observation / np.where(totals > 0, totals, 1.0)
    return shares.reshape(counts.shape)


# --- Distillation --------------------------------------------------------------------------------

_Arrow: TypeAlias = tuple[int, Label, int]
_Table: TypeAlias = dict[int, dict[Label, int]]


@dataclass(frozen=True)
class Distillation:
    """The automaton, or the reason for its absence, with counts of merges.

    `merged_by_label` counts merges of the targets of one label, `merged_by_no_event` merges
    of the two ends of an edge without event, and `folded` states merged afterwards.
    """

    machine: EdgeRewardMachine | None
    contradiction: str | None
    edges: int
    merged_by_label: int = 0
    merged_by_no_event: int = 0
    folded: int = 0


class _Contradiction(Exception):  # noqa: N818
    """A label would both end the task and not end it."""


class _Classes:
    """Classes of merged states. The end has the largest number and is never merged."""

    def __init__(self, end: int) -> None:
        self.of = list(range(end + 1))
        """The smallest state of each state's class; never changed in place: copies may share it."""
        self.end = end

    def merge(self, first: int, second: int, label: Label) -> bool:
        """Merge two targets of a label; return whether they were separate."""
        root, absorbed = sorted((self.of[first], self.of[second]))
        if root == absorbed:
            return False
        if absorbed == self.end:
            raise _Contradiction(
                f"after one label sequence, {label_text(label)!r} both ends the task and does not"
            )
        self.of = [root if state == absorbed else state for state in self.of]
        return True


def distill(weights: Numbers, task: FinalRewardTask, threshold: float) -> Distillation:
    """Read the automaton of a task off fitted transitions, whose probabilities are the weights.

    1. Transitions above the threshold that are reachable from the starts are edges, with the
       label of the observation that they lead to; all states of the last layer are one, the end.
    2. Cone lumping: while a label leads from one state to two, these are merged.
       The initial states are merged first, as nothing has been read yet.
    3. Bias removal: the ends of an edge without event are merged, until nothing changes.
    4. A state is folded into an earlier one that no label distinguishes from it. This is
       not in the published method. It changes no output for label sequences that are possible
       with these observations, and prevents an observation that only some labels can follow
       from counting as a separate state.
    """
    arrows = _likely_arrows(weights, task, threshold)
    classes = _Classes(len(weights) - len(task.labels))
    start = int(task.starts.min())
    try:
        for observation in np.unique(task.starts).tolist():
            classes.merge(start, observation, NO_EVENT)
        by_label, by_no_event = _merge_to_fixpoint(arrows, classes)
    except _Contradiction as contradiction:
        return Distillation(None, str(contradiction), len(arrows))
    table, end = _numbered(arrows, classes, start)
    folded, end_after = _folded(table, end)
    labels_of: dict[tuple[int, int, float], list[Label]] = {}
    for source, row in folded.items():
        for label, target in row.items():
            reward = task.reward if target == end_after else 0.0
            labels_of.setdefault((source, target, reward), []).append(label)
    names = frozenset[str]().union(*(label for row in folded.values() for label in row))
    machine = EdgeRewardMachine.of_labels(labels_of, names, end_after)
    return Distillation(machine, None, len(arrows), by_label, by_no_event, end - end_after)


def _likely_arrows(weights: Numbers, task: FinalRewardTask, threshold: float) -> list[_Arrow]:
    """Return the edges that can be reached, in the order of a breadth-first search."""
    end = len(weights) - len(task.labels)
    queue = np.unique(task.starts).tolist()
    reached = {*queue, end}
    arrows = []
    for source in queue:
        for state in np.flatnonzero(weights[source] > threshold).tolist():
            target = min(state, end)
            arrows.append((source, task.labels[state % len(task.labels)], target))
            if target not in reached:
                reached.add(target)
                queue.append(target)
    return arrows


def _merge_to_fixpoint(arrows: list[_Arrow], classes: _Classes) -> tuple[int, int]:
    """Merge as steps 2 and 3 of `distill` say; return the number of merges of each."""
    total_by_label = total_by_no_event = 0
    while True:
        by_label = by_no_event = 0
        targets: dict[tuple[int, Label], int] = {}
        for source, label, target in arrows:
            if label == NO_EVENT:
                by_no_event += classes.merge(source, target, label)
            first = targets.setdefault((classes.of[source], label), target)
            by_label += classes.merge(first, target, label)
        total_by_label += by_label
        total_by_no_event += by_no_event
        if not (by_label or by_no_event):
            return total_by_label, total_by_no_event


def _numbered(arrows: list[_Arrow], classes: _Classes, start: int) -> tuple[_Table, int]:
    """Number classes breadth-first from 0 in label order; the end comes last and has no row."""
    rows: _Table = {}
    for source, label, target in arrows:
        rows.setdefault(classes.of[source], {})[label] = classes.of[target]
    number = {classes.of[start]: 0}
    queue = list(number)
    for state in queue:
        row = rows.get(state, {})
        for label in sorted(row, key=label_order):
            if row[label] != classes.end and row[label] not in number:
                number[row[label]] = len(number)
                queue.append(row[label])
    end = number[classes.end] = len(number)
    table = {
        number[state]: {label: number[target] for label, target in rows.get(state, {}).items()}
        for state in queue
    }
    return table, end


def _folded(table: _Table, end: int) -> tuple[_Table, int]:
    """Fold each state into the first earlier one that no label distinguishes from it."""
    classes, rows = _Classes(end), dict(table)
    for later in range(1, end):
        for earlier in range(later):
            if classes.of[later] != later or classes.of[earlier] != earlier:
                continue
            trial = copy(classes)
            with suppress(_Contradiction):
                rows |= _fold(rows, trial, earlier, later)
                classes = trial
    arrows = [(source, label, to) for source, row in table.items() for label, to in row.items()]
    return _numbered(arrows, classes, 0)


def _fold(rows: _Table, classes: _Classes, left: int, right: int) -> _Table:
    """Merge two states and all that this forces; return the changed rows."""
    changed: _Table = {}
    pairs: list[tuple[int, int, Label]] = [(left, right, NO_EVENT)]
    for first, second, read in pairs:
        root, absorbed = sorted((classes.of[first], classes.of[second]))
        if classes.merge(root, absorbed, read):
            row = changed[root] = dict(changed.get(root, rows[root]))
            for label, target in changed.get(absorbed, rows[absorbed]).items():
                pairs.append((row.setdefault(label, target), target, label))
    return changed

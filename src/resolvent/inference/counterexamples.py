"""Counterexample-guided refinement: machines and the replay of all traces → better machines.

Input: machines learned from some traces, and their replay of all traces. Output: traces to learn
from next (`counterexamples`, `traces_with_rare_transitions`), smaller machines
(`merge_equal_states`), and machines with the outputs and counts of all traces (`with_evidence`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Machine, Machines, Support, Termination
from resolvent.machines.memory import number_states
from resolvent.machines.tables import AlternativeTransitions, OutputCounts
from resolvent.preprocess.timing import labels_read
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.counts import MachineCounts, ReplayCounts, Rows, outputs_vary
from resolvent.replay.replaying import MachineTables, states_at_steps
from resolvent.traces import Codes, Label, TraceSet, Vocabulary
from resolvent.traces.vocabulary import distinct_numbers

COMMON: Final = 64
"""Number of steps for each trace needed from which on a transition is common: any few traces have
it."""

_NOT_RARE: Final = np.iinfo(np.int64).max

_MOST_STATES: Final = 128
"""Number of states beyond which comparing all pairs takes longer than learning again."""

M = TypeVar("M", bound=Machine)


# ---- traces to learn from ----------------------------------------------------


def counterexamples(
    counts: ReplayCounts, chosen: NDArray[np.int64], most: int
) -> NDArray[np.int64]:
    """Return the numbers of traces that the machines cannot explain, ascending: `most` or one more.

    A conflict has two traces, a missing transition one. Short traces come first, and the first
    conflict of each state before the second one of any. Traces learned from before (`chosen`) are
    left out; each counterexample has another trace, since the machines explain those.
    """
    candidates: list[tuple[Any, ...]] = []
    for machine, replayed in enumerate(counts.machines.values()):
        # The first two of the conflicting outputs of each query; later rounds meet a third.
        conflicts, missing = replayed.conflicts, replayed.missing
        pairs = conflicts[["state", "query"]]
        first = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)])
        candidates += _ranked(machine, conflicts[first + 1], conflicts["trace"][first], "query")
        candidates += _ranked(machine, missing, missing["trace"], "label")
    learned = set(chosen.tolist())
    numbers: set[int] = set()
    for *_, first_trace, second_trace in sorted(candidates):
        if len(numbers) >= most:
            break
        numbers |= {first_trace, second_trace} - learned
    return np.array(sorted(numbers), np.int64)


def _ranked(
    machine: int, rows: Rows, second_traces: NDArray[np.int64], symbol: str
) -> Iterator[tuple[Any, ...]]:
    """Yield a sort key of each counterexample, which ends in the numbers of its traces.

    The first counterexample of each state comes before the second one of any.
    """
    order = np.lexsort((rows[symbol], rows["key"], rows["length"], rows["state"]))
    of_state: Counter[int] = Counter()
    names = ("state", "length", "key", symbol, "trace")
    columns = (rows[name][order].tolist() for name in names)
    rows_in_order = zip(*columns, second_traces[order].tolist(), strict=True)
    for state, length, key, code, trace, second in rows_in_order:
        yield of_state[state], length, key, state, code, machine, trace, second
        of_state[state] += 1


def transitions_at_steps(machines: Machines, traces: TraceSet) -> list[NDArray[np.int64]]:
    """Return the number of the transition that each machine takes at each step; −1 for none."""
    read = labels_read(traces, machines.timing)
    columns = []
    for states in states_at_steps(machines, traces).values():
        # A transition reads a label in the state of a step before, or initially in state 0.
        before = np.roll(states, 1)
        before[traces.offsets[:-1]] = 0
        number = before.astype(np.int64) * len(traces.labels) + read
        columns.append(np.where((before >= 0) & (read >= 0), number, -1))
    return columns


def traces_with_rare_transitions(
    transitions: Iterable[NDArray[np.int64]],
    offsets: NDArray[np.int64],
    order: NDArray[np.int64],
    times: int,
    most_steps: int,
) -> NDArray[np.int64]:
    """Return the numbers of traces, ascending, with each rare transition in `times` of them.

    `transitions` has a column for each machine: their number at each step, −1 for none.
    For each transition the first traces in `order` that take it are chosen; traces that are not in
    `order` do not count. If the chosen traces have more than `most_steps`, those with the rarest
    transitions are kept.
    """
    lengths = np.diff(offsets)
    rank = np.full(len(lengths), -1, np.int64)
    rank[order] = np.arange(len(order))
    rank_of_step = np.repeat(rank, lengths)
    # By rank: the number of traces that take the trace's rarest transition.
    rarest = np.full(len(order), _NOT_RARE)
    for column in transitions:
        steps = np.flatnonzero((column >= 0) & (rank_of_step >= 0))
        _, number = distinct_numbers(column[steps], int(column.max(initial=0)) + 1)
        rare = np.bincount(number)[number] <= COMMON * times
        pairs = np.unique(number[rare] * len(order) + rank_of_step[steps[rare]])
        transition, trace = np.divmod(pairs, max(len(order), 1))
        first, after = (np.searchsorted(transition, transition, side) for side in ("left", "right"))
        chosen = np.arange(len(pairs)) - first < times
        np.minimum.at(rarest, trace[chosen], (after - first)[chosen])
    by_rarity = np.argsort(rarest, kind="stable")[: int(np.sum(rarest < _NOT_RARE))]
    within = np.cumsum(lengths[order[by_rarity]]) <= most_steps
    numbers: NDArray[np.int64] = np.sort(order[by_rarity[within]])
    return numbers


# ---- smaller machines --------------------------------------------------------


def merge_equal_states(machine: M, seen: MachineCounts) -> M | None:
    """Return the machine with indistinguishable states merged; None if there are none.

    Few traces may separate equal states. Two states are merged if this, with all merges that it
    forces, causes no conflict in any trace. For structure-complete traces the result is minimal.
    The transitions are final, the outputs are still to be collected; the merge log of the larger
    machine is dropped.
    """
    if machine.states > _MOST_STATES:
        return None
    classes = _StateClasses.of(machine.transitions, seen)
    while (pair := classes.best_pair()) is not None:
        classes.merge(*pair)
    if classes.states == machine.states:
        return None
    return replace(machine, transitions=classes.numbered(), decisions=None)


@dataclass
class _StateClasses:
    """States, some of them merged; `outputs` and `transitions` have a row for each.

    `apart[p, q]`: p and q cannot be merged; merging only adds outputs, so it stays true.
    Columns of `outputs` are queries with more than one output; −1 stands for unseen.
    """

    outputs: Codes
    transitions: Codes
    apart: NDArray[np.bool_]
    root: list[int]

    @classmethod
    def of(cls, table: Codes, seen: MachineCounts) -> "_StateClasses":
        query, output = (np.ascontiguousarray(seen.outputs[name]) for name in ("query", "output"))
        varying = outputs_vary(query, output, int(query.max(initial=-1)) + 1)
        queries, column = np.unique(query[varying], return_inverse=True)
        outputs = np.full((len(table), len(queries)), -1, np.int32)
        outputs[seen.outputs["state"][varying], column] = output[varying]
        apart = np.array([_conflict(row, outputs) for row in outputs]).reshape(len(outputs), -1)
        transitions = np.where(table >= 0, table, -1)
        # Of very many labels, most have the same transitions.
        distinct = np.unique(transitions, axis=1).T if transitions.size else transitions.T
        while True:
            before = int(apart.sum())
            for targets in distinct:
                seen_states = np.flatnonzero(targets >= 0)
                reached = targets[seen_states]
                apart[np.ix_(seen_states, seen_states)] |= apart[np.ix_(reached, reached)]
            if int(apart.sum()) == before:
                return cls(outputs, transitions, apart, list(range(len(transitions))))

    @property
    def states(self) -> int:
        """Number of states that are left."""
        return len(set(self.root))

    def best_pair(self) -> tuple[int, int] | None:
        """Return the pair on which most outputs agree, among those not known to be apart."""

        def agreeing(pair: tuple[int, int]) -> int:
            p, q = self.outputs[list(pair)]
            return int(np.sum((p >= 0) & (p == q)))

        roots = sorted(set(self.root))
        pairs = [(p, q) for q in roots for p in roots if p < q and not self.apart[p, q]]
        return max(pairs, key=agreeing, default=None)  # the first of equals

    def merge(self, p: int, q: int) -> None:
        """Merge two states with all merges that this forces; on a conflict mark them as apart."""
        outputs, transitions, root = self.outputs.copy(), self.transitions.copy(), list(self.root)

        def find(state: int) -> int:
            while root[state] != state:
                state = root[state]
            return state

        queue = [(p, q)]
        for pair in queue:
            a, b = sorted(map(find, pair))
            if a == b:
                continue
            if self.apart[a, b] or _conflict(outputs[a], outputs[b : b + 1])[0]:
                self.apart[p, q] = self.apart[q, p] = True
                return
            root[b] = a
            outputs[a] = np.where(outputs[a] >= 0, outputs[a], outputs[b])
            for label, target in enumerate(transitions[b].tolist()):
                if target >= 0 and transitions[a, label] >= 0:
                    queue.append((int(transitions[a, label]), target))
                elif target >= 0:
                    transitions[a, label] = target
        final = [find(state) for state in range(len(root))]
        # A state that is apart from a member of a class is apart from all of it.
        for state, merged in enumerate(final):
            if state != merged:
                self.apart[merged] |= self.apart[state]
                self.apart[:, merged] |= self.apart[:, state]
        self.outputs, self.transitions, self.root = outputs, transitions, final

    def numbered(self) -> Codes:
        """Return the transitions of the states that are left, numbered breadth first."""
        root = np.array([*self.root, -1], np.int32)
        return number_states(root[self.transitions])[0]


def _conflict(row: Codes, rows: Codes) -> Any:
    """Return which rows of outputs differ from one row where both are seen."""
    return np.any((row >= 0) & (rows >= 0) & (row != rows), axis=1)


# ---- machines with the evidence of all traces --------------------------------


def with_evidence(
    machines: Machines, counts: ReplayCounts, trivial: Collection[Label] = (), *, constants: bool
) -> list[Machine]:
    """Return the machines with the outputs and counts of all traces, in common codes.

    `trivial` labels are trivial for all machines, besides those of each machine. With `constants`,
    outputs that are the same in every state are stored apart, as in reduction. If a state has
    several outputs for a query, the machine predicts the most frequent one, and keeps the others
    in its output counts. Steps with an unknown state are left out.
    """
    tables = MachineTables.of(machines, counts.alphabets, trivial)
    machines_rebuilt = []
    for name, machine in machines.items():
        seen, observations = counts.machines[name], counts.alphabets.observations
        if machine.supplemented:
            seen, observations = _paired(seen, counts.alphabets, machines.transition.states)
        transitions = tables.machines[name].transitions
        machines_rebuilt.append(
            _rebuilt(machine, seen, counts.alphabets, observations, transitions, trivial, constants)
        )
    return machines_rebuilt


def _paired(
    seen: MachineCounts, alphabets: Alphabets, states: int
) -> tuple[MachineCounts, Vocabulary[Any]]:
    """Give the pairs of observation and state that occur codes of their own."""
    outputs = seen.known_outputs.copy()
    pair, action = np.divmod(outputs["query"], len(alphabets.actions))
    occurring, code = distinct_numbers(pair, len(alphabets.observations) * states)
    outputs["query"] = code * len(alphabets.actions) + action
    observation, state = np.divmod(occurring, states)
    observed = map(list(alphabets.observations).__getitem__, observation.tolist())
    pairs = Vocabulary(zip(observed, state.tolist(), strict=True))
    return MachineCounts(outputs, seen.transitions), pairs


def _rebuilt(
    machine: M,
    seen: MachineCounts,
    alphabets: Alphabets,
    observations: Vocabulary[Any],
    transitions: Codes,
    named_trivial: Collection[Label],
    constants: bool,
) -> M:
    state, query, output, count = (
        np.ascontiguousarray(seen.known_outputs[name])
        for name in ("state", "query", "output", "count")
    )
    size = len(observations) * len(alphabets.actions)
    constant = np.zeros(len(output), bool)
    if constants:
        constant = ~outputs_vary(query, output, size)
    constant_query, position = distinct_numbers(query[constant], size)
    constant_value = np.empty(len(constant_query), np.int32)
    constant_value[position] = output[constant]
    times = np.bincount(position, count[constant], len(constant_query)).astype(np.int64)
    by_state = OutputCounts(*(column[~constant] for column in (state, query, output, count)))
    trivial = tuple(sorted(map(alphabets.labels.code, {*machine.trivial_labels, *named_trivial})))
    transition_counts = np.zeros(transitions.shape, np.int64)
    rows = seen.transitions[seen.transitions["output"] >= 0]
    transition_counts[rows["state"], rows["label"]] = rows["count"]
    transition_counts[:, list(trivial)] = 0  # they are not transitions
    return replace(
        machine,
        labels=alphabets.labels,
        observations=observations,
        actions=alphabets.actions,
        outputs=alphabets.outputs(machine.predicts),
        transitions=transitions,
        trivial=trivial,
        output_state=by_state.state[by_state.starts],
        output_query=by_state.query[by_state.starts],
        output_value=by_state.main,
        output_counts=by_state.varying(),
        constant_query=constant_query,
        constant_value=constant_value,
        observed_constant_state=state[constant],
        observed_constant_query=query[constant],
        support=Support(
            transition_counts,
            by_state.totals,
            times,
            count[constant],
            _in_common_codes(machine, alphabets.labels),
        ),
    )


def _in_common_codes(machine: Machine, labels: Vocabulary[Label]) -> AlternativeTransitions | None:
    """Return the log odds of a machine's transitions, by the label codes of all traces."""
    alternatives = None if machine.support is None else machine.support.alternatives
    if alternatives is None:
        return None
    codes = [labels.code(label) for label in machine.labels]
    target = np.full((machine.states, len(labels)), -1, np.int32)
    log_odds = np.zeros(target.shape)
    target[:, codes], log_odds[:, codes] = alternatives.target, alternatives.log_odds
    return AlternativeTransitions(target, log_odds)


def observed_termination(counts: ReplayCounts) -> Termination:
    """Return the augmented states and actions that ended a trace always, and sometimes."""
    alphabets = counts.alphabets

    def named(rows: Rows) -> frozenset[tuple[Any, ...]]:
        observations, *states, actions = (part.tolist() for part in counts.unpack(rows["number"]))
        observed = map(list(alphabets.observations).__getitem__, observations)
        taken = map(list(alphabets.actions).__getitem__, actions)
        return frozenset(zip(observed, *states, taken, strict=True))

    endings = counts.terminations
    always = endings["ended"] == endings["count"]
    return Termination(named(endings[always]), named(endings[~always]))

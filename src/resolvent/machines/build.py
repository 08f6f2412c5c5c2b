"""The last step of inference: automata of state merging, or tables → canonically numbered machines.

Also what machines gain afterwards: labels that merging did without, counts of noisy samples, the
decisions of state merging, and guesses for unseen entries.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.validation import check_table
from resolvent.machines.machine import Machine
from resolvent.machines.memory import number_states
from resolvent.machines.tables import MergeDecision, OutputCounts, Support, no_codes, no_numbers
from resolvent.preprocess.reduction import ConstantOutputs
from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.traces.symbols import Label, Symbol
from resolvent.traces.vocabulary import Codes, Vocabulary

M = TypeVar("M", bound=Machine)
_CELL_BYTES: Final = 24  # bytes for each transition table entry while a machine is built

STEEPNESS: Final = 4
"""Power of the share of equal outputs in the weight of a vote: a state with half of them equal
has a sixteenth of the weight of one with all equal."""


class RawMergeEvent(NamedTuple):
    """One decision of state merging; `red` is None when `blue` was promoted to a state.

    `red` and `blue` are nodes of the prefix tree. `score` is the number of outputs that agreed,
    `folded` the number of tree nodes that the merge removed.
    """

    red: int | None
    blue: int
    score: int
    folded: int


@dataclass(frozen=True, slots=True, eq=False)
class RawAutomaton:
    """An automaton over codes; states are numbered in the order of their promotion.

    `access` is the tree node that each state began as. Transitions are sorted by state and label,
    outputs by state and α-input; the counts are numbers of rows. `events` are the decisions in
    order, `attempts` the folds that were tried, and `work` the effort in units that are the same
    on every computer, 0 if it was not counted.

    If time ran out (`finished` is False), a state may have seen several outputs for an α-input.
    Then `output_value` is the most frequent one, and `wrong` rows are predicted wrongly.
    """

    access: Codes
    transition_state: Codes
    transition_label: Codes
    transition_target: Codes
    transition_count: NDArray[np.int64]
    output_state: Codes = field(default_factory=no_codes)
    output_alpha: Codes = field(default_factory=no_codes)
    output_value: Codes = field(default_factory=no_codes)
    output_count: NDArray[np.int64] = field(default_factory=no_numbers)
    events: tuple[RawMergeEvent, ...] = ()
    attempts: int = 0
    tree_nodes: int = 0
    finished: bool = True
    wrong: int = 0
    work: int = 0

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.access)


def automaton_of_transitions(transitions: Codes) -> RawAutomaton:
    """Return the automaton of a table [state, label], −1 for no transition, without outputs."""
    state, label = (column.astype(np.int32) for column in np.nonzero(transitions >= 0))
    return RawAutomaton(
        access=np.zeros(len(transitions), np.int32),
        transition_state=state,
        transition_label=label,
        transition_target=transitions[state, label],
        transition_count=np.zeros(len(state), np.int64),
    )


def automaton_from_columns(columns: dict[str, Any], tree_nodes: int) -> RawAutomaton:
    """Return the automaton of the columns that the compiled core returns."""
    red, *fields = (columns.pop(f"event_{name}").tolist() for name in RawMergeEvent._fields)
    merged_into = [None if state < 0 else state for state in red]
    return RawAutomaton(
        events=tuple(map(RawMergeEvent, merged_into, *fields)), tree_nodes=tree_nodes, **columns
    )


class BudgetExceeded(Exception):  # noqa: N818
    """The budget of state merging was exceeded."""


class StateLimitExceeded(BudgetExceeded):
    """Merging found more states than the limit."""


class WorkLimitExceeded(BudgetExceeded):
    """Merging took more work than the limit."""


class Vocabularies(NamedTuple):
    """The symbols of a machine."""

    labels: Vocabulary[Label]
    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    outputs: Vocabulary[Any]


def build_machine(
    machine_type: type[M],
    automaton: RawAutomaton,
    samples: SampleSet,
    constants: ConstantOutputs,
    trivial: tuple[int, ...],
    **settings: Any,
) -> M:
    """Build a machine of the given class, with the outputs and labels that reduction removed.

    Paper: "Recovery" under both preprocessing rules.
    """
    check_table(automaton.states, len(samples.labels), _CELL_BYTES, "a machine's states by labels")
    table = np.full((automaton.states, len(samples.labels)), -1, np.int32)
    table[automaton.transition_state, automaton.transition_label] = automaton.transition_target
    table[:, list(trivial)] = np.arange(automaton.states, dtype=np.int32)[:, None]
    transitions, _, number = number_states(table)
    transition_count = np.zeros(table.shape, np.int64)
    transition_count[number[automaton.transition_state], automaton.transition_label] = (
        automaton.transition_count
    )
    state = number[automaton.output_state]
    query = samples.alpha_keys[automaton.output_alpha]
    by_state = np.lexsort((query, state))
    constant_query = samples.alpha_keys[constants.alpha]
    by_query = np.argsort(constant_query)
    return machine_type(
        labels=samples.labels,
        observations=samples.observations,
        actions=samples.actions,
        outputs=samples.outputs,
        transitions=transitions,
        trivial=trivial,
        output_state=state[by_state],
        output_query=query[by_state],
        output_value=automaton.output_value[by_state],
        constant_query=constant_query[by_query],
        constant_value=constants.output[by_query],
        support=Support(
            transitions=transition_count,
            outputs=automaton.output_count[by_state],
            constants=constants.count[by_query],
        ),
        **settings,
    )


def machine_of_tables(
    machine_type: type[M],
    vocabularies: Vocabularies,
    transitions: Codes,
    outputs: tuple[NDArray[np.int64], NDArray[np.int64], Codes],
    *,
    initial: int = 0,
    trivial: tuple[int, ...] = (),
    **settings: Any,
) -> tuple[M, Codes]:
    """Build a machine from known tables, with states in any order.

    `outputs` are columns of state, query and output; all count as observed in their state.
    Returns the machine, and the new number of each state, −1 for unreachable ones.
    """
    swapped = np.arange(len(transitions), dtype=np.int32)
    swapped[[0, initial]] = initial, 0  # its own inverse
    table = transitions[swapped]
    table[table >= 0] = swapped[table[table >= 0]]
    table[:, list(trivial)] = np.arange(len(table), dtype=np.int32)[:, None]
    table, _, number = number_states(table)
    old_state, query, output = outputs
    state = number[swapped[old_state]]
    reachable = np.lexsort((query, state))[np.count_nonzero(state < 0) :]
    state, query, output = state[reachable], query[reachable], output[reachable]
    distinct, first, group = np.unique(query, return_index=True, return_inverse=True)
    varies = np.zeros(len(distinct), bool)
    varies[group[output != output[first][group]]] = True
    by_state = varies[group]
    machine = machine_type(
        **vocabularies._asdict(),
        transitions=table,
        trivial=trivial,
        output_state=state[by_state],
        output_query=query[by_state],
        output_value=output[by_state],
        constant_query=distinct[~varies],
        constant_value=output[first][~varies],
        observed_constant_state=state[~by_state],
        observed_constant_query=query[~by_state],
        **settings,
    )
    return machine, number[swapped]


def restore_loops(machine: M, dropped: tuple[int, ...], histories: Histories) -> M:
    """Return a machine with the labels it was inferred without: loops in the states that read them.

    In other states they stay unseen: these labels were not observed to change anything, but
    unlike trivial labels are not assumed to change nothing.
    """
    if not dropped or machine.support is None:
        return machine
    looping = machine.transitions.copy()
    looping[:, dropped] = np.arange(machine.states, dtype=np.int32)[:, None]
    states = replace(machine, transitions=looping).replay(histories.beta, histories.offsets)
    rows = np.flatnonzero(np.isin(histories.beta, dropped))
    count = machine.support.transitions.copy()
    np.add.at(count, (states[rows], histories.beta[rows]), 1)
    transitions = machine.transitions.copy()
    is_read = np.zeros(count.shape, bool)
    is_read[:, dropped] = count[:, dropped] > 0
    transitions[is_read] = np.nonzero(is_read)[0]
    return replace(
        machine, transitions=transitions, support=replace(machine.support, transitions=count)
    )


def with_sample_counts(machine: M, samples: SampleSet) -> M:
    """Return the machine with the outputs and counts of noisy samples.

    The machine and the samples share their codes. Transitions that no sample takes are removed.
    Each output holds in the state it was observed in only.
    """
    states = machine.replay(samples.beta, samples.offsets)
    rows = np.flatnonzero((samples.alpha >= 0) & (states >= 0))
    columns = states[rows], samples.alpha_keys[samples.alpha[rows]], samples.output[rows]
    (state, query, output), count = np.unique(np.stack(columns), axis=1, return_counts=True)
    outputs = OutputCounts(state.astype(np.int32), query, output.astype(np.int32), count)
    source = np.zeros_like(states)
    source[1:] = states[:-1]
    source[samples.offsets[:-1][np.diff(samples.offsets) > 0]] = 0
    rows = np.flatnonzero((samples.beta >= 0) & (source >= 0))
    transition_count = np.zeros(machine.transitions.shape, np.int64)
    np.add.at(transition_count, (source[rows], samples.beta[rows]), 1)
    transitions = np.where(transition_count > 0, machine.transitions, np.int32(-1))
    trivial = list(machine.trivial)
    transitions[:, trivial] = np.arange(machine.states, dtype=np.int32)[:, None]
    transition_count[:, trivial] = 0
    return replace(
        machine,
        transitions=transitions,
        output_state=outputs.state[outputs.starts],
        output_query=outputs.query[outputs.starts],
        output_value=outputs.main,
        output_counts=outputs.varying(),
        support=Support(transition_count, outputs.totals, no_numbers()),
    )


def decisions_of(
    machine: Machine, histories: Histories, automaton: RawAutomaton
) -> tuple[MergeDecision, ...]:
    """Return the events of state merging as decisions about the states of its machine.

    Each blue node is the child of one red state by one label, so every event decides one
    transition. `histories` are those that were merged, without trivial labels.
    """
    node, parent, label = _core.history_columns(histories.tree)
    states = np.zeros(len(parent), np.int32)
    states[node] = machine.replay(histories.beta, histories.offsets)
    blue = np.array([event.blue for event in automaton.events], np.int64)
    columns = (column.tolist() for column in (states[parent[blue]], label[blue], states[blue]))
    return tuple(
        MergeDecision(
            source, machine.labels[code], target, event.red is None, event.score, event.folded
        )
        for source, code, target, event in zip(*columns, automaton.events, strict=True)
    )


def with_guesses(machine: M) -> M:
    """Return a machine with a transition and an output wherever other states have one.

    Observed entries and the numbers of states stay as they are.
    """
    queries, column = np.unique(machine.output_query, return_inverse=True)
    outputs = np.full((machine.states, len(queries)), -1, np.int32)
    outputs[machine.output_state, column] = machine.output_value
    transitions, outputs = guess_missing(machine.transitions, outputs)
    state, column = np.nonzero(outputs >= 0)
    return replace(
        machine,
        transitions=transitions,
        output_state=state.astype(np.int32),
        output_query=queries[column],
        output_value=outputs[state, column],
        support=None,
        decisions=None,
    )


def guess_missing(transitions: Codes, outputs: Codes) -> tuple[Codes, Codes]:
    """Return tables [state, label] and [state, query] with a guess for every −1.

    States with equal outputs mostly agree in other respects as well, so each state votes with a
    weight that grows with its share of equal outputs (docs/decisions/machines.md). Queries without
    an output in any state keep −1. A label that loops in other states is taken to loop, a label
    with another target to lead there. Ties prefer the loop, then the lowest code.
    """
    all_transitions, all_outputs = transitions.copy(), outputs.copy()
    for state in np.flatnonzero((transitions < 0).any(1) | (outputs < 0).any(1)).tolist():
        both = (outputs >= 0) & (outputs[state] >= 0)
        equal = (both & (outputs == outputs[state])).sum(1)
        votes = ((equal + 0.5) / (both.sum(1) + 1)) ** STEEPNESS
        votes[state] = 0
        all_transitions[state] = _elected(transitions, state, votes, is_transition=True)
        all_outputs[state] = _elected(outputs, state, votes, is_transition=False)
    return all_transitions, all_outputs


def _elected(table: Codes, state: int, votes: NDArray[np.float64], *, is_transition: bool) -> Codes:
    """Return a row of the table with the most voted entry for each −1."""
    row: Codes = table[state].copy()
    unknown = np.flatnonzero(row < 0)
    voter, column = np.nonzero(table[:, unknown] >= 0)
    choice = table[voter, unknown[column]]
    preferred = -1
    if is_transition:
        choice = np.where(choice == voter, state, choice)
        row[unknown] = preferred = state
    width = int(choice.max(initial=0)) + 1
    pairs, group = np.unique(column * width + choice, return_inverse=True)
    total = np.bincount(group, votes[voter])
    column, choice = np.divmod(pairs, width)
    order = np.lexsort((choice, choice != preferred, -total, column))
    voted_on, first = np.unique(column[order], return_index=True)
    row[unknown[voted_on]] = choice[order][first]
    return row

"""The last step of inference: raw automata or known tables → canonically numbered machines.

Also the counts of samples for a machine, and its description length, by which machines are
chosen.
"""

from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._core import binary_log, log_gamma, log_gammas, natural_log, power
from resolvent._util.validation import check_table
from resolvent.machines.automaton import RawAutomaton
from resolvent.machines.counts import Support, group_outputs
from resolvent.machines.knowledge import MergeDecision
from resolvent.machines.machine import Machine
from resolvent.machines.tables import breadth_first
from resolvent.preprocess.reduction import ConstantOutputs
from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.traces.vocabulary import Codes, Vocabulary

M = TypeVar("M", bound=Machine)

_CELL_BYTES: Final = 24
"""Bytes for each transition table entry while a machine is built."""

_MAX_PRIOR: Final = 0.5
"""Largest prior count of each symbol: that of Krichevsky and Trofimov."""


def build_machine(
    kind: type[M],
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
    order = breadth_first(table)
    number = np.full(automaton.states + 1, -1, np.int32)  # the last is for targets of −1
    number[order] = np.arange(automaton.states, dtype=np.int32)

    transition_count = np.zeros(table.shape, np.int64)
    transition_count[number[automaton.transition_state], automaton.transition_label] = (
        automaton.transition_count
    )

    state = number[automaton.output_state]
    query = samples.alpha_keys[automaton.output_alpha]
    by_state = np.lexsort((query, state))
    constant_query = samples.alpha_keys[constants.alpha]
    by_query = np.argsort(constant_query)
    return kind(
        labels=samples.labels,
        observations=samples.observations,
        actions=samples.actions,
        outputs=samples.outputs,
        transitions=number[table[order]],
        trivial=trivial,
        output_state=state[by_state],
        output_question=query[by_state],
        output_value=automaton.output_value[by_state],
        constant_question=constant_query[by_query],
        constant_value=constants.output[by_query],
        support=Support(
            transitions=transition_count,
            outputs=automaton.output_count[by_state],
            constants=constants.count[by_query],
        ),
        **settings,
    )


def machine_of_tables(
    kind: type[M],
    *,
    labels: Vocabulary[Any],
    observations: Vocabulary[Any],
    actions: Vocabulary[Any],
    outputs: Vocabulary[Any],
    transitions: Codes,
    initial: int,
    answers: tuple[NDArray[np.int64], NDArray[np.int64], Codes],
    trivial: tuple[int, ...] = (),
    **settings: Any,
) -> tuple[M, Codes]:
    """Build a machine from known tables, with states in any order.

    `answers` are columns of state, query and output; all count as observed in their state.
    Returns the machine, and the new number of each state, −1 for unreachable ones.
    """
    swapped = np.arange(len(transitions), dtype=np.int32)
    swapped[[0, initial]] = initial, 0  # its own inverse
    table = transitions[swapped].copy()
    table[table >= 0] = swapped[table[table >= 0]]
    table[:, list(trivial)] = np.arange(len(table), dtype=np.int32)[:, None]
    order = breadth_first(table)
    number = np.full(len(table) + 1, -1, np.int32)  # the last is for targets of −1
    number[order] = np.arange(len(order), dtype=np.int32)
    old_state, query, output = answers
    state = number[swapped[old_state]]
    reachable = np.lexsort((query, state))[np.count_nonzero(state < 0) :]
    state, query, output = state[reachable], query[reachable], output[reachable]
    distinct, first, group = np.unique(query, return_index=True, return_inverse=True)
    varies = np.zeros(len(distinct), bool)
    varies[group[output != output[first][group]]] = True
    by_state = varies[group]
    machine = kind(
        labels=labels,
        observations=observations,
        actions=actions,
        outputs=outputs,
        transitions=number[table[order]],
        trivial=trivial,
        output_state=state[by_state],
        output_question=query[by_state],
        output_value=output[by_state],
        constant_question=distinct[~varies],
        constant_value=output[first][~varies],
        asked_state=state[~by_state],
        asked_question=query[~by_state],
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
    columns = np.stack(
        [states[rows], samples.alpha_keys[samples.alpha[rows]], samples.output[rows]]
    )
    (state, query, output), count = np.unique(columns, axis=1, return_counts=True)
    by_state = group_outputs(
        state.astype(np.int32), query.astype(np.int64), output.astype(np.int32), count
    )
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
        output_state=by_state.state,
        output_question=by_state.question,
        output_value=by_state.value,
        spread=by_state.spread,
        support=Support(transition_count, by_state.asked, np.empty(0, np.int64)),
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
    return tuple(
        map(
            MergeDecision,
            states[parent[blue]].tolist(),
            map(machine.labels.__getitem__, label[blue].tolist()),
            states[blue].tolist(),
            [event.red is None for event in automaton.events],
            [event.score for event in automaton.events],
            [event.folded for event in automaton.events],
        )
    )


def description_bits(machine: Machine) -> float:
    """Return the description length of a machine in bits; the fewer, the more probable it is.

    Described are the number of states, the target of each observed transition, and the output
    of each observed query in each state. Trivial labels and constant outputs cost nothing, since
    all machines that explain the same traces share them. See docs/decisions/inference.md.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> few = rs.infer(house, strategy="rpni").machines.transition
    >>> many = rs.infer(house[:10], strategy="rpni").machines.transition
    >>> few.states, many.states, description_bits(few) < description_bits(many)
    (2, 3, True)
    """
    table = np.delete(machine.transitions, list(machine.trivial), axis=1)
    size = 2 * binary_log(machine.states) + 1
    outputs = _output_bits(machine.output_question, machine.output_value)
    return size + _transition_bits(table) + outputs


def _transition_bits(table: NDArray[np.int32]) -> float:
    """Return the bits for the targets in a table [state, label]; −1 is unseen.

    First which transitions are loops: by state, since all labels loop in a sink, or by label,
    since those that change nothing loop in all states. Then the other targets, by how often
    transitions of all labels, of the same label or from the same state lead there. The codes
    are mixed evenly. The numbering of the states is not described.
    """
    states, labels = table.shape
    if states == 1:
        return 0.0
    state, label = np.nonzero(table >= 0)
    target = table[state, label]
    loops = (target == state).astype(np.int64)
    loop_bits = _mixed(_adaptive(state, loops, 2, states), _adaptive(label, loops, 2, labels))
    is_change = loops == 0
    state, label, target = state[is_change], label[is_change], target[is_change]
    target_bits = _mixed(
        _adaptive(np.zeros_like(label), target, states, 1),
        _adaptive(label, target, states, labels),
        _adaptive(state, target, states, states),
    )
    return loop_bits + target_bits - log_gamma(states) / natural_log(2)


def _output_bits(query: NDArray[np.int64], output: NDArray[np.int32]) -> float:
    """Return the bits for the outputs of states, each query with its own distribution."""
    if not len(output):
        return 0.0
    _, context = np.unique(query, return_inverse=True)
    distinct, symbol = np.unique(output, return_inverse=True)
    return _adaptive(context, symbol, len(distinct), int(context.max()) + 1)


def _adaptive(
    context: NDArray[np.int64], symbol: NDArray[np.int64], symbols: int, contexts: int
) -> float:
    """Return the bits of symbols under an adaptive code with one distribution for each context.

    It is their probability under a Dirichlet prior, so their order makes no difference. The
    prior counts of `symbols` symbols are 0.5 each, but together at most 1, so that a new
    symbol costs no more than naming it.
    """
    prior = min(_MAX_PRIOR, 1 / symbols)
    pairs, count = np.unique(context * symbols + symbol, return_counts=True)
    gained = np.zeros(contexts)
    np.add.at(gained, pairs // symbols, _log_rising(count, prior))
    spent = _log_rising(np.bincount(context, minlength=contexts), prior * symbols)
    return float(((spent - gained) / natural_log(2)).sum())


def _log_rising(count: NDArray[np.int64], start: float) -> NDArray[np.float64]:
    """Return ln of the rising factorial start · (start + 1) · … of `count` factors."""
    values = log_gammas(start + np.arange(int(count.max(initial=0)) + 1.0)) - log_gamma(start)
    return np.asarray(values[count])


def _mixed(*bits: float) -> float:
    """Return the bits under an even mixture of codes.

    >>> round(_mixed(8.0, 8.0), 3), _mixed(8.0, 1000.0)
    (8.0, 9.0)
    """
    least = min(bits)
    return float(
        least + binary_log(len(bits)) - binary_log(sum(power(2.0, least - code) for code in bits))
    )

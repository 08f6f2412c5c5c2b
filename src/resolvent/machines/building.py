"""Raw automaton + what was taken out of the samples → machine, canonically numbered."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent._util.validation import check_table
from resolvent.machines.automaton import RawAutomaton
from resolvent.machines.machine import Machine
from resolvent.machines.support import Support
from resolvent.reduction import ConstantOutputs
from resolvent.samples import Histories, SampleSet
from resolvent.traces.vocabulary import Codes, Vocabulary

M = TypeVar("M", bound=Machine)

_CELL_BYTES = 24
"""What each label takes in each state of a machine while it is made."""


def build_machine(
    kind: type[M],
    automaton: RawAutomaton,
    samples: SampleSet,
    constants: ConstantOutputs,
    trivial: tuple[int, ...],
    **more: Any,
) -> M:
    """Make a machine of the given kind and give it back what reduction took out.

    Paper: "Recovery" under both preprocessing rules.
    """
    check_table(automaton.states, len(samples.labels), _CELL_BYTES, "a machine's states by labels")
    table = np.full((automaton.states, len(samples.labels)), -1, np.int32)
    table[automaton.transition_state, automaton.transition_label] = automaton.transition_target
    table[:, list(trivial)] = np.arange(automaton.states, dtype=np.int32)[:, None]
    order = breadth_first(table)
    number = np.empty(automaton.states, np.int32)
    number[order] = np.arange(automaton.states, dtype=np.int32)
    transitions = table[order]
    transitions = np.where(transitions >= 0, number[transitions], np.int32(-1))

    transition_count = np.zeros(table.shape, np.int64)
    transition_count[number[automaton.transition_state], automaton.transition_label] = (
        automaton.transition_count
    )

    state = number[automaton.output_state]
    question = samples.alpha_keys[automaton.output_alpha]
    by_state = np.lexsort((question, state))
    constant_question = samples.alpha_keys[constants.alpha]
    by_question = np.argsort(constant_question)
    return kind(
        labels=samples.labels,
        observations=samples.observations,
        actions=samples.actions,
        outputs=samples.outputs,
        transitions=transitions,
        trivial=trivial,
        output_state=state[by_state],
        output_question=question[by_state],
        output_value=automaton.output_value[by_state],
        constant_question=constant_question[by_question],
        constant_value=constants.output[by_question],
        support=Support(
            transitions=transition_count,
            outputs=automaton.output_count[by_state],
            constants=constants.count[by_question],
        ),
        **more,
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
    **more: Any,
) -> tuple[M, Codes]:
    """Make a machine of tables that are known, with states in any order.

    `answers` are columns of state, question and output. Returns the machine and
    the number that each of the given states has in it, −1 for those no label
    leads to. Every answer given counts as witnessed in its state.
    """
    swapped = np.arange(len(transitions), dtype=np.int32)
    swapped[[0, initial]] = initial, 0  # its own inverse
    table = transitions[swapped].copy()
    table[table >= 0] = swapped[table[table >= 0]]
    table[:, list(trivial)] = np.arange(len(table), dtype=np.int32)[:, None]
    order = breadth_first(table)
    number = np.full(len(table) + 1, -1, np.int32)  # the last is for targets of −1
    number[order] = np.arange(len(order), dtype=np.int32)
    old_state, question, output = answers
    state = number[swapped[old_state]]
    known = np.lexsort((question, state))[np.count_nonzero(state < 0) :]
    state, question, output = state[known], question[known], output[known]
    asked, first, place = np.unique(question, return_index=True, return_inverse=True)
    varies = np.zeros(len(asked), bool)
    varies[place[output != output[first][place]]] = True
    machine = kind(
        labels=labels,
        observations=observations,
        actions=actions,
        outputs=outputs,
        transitions=number[table[order]],
        trivial=trivial,
        output_state=state[varies[place]],
        output_question=question[varies[place]],
        output_value=output[varies[place]],
        constant_question=asked[~varies],
        constant_value=output[first][~varies],
        asked_state=state[~varies[place]],
        asked_question=question[~varies[place]],
        **more,
    )
    return machine, number[swapped]


def loop_where_read(machine: M, dropped: tuple[int, ...], histories: Histories) -> M:
    """Give a machine back labels it was found without: loops in the states that read them.

    In other states they stay unseen. Unlike labels known to be trivial these
    were merely not seen to change anything, and a machine does not guess.
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
    read = np.zeros(count.shape, bool)
    read[:, dropped] = count[:, dropped] > 0
    transitions[read] = np.nonzero(read)[0]
    return replace(
        machine, transitions=transitions, support=replace(machine.support, transitions=count)
    )


def breadth_first(table: Codes) -> NDArray[np.int64]:
    """Return the states in the order in which a breadth-first walk in label order meets them."""
    met = {0: None}
    queue = [0]
    for state in queue:
        for target in table[state].tolist():
            if target >= 0 and target not in met:
                met[target] = None
                queue.append(target)
    return np.array(queue, np.int64)

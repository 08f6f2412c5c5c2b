"""Machine → text table, Graphviz DOT, Mermaid.

All three show states by number, transitions by label, and, in the table, the
answers that depend on the state: where they vary, the most likely one and its share.
"""

import re
from typing import Final, NamedTuple

import numpy as np

from resolvent._util.math import log1p
from resolvent._util.text import amount, percent, visible
from resolvent._util.validation import check_arguments
from resolvent.machines.compare import history_texts
from resolvent.machines.knowledge import UNSEEN
from resolvent.machines.listing import FEWEST_STATES, inputs_of, state_lines
from resolvent.machines.machine import Machine
from resolvent.traces.symbols import Symbol, label_text, symbol_text

SURE: Final = 0.99
"""Moves with less confidence are drawn as open: they might lead elsewhere."""

_RARELY: Final = 2
"""A move that was made so often, or less, is rare."""

_THIN, _THICK = 0.8, 3.2


def to_text(machine: Machine, *, most_outputs: int = 20) -> str:
    """Write a machine as plain text tables, showing at most so many outputs.

    A log's machine with many states is told in a few lines a state instead, all of it.
    """
    check_arguments(to_text, locals())
    name = machine.title if type(machine) is Machine else type(machine).__name__
    title = f"{name}: {amount(machine.states, 'state')}, answers with {answer_text(machine)}"
    inputs = inputs_of(machine) if machine.states >= FEWEST_STATES else None
    if inputs is not None:
        blocks = [
            f"{title}; inputs / answer, by where they lead",
            "",
            *state_lines(machine, inputs),
        ]
        return "\n".join(blocks) + "\n"
    blocks = [title, table(*transition_table(machine))]
    if machine.trivial:
        names = ", ".join(map(label_text, machine.trivial_labels))
        blocks.append(f"labels that change nothing: {names}")
    header, shown = output_table(machine, most_outputs)
    if shown:
        blocks.append(table(header, shown))
    if (more := len(np.unique(machine.output_question)) - most_outputs) > 0:
        blocks.append(f"… and {more} more that depend on the state")
    constants = len(machine.constant_value)
    if constants:
        blocks.append(f"the same in every state: {amount(constants, 'answer')}")
    if machine.is_noisy:
        odd = percent(machine.noise)
        blocks.append(f"noise: {odd} of all answers were others than the most frequent ones")
    return "\n\n".join(blocks) + "\n"


_ANSWERS = {"observation": "the next observation", "terminated": "whether the episode ends"}


def answer_text(machine: Machine) -> str:
    """Say what a machine answers with, such as "the next observation" or "the cost"."""
    return _ANSWERS.get(machine.predicts) or visible(f"the {machine.predicts}")


def transition_table(machine: Machine) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: for each state how it is reached and where labels lead."""
    moving = np.setdiff1d(np.arange(len(machine.labels)), machine.trivial)
    header = ["state", "reached after", *(label_text(machine.labels[code]) for code in moving)]
    reached = history_texts(machine)
    rows = [
        [str(state), reached[state], *("·" if target < 0 else str(target) for target in targets)]
        for state, targets in enumerate(machine.transitions[:, moving].tolist())
    ]
    return header, rows


def output_table(machine: Machine, most: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Return header and rows, at most so many: answers that depend on the state, by state."""
    questions = np.unique(machine.output_question)[:most].tolist()
    paired = machine.supplemented
    seen = ["observation", "TM state"] if paired else ["observation"]
    header = [*seen, "action", *(f"state {state}" for state in range(machine.states))]
    rows = []
    for number in questions:
        observation, action = machine.question(number)
        answers = (_answer(machine, state, observation, action) for state in range(machine.states))
        parts = observation if paired and isinstance(observation, tuple) else (observation,)
        rows.append([*map(symbol_text, parts), symbol_text(action), *answers])
    return header, rows


def graph_name(machine: Machine) -> str:
    """Return the name of a machine's graph, which every reader of DOT takes without quotes."""
    plain = re.sub(r"\W", "_", machine.kind, flags=re.ASCII)
    return f"{'_' if plain[0].isdigit() else ''}{plain}_machine"


def to_dot(machine: Machine) -> str:
    """Write a machine in Graphviz's DOT language, parallel edges joined."""
    lines = [
        f"digraph {graph_name(machine)} {{",
        "  rankdir=LR;",
        "  node [shape=circle];",
        '  start [shape=point, label=""];',
        "  start -> s0;",
    ]
    for state, way in enumerate(history_texts(machine)):
        reached = _quoted(f"after {way}" if state else "start")
        lines.append(f'  s{state} [label="{state}", tooltip={reached}];')
    often = edge_strengths(machine)
    for source, target, labels in edges(machine):
        look = f"label={_quoted(', '.join(labels))}"
        if one := often.get((source, target)):
            look += f", penwidth={one.width:.1f}" + (", style=dashed" if one.is_open else "")
        lines.append(f"  s{source} -> s{target} [{look}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(machine: Machine) -> str:
    """Write a machine as a Mermaid state diagram, parallel edges joined."""
    check_arguments(to_mermaid, locals())
    lines = ["stateDiagram-v2", "  direction LR", "  [*] --> s0"]
    lines += [f'  state "{state}" as s{state}' for state in range(machine.states)]
    for source, target, labels in edges(machine):
        text = ", ".join(labels)
        # Mermaid has no quoting for edge texts: entity codes keep its syntax out of them.
        safe = "".join(c if c.isalnum() or c in " ,_-.()" else f"#{ord(c)};" for c in text)
        lines.append(f"  s{source} --> s{target}: {safe}")
    return "\n".join(lines) + "\n"


def edges(machine: Machine) -> list[tuple[int, int, list[str]]]:
    """Return (source, target, label texts) for each pair of states, trivial labels left out.

    A label that might lead elsewhere for all that noise allows has its confidence beside it.
    """
    check_arguments(to_dot, locals())
    joined: dict[tuple[int, int], list[str]] = {}
    texts = [*map(label_text, machine.labels)]
    moves = machine.transitions >= 0
    moves[:, list(machine.trivial)] = False
    sources, codes = np.nonzero(moves)
    columns = (sources, codes, machine.transitions[sources, codes])
    for source, code, target in np.stack(columns, axis=1).tolist():
        sure = machine.confidence(source, machine.labels[code]) if machine.is_noisy else 1.0
        doubt = f" ({percent(sure)})" if sure < SURE else ""
        joined.setdefault((source, target), []).append(texts[code] + doubt)
    return [(source, target, labels) for (source, target), labels in sorted(joined.items())]


class EdgeStrength(NamedTuple):
    """How often an edge of a noisy machine was taken, how thick to draw it, and if it is open."""

    times: int
    width: float
    is_open: bool


def edge_strengths(machine: Machine) -> dict[tuple[int, int], EdgeStrength]:
    """Return for each pair of states how often labels led from one to the other; with noise only.

    An edge is open if one of its labels might lead elsewhere, at odds of less than 100 to 1.

    >>> from resolvent.worlds import House
    >>> edge_strengths(House().machines().transition)
    {}
    """
    if not machine.is_noisy or machine.support is None:
        return {}
    moves = machine.transitions >= 0
    moves[:, list(machine.trivial)] = False
    times: dict[tuple[int, int], int] = {}
    open_ones = set()
    for source, code in np.argwhere(moves).tolist():
        edge = source, int(machine.transitions[source, code])
        times[edge] = times.get(edge, 0) + int(machine.support.transitions[source, code])
        if machine.confidence(source, machine.labels[code]) < SURE:
            open_ones.add(edge)
    most = log1p(max(times.values(), default=1)) or 1.0
    return {
        edge: EdgeStrength(taken, _THIN + (_THICK - _THIN) * log1p(taken) / most, edge in open_ones)
        for edge, taken in sorted(times.items())
    }


def rare_edges(machine: Machine) -> set[tuple[int, int]]:
    """Return the pairs of states between which labels led once or twice in all, where known.

    >>> from resolvent.worlds import House
    >>> rare_edges(House().machines().transition)
    set()
    """
    if machine.support is None or machine.is_noisy:
        return set()
    moves = machine.transitions >= 0
    moves[:, list(machine.trivial)] = False
    times: dict[tuple[int, int], int] = {}
    for source, code in np.argwhere(moves).tolist():
        edge = source, int(machine.transitions[source, code])
        times[edge] = times.get(edge, 0) + int(machine.support.transitions[source, code])
    return {edge for edge, taken in times.items() if 0 < taken <= _RARELY}


def table(header: list[str], rows: list[list[str]]) -> str:
    """Set a table in columns wide enough for what they hold."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        return "  ".join(map(str.ljust, cells, widths)).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *map(line, rows)])


def _answer(machine: Machine, state: int, observation: Symbol, action: Symbol) -> str:
    output = machine.output(state, observation, action)
    if output is UNSEEN:
        return "·"
    share = main_share(machine, state, observation, action)
    return f"{symbol_text(output)} {share}" if share else symbol_text(output)


def main_share(machine: Machine, state: int, observation: Symbol, action: Symbol) -> str:
    """Return the share of a state's most likely answer in percent; nothing if it is the only one.

    >>> from resolvent.worlds import House
    >>> main_share(House().machines().transition, 1, "corridor", "up")
    ''
    """
    if not machine.is_noisy:
        return ""
    shares = machine.distribution(state, observation, action)
    return percent(max(shares.values())) if len(shares) > 1 else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

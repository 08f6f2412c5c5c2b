"""Write machines for graph tools: Graphviz DOT and Mermaid.

States are shown by number, transitions by label; parallel transitions are joined into one edge.
"""

from typing import Final, NamedTuple

import numpy as np

from resolvent._util.math import log1p
from resolvent._util.text import percent
from resolvent._util.validation import check_arguments
from resolvent.machines.compare import access_sequence_texts
from resolvent.machines.io.mealy_dot import graph_name
from resolvent.machines.machine import Machine
from resolvent.traces.symbols import label_text

CONFIDENT: Final = 0.99
"""Least confidence for a transition of a noisy machine to be drawn as certain."""

_RARE = 2
"""Maximum number of times that a rare edge was taken."""

_THIN, _THICK = 0.8, 3.2


class Edge(NamedTuple):
    """All transitions from one state to another, trivial labels left out."""

    source: int
    target: int
    labels: tuple[str, ...]
    """Label texts; those of uncertain transitions end with their confidence."""
    times: int | None
    """Number of times the edge was taken; None if the machine has no counts."""
    width: float | None = None
    """Line width by `times`; only for noisy machines with counts."""
    is_uncertain: bool = False
    """Whether a label may lead elsewhere, at odds of less than 100 to 1; if there is a `width`."""

    @property
    def is_rare(self) -> bool:
        """Whether the edge of an exact machine was taken once or twice."""
        return self.width is None and self.times is not None and 0 < self.times <= _RARE


def edges(machine: Machine) -> list[Edge]:
    """Return the edges by source and target.

    >>> from resolvent.worlds import House
    >>> [(edge.source, edge.target, edge.labels) for edge in edges(House().machines().transition)]
    [(0, 0, ('sofa',)), (0, 1, ('key',)), (1, 1, ('key', 'sofa', 'toilet'))]
    """
    check_arguments(to_dot, locals())
    is_drawn = machine.transitions >= 0
    is_drawn[:, list(machine.trivial)] = False
    support = None if machine.support is None else machine.support.transitions
    labels: dict[tuple[int, int], list[str]] = {}
    counts: dict[tuple[int, int], int] = {}
    uncertain = set()
    for source, code in np.argwhere(is_drawn).tolist():
        ends = source, int(machine.transitions[source, code])
        text = label_text(machine.labels[code])
        if machine.is_noisy:
            confidence = machine.confidence(source, machine.labels[code])
            if confidence < CONFIDENT:
                uncertain.add(ends)
                text += f" ({percent(confidence)})"
        labels.setdefault(ends, []).append(text)
        if support is not None:
            counts[ends] = counts.get(ends, 0) + int(support[source, code])
    if not (machine.is_noisy and support is not None):
        return [Edge(*ends, tuple(labels[ends]), counts.get(ends)) for ends in sorted(labels)]
    scale = log1p(max(counts.values(), default=1)) or 1.0
    widths = {ends: _THIN + (_THICK - _THIN) * log1p(n) / scale for ends, n in counts.items()}
    return [
        Edge(*ends, tuple(labels[ends]), counts[ends], widths[ends], ends in uncertain)
        for ends in sorted(labels)
    ]


def to_dot(machine: Machine) -> str:
    """Write a machine in Graphviz's DOT language."""
    lines = [
        f"digraph {graph_name(machine)} {{",
        "  rankdir=LR;",
        "  node [shape=circle];",
        '  start [shape=point, label=""];',
        "  start -> s0;",
    ]
    for state, path in enumerate(access_sequence_texts(machine)):
        tooltip = _quoted(f"after {path}" if state else "start")
        lines.append(f'  s{state} [label="{state}", tooltip={tooltip}];')
    for edge in edges(machine):
        attributes = f"label={_quoted(', '.join(edge.labels))}"
        if edge.width is not None:
            dashed = ", style=dashed" if edge.is_uncertain else ""
            attributes += f", penwidth={edge.width:.1f}{dashed}"
        lines.append(f"  s{edge.source} -> s{edge.target} [{attributes}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(machine: Machine) -> str:
    """Write a machine as a Mermaid state diagram."""
    check_arguments(to_mermaid, locals())
    lines = ["stateDiagram-v2", "  direction LR", "  [*] --> s0"]
    lines += [f'  state "{state}" as s{state}' for state in range(machine.states)]
    for edge in edges(machine):
        # Mermaid has no quoting for edge texts: entity codes keep its syntax out of them.
        text = "".join(
            c if c.isalnum() or c in " ,_-.()" else f"#{ord(c)};" for c in ", ".join(edge.labels)
        )
        lines.append(f"  s{edge.source} --> s{edge.target}: {text}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

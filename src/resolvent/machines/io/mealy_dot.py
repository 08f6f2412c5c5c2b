"""Machines → Mealy machines in DOT, as AALpy and LearnLib read them.

There are two kinds of input. Labels, written `label:door&key`, change the state and have the
output `ok`. Queries, written `ask:OBSERVATION:ACTION`, keep it and have the machine's output.
Unseen transitions and outputs have no edge; in a complete Mealy machine their output is `unseen`.

Names are escaped as in URLs, since one reader splits an edge's label at every slash, and the other
ends it at the first quote. An unquoted name is a JSON value if it parses as one, else a string.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from resolvent._util.validation import check_arguments
from resolvent.machines.machine import Machine
from resolvent.machines.memory import UNSEEN, State
from resolvent.traces.symbols import Symbol, as_label, as_symbol

READ = "ok"  # output of a label
NEVER_SEEN = "unseen"


def to_mealy_dot(machine: Machine, *, complete: bool = False) -> str:
    """Return a machine as a Mealy machine in DOT; see `Machine.to_mealy_dot`."""
    check_arguments(to_mealy_dot, locals())
    states: list[State] = list(range(machine.states))
    if complete and (machine.transitions < 0).any():
        states.append(UNSEEN)
    lines = [f"digraph {graph_name(machine)} {{"]
    lines += [f'  {_node(state)} [label="{_node(state)}"];' for state in states]
    for state in states:
        for name, target, output in _edges(machine, state, complete):
            lines.append(f'  {_node(state)} -> {_node(target)} [label="{name}/{output}"];')
    lines += ['  __start0 [label="", shape=none];', "  __start0 -> s0;", "}"]
    return "\n".join(lines) + "\n"


def label_input(label: Iterable[str]) -> str:
    """Return the input of a label."""
    return "label:" + "&".join(quote(name, safe="") for name in sorted(as_label(label)))


def query_input(observation: Any, action: Any) -> str:
    """Return the input of an observation and an action."""
    return f"ask:{symbol_name(as_symbol(observation))}:{symbol_name(as_symbol(action))}"


def symbol_name(symbol: Symbol) -> str:
    """Return the unique name of a symbol."""
    if isinstance(symbol, str) and not _is_ambiguous(symbol):
        return quote(symbol, safe="")
    return quote(json.dumps(symbol, separators=(",", ":")), safe=",[]")


def _is_ambiguous(text: str) -> bool:
    """Return whether a string would be read as another symbol, or not at all."""
    if text in ("", READ, NEVER_SEEN):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _edges(machine: Machine, state: State, complete: bool) -> Iterator[tuple[str, State, str]]:
    """Yield input, next state and output of each edge that leaves a state."""
    for label in machine.labels:
        target = machine.step(state, label)
        if target is not UNSEEN or complete:
            yield label_input(label), target, NEVER_SEEN if target is UNSEEN else READ
    for number in sorted({*machine.constant_query.tolist(), *machine.output_query.tolist()}):
        observation, action = machine.query(number)
        output = machine.output(state, observation, action)
        if output is not UNSEEN or complete:
            answer = NEVER_SEEN if output is UNSEEN else symbol_name(output)
            yield query_input(observation, action), state, answer


def _node(state: State) -> str:
    return NEVER_SEEN if state is UNSEEN else f"s{state}"


def graph_name(machine: Machine) -> str:
    """Return the name of a machine's graph as a DOT identifier without quotes."""
    name = re.sub(r"\W", "_", machine.name, flags=re.ASCII)
    return f"{'_' if name[0].isdigit() else ''}{name}_machine"

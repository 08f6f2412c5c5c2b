"""Machine → a Mealy machine in DOT, as AALpy and LearnLib read it.

A machine takes two kinds of input. Labels, written `label:door&key`, move the
state and answer `ok`. Questions, written `ask:OBSERVATION:ACTION`, leave it where
it is and answer with the output. What the machine was never shown has no edge;
a complete one answers `unseen` there.

Names are escaped as in URLs, since one reader splits an edge's label at every
slash, and the other ends it at the first quote. So unquoting gives back a name:
a JSON value where it is one, and else a string.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from resolvent._util.validation import check_arguments
from resolvent.machines.drawing import graph_name
from resolvent.machines.machine import Machine
from resolvent.machines.unseen import UNSEEN, State
from resolvent.traces.symbols import Symbol, as_label, as_symbol

READ = "ok"
"""What a label answers: nothing but that it was read."""

NEVER_SEEN = "unseen"
_LOST = "unseen"


def to_mealy_dot(machine: Machine, *, complete: bool = False) -> str:
    r"""Write a machine as a Mealy machine in DOT, for AALpy, LearnLib and their kin.

    With `complete`, every state answers every input: `unseen` where the machine
    was never shown what comes, and after an unseen label in one state more, in
    which only the answers that depend on no state are known.

    AALpy's `load_automaton_from_file(path, "mealy")` and AutomataLib's
    `DOTParsers.mealy()` read both; AALpy says of the partial one that it is not
    input complete, and raises `KeyError` where an input is missing.

    >>> import gymnasium as gym
    >>> import resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=500, seed=0)
    >>> lines = to_mealy_dot(rs.infer(traces).machines.transition).splitlines()
    >>> print(*[line for line in lines if ":key" in line or "corridor:up" in line], sep="\n")
      s0 -> s1 [label="label:key/ok"];
      s0 -> s0 [label="ask:corridor:up/corridor"];
      s1 -> s1 [label="label:key/ok"];
      s1 -> s1 [label="ask:corridor:up/cyanroom"];
    """
    check_arguments(to_mealy_dot, locals())
    states: list[State] = list(range(machine.states))
    if complete and _loses_itself(machine):
        states.append(UNSEEN)
    lines = [f"digraph {graph_name(machine)} {{"]
    lines += [f'  {_node(state)} [label="{_node(state)}"];' for state in states]
    for state in states:
        for name, target, answer in _edges(machine, state, complete):
            lines.append(f'  {_node(state)} -> {_node(target)} [label="{name}/{answer}"];')
    lines += ['  __start0 [label="", shape=none];', "  __start0 -> s0;", "}"]
    return "\n".join(lines) + "\n"


def label_input(label: Iterable[str]) -> str:
    """Return the input that stands for reading a label.

    >>> label_input({"key", "door"}), label_input(set()), label_input({"a/b"})
    ('label:door&key', 'label:', 'label:a%2Fb')
    """
    return "label:" + "&".join(quote(name, safe="") for name in sorted(as_label(label)))


def question_input(observation: Any, action: Any) -> str:
    """Return the input that stands for asking about an observation and an action.

    >>> question_input("corridor", "up"), question_input((3, 4), 1)
    ('ask:corridor:up', 'ask:[3,4]:1')
    """
    return f"ask:{symbol_name(as_symbol(observation))}:{symbol_name(as_symbol(action))}"


def symbol_name(symbol: Symbol) -> str:
    """Return the name of a symbol, which no other symbol has.

    >>> symbol_name("living room"), symbol_name(7), symbol_name("7"), symbol_name(("hall", 1))
    ('living%20room', '7', '%227%22', '[%22hall%22,1]')
    """
    if isinstance(symbol, str) and not _is_taken(symbol):
        return quote(symbol, safe="")
    return quote(json.dumps(symbol, separators=(",", ":")), safe=",[]")


def _is_taken(text: str) -> bool:
    """Whether a string would be read as something else, or not at all."""
    if text in ("", READ, NEVER_SEEN):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _edges(machine: Machine, state: State, complete: bool) -> Iterator[tuple[str, State, str]]:
    """Yield input, next state and answer of each edge that leaves a state."""
    for label in machine.labels:
        target = machine.step(state, label)
        if target is not UNSEEN:
            yield label_input(label), target, READ
        elif complete:
            yield label_input(label), UNSEEN, NEVER_SEEN
    for observation, action in _questions(machine):
        answer = machine.output(state, observation, action)
        if answer is not UNSEEN:
            yield question_input(observation, action), state, symbol_name(answer)
        elif complete:
            yield question_input(observation, action), state, NEVER_SEEN


def _questions(machine: Machine) -> list[tuple[Symbol, Symbol]]:
    numbers = {*machine.constant_question.tolist(), *machine.output_question.tolist()}
    return [machine.question(number) for number in sorted(numbers)]


def _loses_itself(machine: Machine) -> bool:
    return bool((machine.transitions < 0).any())


def _node(state: State) -> str:
    return _LOST if state is UNSEEN else f"s{state}"

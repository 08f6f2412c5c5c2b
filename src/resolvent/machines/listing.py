"""A log's machine with many states → a few lines a state: inputs, answers and where they lead.

Tables with a column for each state, or for each input, are wider than any screen then.
"""

from collections.abc import Iterator

from resolvent._util.text import percent
from resolvent.machines.compare import history_texts
from resolvent.machines.knowledge import UNSEEN
from resolvent.machines.machine import Machine
from resolvent.traces.symbols import Symbol, label_text, symbol_text

FEWEST_STATES = 13
"""Fewer are shown in tables."""


def inputs_of(machine: Machine) -> dict[int, Symbol] | None:
    """Return the action that stands behind the code of each label; None unless all are inputs.

    In a log they are one and the same: what was given is what was done, and what is read.

    >>> from resolvent.worlds import House
    >>> inputs_of(House().machines().transition) is None
    True
    """
    if len(machine.observations) != 1 or machine.supplemented:
        return None
    actions = {symbol_text(action): action for action in machine.actions}
    named = {code: label_text(label) for code, label in enumerate(machine.labels) if label}
    if not set(named.values()) >= set(actions):
        return None
    return {code: actions[name] for code, name in named.items() if name in actions}


def state_lines(machine: Machine, inputs: dict[int, Symbol]) -> Iterator[str]:
    """Tell a state in a few lines: what it answers to each input, after a slash, and who stays.

    An input that a state was never given is left out.
    """
    for state, after in enumerate(history_texts(machine)):
        yield f"state {state}, {f'after {after}' if state else 'the start'}"
        leads: dict[int, dict[str, list[str]]] = {}
        for code, action in inputs.items():
            target, answer = int(machine.transitions[state, code]), _answer(machine, state, action)
            if target < 0 and answer is None:
                continue
            to = leads.setdefault(target, {})
            to.setdefault(answer or "·", []).append(symbol_text(action))
        for target in sorted(leads, key=lambda one: (one != state, one)):
            where = "stays" if target == state else f"→ {target}" if target >= 0 else "→ ?"
            told = "; ".join(
                f"{', '.join(names)} / {answer}" for answer, names in leads[target].items()
            )
            yield f"  {where:<6} {told}"


def _answer(machine: Machine, state: int, action: Symbol) -> str | None:
    observation = machine.observations[0]
    output = machine.output(state, observation, action)
    if output is UNSEEN:
        return None
    if machine.is_noisy:
        shares = machine.distribution(state, observation, action)
        if len(shares) > 1:
            return f"{symbol_text(output)} {percent(max(shares.values()))}"
    return symbol_text(output)

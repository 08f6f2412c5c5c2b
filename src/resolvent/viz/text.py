"""Write machines as plain text: tables, or a list of states for large machines of a log.

Transitions are listed by label, and outputs only if they depend on the state. Varying outputs are
written as the most likely one and its share.
"""

from collections.abc import Iterator

import numpy as np

from resolvent._util.text import amount, percent, visible
from resolvent._util.validation import check_arguments
from resolvent.machines.compare import access_sequence_texts
from resolvent.machines.machine import Machine
from resolvent.machines.memory import UNSEEN
from resolvent.traces.symbols import Symbol, label_text, symbol_text

_FEWEST_STATES_LISTED = 13  # a table of more states is wider than a screen
_SHORT_NAMES = {"transition": "TM", "reward": "RM"}
_OUTPUT_NAMES = {"observation": "the next observation", "terminated": "whether the episode ends"}


def to_text(machine: Machine, *, most_outputs: int = 20) -> str:
    """Write a machine as plain text tables with at most `most_outputs` rows of outputs.

    A large machine of a log, whose labels are its inputs, is written in a few lines a state.
    """
    check_arguments(to_text, locals())
    name = machine.title if type(machine) is Machine else type(machine).__name__
    title = f"{name}: {amount(machine.states, 'state')}, predicts {output_name(machine)}"
    inputs = _inputs(machine) if machine.states >= _FEWEST_STATES_LISTED else None
    if inputs is not None:
        head = f"{title}; inputs / output, by successor"
        return "\n".join([head, "", *_state_lines(machine, inputs)]) + "\n"
    blocks = [title, table(*_transition_table(machine))]
    if machine.trivial:
        names = ", ".join(map(label_text, machine.trivial_labels))
        blocks.append(f"labels that change nothing: {names}")
    header, rows = _output_table(machine, most_outputs)
    if rows:
        blocks.append(table(header, rows))
    if (left_out := len(np.unique(machine.output_query)) - most_outputs) > 0:
        blocks.append(f"… and {left_out} more that depend on the state")
    constants = len(machine.constant_value)
    if constants:
        blocks.append(f"the same in every state: {amount(constants, 'output')}")
    if machine.is_noisy:
        noise = percent(machine.noise)
        blocks.append(f"noise: {noise} of all outputs differ from the most frequent one")
    return "\n\n".join(blocks) + "\n"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Set a table in columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        return "  ".join(map(str.ljust, cells, widths)).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *map(line, rows)])


def output_name(machine: Machine) -> str:
    """Name the output of a machine, such as "the next observation" or "the cost"."""
    return _OUTPUT_NAMES.get(machine.predicts) or visible(f"the {machine.predicts}")


def short_name(name: str) -> str:
    """Return the short name of a machine, which may be named by any column."""
    return _SHORT_NAMES.get(name) or visible(name)


def main_share(machine: Machine, state: int, observation: Symbol, action: Symbol) -> str:
    """Return the share of a state's most likely output in percent, or "" if there is only one."""
    if not machine.is_noisy:
        return ""
    shares = machine.distribution(state, observation, action)
    return percent(max(shares.values())) if len(shares) > 1 else ""


def _transition_table(machine: Machine) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: the path to each state, and the successor for each label."""
    codes = np.setdiff1d(np.arange(len(machine.labels)), machine.trivial)
    header = ["state", "reached after", *(label_text(machine.labels[code]) for code in codes)]
    paths = access_sequence_texts(machine)
    rows = [
        [str(state), paths[state], *("·" if target < 0 else str(target) for target in targets)]
        for state, targets in enumerate(machine.transitions[:, codes].tolist())
    ]
    return header, rows


def _output_table(machine: Machine, most: int) -> tuple[list[str], list[list[str]]]:
    """Return header and at most `most` rows: the outputs that depend on the state, by state."""
    is_paired = machine.supplemented
    seen = ["observation", "TM state"] if is_paired else ["observation"]
    header = [*seen, "action", *(f"state {state}" for state in range(machine.states))]
    rows = []
    for number in np.unique(machine.output_query)[:most].tolist():
        observation, action = machine.query(number)
        outputs = (
            _output_text(machine, state, observation, action) or "·"
            for state in range(machine.states)
        )
        parts = observation if is_paired and isinstance(observation, tuple) else (observation,)
        rows.append([*map(symbol_text, parts), symbol_text(action), *outputs])
    return header, rows


def _output_text(machine: Machine, state: int, observation: Symbol, action: Symbol) -> str | None:
    output = machine.output(state, observation, action)
    if output is UNSEEN:
        return None
    share = main_share(machine, state, observation, action)
    return f"{symbol_text(output)} {share}" if share else symbol_text(output)


def _inputs(machine: Machine) -> dict[int, Symbol] | None:
    """Return each label code's action if, as in a log, labels are names of actions; else None."""
    if len(machine.observations) != 1 or machine.supplemented:
        return None
    actions = {symbol_text(action): action for action in machine.actions}
    names = {code: label_text(label) for code, label in enumerate(machine.labels) if label}
    if not set(names.values()) >= set(actions):
        return None
    return {code: actions[name] for code, name in names.items() if name in actions}


def _state_lines(machine: Machine, inputs: dict[int, Symbol]) -> Iterator[str]:
    """Write for each state its seen inputs, each with the output after a slash, by successor."""
    observation = machine.observations[0]
    for state, path in enumerate(access_sequence_texts(machine)):
        yield f"state {state}, {f'after {path}' if state else 'the start'}"
        by_target: dict[int, dict[str, list[str]]] = {}
        for code, action in inputs.items():
            target = int(machine.transitions[state, code])
            output = _output_text(machine, state, observation, action)
            if target >= 0 or output is not None:
                by_output = by_target.setdefault(target, {})
                by_output.setdefault(output or "·", []).append(symbol_text(action))
        for target in sorted(by_target, key=lambda target: (target != state, target)):
            where = "stays" if target == state else f"→ {target}" if target >= 0 else "→ ?"
            pairs = (f"{', '.join(names)} / {text}" for text, names in by_target[target].items())
            yield f"  {where:<6} {'; '.join(pairs)}"
